"""What holds for every kind of chart in every form: equal bytes, valid syntax, harmless texts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from xml.etree import ElementTree

import plotly.graph_objects as go
import pytest

from figgen import theme
from figgen.charts import Chart
from figgen.renderers import plotly, svg, table
from tests.renderers.forms import FORMS, digests
from tests.renderers.samples import HOSTILE, SAMPLES, hostile

# A word of every sample that no form may leave out.
SHOWN = {
    "grid": "node", "timeline": "rank 1", "steps": "all-gather", "curves": "measured",
    "stacked": "activations", "grouped": "activations", "diagram": "rank 1", "table": "H100",
}  # fmt: skip

each_kind = pytest.mark.parametrize("kind", SAMPLES)
each_form = pytest.mark.parametrize("form", FORMS)


def svg_root(drawn: str) -> ElementTree.Element:
    """Return the root; in HTML, `xlink:href` needs no declaration, but an XML parser
    requires one."""
    bound = drawn.replace("<svg ", '<svg xmlns:xlink="http://www.w3.org/1999/xlink" ', 1)
    return ElementTree.fromstring(bound)


def test_bytes_do_not_depend_on_the_order_of_hashes() -> None:
    code = "from tests.renderers import forms; print(sorted(forms.digests().items()))"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    printed = {process.communicate()[0] for process in started}
    assert printed == {f"{sorted(digests().items())}\n"}


@each_kind
@each_form
def test_every_form_of_every_kind_shows_what_the_chart_is_about(kind: str, form: str) -> None:
    assert SHOWN[kind] in FORMS[form](SAMPLES[kind])


@each_form
def test_a_thing_that_is_no_chart_is_refused(form: str) -> None:
    with pytest.raises(TypeError, match="str"):
        FORMS[form]("chart")  # type: ignore[arg-type]


@each_kind
def test_hostile_texts_leave_a_drawing_well_formed(kind: str) -> None:
    drawn = svg.render(hostile(SAMPLES[kind]), "fig")
    root = svg_root(drawn)
    assert {part.tag for part in root.iter()} <= {
        "svg", "g", "path", "rect", "text", "tspan", "title", "use", "defs", "pattern", "clipPath",
    }  # fmt: skip
    assert not any(key.startswith("on") for part in root.iter() for key in part.attrib)
    shown = "".join(text for part in root.iter() if (text := part.text))
    if kind not in ("grid", "grouped", "stacked"):  # narrow labels are broken into lines
        assert "</svg><script>" in shown
    assert not re.search("[\x00-\x08\x0b\x0e-\x1f\ud800-\udfff\ufffe\uffff]", drawn)
    ElementTree.fromstring(svg.standalone(drawn))


class Tags(HTMLParser):
    """Collects what a browser would treat as tags."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)


@each_kind
def test_hostile_texts_leave_a_table_and_its_controls_harmless(kind: str) -> None:
    tags = Tags()
    tags.feed(table.html(table.data_table(hostile(SAMPLES[kind])), HOSTILE))
    assert tags.seen == {"table", "thead", "tbody", "tr", "th", "td"}


@each_kind
@pytest.mark.parametrize("change", [lambda chart: chart, hostile], ids=["plain", "hostile"])
def test_plotly_itself_takes_every_name_and_value_and_would_write_the_same(
    kind: str, change: Callable[[Chart], Chart]
) -> None:
    made = json.loads(plotly.render(change(SAMPLES[kind])))
    config = made.pop("config")
    assert config == plotly.CONFIG
    figure = go.Figure(
        data=made["data"], layout={**made["layout"], "template": "none"}, frames=made.get("frames")
    )
    assert json.loads(figure.to_json(engine="json")) == made


@each_kind
def test_hostile_texts_reach_plotly_as_texts(kind: str) -> None:
    made = plotly.render(hostile(SAMPLES[kind]))
    assert "<script" not in made
    json.loads(made)


@each_kind
def test_no_sentinel_is_left_and_every_colour_is_a_variable_of_the_theme(kind: str) -> None:
    drawn = svg.render(SAMPLES[kind], "fig")
    assert not re.search(r'"#[0-9a-fA-F]{3,8}"', drawn)
    for form in (drawn, plotly.render(SAMPLES[kind])):
        assert set(re.findall(r"var\((--[\w-]+)\)", form)) <= set(theme.variables())


@each_kind
def test_two_figures_on_a_page_share_no_id_and_every_reference_resolves(kind: str) -> None:
    one, two = (svg.render(SAMPLES[kind], figure_id) for figure_id in ("fig-a", "fig-a-2"))
    ids = [re.findall(r'\bid="([^"]+)"', drawn) for drawn in (one, two)]
    assert len(set(ids[0])) == len(ids[0])
    assert not set(ids[0]) & set(ids[1])
    for drawn, known in zip((one, two), ids, strict=True):
        referred = set(re.findall(r'(?:url\(#|href="#)([^")]+)', drawn))
        assert referred == set(known)


@each_kind
def test_only_the_root_has_a_style_and_it_draws_nothing(kind: str) -> None:
    drawn = svg.render(SAMPLES[kind], "fig")
    assert "<style" not in drawn
    styles = re.findall(r'style="([^"]*)"', drawn)
    assert len(styles) == 1
    assert re.fullmatch(r"[\w;:./ -]+", styles[0])
    assert "color" not in styles[0]
