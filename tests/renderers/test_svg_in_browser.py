"""Drawings and stylesheet in a browser: the switch, the palettes, and text that fits."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from figgen import theme
from figgen.charts import (
    Box,
    Chart,
    CommunicatorView,
    Diagram,
    DiagramLink,
    RankCell,
    RankGrid,
    Slot,
    Timeline,
)
from figgen.registry import build
from figgen.renderers import svg, svg_grid

RANKS = 32
SIZES = {"tp": (1, 8), "dp": (8, 2), "pp": (16, 2)}


def grid() -> RankGrid:
    cells = tuple(
        RankCell(rank=r, node=r // 8, local_rank=r % 8, coordinates=(r % 8, r // 8 % 2, r // 16))
        for r in range(RANKS)
    )
    views = tuple(
        CommunicatorView(
            name=name,
            label=name.upper(),
            size=size,
            group_count=RANKS // size,
            group_of_cell=tuple(r // (s * size) * s + r % s for r in range(RANKS)),
        )
        for name, (s, size) in SIZES.items()
    )
    return RankGrid(
        axes=("tp", "dp", "pp"), cells=cells, communicators=views, gpus_per_node=8, world_size=RANKS
    )


def timeline() -> Timeline:
    slots = [
        Slot(lane=lane, start=2.0 * at, end=2.0 * at + 1 + lane, role=role, label=str(10 + at))
        for lane in range(2)
        for at, role in enumerate(["forward", "backward", "hidden", "exposed"] * 4)
    ]
    return Timeline(lanes=("rank 0", "rank 1"), slots=tuple(slots), end=33, time_label="time")


def diagram() -> Diagram:
    boxes = tuple(
        Box(name=f"r{at}", lines=(f"rank {at}", "20 layers"), x=3.0 * at, y=0, width=2, height=1)
        for at in range(4)
    )
    links = tuple(
        DiagramLink(source=f"r{at}", target=f"r{(at + 1) % 4}", label="send") for at in range(4)
    )
    return Diagram(boxes=boxes, links=links, width=11, height=2)


def steps(algorithm: str, ranks: int) -> Chart:
    name = {"collective": "all-reduce", "algorithm": algorithm, "ranks": ranks}
    return build("collective-steps", name)


def html(*panels: str, scheme: str = "default") -> str:
    return (
        f"<!doctype html><html><head><meta charset=utf-8><style>{theme.stylesheet()}"
        # The widest of the fonts that a reader's system may choose.
        'body{font-family:Verdana,"DejaVu Sans",sans-serif}'
        f"</style></head><body data-md-color-scheme={scheme}><figure>{''.join(panels)}"
        "</figure></body></html>"
    )


def panel(name: str) -> str:
    chart = grid()
    form, drawn = svg_grid.controls(chart, name), svg.render(chart, name)
    return f'<div id="{name}">{form}<div class="fig-scroll">{drawn}</div></div>'


@pytest.fixture(scope="module")
def page(chromium: Browser) -> Iterator[Page]:
    opened = chromium.new_page()
    yield opened
    opened.close()


def shown(page: Page, within: str) -> tuple[list[str], list[int]]:
    """Return the fill of every cell and the visible group numbers, in the order of ranks."""
    found: Any = page.evaluate(
        """root => [
          [...document.querySelectorAll(root + " .cells rect")]
            .map(cell => getComputedStyle(cell).fill),
          [...document.querySelectorAll(root + " .of")]
            .filter(row => getComputedStyle(row).display != "none")
            .flatMap(row => [...row.children].map(span => +span.textContent)),
        ]""",
        within,
    )
    return found[0], found[1]


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(part) for part in bytes.fromhex(colour[1:]))})"


def groups(name: str) -> list[int]:
    stride, size = SIZES[name]
    return [rank // (stride * size) * stride + rank % stride for rank in range(RANKS)]


@pytest.mark.parametrize(("scheme", "palette"), [("default", "light"), ("slate", "dark")])
def test_a_choice_recolours_its_own_grid_and_no_other(
    page: Page, scheme: str, palette: str
) -> None:
    page.set_content(html(panel("one"), panel("two"), scheme=scheme))
    for name in ("tp", "pp", "dp"):
        page.check(f'#one [value="{name}"]')
        expected = [rgb(getattr(theme.group_ink(name, g), palette)) for g in groups(name)]
        assert shown(page, "#one") == (expected, groups(name))
        untouched = [rgb(getattr(theme.group_ink("tp", g), palette)) for g in groups("tp")]
        assert shown(page, "#two") == (untouched, groups("tp"))


def test_none_leaves_ranks_on_one_colour(page: Page) -> None:
    page.set_content(html(panel("one")))
    page.check('[value="none"]')
    assert shown(page, "#one") == ([rgb(theme.SOFT["neutral"].light)] * RANKS, [])


def test_paper_gets_tensor_parallel_groups_in_light_whatever_is_chosen(page: Page) -> None:
    page.set_content(html(panel("one"), scheme="slate"))
    page.check('[value="pp"]')
    page.emulate_media(media="print")
    try:
        light = [rgb(theme.group_ink("tp", g).light) for g in groups("tp")]
        assert shown(page, "#one") == (light, groups("tp"))
    finally:
        page.emulate_media(media="screen")


TEXT_BOXES = """() => {
  const svg = document.querySelector("svg");
  const frame = svg.getBoundingClientRect();
  const boxes = [...svg.querySelectorAll("text, tspan")]
    .filter(text => text.tagName == "tspan" || !text.children.length)
    .filter(text => getComputedStyle(text.closest("text")).display != "none")
    .map(text => {
      const range = document.createRange();
      range.selectNodeContents(text);
      const box = range.getBoundingClientRect();
      return [text.textContent, box.left - frame.left, box.top - frame.top,
              box.right - frame.left, box.bottom - frame.top];
    });
  return [frame.width, frame.height, boxes];
}"""


@pytest.mark.parametrize(
    "chart",
    [
        grid(),
        timeline(),
        diagram(),
        steps("ring", 2),
        steps("ring", 4),
        steps("ring", 8),
        steps("recursive-halving-doubling", 8),
        steps("binomial-tree", 16),
    ],
    ids=["grid", "timeline", "diagram", "ring-2", "ring-4", "ring-8", "halving-8", "tree-16"],
)
def test_texts_neither_overlap_nor_leave_the_drawing(page: Page, chart: Chart) -> None:
    page.set_content(html(svg.render(chart, "f")))
    width, height, boxes = page.evaluate(TEXT_BOXES)
    for text, left, top, right, bottom in boxes:
        assert left >= -0.5, text
        assert top >= -0.5, text
        assert right <= width + 0.5, text
        # A line box reaches a little below the letters.
        assert bottom <= height + 3, text
    for one, two in itertools.combinations(boxes, 2):
        across = min(one[3], two[3]) - max(one[1], two[1])
        down = min(one[4], two[4]) - max(one[2], two[2])
        assert across <= 0.5 or down <= 3, (one[0], two[0])
