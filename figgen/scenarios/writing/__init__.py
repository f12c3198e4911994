"""Writes the file that starts a job in each framework, and names the options it leaves out."""
