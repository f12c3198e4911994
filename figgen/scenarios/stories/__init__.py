"""The jobs that pages describe: the journey, and scaling series."""
