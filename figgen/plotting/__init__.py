"""Shared parts of figures: words, and series and bars with their colors."""
