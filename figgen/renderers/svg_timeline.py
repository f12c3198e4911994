"""Lanes over time: the work and the waiting of each rank."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from figgen.charts import Slot, Timeline
from figgen.errors import InputError
from figgen.renderers.fluid import NARROW, Drawing, fluid
from figgen.renderers.markup import (
    COLUMN,
    element,
    figure,
    number,
    row,
    text_width,
    title,
    words,
    wrapped,
)
from figgen.renderers.ticks import round_step
from figgen.theme import WORK, colour, label, soft
from figgen.units import format_quantity

LANE, SHARED_LANE, LANE_GAP = 26, 34, 5
WIDEST = 2600
LINE = 20
LONGEST_NUMBER = 3
"""Characters of a label that is not a word, such as a microbatch."""


class _Strip(NamedTuple):
    """Where a lane is drawn, in px; `scale` is px per unit of time."""

    left: float
    top: float
    height: float
    scale: float


def render_timeline(chart: Timeline, figure_id: str) -> str:
    """Draw a lane per row, a `<rect>` per slot and per wait, a time axis, and a key to the roles.

    The drawing is wider than the column if the shortest labeled slots need it; slots that run at
    the same time on one lane share its height. It is drawn a second time for a phone if no label is
    lost; there, numbers replace labels that are words, which are explained below. Raises InputError
    for a slot outside lanes or time.
    """
    _check(chart)
    left = math.ceil(max(text_width(lane) for lane in chart.lanes)) + 10
    scale = _scale(chart, COLUMN - left - 8)
    wide = _drawing(chart, left, scale, COLUMN, figure_id)
    shown, named = chart, ""
    if left + chart.end * _closest(chart, scale) + 8 > NARROW:
        shown, named = _numbered(chart, scale)
    close = max((NARROW - left - 8) / chart.end, _closest(shown, scale))
    if wide.width > COLUMN or left + chart.end * close + 8 > NARROW:
        return figure("timeline", wide.width, wide.height, _hatch(figure_id) + wide.body)
    narrow = _with_lines(_drawing(shown, left, close, NARROW, figure_id), named)
    plain = re.sub(r"<title>.*?</title>| data-[a-z]+=\"[^\"]*\"", "", narrow.body)
    return fluid("timeline", wide, narrow._replace(body=plain), _hatch(figure_id))


def _drawing(chart: Timeline, left: float, scale: float, room: float, figure_id: str) -> Drawing:
    slots = [slots_of(chart, lane) for lane in range(len(chart.lanes))]
    height = SHARED_LANE if any(part < 1 for lane in slots for _, part in shares(lane)) else LANE
    key, top = _key(chart, slots, room, figure_id)
    drawn = [key]
    for lane in range(len(chart.lanes)):
        strip = _Strip(left, top + lane * (height + LANE_GAP), height, scale)
        drawn.append(_lane(chart, lane, slots[lane], strip, figure_id))
    bottom = top + len(chart.lanes) * (height + LANE_GAP)
    drawn.append(_axis(chart, left, bottom, scale))
    width = max(room, left + chart.end * scale + 8)
    return Drawing(width, bottom + 40, "".join(drawn))


def _numbered(chart: Timeline, scale: float) -> tuple[Timeline, str]:
    """Return the chart with a number for each label that `scale` has room for, and their words."""
    held = [slot.label for slot in chart.slots if _holds(slot, scale)]
    if all(len(name) <= LONGEST_NUMBER for name in held):
        return chart, ""
    numbers = {name: str(at) for at, name in enumerate(dict.fromkeys(held), 1)}
    slots = [
        replace(slot, label=numbers[slot.label] if _holds(slot, scale) else "")
        for slot in chart.slots
    ]
    named = ", ".join(f"{at}\u00a0{name}" for name, at in numbers.items())
    return replace(chart, slots=tuple(slots)), named


def _with_lines(drawing: Drawing, text: str) -> Drawing:
    lines = wrapped(text, NARROW) if text else []
    under = [words(0, drawing.height + at * LINE + 14, line) for at, line in enumerate(lines)]
    height = drawing.height + len(lines) * LINE + 4
    return Drawing(drawing.width, height, drawing.body + "".join(under))


def slots_of(chart: Timeline, lane: int) -> list[Slot]:
    """Return the slots of one lane in order of time."""
    return sorted((s for s in chart.slots if s.lane == lane), key=lambda s: (s.start, s.end))


def _check(chart: Timeline) -> None:
    for slot in chart.slots:
        if not 0 <= slot.lane < len(chart.lanes):
            raise InputError(f"lane of slot {slot.label!r}", expected="one of the lanes", got=slot)
        if not 0 <= slot.start <= slot.end <= chart.end * (1 + 1e-9):
            raise InputError(f"time of slot {slot.label!r}", expected="within the chart", got=slot)


def _scale(chart: Timeline, room: float) -> float:
    """Return px per unit of time that fill the column, or give short slots room for labels."""
    needed = (
        (text_width(slot.label) + 3) / (slot.end - slot.start)
        for slot in chart.slots
        if slot.end > slot.start and 0 < len(slot.label) <= LONGEST_NUMBER
    )
    wanted = max(needed, default=0.0)
    return max(room / chart.end, min(wanted, WIDEST / chart.end))


def _closest(chart: Timeline, scale: float) -> float:
    """Return px per unit of time that keep every label for which `scale` has room."""
    return max(
        (
            (text_width(slot.label) + 1.02) / (slot.end - slot.start)
            for slot in chart.slots
            if _holds(slot, scale)
        ),
        default=0.0,
    )


def _holds(slot: Slot, scale: float) -> bool:
    return bool(slot.label) and text_width(slot.label) + 1 <= (slot.end - slot.start) * scale


def _lane(chart: Timeline, lane: int, slots: Sequence[Slot], strip: _Strip, figure_id: str) -> str:
    left, top, height, scale = strip
    name = words(left - 8, top + height / 2 + 4, chart.lanes[lane], text_anchor="end")
    parts = [name]
    for start, end in idle_spans(slots, _end(chart, lane)):
        parts.append(
            element(
                "rect",
                title(f"idle, {_span(start, end, chart)}"),
                class_="idle",
                fill=f"url(#{figure_id}-idle)",
                x=left + start * scale,
                y=top + 0.5,
                width=(end - start) * scale,
                height=height - 1,
                data_lane=lane,
                data_start=f"{start:g}",
                data_end=f"{end:g}",
            )
        )
    levels = max((slot.chunk for slot in chart.slots), default=0)
    labels: defaultdict[float, list[tuple[float, str]]] = defaultdict(list)
    for slot, (offset, part) in zip(slots, shares(slots), strict=True):
        own = _Strip(left, top + offset * height, part * height, scale)
        parts.append(_slot(slot, own, levels, _span(slot.start, slot.end, chart)))
        if _holds(slot, scale):
            middle = left + (slot.start + slot.end) / 2 * scale
            labels[own.top + own.height / 2 + 4].append((middle, slot.label))
    parts += [row(baseline, entries, class_="labels") for baseline, entries in labels.items()]
    return element("g", "".join(parts), class_="lane")


def _end(chart: Timeline, lane: int) -> float:
    return chart.ends[lane] if chart.ends else chart.end


def idle_spans(slots: Sequence[Slot], end: float) -> list[tuple[float, float]]:
    """Return the idle spans between the slots of a lane, sorted by start, from 0 to `end`."""
    spans, busy_until = [], 0.0
    for slot in slots:
        if slot.start > busy_until + 1e-9 * end:
            spans.append((busy_until, slot.start))
        busy_until = max(busy_until, slot.end)
    return [*spans, (busy_until, end)] if end > busy_until * (1 + 1e-9) else spans


def shares(slots: Sequence[Slot]) -> list[tuple[float, float]]:
    """Return offset and height of each slot as parts of its lane: halves if two run together."""

    def together(first: Slot, second: Slot) -> bool:
        return min(first.end, second.end) - second.start > 1e-9 * second.end

    found = []
    for at, slot in enumerate(slots):
        under = at > 0 and together(slots[at - 1], slot)
        over = at + 1 < len(slots) and together(slot, slots[at + 1])
        found.append((0.5, 0.5) if under else (0.0, 0.5 if over else 1.0))
    return found


def _slot(slot: Slot, strip: _Strip, levels: int, span: str) -> str:
    plain = f"{label(slot.role)} {slot.label}, {span}"
    return element(
        "rect",
        title(slot.detail or plain),
        class_=f"r-{slot.role}",
        fill_opacity=_shade(slot.chunk, levels),
        x=strip.left + slot.start * strip.scale + 0.5,
        y=strip.top + 0.5,
        width=max(0.5, (slot.end - slot.start) * strip.scale - 1),
        height=strip.height - 1,
        data_lane=slot.lane,
        data_start=f"{slot.start:g}",
        data_end=f"{slot.end:g}",
        data_label=slot.label,
    )


def _shade(chunk: int, levels: int) -> float | None:
    """Later virtual stages are paler; the outline keeps its strength."""
    return 1 - 0.72 * chunk / levels if chunk else None


def _span(start: float, end: float, chart: Timeline) -> str:
    if chart.time_unit == "s":
        return f"{format_quantity(start, 's', 'time')} to {format_quantity(end, 's', 'time')}"
    return f"{start:g} to {end:g}"


def _hatch(figure_id: str) -> str:
    lines = element("rect", width=6, height=6, fill=soft("idle"))
    lines += element("path", d="M-1 7L7 -1", stroke=colour("idle"), stroke_width=0.7)
    pattern = element(
        "pattern",
        lines,
        id=f"{figure_id}-idle",
        width=6,
        height=6,
        patternUnits="userSpaceOnUse",
    )
    return element("defs", pattern)


def _key(
    chart: Timeline, slots: Sequence[Sequence[Slot]], room: float, figure_id: str
) -> tuple[str, float]:
    """Draw swatches of the roles that occur, above the lanes; also return where the lanes begin."""
    # A series means its lane, whose name is next to it.
    present = {slot.role for slot in chart.slots if not slot.role.startswith("series")}
    roles = [role for role in WORK if role in present]
    roles += sorted(present.difference(roles))
    entries: list[tuple[str, str | None, str]] = [
        (f"r-{role}", None, label(role)) for role in roles
    ]
    idles = any(idle_spans(own, _end(chart, lane)) for lane, own in enumerate(slots))
    if idles and "idle" not in present:
        entries.append(("idle", f"url(#{figure_id}-idle)", "idle"))
    levels = max((slot.chunk for slot in chart.slots), default=0)
    parts, x, y = [], 0.5, 0.5
    for class_, fill, name in entries:
        shades = [_shade(chunk, levels) for chunk in range(1 if fill else levels + 1)]
        wide = 13 * len(shades) + 5 + text_width(name) + 16
        if x + wide > room:
            x, y = 0.5, y + LINE
        for shade in shades:
            parts.append(
                element(
                    "rect",
                    class_=class_,
                    fill=fill,
                    fill_opacity=shade,
                    x=x,
                    y=y + 2,
                    width=13,
                    height=11,
                )
            )
            x += 13
        parts.append(words(x + 5, y + 12, name))
        x += wide - 13 * len(shades)
    if levels:
        which = "second model chunk" if levels == 1 else "later model chunks"
        if x + text_width(which) + 18 > room:
            x, y = 0.5, y + LINE
        parts.append(words(x, y + 12, f"paler: {which}", fill=colour("muted")))
    return element("g", "".join(parts), class_="key"), y + LINE + 8


LEAST_TICK_PX = 48
_SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def _axis(chart: Timeline, left: float, y: float, scale: float) -> str:
    factor, unit = 1.0, chart.time_unit
    if unit == "s":
        factor, unit = next((pair for pair in _SCALES if chart.end >= pair[0]), _SCALES[-1])
    mantissa, exponent = round_step(LEAST_TICK_PX / (scale * factor))
    step = float(f"{mantissa}e{exponent}")
    ticks = [index * step for index in range(int(chart.end / factor / step + 1e-9) + 1)]
    at = [left + tick * factor * scale for tick in ticks]
    marks = "".join(f"M{number(x)} {number(y)}v5" for x in at)
    line = f"M{number(left)} {number(y)}H{number(left + chart.end * scale)}{marks}"
    path = element("path", d=line, stroke=colour("muted"), fill="none")
    labels = row(
        y + 17, [(x, f"{tick:g}") for x, tick in zip(at, ticks, strict=True)], fill=colour("muted")
    )
    named = chart.time_label if unit == "1" else f"{chart.time_label} ({unit})"
    over = left + text_width(named) - (left + chart.end * scale + 8)
    name = words(left - min(left, max(0.0, over)), y + 34, named, fill=colour("muted"))
    return element("g", path + labels + name, class_="axis")
