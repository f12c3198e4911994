"""SVG, Plotly, text and CSV of a chart all show the numbers that the chart contains."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from typing import Any
from xml.etree import ElementTree

import pytest

from figgen.charts import Chart, Curves, Timeline
from figgen.renderers import plotly, svg, table, text
from figgen.renderers.scale import bar_scale, curve_scales
from figgen.renderers.svg_timeline import idle_spans, slots_of
from figgen.theme import CYCLE, label
from figgen.units import parse_quantity
from tests.renderers.samples import (
    CURVES,
    GRID,
    GROUPED,
    SAMPLES,
    STACKED,
    STEPS,
    TABLE,
    TIMELINE,
)


def explored(chart: Chart) -> Any:
    return json.loads(plotly.render(chart))


def rows(chart: Chart) -> list[dict[str, str]]:
    """Return the CSV of a chart."""
    return list(csv.DictReader(io.StringIO(table.csv(table.data_table(chart)), newline="")))


def drawn(chart: Chart) -> ElementTree.Element:
    return ElementTree.fromstring(svg.render(chart, "f"))


def finite(values: tuple[float, ...]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values]


def test_curves_have_the_points_of_their_series_everywhere() -> None:
    traces = explored(CURVES)["data"]
    for series, trace in zip(CURVES.series, traces, strict=False):
        assert trace["name"] == series.name
        assert trace["x"] == list(series.x)
        assert trace["y"] == finite(series.y)
    listed = [(r["series"], r["message size (B)"], r["time (s)"]) for r in rows(CURVES)]
    for series in CURVES.series:
        for x, y in zip(series.x, series.y, strict=True):
            assert (series.name, repr(x), "" if math.isnan(y) else repr(y)) in listed


def test_curves_in_words_are_the_same_to_three_digits() -> None:
    said = text.render(CURVES)
    assert "message size  ring (µs)  tree (µs)" in said
    for series in CURVES.series[:2]:
        for y in series.y:
            assert re.search(rf"(?<![\d.,]){y * 1e6:,.0f}(?![\d.])", said)


@pytest.mark.parametrize("chart", [CURVES])
def test_limits_and_ticks_in_plotly_are_those_of_the_picture(chart: Curves) -> None:
    layout = explored(chart)["layout"]
    for name, scaled in zip(("xaxis", "yaxis"), curve_scales(chart), strict=True):
        axis = layout[name]
        assert axis["type"] == "log"
        assert [10**end for end in axis["range"]] == pytest.approx([scaled.low, scaled.high])
        assert axis["tickvals"] == [value for value, _ in scaled.ticks]
        assert axis["ticktext"] == [shown for _, shown in scaled.ticks]


@pytest.mark.parametrize("chart", [STACKED, GROUPED], ids=["stacked", "grouped"])
def test_bars_have_the_lengths_of_their_segments_everywhere(chart: Any) -> None:
    made = explored(chart)
    assert [trace["x"] for trace in made["data"]] == [list(s.lengths) for s in chart.segments]
    assert made["layout"]["barmode"] == ("stack" if chart.stacked else "group")
    assert made["layout"]["xaxis"]["range"] == [bar_scale(chart).low, bar_scale(chart).high]
    titles = {title.text for title in drawn(chart).iter("title")}
    listed = {(r["bar"], r["part"]): float(r["memory per GPU (B)"]) for r in rows(chart)}
    for segment in chart.segments:
        for name, length in zip(chart.labels, segment.lengths, strict=True):
            assert listed[name, segment.name] == length
            said = next(t for t in titles if t and t.startswith(f"{name}, {segment.name}: "))
            assert parse_quantity(said.rpartition(": ")[2]).value == pytest.approx(length)


def test_stacked_bars_add_up_everywhere() -> None:
    listed = {
        r["bar"]: float(r["memory per GPU (B)"]) for r in rows(STACKED) if r["part"] == "total"
    }
    assert listed == {"TP 1": 50.5e9, "TP 2": 30.5e9}
    assert "50.5\xa0GB" in [note["text"] for note in explored(STACKED)["layout"]["annotations"]]
    assert re.search(r"total +50\.5\xa0GB", text.render(STACKED))


def spans(chart: Timeline) -> set[tuple[int, float, float, str]]:
    return {(slot.lane, slot.start, slot.end, slot.label) for slot in chart.slots}


def test_a_timeline_has_the_times_of_its_slots_everywhere() -> None:
    rects = [rect for rect in drawn(TIMELINE).iter("rect") if rect.get("data-label") is not None]
    assert {
        (
            int(r.get("data-lane", "")),
            float(r.get("data-start", "")),
            float(r.get("data-end", "")),
            r.get("data-label", ""),
        )
        for r in rects
    } == spans(TIMELINE)
    assert {
        (lane, start, start + long, name)
        for trace in explored(TIMELINE)["data"]
        for lane, start, long, name in zip(
            trace["y"], trace["base"], trace["x"], trace["text"], strict=True
        )
    } == spans(TIMELINE)
    assert {
        (TIMELINE.lanes.index(r["lane"]), float(r["start"]), float(r["end"]), r["label"])
        for r in rows(TIMELINE)
    } == spans(TIMELINE)


def test_a_timeline_shows_the_same_waits_in_pixels_and_in_words() -> None:
    first, second, third = text.render(TIMELINE).splitlines()[:3]
    assert first.split() == ["rank", "0:", "F0", ".", ".", "B0", "-", "."]
    assert second.split() == ["rank", "1:", ".", "F0", "I0'", ".", ".", "."]
    assert third.split() == [":", ".", ".", "W1", ".", ".", "."]
    idle = [rect for rect in drawn(TIMELINE).iter("rect") if rect.get("class") == "idle"]
    waits = {
        (lane, *span)
        for lane in range(2)
        for span in idle_spans(slots_of(TIMELINE, lane), TIMELINE.end)
    }
    assert {
        (int(r.get("data-lane", "")), float(r.get("data-start", "")), float(r.get("data-end", "")))
        for r in idle
        if r.get("data-lane")
    } == waits


def test_two_halves_of_a_lane_stand_apart_in_plotly() -> None:
    upper, lower = (
        (trace["offset"][0], trace["width"][0])
        for trace in explored(TIMELINE)["data"]
        if trace["name"] in (label("backward-input"), label("backward-weight"))
    )
    assert upper == pytest.approx((-0.45, 0.45))
    assert lower == pytest.approx((0.0, 0.45))


def test_a_grid_has_the_groups_of_every_rank_everywhere() -> None:
    listed = rows(GRID)
    assert [int(r["rank"]) for r in listed] == list(range(8))
    for view in GRID.communicators:
        assert [int(r[f"{view.label} group"]) for r in listed] == list(view.group_of_cell)
    named = [(r.findtext("title", ""), r) for r in drawn(GRID).iter("rect")]
    cells = {int(words.split()[1]): rect for words, rect in named if words.startswith("rank ")}
    for index, cell in enumerate(GRID.cells):
        classes = cells[cell.rank].get("class", "").split()
        for view in GRID.communicators:
            assert f"{view.name}-{view.group_of_cell[index] % CYCLE}" in classes


def test_the_buttons_of_a_grid_colour_it_by_each_communicator() -> None:
    made = explored(GRID)
    buttons = made["layout"]["updatemenus"][0]["buttons"]
    assert [button["label"] for button in buttons] == ["TP", "DP"]
    for view, button in zip(GRID.communicators, buttons, strict=True):
        changed = button["args"][0]
        (groups,), (written,), (inks,) = changed["z"], changed["text"], changed["colorscale"]
        for index, cell in enumerate(GRID.cells):
            group = view.group_of_cell[index]
            assert groups[cell.node][cell.local_rank] == group % CYCLE
            assert written[cell.node][cell.local_rank] == f"<b>{cell.rank}</b><br>{group}"
        assert {ink for _, ink in inks} == {f"var(--fig-{view.name}-{s})" for s in range(CYCLE)}
    assert made["data"][0]["z"] == buttons[0]["args"][0]["z"][0]


def test_steps_have_a_frame_per_step_in_plotly_and_a_stop_on_its_slider() -> None:
    made = explored(STEPS)
    assert [frame["name"] for frame in made["frames"]] == ["0", "1", "2"]
    assert [stop["args"][0] for stop in made["layout"]["sliders"][0]["steps"]] == [
        ["0"], ["1"], ["2"],
    ]  # fmt: skip
    for frame, shown in zip(STEPS.frames, made["frames"], strict=True):
        held = shown["data"][0]["text"]
        for rank, chunks in enumerate(frame.contents):
            for chunk, who in enumerate(chunks):
                assert held[chunk][rank] == "+".join(map(str, who))
        arrows = [note for note in shown["layout"]["annotations"] if note["showarrow"]]
        sent = [(t.source, t.target, c) for t in frame.transfers for c in t.chunks]
        assert [(round(a["ax"]), round(a["x"]), a["y"]) for a in arrows] == sent


def test_steps_list_every_transfer() -> None:
    listed = [(r["step"], r["from rank"], r["to rank"], r["on arrival"]) for r in rows(STEPS)]
    assert listed == [
        ("1", "0", "1", "added"), ("1", "1", "0", "added"),
        ("2", "1", "0", "copied"), ("2", "0", "1", "copied"),
    ]  # fmt: skip


def test_a_table_is_the_same_in_html_plotly_and_words() -> None:
    shown = table.shown(TABLE)
    made = explored(TABLE)["data"][0]
    assert [list(cells) for cells in zip(*made["cells"]["values"], strict=True)] == [
        list(row) for row in shown.rows
    ]
    for row, line in zip(shown.rows, text.render(TABLE).splitlines()[1:], strict=True):
        assert re.split(r" {2,}", line.strip()) == list(row)


@pytest.mark.parametrize("kind", SAMPLES)
def test_plotly_gets_lists_of_plain_numbers(kind: str) -> None:
    made = plotly.render(SAMPLES[kind])
    assert "bdata" not in made
    assert "NaN" not in made
    assert set(json.loads(made)) >= {"config", "data", "layout"}
