"""Shared parts of figures: words, and series and bars in their colours."""
