"""Serving and fine-tuning: caches, decode, price; adapters and optimizers that hold less."""
