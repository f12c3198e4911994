"""Writes the file that starts a training job, for each framework, and names what it cannot say."""
