"""Descriptions of models: dimensions, layers, number formats, adapters and recomputation."""
