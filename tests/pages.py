"""What pages that tests write have in common."""

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
"""A figure that takes no time: a table of bubbles."""


def host_page() -> SimpleNamespace:
    """What a build keeps of a page of MkDocs that it has converted."""
    return SimpleNamespace(
        toc=[], _title_from_render="", present_anchor_ids=set(), links_to_anchors=None
    )
