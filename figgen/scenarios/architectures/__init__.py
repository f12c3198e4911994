"""Shapes of published models, read from the `config.json` beside their weights."""
