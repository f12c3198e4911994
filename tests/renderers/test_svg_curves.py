"""Curves in pixels: where data points are drawn, and that no label covers them."""

from __future__ import annotations

import dataclasses
import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from figgen.charts import Axis, Curves, Mark, Rule, Series
from figgen.renderers import svg
from figgen.renderers.curve_labels import names
from figgen.renderers.curve_plan import SLIM, WIDE, CurvePlan, Shape, plan
from figgen.renderers.placing import Rect
from tests.renderers.samples import CURVES

Point = tuple[float, float]
LINEAR = Curves(
    x=Axis(label="ranks", unit="rank"),
    y=Axis(label="share", spec=".0%", low=0, high=1),
    series=(
        Series(name="one", x=(0, 1, 3, 8), y=(0.1, 0.5, 0.25, 0.9), role="series-1"),
        Series(name="two", x=(0, 4, 8), y=(0.8, 0.2, 0.3), role="series-2"),
    ),
)
LOG2 = dataclasses.replace(
    LINEAR,
    x=Axis(label="message size", unit="B", scale="log2"),
    y=Axis(label="time", unit="s", scale="log10"),
    series=(
        Series(name="one", x=(2**10, 2**15, 2**30), y=(1e-6, 1e-4, 1e-2), role="series-1"),
        Series(name="two", x=(2**12, 2**20, 2**25), y=(1e-2, 1e-5, 3e-6), role="series-2"),
    ),
)


def shape(chart: Curves, name: str) -> ElementTree.Element:
    """Return one of the two drawings, by its class."""
    drawn = svg.render(chart, "f").replace(
        "<svg ", '<svg xmlns:xlink="http://www.w3.org/1999/xlink" ', 1
    )
    return next(part for part in ElementTree.fromstring(drawn) if part.get("class") == name)


def series_paths(drawn: ElementTree.Element) -> dict[str, list[Point]]:
    """Return the corners of every series as written in the SVG."""
    found = {}
    for group in drawn.iter("g"):
        if (index := group.get("data-series")) is not None:
            lines = [path for path in group.iter("path") if path.get("fill") == "none"]
            numbers = re.findall(r"-?[\d.]+", lines[0].get("d", "")) if lines else []
            found[index] = list(
                zip(map(float, numbers[::2]), map(float, numbers[1::2]), strict=True)
            )
    return found


def ticks(drawn: ElementTree.Element, texts: tuple[str, ...]) -> dict[str, Point]:
    """Return the positions of the tick labels."""
    return {
        text.text: (float(text.get("x", "nan")), float(text.get("y", "nan")))
        for text in drawn.iter("text")
        if text.text in texts
    }


def between(low: float, high: float, value: float, *, logarithmic: bool) -> float:
    """Return how far `value` is between `low` and `high` on the axis's scale."""
    if logarithmic:
        low, high, value = math.log10(low), math.log10(high), math.log10(value)
    return (value - low) / (high - low)


@pytest.mark.parametrize(
    ("chart", "x_ticks", "y_ticks"),
    [
        (LINEAR, {"0": 0, "8": 8}, {"0%": 0, "100%": 1}),
        (LOG2, {"1\xa0KiB": 2**10, "1\xa0GiB": 2**30}, {"1\xa0µs": 1e-6, "10\xa0ms": 1e-2}),
    ],
    ids=["linear", "logarithmic"],
)
@pytest.mark.parametrize("kind", ["wide", "narrow"])
def test_points_lie_where_the_printed_ticks_say(
    chart: Curves, x_ticks: dict[str, float], y_ticks: dict[str, float], kind: str
) -> None:
    drawn = shape(chart, kind)
    (x0, a0), (x1, a1) = ((ticks(drawn, (*x_ticks,))[t][0], v) for t, v in x_ticks.items())
    (y0, b0), (y1, b1) = ((ticks(drawn, (*y_ticks,))[t][1], v) for t, v in y_ticks.items())
    shift = 0.35 * 12  # a text's baseline is that much below the line that it names
    paths = series_paths(drawn)
    assert sorted(paths) == ["0", "1"]
    for index, path in paths.items():
        series = chart.series[int(index)]
        for (x, y), a, b in zip(path, series.x, series.y, strict=True):
            across = between(a0, a1, a, logarithmic=chart is LOG2)
            up = between(b0, b1, b, logarithmic=chart is LOG2)
            assert x == pytest.approx(x0 + across * (x1 - x0), abs=0.2)
            assert y == pytest.approx(y0 + up * (y1 - y0) - shift, abs=0.2)


def test_what_lies_outside_the_limits_is_clipped_and_what_is_missing_leaves_a_gap() -> None:
    axis = Axis(label="y", low=0, high=1)
    gap = Series(name="g", x=(0, 1, 2, 3, 4), y=(0.2, 0.4, math.nan, 0.4, 0.2), role="tp")
    high = Series(name="h", x=(0, 4), y=(0.5, 7), role="dp")
    chart = Curves(x=Axis(label="x"), y=axis, series=(gap, high))
    drawn = svg.render(chart, "f")
    assert drawn.count("<clipPath") == 2  # one in each shape
    gapped = next(
        path.get("d", "")
        for group in shape(chart, "wide").iter("g")
        if group.get("data-series") == "0"
        for path in group.iter("path")
        if path.get("fill") == "none"
    )
    assert gapped.count("M") == 2


def test_stairs_hold_their_value_until_the_next() -> None:
    stairs = Series(name="s", x=(0, 2, 4), y=(1, 3, 0), role="tp", style="steps")
    chart = Curves(x=Axis(label="x"), y=Axis(label="y"), series=(stairs,))
    path = series_paths(shape(chart, "wide"))["0"]
    assert all(x0 == x1 or y0 == y1 for (x0, y0), (x1, y1) in pairwise(path))
    assert path[1][1] == path[0][1]


def overlap(one: Rect, other: Rect) -> bool:
    across = min(one.right, other.right) - max(one.left, other.left)
    down = min(one.bottom, other.bottom) - max(one.top, other.top)
    return across > 0 and down > 0


STAIRS = Curves(
    x=Axis(label="time"),
    y=Axis(label="in flight"),
    series=tuple(
        Series(
            name=name,
            role=f"series-{at + 1}",
            style="steps",
            x=(0, top, 20 - top, 20),
            y=(1, top, top - 1, 0),
        )
        for at, (name, top) in enumerate({"low": 2, "middle": 4, "high": 8}.items())
    ),
)
BUNDLE = Curves(
    x=Axis(label="n", scale="log2"),
    y=Axis(label="share", low=0, high=1, spec=".0%"),
    series=tuple(
        Series(
            name=f"half at {half}",
            role=f"series-{at + 1}",
            x=tuple(2.0**k for k in range(12)),
            y=tuple(2.0**k / (half + 2.0**k) for k in range(12)),
        )
        for at, half in enumerate((2, 16, 128))
    ),
    rules=(Rule(axis="x", at=64, label="here"), Rule(axis="y", at=0.9, label="nine tenths")),
)

everywhere = pytest.mark.parametrize("chart", [CURVES, LINEAR, LOG2, STAIRS, BUNDLE])
in_both = pytest.mark.parametrize("shape_", [WIDE, SLIM], ids=["wide", "narrow"])


@everywhere
@in_both
def test_labels_stay_on_the_picture_and_off_each_other(chart: Curves, shape_: Shape) -> None:
    made = plan(chart, shape_)
    rects = [label.rect for label in made.labels]
    for rect in rects:
        assert 0 <= rect.left < rect.right <= shape_.width
        assert 0 <= rect.top < rect.bottom <= made.height
    assert not any(overlap(a, b) for at, a in enumerate(rects) for b in rects[:at])


@everywhere
@in_both
def test_every_line_is_named_once_beside_it_or_in_the_key(chart: Curves, shape_: Shape) -> None:
    made = plan(chart, shape_)
    named = sorted(" ".join(label.lines) for label in made.labels)
    named += [entry.text for entry in made.key]
    wanted = [series.name for series in chart.series] + [mark.label for mark in chart.marks]
    wanted += [rule.label for rule in chart.rules if rule.axis == "y"]
    assert sorted(named) == sorted(wanted)


def distance(rect: Rect, point: Point) -> float:
    across = max(rect.left - point[0], 0, point[0] - rect.right)
    down = max(rect.top - point[1], 0, point[1] - rect.bottom)
    return math.hypot(across, down)


@pytest.mark.parametrize("chart", [STAIRS, BUNDLE])
@in_both
def test_a_name_on_the_plot_is_nearer_to_its_own_line_than_to_any_other(
    chart: Curves, shape_: Shape
) -> None:
    made = plan(chart, shape_)
    lines = names(chart, made.frame, shape_.label_px)
    on_plot = [label for label in made.labels if label.on_plot]
    assert on_plot
    for label in on_plot:
        near = {
            name.lines: min(distance(label.rect, point) for point in name.trace) for name in lines
        }
        own = near.pop(label.lines)
        assert own > 2
        assert own < min(near.values())


def test_names_leave_the_plot_to_many_marks_on_a_phone() -> None:
    bare = dataclasses.replace(BUNDLE, rules=(), marks=())
    marks = tuple(Mark(x=2.0**k, y=0.5, label=f"at {k}", role="ink") for k in range(9))
    assert not plan(bare, SLIM).key
    crowded = plan(dataclasses.replace(bare, marks=marks), SLIM)
    assert crowded.key
    assert crowded.frame.box.right > plan(bare, SLIM).frame.box.right


def test_lines_that_end_together_are_named_where_they_are_apart() -> None:
    made: CurvePlan = plan(STAIRS, WIDE)
    assert {label.lines for label in made.labels if label.on_plot} == {
        ("low",), ("middle",), ("high",),
    }  # fmt: skip


def test_markers_sit_on_lines_and_not_on_stairs() -> None:
    assert "<use" not in svg.render(STAIRS, "f")
    assert svg.render(LINEAR, "f").count("<use") == 2 * (4 + 3)
