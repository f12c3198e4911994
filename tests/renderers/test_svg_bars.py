"""Bars in pixels: lengths, stacking, patterns, and positions of labels."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from figgen.charts import Axis, Bars, Rule, Segment
from figgen.renderers import svg
from figgen.renderers.bar_plan import ends, parts, plan
from figgen.renderers.markup import TEXT, text_width
from figgen.renderers.scale import bar_totals
from tests.renderers.samples import GROUPED, STACKED


def shape(chart: Bars, name: str) -> ElementTree.Element:
    root = ElementTree.fromstring(svg.render(chart, "f"))
    return next(part for part in root if part.get("class") == name)


def rects(drawn: ElementTree.Element) -> dict[tuple[int, int], dict[str, float]]:
    """Return rectangles by segment and bar."""
    found = {}
    for group in drawn.iter("g"):
        if (segment := group.get("data-segment")) is not None:
            for rect in group.iter("rect"):
                place = {key: float(rect.get(key, "nan")) for key in ("x", "y", "width", "height")}
                found[int(segment), int(rect.get("data-bar", ""))] = place
    return found


def tick_places(drawn: ElementTree.Element, *texts: str) -> list[float]:
    found = {span.text: float(span.get("x", "nan")) for span in drawn.iter("tspan")}
    return [found[text] for text in texts]


@pytest.mark.parametrize("kind", ["wide", "narrow"])
def test_stacked_bars_are_as_long_as_the_printed_ticks_say(kind: str) -> None:
    drawn = shape(STACKED, kind)
    zero, forty = tick_places(drawn, "0", "40")
    px_per_byte = (forty - zero) / 40e9
    placed = rects(drawn)
    for bar in range(2):
        reached = zero
        for index, segment in enumerate(STACKED.segments):
            rect = placed[index, bar]
            assert rect["x"] == pytest.approx(reached, abs=0.02)
            assert rect["width"] == pytest.approx(segment.lengths[bar] * px_per_byte, abs=0.02)
            reached += rect["width"]


@pytest.mark.parametrize("kind", ["wide", "narrow"])
def test_grouped_bars_start_at_zero_below_each_other(kind: str) -> None:
    drawn = shape(GROUPED, kind)
    (zero,) = tick_places(drawn, "0")
    placed = rects(drawn)
    assert [rect["x"] for rect in placed.values()] == pytest.approx([zero] * 4, abs=0.01)
    tops = [placed[segment, bar]["y"] for bar in range(2) for segment in range(2)]
    assert tops == sorted(tops)
    (height,) = {rect["height"] for rect in placed.values()}
    assert all(lower - upper >= height for upper, lower in pairwise(tops))


def test_a_logarithmic_axis_measures_from_its_lower_end() -> None:
    chart = Bars(
        labels=("a", "b"),
        segments=(Segment(name="s", role="tp", lengths=(1e-5, 1e-2)),),
        axis=Axis(label="time", unit="s", scale="log10", low=1e-6, high=1e-1),
        stacked=False,
    )
    short, long = (
        part.rect.right - part.rect.left for part in parts(chart, plan(chart, 720, above=False))
    )
    assert long / short == pytest.approx(4.0)


def test_a_length_that_is_not_known_has_no_bar_and_none_that_is_zero() -> None:
    segments = (Segment(name="s", role="tp", lengths=(math.nan, 0.0, 3.0)),)
    chart = Bars(labels=("a", "b", "c"), segments=segments, axis=Axis(label="x"), stacked=False)
    drawn = shape(chart, "wide")
    assert [bar for _, bar in rects(drawn)] == [2]
    (told,) = (group for group in drawn.iter("g") if group.get("class") == "values")
    assert [text.text for text in told] == ["–", "3"]


def test_colours_are_solid_and_only_one_that_comes_again_is_lined() -> None:
    roles = (*(f"series-{at}" for at in range(1, 7)), "neutral", "series-1", "reference")
    segments = tuple(
        Segment(name=f"s{at}", role=role, lengths=(1.0,)) for at, role in enumerate(roles)
    )
    chart = Bars(labels=("a",), segments=segments, axis=Axis(label="x"))
    root = ElementTree.fromstring(svg.render(chart, "f"))
    assert [pattern.get("id") for pattern in root.iter("pattern")] == ["f-p7", "f-p8"]
    used = {path.get("fill") for path in root.iter("path")}
    assert {"url(#f-p7)", "url(#f-p8)"} <= used


def test_a_bar_says_what_it_is_under_the_pointer() -> None:
    drawn = shape(GROUPED, "wide")
    titles = [title.text for title in drawn.iter("title")]
    assert "TP 2, weights: 20\xa0GB" in titles
    assert len(titles) == 4


@pytest.mark.parametrize("above", [False, True])
@pytest.mark.parametrize("chart", [STACKED, GROUPED], ids=["stacked", "grouped"])
def test_bars_and_their_values_stay_on_the_picture(chart: Bars, above: bool) -> None:
    made = plan(chart, 340 if above else 720, above=above)
    longest = max(text_width(line) for lines in made.labels for line in lines)
    for part in parts(chart, made):
        assert made.box.left <= part.rect.left < part.rect.right <= made.box.right + 0.01
        assert made.box.top <= part.rect.top < part.rect.bottom <= made.box.bottom
    assert above or longest < made.box.left
    assert made.box.right + text_width("50.5\xa0GB") <= made.width


@pytest.mark.parametrize("kind", ["wide", "narrow"])
def test_numbers_stand_with_the_labels_where_a_limit_leaves_one_of_them_no_room(kind: str) -> None:
    near = dataclasses.replace(STACKED, rules=(Rule(axis="x", at=51e9, label="limit"),))
    far = dataclasses.replace(STACKED, rules=(Rule(axis="x", at=20e9, label="limit"),))
    written = [text.text or "" for text in shape(near, kind).iter("text")]
    joined = " ".join(written)
    for label, total in zip(STACKED.labels, bar_totals(STACKED), strict=True):
        assert f"{label}, {total / 1e9:.3g}\xa0GB" in joined
    assert "values" not in {g.get("class") for g in shape(near, kind).iter("g")}
    values = next(g for g in shape(far, kind).iter("g") if g.get("class") == "values")
    made = plan(far, 720 if kind == "wide" else 340, above=kind == "narrow")
    for text in values:
        start = float(text.get("x", "nan"))
        assert not start - 2 < made.flags[0].at < start + text_width(text.text or "")


@pytest.mark.parametrize("kind", ["wide", "narrow"])
@pytest.mark.parametrize("chart", [STACKED, GROUPED], ids=["stacked", "grouped"])
def test_long_labels_part_from_each_other_further_than_their_own_lines(
    chart: Bars, kind: str
) -> None:
    """If each takes three lines or more, its middle is aligned with the middle of its bar."""
    long = tuple(
        f"{label}: weights, gradients and moments in {i} formats, " * (i + 3)
        for i, label in enumerate(chart.labels)
    )
    drawn = shape(dataclasses.replace(chart, labels=long, rules=()), kind)
    made = plan(
        dataclasses.replace(chart, labels=long, rules=()),
        720 if kind == "wide" else 340,
        above=kind == "narrow",
    )
    lines = {line for label in made.labels for line in label}
    heights = [float(text.get("y", "nan")) for text in drawn.iter("text") if text.text in lines]
    assert len(heights) == sum(map(len, made.labels)) > 5
    steps = [b - a for a, b in pairwise(heights)]
    apart = steps.pop(len(made.labels[0]) - 1)
    assert max(steps) == pytest.approx(min(steps), abs=0.02)
    assert apart > 1.3 * min(steps)
    if kind == "wide":
        first = sum(heights[: len(made.labels[0])]) / len(made.labels[0])
        bars = [rect for (_, bar), rect in rects(drawn).items() if bar == 0]
        low, high = min(r["y"] for r in bars), max(r["y"] + r["height"] for r in bars)
        assert first == pytest.approx((low + high) / 2 + 0.35 * TEXT, abs=0.02)


def test_a_label_above_its_bar_can_be_read_across_a_rule() -> None:
    chart = dataclasses.replace(STACKED, rules=(Rule(axis="x", at=20e9, label="limit"),))
    drawn = shape(chart, "narrow")
    label = next(
        g
        for g in drawn.iter("g")
        if g.find("text") is not None and g.find("text").text == chart.labels[0]
    )  # type: ignore[union-attr]
    order = list(drawn.iter())
    rule = next(path for path in drawn.iter("path") if path.get("stroke-dasharray"))
    assert label.get("paint-order") == "stroke"
    assert label.get("stroke") == "var(--fig-paper)"
    assert order.index(rule) < order.index(label)


def test_shares_of_a_whole_have_no_total() -> None:
    parts = (
        Segment(name="a", role="series-1", lengths=(0.25, 0.6)),
        Segment(name="b", role="series-2", lengths=(0.75, 0.4)),
    )
    shares = Bars(labels=("x", "y"), segments=parts, axis=Axis(label="share", high=1, spec=".0%"))
    assert ends(shares) == []
    halves = dataclasses.replace(shares, segments=parts[:1])
    assert [value for _, value, _ in ends(halves)] == [0.25, 0.6]
