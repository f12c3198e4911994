"""Comparing manifests: keys survive inserted lines, and hostile content stays text."""

from __future__ import annotations

import json
import math
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from figgen.__main__ import main
from figgen.changes import report
from figgen.changes.builds import read_build
from figgen.changes.causes import Cause, _with_entry, causes
from figgen.changes.compare import compare, prose
from figgen.changes.sources import sources
from figgen.errors import InputError

HOSTILE = '"><script>alert(1)</script>|`@everyone`](http://x)\n# head'


def number(call: str, value: float | str, where: str = "a.md:1", **more: Any) -> dict[str, Any]:
    return {"call": call, "value": value, "unit": "1", "shown": str(value), "where": where, **more}


def figure(
    data: str, name: str = "fig-x", where: str = "a.md:3", svg: str = "<svg/>", **values: Any
) -> dict[str, Any]:
    return {
        "id": name,
        "figure": "x",
        "number": "Figure 1.1",
        "where": where,
        "data_sha256": data,
        "values": {key: [value, "1"] for key, value in values.items()},
        "svg": svg,
    }


def build(folder: Path, name: str, entries: Any, **sources: dict[str, str]):
    site = folder / name
    (site / "assets/figures/a").mkdir(parents=True)
    (site / "sources.json").write_text(json.dumps(sources))
    for entry in entries if isinstance(entries, list) else ():
        if "figure" in entry:
            (site / "assets/figures/a/fig-x.svg").write_text(entry["svg"])
    (site / "figures.json").write_text(json.dumps(entries))
    return read_build(site, name)


def test_inserted_lines_move_no_number(tmp_path: Path) -> None:
    old = [number("f()", 1, "a.md:1"), number("f()", 1, "a.md:9"), figure("d", rows=3)]
    new = [
        number("f()", 1, "a.md:5"),
        number("f()", 1, "a.md:30"),
        figure("d", where="a.md:8", rows=3),
    ]
    changes = compare(build(tmp_path, "old", old), build(tmp_path, "new", new))
    assert not any(changes.counts.values())
    assert report.verdict(changes) == "Nothing changed."


def test_equal_calls_are_told_apart_by_their_order(tmp_path: Path) -> None:
    old = [number("f()", 1, "a.md:2"), number("f()", 1, "a.md:10")]
    new = [number("f()", 1, "a.md:2"), number("f()", 4, "a.md:10")]
    changes = compare(build(tmp_path, "old", old), build(tmp_path, "new", new))
    (moved,) = changes.numbers
    assert (moved.after.line, moved.before.value, moved.after.value) == (10, 1, 4)
    assert moved.relative == 3


@pytest.mark.parametrize(("before", "after"), [(0, 2), (0, -2), ("a", "b")])
def test_growth_from_nothing_or_of_words_is_no_percentage(
    before: Any, after: Any, tmp_path: Path
) -> None:
    old, new = [number("f()", before)], [number("f()", after)]
    (moved,) = compare(build(tmp_path, "old", old), build(tmp_path, "new", new)).numbers
    assert not math.isfinite(moved.relative)
    report.summary(compare(build(tmp_path, "o", old), build(tmp_path, "n", new)), ())


def test_what_moved_furthest_comes_first_and_rounding_is_folded_away(tmp_path: Path) -> None:
    """One constant doubles one number and adds a percent to two; elsewhere only last
    digits change."""
    shown = {"unit": "s", "shown": "0.1 s"}
    old = [
        number("noise()", 0.1, "a.md:1", **shown),
        number("small()", 100.0, "a.md:2"),
        number("words()", "tp=8", "a.md:3"),
        number("large()", 100.0, "a.md:4"),
        number("down()", 100.0, "a.md:5"),
    ]
    new = [
        number("noise()", 0.1 + 2**-56, "a.md:1", **shown),
        number("small()", 101.0, "a.md:2"),
        number("words()", "tp=4", "a.md:3"),
        number("large()", 200.0, "a.md:4"),
        number("down()", 40.0, "a.md:5"),
    ]
    base = build(tmp_path, "base", old, catalog={"a.toml/x/v": "1"})
    head = build(tmp_path, "head", new, catalog={"a.toml/x/v": "2"})
    changes = compare(base, head)
    names = ["words()", "large()", "down()", "small()", "noise()"]
    assert [m.after.name for m in changes.numbers] == names
    assert [m.is_seen for m in changes.numbers] == [True, True, True, True, False]
    said = "Changed: 4 numbers; and 1 number in digits that no page shows."
    assert report.verdict(changes) == said
    keys = {m.after.name: m.key for m in changes.numbers}
    found = [
        Cause("noise", frozenset({keys["noise()"]})),
        Cause("little", frozenset({keys["small()"], keys["noise()"]})),
        Cause("much", frozenset({keys["large()"], keys["down()"], keys["words()"]})),
    ]
    page = report.html(base, head, changes, found)
    first, _, folded = page.partition("<details><summary>In digits that no page shows: 1 number<")
    order = [first.index(f"<code>{name}</code>") for name in ("much", "little", "noise")]
    assert order == sorted(order)
    assert first.index("large()") < first.index("down()") < first.index("small()")
    assert "noise()" not in first
    assert "0.10000000000000002 s" in folded
    summary = report.summary(changes, found)
    assert "noise()" not in summary
    assert "- `little`: 1 number, by up to +1.00%" in summary
    assert "- `noise`: no number that is shown" in summary


def test_a_build_with_other_last_digits_alone_says_so(tmp_path: Path) -> None:
    one, other = (number("f()", value, shown="0.3") for value in (0.3, 0.1 + 0.2))
    changes = compare(build(tmp_path, "old", [one]), build(tmp_path, "new", [other]))
    said = "Nothing that a reader sees changed, but 1 number in digits that no page shows."
    assert report.verdict(changes) == said


def test_data_and_looks_are_told_apart(tmp_path: Path) -> None:
    base = build(tmp_path, "base", [figure("d", svg="<svg>1</svg>", rows=3)])
    drawn = build(tmp_path, "drawn", [figure("d", svg="<svg>2</svg>", rows=3)])
    moved = build(tmp_path, "moved", [figure("e", svg="<svg>2</svg>", rows=4)])
    assert compare(base, drawn).counts == dict.fromkeys(compare(base, drawn).counts, 0) | {
        "pictures": 1
    }
    assert (compare(base, moved).counts["figures"], compare(base, moved).counts["numbers"]) == (
        1,
        1,
    )


def test_equal_pictures_are_not_shown_side_by_side(tmp_path: Path) -> None:
    base = build(tmp_path, "base", [figure("d", rows=3)])
    for data, svg, pictures in (("e", "<svg/>", 0), ("f", "<svg>2</svg>", 2)):
        head = build(tmp_path, data, [figure(data, svg=svg, rows=3)])
        page = report.html(base, head, compare(base, head), ())
        assert page.count("<img") == pictures
        assert ("Its picture is the same" in page) == (not pictures)


def test_manifests_alone_tell_data_from_looks_and_name_the_formula(tmp_path: Path) -> None:
    def manifest(name: str, entries: list[dict[str, Any]]) -> Path:
        (tmp_path / name).write_text(json.dumps(entries))
        return tmp_path / name

    drawn = {**figure("d", rows=3), "picture_sha256": "1"}
    old = [number("f(n=1)", 1, formula="n² / 2"), drawn]
    new = [number("f(n=1)", 2, formula="n² · <b>"), {**drawn, "picture_sha256": "2"}]
    base, head = (read_build(manifest(*one)) for one in (("old.json", old), ("new.json", new)))
    changes = compare(base, head)
    assert (changes.counts["pictures"], changes.counts["figures"]) == (1, 0)
    page = report.html(base, head, changes, causes(changes, None, "base", "head"))
    assert "<code>f(n=1)</code><br>= <code>n² · &lt;b&gt;</code></details>" in page
    assert "One of the builds is a manifest without its pictures." in page


def test_a_row_has_a_call_with_all_its_places_or_all_values_of_a_figure(tmp_path: Path) -> None:
    long = f"f(x={'1' * 80})"
    places = ("a.md:1", "b.md:9", "b.md:12")
    old = [*(number(long, 1, where) for where in places), figure("d", idle=1.0, busy=4)]
    new = [*(number(long, 2, where) for where in places), figure("e", idle=1.5, busy=5)]
    base, head = build(tmp_path, "base", old), build(tmp_path, "head", new)
    changes = compare(base, head)
    assert changes.counts["numbers"] == 5
    rows = report.html(base, head, changes, causes(changes, None, "b", "h")).split("<tr><td>")[1:3]
    assert "<summary><code>f(…)</code></summary>" in rows[0]
    assert f"<code>{long}</code></details> <small>a.md:1, b.md:9, b.md:12</small>" in rows[0]
    assert "<td>1 → 2 <b>+100.00%</b></td>" in rows[0]
    assert "<code>#fig-x</code>: 2 numbers</summary>" in rows[1]
    assert "<li><code>idle</code> 1 → 1.5 +50.00%</li>" in rows[1]
    assert "<li><code>busy</code> 4 → 5 +25.00%</li>" in rows[1]
    assert "<td>up to <b>+50.00%</b></td>" in rows[1]


def test_a_new_figure_is_told_once_without_its_values(tmp_path: Path) -> None:
    base, head = build(tmp_path, "base", []), build(tmp_path, "head", [figure("d", rows=3)])
    assert compare(base, head).counts["added"] == 1
    assert compare(head, base).counts["removed"] == 1


def test_measurements_are_a_cause_like_a_constant_and_many_causes_are_counted(
    tmp_path: Path,
) -> None:
    """A file of measurements changed along with a constant; blaming only the constant would be
    wrong."""
    one, other = [number("f()", 1)], [number("f()", 2)]

    def named(name: str, constants: int, measured: str) -> str:
        catalog = {f"a.toml/entry-{n}/v": measured for n in range(constants)}
        data = {"catalog/runs.json": measured}
        old = build(tmp_path, f"{name}-old", one, catalog=dict.fromkeys(catalog, "1"), data=data)
        new = build(tmp_path, name, other, catalog=catalog, data=data | {"catalog/runs.json": "3"})
        (cause,) = causes(compare(old, new), None, "old", "new")
        return cause.what

    assert named("none", 0, "2") == "1 × data file: catalog/runs.json"
    said = "a.toml, entry-0: v 1 → 2; 1 × data file: catalog/runs.json"
    assert named("one", 1, "2") == said
    assert named("many", 9, "2") == (
        "9 × catalog entry: a.toml: entry-0, a.toml: entry-1, a.toml: entry-2 …; "
        "1 × data file: catalog/runs.json"
    )


def test_what_a_build_was_made_from_has_the_files_of_measurements() -> None:
    assert "catalog/runs-measured.json" in json.loads(sources({}))["data"]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_hostile_content_stays_text(tmp_path: Path) -> None:
    evil = {
        **figure("d", name=HOSTILE, where=f"{HOSTILE}:1", rows=3),
        "number": HOSTILE,
        "svg": f"<svg><script>{HOSTILE}</script></svg>",
    }
    old = [number(HOSTILE, HOSTILE, f"{HOSTILE}:1"), dict(evil)]
    new = [number(HOSTILE, "x", f"{HOSTILE}:1", unit=HOSTILE), {**evil, "data_sha256": "e"}]
    base = build(tmp_path, "base", old, catalog={HOSTILE: HOSTILE}, pages={HOSTILE: "1"})
    head = build(tmp_path, "head", new, catalog={HOSTILE: "2"}, pages={HOSTILE: "2"})
    changes = compare(base, head)
    found = causes(changes, None, "base", "head")
    parsed = Tags()
    parsed.feed(report.html(base, head, changes, found))
    assert "script" not in parsed.tags
    assert not [name for name in parsed.attributes if name.startswith("on")]
    summary = report.summary(changes, found)
    assert "\n# head" not in summary
    assert summary.count("`") % 2 == 0
    assert all("@everyone" not in piece for piece in summary.split("`")[::2])


@pytest.mark.parametrize("where", ["../../etc/passwd.md:1", "/etc/passwd.md:1", ".md:1", ":"])
def test_a_figure_reads_no_file_outside_its_site(where: str, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    head = build(tmp_path, "head", [figure("d", where=where, name="../../../secret")])
    (tmp_path / "secret.svg").write_text("secret")
    assert [figure.file for figure in head.figures.values()] == [""]


@pytest.mark.parametrize(
    "odd",
    [
        '"where": "{long}.md:1"',
        '"where": "a\\u0000.md:1"',
        '"id": "{long}"',
        '"id": "\\u0000"',
        '"id": "\\ud800"',
        '"number": "\\udfff"',
        '"call": "\\ud800"',
        '"shown": "\\ud800"',
        '"value": {huge}, "call": "f()"',
        '"values": {{"\\ud800": [{huge}, "B"]}}',
    ],
)
def test_what_no_file_and_no_float_can_hold_is_told_all_the_same(odd: str, tmp_path: Path) -> None:
    """JSON may have halves of surrogate pairs, NUL in names, and numbers of any length."""
    for when in ("base", "head"):
        site = tmp_path / when
        site.mkdir()
        said = odd.format(long="a" * 300, huge=when.count("h") * "-" + "9" * 5000)
        known = f'"figure": "x", "id": "i", "where": "a.md:1", "data_sha256": "{when}"'
        (site / "figures.json").write_text(f"[{{{known}, {said}}}]")
        pages = {"a" * 300 + ".md": when} if "where" in odd else {}
        (site / "sources.json").write_text(json.dumps({"pages": pages}))
    told = tmp_path / "told"
    assert (
        main(["diff", str(tmp_path / "base"), str(tmp_path / "head"), "--report", str(told)]) == 0
    )
    assert (told / "index.html").read_text("utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("content", ["", "{", "{}", "[1]", "[" * 100_000])
def test_a_manifest_that_is_none_is_one_line(content: str, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    file.write_text(content)
    with pytest.raises(InputError) as refused:
        read_build(file)
    assert "\n" not in str(refused.value)


def test_the_article_is_prose_and_its_figures_and_numbers_are_not() -> None:
    page = (
        "<nav>menu</nav><article><h1>Title</h1><p>It takes <data value=1>1 s</data> now. And then."
        "</p><figure><svg><text>9</text></svg><figcaption>c</figcaption></figure>"
        "<div popover><div><p>1 = 2 / 2</p></div>so</div><td><data>1</data></td></article>foot"
    )
    assert prose(page) == ["Title", "It takes # now.", "And then."]


OLD = "[a]\nx = 1\n\n[b]\ny = 2\n[b.inner]\nz = 3\n\n[c]\nw = 4\n"


@pytest.mark.parametrize(
    ("name", "new", "expected"),
    [
        ("b", "[b]\ny = 7\n", {"a": {"x": 1}, "b": {"y": 7}, "c": {"w": 4}}),
        ("c", '["c"]\nw = 5\n', {"a": {"x": 1}, "b": {"y": 2, "inner": {"z": 3}}, "c": {"w": 5}}),
        (
            "d",
            "[d]\nv = 1\n",
            {"a": {"x": 1}, "b": {"y": 2, "inner": {"z": 3}}, "c": {"w": 4}, "d": {"v": 1}},
        ),
        ("b", "", {"a": {"x": 1}, "c": {"w": 4}}),
    ],
)
def test_one_entry_is_taken_over_alone(name: str, new: str, expected: Any) -> None:
    import tomllib

    assert tomllib.loads(_with_entry(OLD, new, name)) == expected
