"""Data outside the GPU: state in the host's memory, and state in storage."""
