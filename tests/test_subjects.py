"""Every row of the source documents and of the rivals: its page, and the test that holds it."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.test_figure_coverage import anchors_in

ROOT = Path(__file__).parents[1]
PARTS = tomllib.loads((ROOT / "tests" / "subjects.toml").read_text(encoding="utf-8"))
ROWS = {f"{part}: {item}": row for part, rows in PARTS.items() for item, row in rows.items()}
NAVIGATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
TESTS = {row["test"] for row in ROWS.values() if "test" in row}


@cache
def anchors(path: str) -> frozenset[str]:
    """Return the anchors of a written page to which links may point."""
    return anchors_in((ROOT / "docs" / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("part", PARTS)
def test_a_row_that_is_there_has_page_and_test_and_another_its_reason(part: str) -> None:
    for item, row in PARTS[part].items():
        state = row.get("state", "yes")
        wanted = {
            "yes": {"at", "test"},
            "partly": {"state", "at", "because"},
            "not": {"state", "because"},
        }[state]
        assert row.keys() - {"test"} == wanted - {"test"}, item
        assert ("test" in row) >= (state == "yes"), item


@pytest.mark.parametrize("part", PARTS)
def test_places_are_on_the_site(part: str) -> None:
    for item, row in PARTS[part].items():
        if row.get("state") == "not":
            continue
        path, _, anchor = row["at"].partition("#")
        assert f": {path}\n" in NAVIGATION, item
        assert not anchor or anchor in anchors(path), f"{item}: {row['at']}"


@pytest.mark.parametrize("name", sorted(TESTS))
def test_tests_are_there(name: str) -> None:
    path, _, function = name.partition("::")
    source = (ROOT / path).read_text(encoding="utf-8")
    assert re.search(
        rf"^ *def {function or 'test_'}\w*\(" if not function else rf"^ *def {function}\(",
        source,
        re.M,
    )


def test_what_is_missing_is_counted() -> None:
    """Lower these numbers when a row is filled; a new row must be listed as present or missing."""
    found = {
        part: Counter(row.get("state", "yes") for row in rows.values())
        for part, rows in PARTS.items()
    }
    missing = {part: (states["partly"], states["not"]) for part, states in found.items()}
    assert missing == {
        "visualizer": (0, 0),
        "modeler": (0, 0),
        "systems-guide": (0, 0),
        "training-guide": (0, 0),
        "megatron-notes": (0, 0),
        "rivals": (0, 0),
    }
