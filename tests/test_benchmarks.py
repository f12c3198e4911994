"""What `make bench` compares is comparable: the same pages, all data drawn, the same versions."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from figgen import charts
from figgen.charts import canonical_json
from figgen.markdown import directive
from figgen.markdown.conversion import fences
from figgen.registry import build
from tests.benchmarks import __main__ as bench
from tests.benchmarks import (
    authoring,
    contenders,
    content,
    drawing,
    fetched,
    gallery,
    report,
    scale,
    weight,
)
from tests.benchmarks.content import Content, Shown

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[1]
PAGE = """---
hide: [toc]
---

# Bubble { #bubble }

A share of {{ bubble_fraction(stages=4, microbatches=8):.1%}}, not `{{ this }}` [](#fig-few).

```python
{{ nor_this }}
```

```figure
figure: pipeline-timeline
id: few
schedule: 1f1b
stages: 2
microbatches: 3
caption: "Idle {{ bubble_fraction:.0%}}."
alt: Two lanes.
```

The end.
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Content:
    folder = tmp_path_factory.mktemp("page")
    (folder / "docs").mkdir()
    (folder / "docs" / "page.md").write_text(PAGE, encoding="utf-8")
    pages = content.contents(folder, folder / "cache")
    printed = json.dumps([content.asdict(page) for page in pages])
    assert content.parse(printed) == pages
    return next(page for page in pages if page.path == "page.md")


def test_the_floor_has_the_text_with_its_numbers_typed_and_code_as_it_was(page: Content) -> None:
    assert page.markdown(lambda shown: shown.caption) == (
        "---\nhide: [toc]\n---\n\n# Bubble { #bubble }\n\n"
        "A share of 27.3%, not `{{ this }}` [Figure 1](#fig-few).\n\n"
        "```python\n{{ nor_this }}\n```\n\n\n**Figure 1** Idle 25%.\n\n\nThe end."
    )


def test_literal_figures_are_what_this_site_prints(page: Content) -> None:
    (shown,) = (part for part in page.parts if isinstance(part, Shown))

    assert shown.html.startswith('<figure class="figgen" id="fig-few">')
    assert shown.html.count("<figure") == 1
    assert "<svg" in shown.html
    assert "\n" not in shown.html


def test_a_gallery_script_runs_one_line_per_picture_between_the_text(page: Content) -> None:
    script = gallery.script(page, Path("data"), str, "{html}")
    calls = [node.args[0] for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Call)]

    assert [ast.literal_eval(argument) for argument in calls] == ["data/page-fig-few.json"]
    assert ast.get_docstring(ast.parse(script)) == "# Bubble"
    assert "\n# A share of 27.3%" in script
    assert script.endswith("\n# The end.\n")


def test_a_scaled_site_has_as_many_figures_as_asked_for_each_with_other_data(
    tmp_path: Path,
) -> None:
    root = contenders.snapshot(tmp_path / "site")
    scale.rewrite(root, 10)
    pages = sorted((root / "docs" / "scale").glob("page-*.md"))
    drawn = [
        canonical_json(build(asked.figure, asked.arguments))
        for page in pages
        for fence in fences(page.read_text(encoding="utf-8"))
        for asked in [directive.parse(fence.body)]
    ]
    assert (len(pages), len(drawn), len(set(drawn))) == (3, 10, 10)
    assert not list((root / "docs").glob("guide/*.md"))


@pytest.mark.parametrize("edit", authoring.EDITS, ids=lambda edit: edit.what)
def test_an_edit_that_is_timed_can_be_made_and_taken_back(edit: authoring.Edit) -> None:
    text = (ROOT / edit.file).read_text(encoding="utf-8")
    assert text.count(edit.old) >= 1
    assert edit.new not in text


def test_restructured_text_keeps_headings_code_and_special_characters() -> None:
    assert gallery.rst("## A *b*\n\nOne `x`_\ntwo\n\n```sh\nls *\n```") == (
        "A \\*b\\*\n" + "-" * 8 + "\n\n| One \\`x\\`\\_\n| two\n\n::\n\n   ls *"
    )


AXES = {"x": charts.Axis(label="microbatches"), "y": charts.Axis(label="share")}
CELLS = tuple(
    charts.RankCell(rank=rank, node=0, local_rank=rank, coordinates=(rank,)) for rank in (0, 1)
)
VIEW = charts.CommunicatorView(
    name="tp", label="tensor", size=2, group_count=1, group_of_cell=(0, 0)
)
SLOT = charts.Slot(lane=1, start=0, end=2, role="forward", label="F7")
SENT = charts.Transfer(source=0, target=1, chunks=(0,), reduces=True)
FRAME = charts.Frame(
    title="step 1", phase="reduce", transfers=(SENT,), contents=(((0, 1),), ((1,),))
)
BOXES = tuple(
    charts.Box(name=name, lines=(f"box {name}",), x=at, y=0, width=1, height=1)
    for at, name in enumerate("ab")
)
SCENES = tuple(
    charts.Scene(
        says=says,
        things=(charts.Thing(name="c", x=at, y=0, width=9, height=9, text="chunk", role="tp"),),
    )
    for at, says in enumerate(("first", "then"))
)
GRID = charts.RankGrid(
    axes=("tp",), cells=CELLS, communicators=(VIEW,) * 2, gpus_per_node=2, world_size=2
)
LANES = charts.Timeline(lanes=("rank 0", "rank 1"), slots=(SLOT,), end=2, time_label="time")
SHOWN = [
    (
        GRID,
        ["0", "0", "1", "1", "tensor: 1 groups", "tensor: 1 groups"],
    ),
    (
        LANES,
        ["F7", "rank 0", "rank 1", "forward", "time"],
    ),
    (charts.Steps(ranks=2, chunk_count=1, frames=(FRAME,)), ["0+1", "1", "step 1"]),
    (
        charts.Curves(
            **AXES,
            series=(charts.Series(name="line", x=(1, 2), y=(0.5, 0.2), role="series-1"),),
            marks=(charts.Mark(x=1, y=0.5, label="here", role="reference"),),
            rules=(charts.Rule(axis="y", at=0.3, label="limit"),),
        ),
        ["line", "here", "limit", "microbatches", "share"],
    ),
    (
        charts.Bars(
            labels=("one", "two"),
            segments=(charts.Segment(name="weights", role="tp", lengths=(1, 2)),),
            axis=charts.Axis(label="memory", unit="B"),
        ),
        ["one", "two", "weights", "memory (B)"],
    ),
    (
        charts.Diagram(
            boxes=BOXES,
            links=(charts.DiagramLink(source="a", target="b", label="sends"),),
            width=2,
            height=1,
        ),
        ["box a", "box b", "sends"],
    ),
    (
        charts.Film(width=100, height=20, scenes=SCENES, stills=(0, 1)),
        ["0  first", "1  then", "chunk", "chunk"],
    ),
    (
        charts.Overview(room=GRID, step=LANES, stage_of_cell=(0, 1), marked=((0,), (1,))),
        ["F7", "rank 0", "rank 1", "forward", "time"],
    ),
]


@pytest.mark.parametrize(("chart", "words"), SHOWN, ids=lambda given: type(given).__name__)
def test_a_drawing_has_every_word_of_its_data(chart: charts.Chart, words: list[str]) -> None:
    data = json.loads(canonical_json(chart))
    svg = drawing.svg(data, "name")
    texts = Counter(text.strip() for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg))

    assert Counter(words) - texts == Counter()
    assert svg == drawing.svg(data, "name")


def test_every_kind_of_chart_but_the_table_is_drawn() -> None:
    assert {*drawing.DRAWN, "Table"} == {kind.__name__ for kind in charts.CHARTS}
    assert {type(chart) for chart, _ in SHOWN} == {*charts.CHARTS} - {charts.Table}


def test_a_page_weighs_what_a_browser_fetches_and_not_what_it_links(
    tmp_path: Path, chromium: Browser
) -> None:
    content = bytes(range(256)) * 4
    (tmp_path / "style.css").write_bytes(content)
    (tmp_path / "later.css").write_bytes(content)
    page = '<link rel=icon href=data:,><a href="style.css"></a><link rel="next" href="style.css">'
    ask = "<script>fetch('later.css')</script>"
    pages = {
        "alone": page,
        "styled": f'{page}<link rel="stylesheet" href="style.css">',
        "asks": ask,
    }
    for name, text in pages.items():
        (tmp_path / f"{name}.html").write_text(page + text, encoding="utf-8")
    alone, styled, asks = fetched.sizes(chromium, tmp_path, [f"{name}.html" for name in pages])

    assert alone < 120
    assert styled > alone + 256
    assert asks > alone + 256


def test_a_picture_is_whole_with_those_inside_it() -> None:
    inner = f"<svg>{'<path/>' * 400}</svg>"
    outer = f"<svg class=fig>{inner}{inner}</svg>"
    icon = "<svg><path/></svg>"

    assert list(weight.inline_pictures(f"{icon}<p>{outer}</p>{icon}{inner}")) == [outer, inner]


def pins(path: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"(?m)^([\w.-]+)==(\S+)", (ROOT / path).read_text("utf-8")):
        found.setdefault(name, set()).add(version)
    return found


@pytest.mark.parametrize(
    ("folder", "tools"),
    [
        ("benchmarks", {"markdown-exec", "mkdocs-gallery", "sphinx", "sphinx-gallery"}),
        ("mutants", {"cosmic-ray", "pytest-cov", "coverage"}),
    ],
)
def test_tools_apart_run_on_the_same_versions_as_the_site(folder: str, tools: set[str]) -> None:
    ours, theirs = pins("requirements.txt"), pins(f"tests/{folder}/requirements.txt")

    assert tools <= theirs.keys()
    assert not tools & ours.keys()
    assert {"mkdocs-material", "matplotlib", "numpy", "markdown"} <= theirs.keys()
    assert {name: theirs[name] for name in theirs.keys() & ours.keys()} == {
        name: ours[name] for name in theirs.keys() & ours.keys()
    }


@pytest.mark.parametrize("folder", ["benchmarks", "mutants"])
def test_the_lock_of_tools_apart_has_hashes_and_names_no_index_and_no_path(folder: str) -> None:
    lock = (ROOT / f"tests/{folder}/requirements.txt").read_text("utf-8")
    entries = re.findall(r"(?m)^[\w.-]+==.*(?:\n    --hash=sha256:.*)*", lock)

    assert all("--hash=sha256:" in entry for entry in entries)
    assert re.findall(r"^--.*|https?://|file:|^/.*| /\w+.*", lock, flags=re.M) == []


def test_a_peer_that_fails_is_named_and_left_out_and_ours_is_not(tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    program = f"open({str(tries)!r}, 'a').write('x'); raise SystemExit('no such tool')"
    command = (sys.executable, "-c", program)
    peer = report.Result(
        contender=contenders.Contender(
            name="a peer", folder=tmp_path, command=command, site=tmp_path / "site"
        )
    )
    for what in ("round 1", "edit 1"):
        bench._measure(peer, what, bench._both)
    assert tries.read_text() == "x"
    assert "no such tool" in peer.fault
    floor = report.Result(
        contender=contenders.Contender(
            name="floor", folder=tmp_path, command=command, site=tmp_path / "site"
        )
    )
    with pytest.raises(SystemExit, match="floor failed:"):
        bench._measure(floor, "round 1", bench._both)
    row = report._times(peer, [floor, floor, floor])
    assert row[:2] == ("a peer", "failed")
    assert len(row) == len(report.COLUMNS)


def test_growth_is_what_a_further_figure_adds() -> None:
    few = authoring.Scaled(
        figures=10,
        cold_s=9,
        cold_cpu_s=2,
        warm_s=3,
        warm_cpu_s=1,
        build_mb=100,
        edit_s=0.5,
        edit_cpu_s=0.2,
        serve_mb=200,
    )
    many = authoring.Scaled(
        figures=110,
        cold_s=90,
        cold_cpu_s=12,
        warm_s=9,
        warm_cpu_s=1.5,
        build_mb=150,
        edit_s=0.9,
        edit_cpu_s=0.3,
        serve_mb=220,
    )
    assert many.growth(few).split() == ["100.0", "5.0", "1.0", "0.50", "0.20"]
