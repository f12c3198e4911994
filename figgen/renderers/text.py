"""Charts as plain text, for goldens, the command line and readers without pictures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from figgen.charts import (
    Bars,
    Chart,
    Column,
    Curves,
    Diagram,
    Film,
    Overview,
    RankGrid,
    Series,
    Slot,
    Steps,
    Table,
    Timeline,
)
from figgen.renderers.data import data_table, measured
from figgen.renderers.scale import bar_totals, value_text
from figgen.renderers.table import shown
from figgen.theme import label

BAR_WIDTH = 40
WIDEST = 240
"""The longest row of a timeline in characters; beyond it, slots are listed."""
# As in schedules in print: I and W are the two halves of B.
LETTERS = {"forward": "F", "backward": "B", "backward-input": "I", "backward-weight": "W"}


def render(chart: Chart) -> str:
    """Return the chart as lines of text; equal data give equal text."""
    match chart:
        case RankGrid():
            lines = _grid(chart)
        case Timeline():
            lines = _timeline(chart)
        case Steps():
            lines = _steps(chart)
        case Curves():
            lines = _curves(chart)
        case Bars():
            lines = _bars(chart)
        case Diagram():
            lines = _diagram(chart)
        case Table():
            lines = _table(chart)
        case Film():
            lines = _film(chart)
        case Overview():
            lines = _overview(chart)
        case _:
            raise TypeError(f"no text for {type(chart).__name__}")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _aligned(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Format columns as wide as their longest cell, aligned right or left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        )
        for row in rows
    ]


def _table(chart: Table) -> list[str]:
    text = shown(chart)
    return _aligned([text.headings, *text.rows], text.right)


def _grid(chart: RankGrid) -> list[str]:
    one = f", one of {chart.multiplicity:,} equal blocks" if chart.multiplicity > 1 else ""
    return [
        f"{chart.world_size:,} ranks, {chart.gpus_per_node} per node{one}",
        *_table(data_table(chart)),
    ]


def _overview(chart: Overview) -> list[str]:
    """Return the ranks of each lane, and the lanes as text."""
    lines = [f"{chart.room.world_size:,} ranks, {chart.room.gpus_per_node} per node"]
    for lane, (name, own) in enumerate(zip(chart.step.lanes, chart.marked, strict=True)):
        cells = zip(chart.room.cells, chart.stage_of_cell, strict=True)
        ranks = [cell.rank for cell, stage in cells if stage == lane]
        ends = f"{len(ranks)} ranks from {ranks[0]} to {ranks[-1]}"
        lines.append(f"{name}: {ends}, of which {own[0]} to {own[-1]} are shown")
    return [*lines, *_timeline(chart.step)]


def _timeline(chart: Timeline) -> list[str]:
    """Draw one column per unit of time, "-" where a slot continues and "." where nothing runs."""
    lengths = {slot.end - slot.start for slot in chart.slots}
    unit = min(lengths, default=chart.end)
    even = all(math.isclose(x / unit, round(x / unit)) for x in {*lengths, chart.end})
    columns = round(chart.end / unit)
    names = {slot: _slot_name(slot) for slot in chart.slots}
    width = max(map(len, names.values()), default=1)
    if not even or columns * (width + 1) > WIDEST:
        return _slots(chart)
    lines = []
    for lane, name in enumerate(chart.lanes):
        mine = sorted((s for s in chart.slots if s.lane == lane), key=lambda s: (s.start, s.end))
        for row, together in enumerate(_without_overlap(mine)):
            done = round((chart.ends[lane] if chart.ends else chart.end) / unit)
            cells = ["."] * done + [""] * (columns - done)
            for slot in together:
                first, last = round(slot.start / unit), round(slot.end / unit)
                cells[first:last] = [names[slot], *["-"] * (last - first - 1)]
            drawn = " ".join(cell.ljust(width) for cell in cells)
            lines.append(f"{name if row == 0 else ' ' * len(name)}: {drawn}".rstrip())
    return [*lines, *_letters(chart), f"{chart.time_label}: 0 to {chart.end:g}"]


def _without_overlap(slots: Iterable[Slot]) -> list[list[Slot]]:
    """Return the slots of one lane in as few rows as show all of them; at least one row."""
    rows: list[list[Slot]] = [[]]
    for slot in slots:
        free = next((row for row in rows if not row or row[-1].end <= slot.start + 1e-9), None)
        if free is None:
            rows.append([slot])
        else:
            free.append(slot)
    return rows


def _slot_name(slot: Slot) -> str:
    letter = LETTERS.get(slot.role, slot.role[:1].upper())
    return f"{letter}{slot.label}" + "'" * slot.chunk


def _letters(chart: Timeline) -> list[str]:
    roles = dict.fromkeys(slot.role for slot in chart.slots)
    said = [f"{LETTERS.get(role, role[:1].upper())} {label(role)}" for role in roles]
    said += ["' for each later chunk"] * any(slot.chunk for slot in chart.slots)
    return [", ".join([*said, ". idle"])]


def _slots(chart: Timeline) -> list[str]:
    lines = []
    for lane, name in enumerate(chart.lanes):
        mine = sorted((s for s in chart.slots if s.lane == lane), key=lambda s: (s.start, s.end))
        each = [f"{_slot_name(slot)}@{slot.start:g}-{slot.end:g}" for slot in mine]
        lines.append(f"{name}: {' '.join(each)}")
    return [*lines, *_letters(chart), f"{chart.time_label}: 0 to {chart.end:g}"]


def _steps(chart: Steps) -> list[str]:
    """Return the chunks of every rank ("-" for none), and the messages of every step."""
    joint = "" if chart.ranks <= 10 else "+"
    lines = []
    for frame in chart.frames:
        lines.append(f"{frame.title} ({frame.phase})" if frame.phase else frame.title)
        for rank, chunks in enumerate(frame.contents):
            held = " ".join(joint.join(map(str, who)) or "-" for who in chunks)
            lines.append(f"  rank {rank}: {held}")
        for move in frame.transfers:
            sent = " ".join(map(str, move.chunks))
            verb = "add" if move.reduces else "copy"
            lines.append(f"  {move.source} -> {move.target}: {sent} {verb}")
    return lines


def _film(chart: Film) -> list[str]:
    """Return each scene's text and its changes."""
    lines = []
    before: dict[str, str] = {}
    for number, scene in enumerate(chart.scenes):
        if scene.asks:
            lines.append(f"? {scene.asks.text} {' / '.join(scene.asks.choices)}")
        lines.append(f"{number}: {scene.says}")
        now = {thing.name: thing.text for thing in scene.things}
        changed = [f"{name}={text}" for name, text in now.items() if before.get(name) != text]
        changed += [f"-{name}" for name in before if name not in now]
        lines += [f"  {' '.join(changed)}"] * bool(changed)
        before = now
    return lines


def _curves(chart: Curves) -> list[str]:
    """Return series over the same x as one table, others one after the other; then marks, rules."""
    lines: list[str] = []
    together: dict[tuple[float, ...], list[Series]] = {}
    for series in chart.series:
        together.setdefault(series.x, []).append(series)
    for several in together.values():
        lines += _series(chart, several)
    for mark in chart.marks:
        at = f"{value_text(chart.x, mark.x)}, {value_text(chart.y, mark.y)}"
        lines.append(f"* {mark.label}: {at}")
    for rule in chart.rules:
        axis = chart.x if rule.axis == "x" else chart.y
        lines.append(f"| {rule.label}: {axis.label} = {value_text(axis, rule.at)}")
    return lines


def _series(chart: Curves, several: Sequence[Series]) -> list[str]:
    x, y = measured(chart.x), measured(chart.y)
    heads = [Column(label=series.name, unit=y.unit, spec=y.spec) for series in several]
    rows = tuple(zip(several[0].x, *(series.y for series in several), strict=True))
    return [chart.y.label, *_table(Table(columns=(x, *heads), rows=rows))]


def _bars(chart: Bars) -> list[str]:
    """Return a row per segment with its bar; a stacked segment begins where the last one ends."""
    totals = bar_totals(chart) if chart.stacked else ()
    parts = [length for segment in chart.segments for length in segment.lengths]
    longest = max((abs(length) for length in [*totals, *parts]), default=0.0) or 1.0
    rows = []
    for bar, name in enumerate(chart.labels):
        reached = 0.0
        for segment in chart.segments:
            length = segment.lengths[bar]
            start, end = round(BAR_WIDTH * reached / longest), reached + length
            filled = round(BAR_WIDTH * (end if chart.stacked else length) / longest) - start
            drawn = " " * start + "█" * filled
            first = name if segment is chart.segments[0] else ""
            rows.append((first, segment.name, value_text(chart.axis, length), drawn))
            reached = end if chart.stacked else 0.0
        if chart.stacked and len(chart.segments) > 1:
            rows.append(("", "total", value_text(chart.axis, totals[bar]), ""))
    rules = [f"| {rule.label}: {value_text(chart.axis, rule.at)}" for rule in chart.rules]
    return [chart.axis.label, *_aligned(rows, (False, False, True, False)), *rules]


def _diagram(chart: Diagram) -> list[str]:
    boxes = [f"{box.name}: {' / '.join(box.lines)}" for box in chart.boxes if box.lines]
    arrows = [
        f"{link.source} {'<->' if link.both_ways else '->'} {link.target}"
        + (f": {link.label}" if link.label else "")
        for link in chart.links
    ]
    return boxes + arrows
