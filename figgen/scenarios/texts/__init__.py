"""Configuration texts as entries: keys with their values and lines, whatever the format."""
