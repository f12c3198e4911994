"""Compares the model with published runs, memory peaks, layouts and other predictors."""
