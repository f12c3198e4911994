"""Every independently computed value is compared with something, and the list of them
is complete."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ORACLES = Path(__file__).parent / "oracles"
ROOT = ORACLES.parents[1]
ABOUT = {"source", "key", "note", "row", "ids", "sizes_bytes", "published"}
# Shown on pages too, so they lie in the package: a build reads no tests.
SHOWN = (
    ROOT / "figgen" / "formulas" / "points.json",
    *sorted((ROOT / "figgen" / "catalog").glob("slow-threads*.json")),
    ROOT / "figgen" / "catalog" / "options-timed.json",
)
FILES = (*sorted(ORACLES.glob("*.json")), *SHOWN)
# Tables that hold several, each compared in its own way.
SEVERAL = {"korthikanti_2205.05198": {"configs", "fig1_GiB", "fig7_pct_of_none", "table5"}}

ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ORACLES / "README.md").read_text(encoding="utf-8").splitlines()[8:]
]


def parts() -> Iterator[str]:
    """Return every table in every file, by its name in the list."""
    for path in FILES:
        content = json.loads(path.read_text(encoding="utf-8"))
        for name in content.keys() - ABOUT:
            if name in SEVERAL:
                yield from (f"{path.name} {name}.{part}" for part in SEVERAL[name])
            else:
                yield f"{path.name} {name}"
        yield from (f"{path.name} published.{name}" for name in content.get("published", ()))


def test_every_part_is_listed_once() -> None:
    assert sorted(row[0] for row in ROWS) == sorted(parts())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_test_that_compares_it_exists_and_says_how_closely(row: list[str]) -> None:
    _, compared, tolerance, reason = row
    path, _, name = compared.partition("::")
    assert re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.M)
    assert tolerance
    assert reason


def test_every_file_names_its_source() -> None:
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert re.search(r'"source": "[^"]{10,}"', text), path.name
