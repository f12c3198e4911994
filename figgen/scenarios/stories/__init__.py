"""The jobs that the pages tell of: the journey, and scaling series."""
