"""The comparison behind `make canary`: words from markup, missing words and new words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import canary
from tests.canary import compared, kept, kinds


def site(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_each_difference_is_of_its_kind(tmp_path: Path) -> None:
    builder = '<meta name="generator" content="{}"><p>a</p>'
    one = {
        "same.html": builder.format("one"),
        "said.html": "<p>idle 27 %</p>",
        "marked.html": "<p>a b</p>",
        "data.csv": "1\n",
        "gone.svg": "x",
    }
    other = one | {
        "same.html": builder.format("other 2"),
        "said.html": "<p>idle 28 %</p>",
        "marked.html": "<div>a\n<b>b</b></div>",
        "data.csv": "2\n",
        "new.css": "",
    }
    del other["gone.svg"]

    assert compared(site(tmp_path / "one", one), site(tmp_path / "other", other)) == {
        "missing": ["gone.svg"],
        "added": ["new.css"],
        "pages that say something else": ["said.html"],
        "other files and markup": ["data.csv", "marked.html"],
    }


def test_builders_that_must_be_equal_fail_where_a_byte_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {"mkdocs": "<p>a</p>", "properdocs": "<p>a</p>"}

    def built(name: str, project: Path, programs: Path) -> str:
        site(project / "site", {"a.html": made[name], "a.csv": "1"})
        return ""

    monkeypatch.setattr(canary, "built", built)
    monkeypatch.setattr(canary, "copy_of_the_project", lambda folder: folder)
    monkeypatch.setattr(canary, "release", lambda name, _: name)
    assert canary.main(tmp_path, tmp_path / "work", ["properdocs"]) == 0
    made["properdocs"] = "<p class='b'>a</p>"
    assert canary.main(tmp_path, tmp_path / "work", ["properdocs"]) == 1
    assert "1 other files and markup: 1 *.html" in capsys.readouterr().out


def test_a_report_counts_by_kind_and_says_how_much_of_a_page_is_left(tmp_path: Path) -> None:
    one = site(tmp_path / "one", {"a.html": "<p>one two three four</p>", "b.html": "<p>x y</p>"})
    other = site(tmp_path / "other", {"a.html": "<p>four one two nine</p>", "b.html": "<p>y</p>"})
    assert kept(one, other, ["a.html", "b.html"]) == "with 62% of the words, b.html with 50%"
    names = ["assets/figures/a/x.svg", "assets/figures/b/y/z.svg", "guide/a/index.md", "top.xml"]
    assert kinds(names) == "2 assets/figures/*.svg, 1 guide/*.md, 1 *.xml"
