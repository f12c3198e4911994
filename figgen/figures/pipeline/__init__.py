"""Pipelines: schedules, layouts and what they cost."""
