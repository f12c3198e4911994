"""Recorded profiles read, classified and compared with the model."""
