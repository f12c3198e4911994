"""Parts shared by the pages that tests write."""

from types import SimpleNamespace

BUBBLES = """```figure
figure: bubble-table
stages: [4, 8]
microbatches: [8, 8]
chunks: [1, 1]
caption: Bubbles.
alt: A table.
```
"""
"""A figure that takes no time to draw: a table of bubbles."""


def host_page() -> SimpleNamespace:
    """Return what a build keeps of a MkDocs page that it has converted."""
    return SimpleNamespace(
        toc=[], _title_from_render="", present_anchor_ids=set(), links_to_anchors=None
    )
