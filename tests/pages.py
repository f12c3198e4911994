"""What pages that tests write have in common."""

BUBBLES = """```figure
figure: bubble-table
stages: [4, 8]
microbatches: [8, 8]
chunks: [1, 1]
caption: Bubbles.
alt: A table.
```
"""
"""A figure that takes no time: a table of bubbles."""
