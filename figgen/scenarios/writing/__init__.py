"""Writes the file that starts a job in each framework, and lists the options it leaves out."""
