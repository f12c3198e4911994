"""The feed lists the numbers that a publication changed, and keeps its earlier entries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from figgen.__main__ import main
from figgen.changes.feed import MOST_ENTRIES
from figgen.publish.changelog import FEED, PAGE, feed

ATOM = "{http://www.w3.org/2005/Atom}"
CHANGELOG = "# Changelog\n\n## [0.1.0] - 2026-05-04\n\n- First.\n"


def site(folder: Path, value: float, catalog: str = "1") -> Path:
    folder.mkdir()
    entry: dict[str, Any] = {
        "call": "f(n=1) <b>",
        "value": value,
        "unit": "s",
        "shown": f"{value:.3g} s",
        "where": "a.md:1",
    }
    (folder / "figures.json").write_text(json.dumps([entry]))
    (folder / "sources.json").write_text(json.dumps({"catalog": {"a.toml/x/v": catalog}}))
    told = feed({PAGE: CHANGELOG}, "Guide", "https://x.org/", "2026-11-01")
    (folder / FEED).write_text(told, "utf-8")
    return folder


def entries(folder: Path) -> list[tuple[str, str]]:
    root = ElementTree.fromstring((folder / FEED).read_text("utf-8"))
    found = root.findall(f"{ATOM}entry")
    assert len({entry.findtext(f"{ATOM}id") for entry in found}) == len(found)
    assert all(entry.findtext(f"{ATOM}updated") for entry in found)
    return [
        (entry.findtext(f"{ATOM}title", ""), entry.findtext(f"{ATOM}content", ""))
        for entry in found
    ]


def test_each_publication_that_moves_a_number_adds_an_entry(tmp_path: Path) -> None:
    """The last publication is only known by its manifest, next to its feed."""
    first, second = site(tmp_path / "first", 1.0), site(tmp_path / "second", 2.0, "3")
    assert main(["diff", str(first / "figures.json"), str(second), "--feed"]) == 0
    release, moved = entries(second)
    assert release == ("0.1.0", "- First.")
    assert moved[0] == "Changed: 1 number."
    assert "| `f(n=1) <b>` | `1 s` | `2 s` | +100.00% |" in moved[1]
    assert "x: v 1 → 3" in moved[1]

    same = site(tmp_path / "same", 2.0, "3")
    assert main(["diff", str(second), str(same), "--feed"]) == 0
    assert entries(same) == [release, moved]
    third = site(tmp_path / "third", 2.0004, "3")  # as a reader sees it: 2 s
    assert main(["diff", str(same), str(third), "--feed"]) == 0
    assert entries(third) == [release, moved]


def test_the_feed_does_not_grow_without_bound(tmp_path: Path) -> None:
    last = site(tmp_path / "0", 0.0)
    for number in range(1, MOST_ENTRIES + 3):
        newer = site(tmp_path / str(number), float(number))
        assert main(["diff", str(last), str(newer), "--feed"]) == 0
        last = newer
    told = entries(last)
    assert len(told) == MOST_ENTRIES + 1
    assert f"| `{number} s` |" in told[1][1]


def test_a_feed_is_written_for_a_site_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = site(tmp_path / "one", 1.0)
    assert main(["diff", str(one), str(one / "figures.json"), "--feed"]) == 2
    assert "the folder of a site with changes.xml" in capsys.readouterr().err
