"""The comparison behind `make canary`: words from markup, what is missing from what is new."""

from __future__ import annotations

from pathlib import Path

from tests.canary import compared


def site(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_each_difference_is_of_its_kind(tmp_path: Path) -> None:
    one = {"same.html": "<p>a</p>", "said.html": "<p>idle 27 %</p>", "marked.html": "<p>a b</p>",
           "data.csv": "1\n", "gone.svg": "x"}  # fmt: skip
    other = one | {"said.html": "<p>idle 28 %</p>", "marked.html": "<div>a\n<b>b</b></div>",
                   "data.csv": "2\n", "new.css": ""}  # fmt: skip
    del other["gone.svg"]

    assert compared(site(tmp_path / "one", one), site(tmp_path / "other", other)) == {
        "missing": ["gone.svg"],
        "added": ["new.css"],
        "pages that say something else": ["said.html"],
        "other files and markup": ["data.csv", "marked.html"],
    }
