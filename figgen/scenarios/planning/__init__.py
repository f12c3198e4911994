"""Questions to the planner and its answers."""
