"""Shapes of published models, read from the `config.json` next to their weights."""
