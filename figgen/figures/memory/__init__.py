"""The memory of a GPU."""
