"""Shapes of published models, out of the `config.json` that is kept beside their weights."""
