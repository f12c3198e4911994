"""On every page that teaches, a picture comes before the first section."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted([*DOCS.glob("journey/*.md"), *DOCS.glob("guide/*.md")])
MOST_WORDS = 210
"""Most words before the picture: a column of this many is half a screen of 900 pixels."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_a_picture_is_on_the_first_screen(page: Path) -> None:
    text = page.read_text("utf-8").partition("\n# ")[2]
    above, fence, _ = text.partition("\n```figure\n")
    assert fence, "has no figure"
    assert not re.search(r"^## ", above, re.M), "its first figure stands in a section"
    said = re.sub(r"\{\?.*?\?\}|\{\{.*?\}\}", "number", above)
    assert len(said.split()) <= MOST_WORDS
