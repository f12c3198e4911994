"""Collectives, their algorithms, and the cost of a message."""
