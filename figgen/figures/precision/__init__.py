"""Number formats and their savings."""
