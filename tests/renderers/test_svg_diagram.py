"""Diagrams: arrows touch their boxes, cross no others, and text fits."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

import pytest

from figgen.charts import Box, Diagram, DiagramLink
from figgen.errors import InputError
from figgen.registry import build
from figgen.renderers import svg
from figgen.renderers.markup import COLUMN
from figgen.renderers.svg_diagram import SLIM
from tests.renderers.overflows import overflows


def box(name: str, x: float, y: float, *lines: str, frame: bool = False) -> Box:
    return Box(name=name, lines=lines or (name,), x=x, y=y, width=2, height=1, frame=frame)


def link(source: str, target: str, label: str = "") -> DiagramLink:
    return DiagramLink(source=source, target=target, label=label)


def diagram(*boxes: Box, links: tuple[DiagramLink, ...] = ()) -> Diagram:
    return Diagram(boxes=boxes, links=links, width=12, height=6)


def corners(drawn: str) -> list[list[tuple[float, float]]]:
    found = []
    for group in ElementTree.fromstring(drawn).iter("g"):
        if group.get("class") == "link":
            points = group[0].get("d", "").removeprefix("M").split("L")
            found.append([(float(x), float(y)) for x, y in (p.split() for p in points)])
    return found


def places(drawn: str) -> dict[str, tuple[float, float, float, float]]:
    return {
        group.get("data-name", ""): tuple(  # type: ignore[misc]
            float(group[0].get(name, "")) for name in ("x", "y", "width", "height")
        )
        for group in ElementTree.fromstring(drawn).iter("g")
        if group.get("class") in ("box", "surround")
    }


def on_edge(point: tuple[float, float], place: tuple[float, float, float, float]) -> bool:
    (x, y), (left, top, width, height) = point, place
    inside = left - 0.01 <= x <= left + width + 0.01 and top - 0.01 <= y <= top + height + 0.01
    edges = (abs(x - left), abs(x - left - width), abs(y - top), abs(y - top - height))
    return inside and min(edges) < 0.02


SPOTS = [(0, 0), (3, 0), (6, 0), (0, 2), (3, 2), (9, 2), (6, 4), (9, 5), (4, 4.5)]


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(SPOTS, 2)))
def test_an_arrow_starts_and_ends_on_the_edges_of_its_boxes(
    first: tuple[float, float], second: tuple[float, float]
) -> None:
    drawn = svg.render(diagram(box("a", *first), box("b", *second), links=(link("a", "b"),)), "d")
    (line,), place = corners(drawn), places(drawn)
    assert on_edge(line[0], place["a"])
    assert on_edge(line[-1], place["b"])
    assert all(p[0] == q[0] or p[1] == q[1] for p, q in itertools.pairwise(line))


def test_the_way_back_of_a_ring_goes_around_the_ranks_in_between() -> None:
    ring = [box(f"r{i}", 3 * i, 1) for i in range(4)]
    links = tuple(link(f"r{i}", f"r{(i + 1) % 4}") for i in range(4))
    drawn = svg.render(diagram(*ring, links=links), "d")
    *along, back = corners(drawn)
    assert [len(line) for line in along] == [2, 2, 2]
    bottom = max(y + height for _, y, _, height in places(drawn).values())
    assert [y for _, y in back][1:3] == [back[1][1]] * 2
    assert back[1][1] > bottom


def test_arrows_there_and_back_run_side_by_side() -> None:
    links = (link("a", "b"), link("b", "a"))
    there, back = corners(svg.render(diagram(box("a", 0, 0), box("b", 5, 0), links=links), "d"))
    assert there[0][1] != back[0][1]
    assert there[0][1] == there[1][1]


def test_a_tree_is_joined_from_above_and_below() -> None:
    boxes = (box("root", 5, 0), box("left", 1, 2), box("right", 9, 2))
    links = (link("left", "root"), link("right", "root"))
    drawn = svg.render(diagram(*boxes, links=links), "d")
    _, top, _, height = places(drawn)["root"]
    assert [line[-1][1] for line in corners(drawn)] == [top + height] * 2


def test_a_drawing_grows_for_an_arrow_that_leaves_the_grid() -> None:
    ring = [box(f"r{i}", 3 * i, 0) for i in range(4)]
    flat = Diagram(boxes=tuple(ring), links=(link("r3", "r0"),), width=12, height=1)
    root = ElementTree.fromstring(svg.render(flat, "d"))
    lowest = max(y for line in corners(svg.render(flat, "d")) for _, y in line)
    assert float(root.get("height", "")) > lowest


def test_lines_of_text_stay_as_given_and_the_first_of_several_is_bold() -> None:
    drawn = svg.render(diagram(box("a", 0, 0, "stage 0", "20 layers")), "d")
    texts = list(ElementTree.fromstring(drawn).iter("text"))
    assert [(text.text, text.get("font-weight")) for text in texts] == [
        ("stage 0", "600"), ("20 layers", None),
    ]  # fmt: skip


def test_text_that_would_stick_out_is_found() -> None:
    fitting = box("fits", 0, 0, "stage 0", "20 layers")
    wide = box("wide", 3, 0, "a line that is much too long for its box")
    tall = box("tall", 6, 0, "1", "2", "3", "4", "5")
    assert overflows(diagram(fitting, wide, tall)) == ("wide", "tall")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("decision-tree", {}),
        ("moe-layer", {}),
        ("sharded-product", {}),
        ("rank-strides", {"preset": "map-128", "rank": 75}),
        ("rank-strides", {"preset": "map-256", "rank": 147, "grid": "expert"}),
    ],
)
def test_these_are_as_narrow_as_a_phone_and_their_text_fits(
    name: str, arguments: dict[str, object]
) -> None:
    chart = build(name, arguments)
    assert isinstance(chart, Diagram)
    _, narrow = ElementTree.fromstring(svg.render(chart, "f"))
    assert float(narrow.get("viewBox", "").split()[2]) <= SLIM
    assert not overflows(chart)


def test_a_small_diagram_fills_the_column_and_is_narrow_on_a_phone() -> None:
    small = Diagram(
        boxes=(box("a", 0, 0), box("b", 3, 0)), links=(link("a", "b"),), width=5, height=1
    )
    wide, narrow = ElementTree.fromstring(svg.render(small, "d"))
    assert [shape.get("class") for shape in (wide, narrow)] == ["wide", "narrow"]
    rights = [
        max(x + w for x, _, w, _ in places(ElementTree.tostring(shape, "unicode")).values())
        for shape in (wide, narrow)
    ]
    assert rights == [COLUMN + 0.5, 5 * 72 + 0.5]


def test_a_box_without_a_role_is_text_that_wraps_and_that_arrows_may_cross() -> None:
    says = Box(
        name="note",
        lines=("words that do not fit in one line",),
        x=3,
        y=0,
        width=1,
        height=1,
        role="",
    )
    ends = (box("a", 0, 0), box("b", 5, 0))
    drawn = svg.render(diagram(*ends, says, links=(link("a", "b"),)), "d")
    note = next(
        group
        for group in ElementTree.fromstring(drawn).iter("g")
        if group.get("data-name") == "note"
    )
    assert not list(note.iter("rect"))
    assert len(list(note.iter("text"))) > 1
    assert " ".join(text.text or "" for text in note.iter("text")) == says.lines[0]
    assert [len(line) for line in corners(drawn)] == [2]


def test_a_link_to_no_box_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match=r"unknown box 'stag0'.*did you mean stage0"):
        svg.render(diagram(box("stage0", 0, 0), links=(link("stage0", "stag0"),)), "d")


def test_parts_that_nothing_joins_stand_below_each_other_on_a_phone() -> None:
    four = [box(name, x, 0) for name, x in (("a", 0), ("b", 3), ("c", 7), ("d", 10))]
    joined = (link("a", "b"), link("c", "d"))
    apart = ElementTree.fromstring(svg.render(diagram(*four, links=joined), "d"))
    parts = [group for group in apart.iter("g") if "--x" in group.get("style", "")]
    inside = [
        [group.get("data-name") for group in part.iter("g") if group.get("class") == "box"]
        for part in parts
    ]
    assert inside == [["a", "b"], ["c", "d"]]
    assert len(list(apart.iter("path"))) == 4
    whole = svg.render(diagram(*four, links=(*joined, link("b", "c"))), "d")
    assert "fig-reflow" not in whole
    high = Diagram(boxes=tuple(four), links=joined, width=12, height=14)
    assert "fig-reflow" not in svg.render(high, "d")
