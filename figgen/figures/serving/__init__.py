"""Serving and fine-tuning: caches, decode, price; adapters and smaller optimizers."""
