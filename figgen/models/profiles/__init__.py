"""Recorded profiles: reading them, classifying their kernels, and comparing them with the model."""
