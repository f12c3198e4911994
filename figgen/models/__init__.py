"""Algorithms that compute layouts, schedules, steps and plans from shapes and sizes."""
