"""Pipeline schedules: stage placement, order of passes, and what simulating them gives."""
