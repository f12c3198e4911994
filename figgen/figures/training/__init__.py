"""Whole training steps and published runs."""
