"""A figure on paper equals the figure of the page: the same marks, labels, colors and places."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from figgen.charts import Chart
from figgen.errors import InputError
from figgen.paper.drawing import EM, PaintedText
from figgen.paper.marks import natural_px, read
from figgen.paper.printed import printed
from figgen.paper.script import script
from figgen.paper.widths import COLUMNS_IN, width_in
from figgen.registry import build
from figgen.renderers import svg
from tests.paper.drawn import differences, of_pdf, of_svg
from tests.renderers.samples import SAMPLES

KINDS: dict[str, Chart] = {
    **SAMPLES,
    "film": build("ring-film", {"ranks": 3}),
    "overview": build("journey-job", {"page": 10}),
    "curved": build(
        "collective-steps", {"collective": "broadcast", "algorithm": "binomial-tree", "ranks": 4}
    ),
    "patterned": build("pipeline-timeline", {"schedule": "1f1b", "stages": 2, "microbatches": 2}),
}
"""One small figure of every kind."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_pdf_paints_what_the_svg_draws_mark_by_mark(kind: str) -> None:
    shown = svg.render(KINDS[kind], "fig")
    marks = of_svg(shown)
    assert len(marks) > 4
    assert differences(of_pdf(printed(shown, "pdf", kind), natural_px(shown)), marks, EM) == []


@pytest.mark.parametrize("kind", ["curves", "film", "patterned"])
def test_a_script_needs_matplotlib_alone_and_paints_what_the_svg_draws(
    kind: str, tmp_path: Path
) -> None:
    shown, values = svg.render(KINDS[kind], "fig"), KINDS[kind].values
    file, made = tmp_path / "fig.py", tmp_path / "fig.pdf"
    file.write_text(script(shown, values, "fig"), encoding="utf-8")
    imported = re.findall(r"^ *(?:from|import) (\w+)", file.read_text(encoding="utf-8"), re.M)
    assert set(imported) == {"__future__", "dataclasses", "matplotlib", "sys", "typing"}
    with patch.object(sys, "argv", ["fig.py", str(made)]):
        known = runpy.run_path(str(file), run_name="__main__")
    assert differences(of_pdf(made.read_bytes(), natural_px(shown)), of_svg(shown), EM) == []
    assert known["VALUES"] == {name: tuple(value) for name, value in values.items()}


@pytest.mark.parametrize("kind", ["curves", "stacked", "film"])
def test_a_column_has_the_shape_that_a_phone_shows(kind: str) -> None:
    shown = svg.render(KINDS[kind], "fig")
    width = width_in("icml")
    narrow = read(shown, width)
    assert narrow.width < natural_px(shown)
    made = of_pdf(printed(shown, "pdf", kind, width), narrow.width)
    assert differences(made, of_svg(shown, "narrow"), EM) == []


def test_the_comparison_sees_a_mark_left_out_moved_or_recoloured_and_another_label() -> None:
    shown = svg.render(SAMPLES["stacked"], "fig")
    made = of_pdf(printed(shown, "pdf", "bars"), natural_px(shown))
    left_out = shown.replace("<path", "<g", 1).replace("</path>", "</g>", 1)
    assert differences(made, of_svg(left_out), EM)
    for change in (
        ('width="', 'width="1'), ("series-1", "series-2"), ("weights", "weight"), ('y="', 'y="9'),
    ):  # fmt: skip
        head, mark, rest = shown.partition("<rect")
        assert differences(made, of_svg(head + mark + rest.replace(*change)), EM), change


def test_equal_figures_give_equal_bytes() -> None:
    shown = svg.render(SAMPLES["timeline"], "fig")
    for kind in ("pdf", "png"):
        assert printed(shown, kind, "a") == printed(shown, kind, "a")


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("<circle r='3'/>", "<circle>"),
        ("<rect width='3' height='3' filter='url(#f)'/>", "filter of <rect>"),
        ("<g transform='rotate(30)'/>", "transform rotate(30)"),
        ("<g style='fill:red'/>", "style fill:red"),
        ("<path d='M0 0A3 3 0 0 1 6 6'/>", "A"),
        ("<rect width='3' height='3' fill='red'/>", "color red"),
        ("<text stroke='var(--fig-ink)'>a</text>", "outlined letters"),
        ("<text>a<tspan x='3' dy='2'>b</tspan></text>", "<tspan> in a text"),
        ("<text><tspan x='3'>a</tspan>b</text>", "text after a part of it"),
        ("<text><a>b</a></text>", "<a> in a text"),
    ],
)
def test_what_cannot_be_drawn_is_an_error(part: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        read(f'<svg class="fig" viewBox="0 0 100 100">{part}</svg>', 5)
    assert said in str(error.value)


def test_a_character_that_the_font_lacks_is_an_error() -> None:
    with pytest.raises(InputError, match="Glyph"):
        printed('<svg viewBox="0 0 99 20"><text y="12">\u4e00</text></svg>', "pdf", "a")


@pytest.mark.parametrize("name", COLUMNS_IN)
def test_text_is_never_smaller_than_five_points(name: str) -> None:
    shown = svg.render(SAMPLES["curves"], "fig")
    width = width_in(name)
    drawing = read(shown, width)
    sizes = [mark.size for mark in drawing.marks if isinstance(mark, PaintedText)]
    assert min(sizes) * EM * 72 * width / drawing.width >= 5


def test_a_width_that_no_shape_can_be_read_at_is_refused_with_those_that_can() -> None:
    with pytest.raises(InputError, match=r"at least 4\.\d+ inches \(.*icml-wide.*\).*got '3\.25"):
        read('<svg class="fig" viewBox="0 0 700 100"/>', width_in("icml"))
    with pytest.raises(InputError, match="icml"):
        width_in("icm")
    with pytest.raises(InputError, match="1 to 40 inches"):
        width_in("0.5")
