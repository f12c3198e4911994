"""The pages of the site by address, read from the navigation."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

SAMPLES = ("reference/presets/deepseek-v3.md", "reference/formulas/collectives.md")
"""One page of each kind that is reached through other pages' links and not by the navigation."""

SOURCES: tuple[str, ...] = (
    *re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.M),
    *SAMPLES,
)
"""Files named in the navigation, in order (`index.md`, `guide/rank-mapping.md`, …), and samples."""


def address_of(source: str) -> str:
    """Return the address of a source: `/guide/rank-mapping/` for `guide/rank-mapping.md`."""
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
"""Pages used by tests.

The last two are short, for tests that need any page at all: one with figures to explore, and one to
navigate to.
"""
