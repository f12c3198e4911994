"""What all drawings have in common, and the standalone file."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from figgen import theme
from figgen.charts import (
    Box,
    Chart,
    Column,
    CommunicatorView,
    Diagram,
    DiagramLink,
    Frame,
    RankCell,
    RankGrid,
    Slot,
    Steps,
    Table,
    Timeline,
    Transfer,
)
from figgen.renderers import svg
from figgen.renderers.markup import element, number, text_width

NAUGHTY = 'a < b & "c" > d'

CHARTS: dict[str, Chart] = {
    "grid": RankGrid(
        axes=("tp",),
        cells=tuple(RankCell(rank=r, node=0, local_rank=r, coordinates=(r,)) for r in range(2)),
        communicators=(
            CommunicatorView(name="tp", label=NAUGHTY, size=2, group_count=1, group_of_cell=(0, 0)),
            CommunicatorView(name="dp", label="DP", size=1, group_count=2, group_of_cell=(0, 1)),
        ),
        gpus_per_node=2,
        world_size=2,
    ),
    "timeline": Timeline(
        lanes=(NAUGHTY,),
        slots=(Slot(lane=0, start=0, end=2, role="forward", label=NAUGHTY, detail=NAUGHTY),),
        end=3,
        time_label=NAUGHTY,
    ),
    "steps": Steps(
        ranks=2,
        chunk_count=1,
        frames=(
            Frame(
                title=NAUGHTY,
                phase=NAUGHTY,
                contents=(((0,),), ((),)),
                transfers=(Transfer(source=0, target=1, chunks=(0,), reduces=False),),
            ),
            Frame(title="result", phase="", transfers=(), contents=(((0,),), ((0,),))),
        ),
    ),
    "diagram": Diagram(
        boxes=(
            Box(name=NAUGHTY, lines=(NAUGHTY,), x=0, y=0, width=3, height=1, role="tp"),
            Box(name="b", lines=("b",), x=5, y=0, width=1, height=1),
            Box(name="f", lines=(NAUGHTY,), x=4, y=0, width=3, height=2, frame=True),
        ),
        links=(DiagramLink(source=NAUGHTY, target="b", label=NAUGHTY, both_ways=True),),
        width=8,
        height=2,
    ),
    "table": Table(
        columns=(Column(label=NAUGHTY), Column(label="bandwidth", unit="B/s", spec="bytes")),
        rows=((NAUGHTY, 300e9), ("H100", 450e9)),
    ),
}

each = pytest.mark.parametrize("kind", CHARTS)


@each
def test_equal_charts_give_equal_bytes(kind: str) -> None:
    assert svg.render(CHARTS[kind], "f") == svg.render(CHARTS[kind], "f")


@each
def test_a_drawing_is_well_formed_whatever_the_text(kind: str) -> None:
    drawn = svg.render(CHARTS[kind], "f")
    root = ElementTree.fromstring(drawn)
    assert root.get("class", "").split()[:2] == ["fig", f"fig-{kind}"]
    if kind != "grid":  # its labels are in the controls
        assert NAUGHTY in {text.text for text in root.iter() if text.text}


@each
def test_ids_start_with_the_id_of_the_figure_and_are_referred_to(kind: str) -> None:
    drawn = svg.render(CHARTS[kind], "f-3")
    for found in re.findall(r'\bid="([^"]+)"', drawn):
        assert found.startswith("f-3-")
        assert f"#{found}" in drawn


@each
def test_the_page_supplies_name_and_role_and_style(kind: str) -> None:
    drawn = svg.render(CHARTS[kind], "f")
    assert "<style" not in drawn
    head = drawn.split(">", 1)[0]
    assert "role=" not in head
    assert "aria-" not in head


@each
def test_colours_are_variables_that_the_stylesheet_defines(kind: str) -> None:
    drawn = svg.render(CHARTS[kind], "f")
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b(?!-)", drawn.replace("url(#", ""))
    assert set(re.findall(r"var\((--[\w-]+)\)", drawn)) <= set(theme.variables())
    roles = set(re.findall(r"\br-([\w-]+)", " ".join(re.findall(r'class="([^"]*)"', drawn))))
    assert roles <= set(theme.SOFT)


@each
def test_numbers_have_at_most_two_decimals(kind: str) -> None:
    assert not re.search(r"\d\.\d{3}", svg.render(CHARTS[kind], "f"))


@each
def test_a_file_alone_has_namespace_fonts_and_every_colour_in_both_palettes(kind: str) -> None:
    alone = svg.standalone(svg.render(CHARTS[kind], "f"))
    root = ElementTree.fromstring(alone)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    style = root.findtext("{http://www.w3.org/2000/svg}style") or ""
    light, dark = style.split("prefers-color-scheme:dark", 1)
    for name in set(re.findall(r"var\((--[\w-]+)\)", alone)):
        assert f"{name}:" in light
        assert f"{name}:" in dark
    assert "font-family:system-ui" in style


def test_a_grid_alone_shows_its_tensor_parallel_groups() -> None:
    alone = svg.standalone(svg.render(CHARTS["grid"], "f"))
    assert ".fig-grid .tp-0{fill:var(--fig-tp-0)}" in alone
    assert ".fig-grid .of{display:none}" in alone
    assert ".fig-grid .of-tp{display:inline}" in alone
    assert ":has" not in alone


def test_a_file_alone_carries_only_the_rules_that_it_needs() -> None:
    style = svg.standalone(svg.render(CHARTS["timeline"], "f"))
    assert ".r-forward{" in style
    assert ".r-backward{" not in style
    assert "--fig-tp" not in style


def test_a_thing_that_is_no_chart_is_refused() -> None:
    with pytest.raises(TypeError, match="no renderer for str"):
        svg.render("chart", "f")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.0, "1"), (1.005, "1"), (0.126, "0.13"), (-0.001, "0"), (-2.5, "-2.5"), (1200.0, "1200")],
)
def test_numbers_are_rounded_and_not_padded(value: float, shown: str) -> None:
    assert number(value) == shown


def test_attributes_are_escaped_and_none_is_left_out() -> None:
    assert element("a", class_="x", text_anchor='<"&', y=None) == (
        '<a class="x" text-anchor="&lt;&quot;&amp;"/>'
    )


@pytest.mark.parametrize("text", ["rank 127", "backward for weights", "ReduceScatter", "W ≥ 8 GB"])
def test_a_text_is_estimated_at_least_as_wide_as_in_arial(text: str) -> None:
    # Advance widths of Arial, in 1/1000 em, for the characters used here.
    arial = {
        " ": 278, "1": 556, "2": 556, "7": 556, "8": 556, "B": 667, "G": 778, "R": 722, "S": 667,
        "W": 944, "a": 556, "b": 556, "c": 500, "d": 556, "e": 556, "f": 278, "g": 556, "h": 556,
        "i": 222, "k": 500, "n": 556, "o": 556, "r": 333, "s": 500, "t": 278, "u": 556, "w": 722,
        "≥": 549,
    }  # fmt: skip
    assert text_width(text, 10) >= sum(arial[char] for char in text) / 100
