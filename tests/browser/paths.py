"""The pages of the site by their addresses, read from the navigation."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

SAMPLES = ("reference/presets/deepseek-v3.md", "reference/formulas/collectives.md")
"""One of each kind of page that the navigation leaves to other pages' links."""

SOURCES: tuple[str, ...] = (
    *re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.M),
    *SAMPLES,
)
"""What the navigation names, in its order (`index.md`, `guide/rank-mapping.md`, …), and samples."""


def address_of(source: str) -> str:
    """Where a source is published: `guide/rank-mapping.md` at `/guide/rank-mapping/`."""
    return f"/{source.removesuffix('.md').removesuffix('index')}/".replace("//", "/")


PATHS: tuple[str, ...] = tuple(map(address_of, SOURCES))

PIPELINE, RANKS, RINGS, FORMULAS, LIGHT, EXPLORED = (
    f"/{path}/"
    for path in (
        "guide/pipeline-schedules",
        "guide/rank-mapping",
        "guide/ring-all-reduce",
        "reference/formulas",
        "guide/efficiency",
        "guide/failures",
    )
)
"""The last two are short, for tests that ask nothing of a page but to be there: one with figures
to explore, and another to go to."""
