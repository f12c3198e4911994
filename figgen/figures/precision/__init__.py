"""Number formats and what they save."""
