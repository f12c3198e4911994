"""Pipelines: schedules, layouts and costs."""
