"""The jobs that the pages describe: the journey, and scaling series."""
