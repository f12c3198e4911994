"""Timelines: where slots are drawn, what is idle, and whether labels fit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from figgen.charts import Slot, Timeline
from figgen.errors import InputError
from figgen.renderers import svg
from figgen.renderers.fluid import NARROW, only_wide
from figgen.renderers.markup import text_width
from figgen.renderers.svg_timeline import idle_spans


def slot(lane: int, start: float, end: float, role: str = "forward", **more: object) -> Slot:
    known: dict[str, object] = {"label": "0", **more}
    return Slot(lane=lane, start=start, end=end, role=role, **known)  # type: ignore[arg-type]


def timeline(*slots: Slot, lanes: int = 2, end: float = 10, unit: str = "1") -> Timeline:
    names = tuple(f"rank {lane}" for lane in range(lanes))
    return Timeline(lanes=names, slots=slots, end=end, time_label="time", time_unit=unit)


def gpipe(ranks: int, microbatches: int) -> Timeline:
    """Return all forwards, then all backwards, of one unit each, so that times are known."""
    slots = []
    turn = microbatches + ranks - 1
    for rank in range(ranks):
        for m in range(microbatches):
            back = turn + ranks - 1 - rank + m
            slots.append(slot(rank, rank + m, rank + m + 1, label=str(m)))
            slots.append(slot(rank, back, back + 1, "backward", label=str(m)))
    return timeline(*slots, lanes=ranks, end=2 * turn)


def rects(drawn: str, idle: bool = False) -> list[ElementTree.Element]:
    every = [rect for rect in ElementTree.fromstring(drawn).iter("rect") if rect.get("data-lane")]
    return [rect for rect in every if (rect.get("class") == "idle") == idle]


def measure(rect: ElementTree.Element, *names: str) -> list[float]:
    return [float(rect.get(name, "nan")) for name in names]


@pytest.mark.parametrize(("ranks", "microbatches"), [(1, 1), (2, 3), (4, 8), (8, 32)])
def test_slots_and_idle_spans_fill_every_lane_exactly_once(ranks: int, microbatches: int) -> None:
    drawn = svg.render(gpipe(ranks, microbatches), "t")
    every = rects(drawn) + rects(drawn, idle=True)
    end = 2 * (microbatches + ranks - 1)
    for lane in range(ranks):
        spans = sorted(
            measure(rect, "data-start", "data-end")
            for rect in every
            if rect.get("data-lane") == str(lane)
        )
        assert spans[0][0] == 0
        assert spans[-1][1] == end
        assert all(before[1] == after[0] for before, after in pairwise(spans))


def test_idle_time_of_gpipe_is_its_bubble() -> None:
    # Huang et al. 2019, section 2.3: idle share (K − 1)/(M + K − 1).
    drawn = svg.render(gpipe(4, 8), "t")
    spans = [measure(rect, "data-start", "data-end") for rect in rects(drawn, idle=True)]
    idle = sum(end - start for start, end in spans)
    assert idle / (4 * 22) == pytest.approx(3 / 11)


def test_width_on_the_page_is_proportional_to_time() -> None:
    drawn = rects(svg.render(gpipe(4, 8), "t"), idle=True)
    scales = {
        round(width / (end - start), 1)
        for width, start, end in (measure(r, "width", "data-start", "data-end") for r in drawn)
    }
    assert len(scales) == 1


@pytest.mark.parametrize(("ranks", "microbatches"), [(4, 8), (8, 32), (8, 64)])
def test_a_written_label_is_narrower_than_its_slot(ranks: int, microbatches: int) -> None:
    drawn = svg.render(gpipe(ranks, microbatches), "t")
    root = ElementTree.fromstring(only_wide(drawn))
    slots = [(*measure(rect, "x", "width"), rect.get("data-label")) for rect in rects(drawn)]
    lanes = [text for text in root.iter("text") if text.get("class") == "labels"]
    assert sum(len(lane) for lane in lanes) == len(slots)
    for span in (span for lane in lanes for span in lane):
        centre, half = float(span.get("x", "")), text_width(span.text or "") / 2
        assert any(
            x <= centre - half and centre + half <= x + width and label == span.text
            for x, width, label in slots
        )


def test_32_microbatches_on_8_ranks_scroll_and_8_on_4_do_not() -> None:
    wide = ElementTree.fromstring(svg.render(gpipe(8, 32), "t"))
    assert float(wide.get("width", "")) > 1000
    narrow = ElementTree.fromstring(svg.render(gpipe(4, 8), "t"))
    assert narrow.get("width") == "720"


def test_text_is_never_shown_below_11_px() -> None:
    for chart in (gpipe(4, 16), gpipe(8, 32)):
        root = ElementTree.fromstring(svg.render(chart, "t"))
        least = dict(part.split(":") for part in root.get("style", "").split(";"))["min-width"]
        shrunk = float(least.removesuffix("px")) / float(root.get("width", ""))
        assert float(root.get("font-size", "")) * shrunk >= 11
        assert all(text.get("font-size") is None for text in root.iter("text"))


def test_a_timeline_is_drawn_for_a_phone_where_every_label_still_fits() -> None:
    for ranks, microbatches, fits in ((2, 4, True), (4, 8, True), (4, 16, False), (8, 32, False)):
        root = ElementTree.fromstring(svg.render(gpipe(ranks, microbatches), "t"))
        slim = next((part for part in root if part.get("class") == "narrow"), None)
        assert (slim is not None) == fits
        if slim is not None:
            assert float(slim.get("viewBox", "").split()[2]) <= NARROW
            texts = [text for text in slim.iter("text") if text.get("class") == "labels"]
            assert sum(len(text) for text in texts) == 2 * ranks * microbatches


def test_labels_of_words_are_numbers_on_a_phone_with_the_words_below() -> None:
    parts = ("norm", "projections", "norm", "attention", "x")
    slots = [slot(0, at * 15, at * 15 + 14, label=name) for at, name in enumerate(parts)]
    root = ElementTree.fromstring(svg.render(timeline(*slots, end=75), "t"))
    (slim,) = (part for part in root if part.get("class") == "narrow")
    numbers = [text for text in slim.iter("text") if text.get("class") == "labels"]
    assert [one.text for text in numbers for one in text] == ["1", "2", "1", "3", "4"]
    shown = "".join(slim.itertext())
    assert all(f"{at}\u00a0{name}" in shown for at, name in enumerate(dict.fromkeys(parts), 1))
    assert float(slim.get("viewBox", "").split()[2]) <= NARROW


def test_slots_that_run_together_share_the_height_of_the_lane() -> None:
    chart = timeline(slot(0, 0, 3), slot(0, 0, 3, "backward"), slot(0, 3, 5), lanes=1, end=5)
    first, second, alone = (measure(rect, "y", "height") for rect in rects(svg.render(chart, "t")))
    assert first[0] + first[1] <= second[0]
    assert alone[1] > first[1] + second[1]


def test_later_chunks_are_paler_and_the_key_says_so() -> None:
    chart = timeline(slot(0, 0, 1), slot(0, 1, 2, chunk=1), slot(0, 2, 3, chunk=2))
    drawn = svg.render(chart, "t")
    assert [rect.get("fill-opacity") for rect in rects(drawn)] == [None, "0.64", "0.28"]
    assert "paler: later model chunks" in drawn
    assert "paler" not in svg.render(timeline(slot(0, 0, 1)), "t")


def test_the_key_names_the_roles_that_occur_and_no_others() -> None:
    chart = timeline(slot(0, 0, 10, "exposed"), slot(1, 0, 10, "backward-weight"))
    key = next(
        g
        for g in ElementTree.fromstring(svg.render(chart, "t")).iter("g")
        if g.get("class") == "key"
    )
    assert [text.text for text in key.iter("text")] == [
        "backward for weights", "exposed communication",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("end", "ticks", "unit"),
    [(0.0117, "012", "(ms)"), (33.0, ("0", "5", "10"), "(s)"), (4e-5, ("0", "5"), "(µs)")],
)
def test_the_time_axis_has_round_ticks_in_a_readable_unit(
    end: float, ticks: Sequence[str], unit: str
) -> None:
    drawn = svg.render(timeline(slot(0, 0, end), end=end, unit="s"), "t")
    axis = next(g for g in ElementTree.fromstring(drawn).iter("g") if g.get("class") == "axis")
    assert [span.text for span in axis.iter("tspan")][: len(ticks)] == list(ticks)
    assert f"time {unit}" in drawn


def test_idle_spans_are_what_is_left_over() -> None:
    lane = [slot(0, 1, 3), slot(0, 2, 4), slot(0, 6, 7)]
    assert idle_spans(lane, 9) == [(0.0, 1), (4, 6), (7, 9)]
    assert idle_spans([], 2) == [(0.0, 2)]
    assert idle_spans([slot(0, 0, 2)], 2) == []
    within = [slot(0, 0, 5), slot(0, 1, 2), slot(0, 6, 7)]
    assert idle_spans(within, 7) == [(5, 6)]
    # Less than a billionth is what sums of times leave, not idle time; a millionth is.
    for gap, expected in ((1e-10, []), (1e-6, [(2, 2 + 1e-6), (4, 4 + 1e-6)])):
        nearly = [slot(0, 0, 2), slot(0, 2 + gap, 4)]
        assert idle_spans(nearly, 4 + gap) == expected


def test_a_slot_outside_lanes_or_time_is_refused() -> None:
    with pytest.raises(InputError, match="lane of slot"):
        svg.render(timeline(slot(2, 0, 1)), "t")
    with pytest.raises(InputError, match="time of slot"):
        svg.render(timeline(slot(0, 0, 11)), "t")
