"""Pipeline schedules: placement of stages, order of passes, and their simulation."""
