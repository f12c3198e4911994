"""Algorithms: what a layout, a schedule, a step and a plan are, computed from shapes and sizes."""
