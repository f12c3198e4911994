"""Predictions and measurements."""
