"""The data rows of every chart in SI, for the table on the page and the CSV file."""

from __future__ import annotations

import math

from figgen.charts import (
    Axis,
    Bars,
    Chart,
    Column,
    Curves,
    Diagram,
    Film,
    Overview,
    RankGrid,
    Scalar,
    Steps,
    Table,
    Timeline,
)
from figgen.quantity_shown import NAMED
from figgen.quantity_text import asked_for
from figgen.theme import label

# Digits of numbers that are shown without separators.
YEARS = (".5g", ".6g")


def data_table(chart: Chart) -> Table:
    """Return one row per cell, slot, transfer, point, segment or box; a table is its own data."""
    match chart:
        case Table():
            return chart
        case RankGrid():
            return _grid(chart)
        case Timeline():
            return _timeline(chart)
        case Steps():
            return _steps(chart)
        case Curves():
            return _curves(chart)
        case Bars():
            return _bars(chart)
        case Diagram():
            return _diagram(chart)
        case Overview():
            return _timeline(chart.step)
        case Film():
            rows = [(number, scene.says) for number, scene in enumerate(chart.scenes)]
            return _table(_named("scene", "what happens"), list(rows))
    raise TypeError(f"no data table for {type(chart).__name__}")


def _table(columns: list[Column], rows: list[tuple[Scalar, ...]]) -> Table:
    return Table(columns=tuple(columns), rows=tuple(rows))


def _named(*labels: str) -> list[Column]:
    return [Column(label=name) for name in labels]


def _grid(chart: RankGrid) -> Table:
    groups = [f"{view.label} group" for view in chart.communicators]
    # Column by column: a world of 16,384 GPUs has two hundred thousand cells.
    rows = zip(
        *zip(*((cell.rank, cell.node, cell.local_rank) for cell in chart.cells), strict=True),
        *zip(*(cell.coordinates for cell in chart.cells), strict=True),
        *(view.group_of_cell for view in chart.communicators),
        strict=True,
    )
    return _table(_named("rank", "node", "GPU of the node", *chart.axes, *groups), list(rows))


def _timeline(chart: Timeline) -> Table:
    """Return the rows of a timeline; `chunk` only if there are several, `detail` only if any."""
    chunks = any(slot.chunk for slot in chart.slots)
    details = any(slot.detail for slot in chart.slots)
    columns = _named("lane", "action", "label", *["chunk"] * chunks, *["detail"] * details)
    unit = "" if chart.time_unit == "1" else chart.time_unit
    columns += [Column(label=end, unit=unit) for end in ("start", "end")]
    rows: list[tuple[Scalar, ...]] = []
    for slot in sorted(chart.slots, key=lambda slot: (slot.lane, slot.start, slot.end)):
        more = [slot.chunk] * chunks + [slot.detail] * details
        what = (chart.lanes[slot.lane], label(slot.role), slot.label)
        rows.append((*what, *more, slot.start, slot.end))
    return _table(columns, rows)


def _steps(chart: Steps) -> Table:
    rows: list[tuple[Scalar, ...]] = [
        (
            *(step, frame.phase, move.source, move.target),
            *(" ".join(map(str, move.chunks)), "added" if move.reduces else "copied"),
        )
        for step, frame in enumerate(chart.frames, 1)
        for move in frame.transfers
    ]
    return _table(_named("step", "phase", "from rank", "to rank", "chunks", "on arrival"), rows)


def measured(axis: Axis) -> Column:
    """Return the column of an axis.

    Ticks may be rounder than values, so their digits are not used.

    At least five digits are shown: a year is not 2,019.
    """
    spec = ".2%" if axis.spec.endswith("%") else axis.spec.partition(".")[0]
    if axis.spec in YEARS:
        return Column(label=axis.label, spec=axis.spec)
    unit = "" if axis.unit == "1" else axis.unit
    asked = asked_for(axis.spec)
    if asked:
        return Column(label=axis.label, unit=unit, spec=f"in {asked.word}")
    return Column(label=axis.label, unit=unit, spec=spec if spec in NAMED or spec == ".2%" else "")


def _curves(chart: Curves) -> Table:
    """Return every point of every series, then the marks and the rules."""
    rows: list[tuple[Scalar, ...]] = [
        (series.name, x, y)
        for series in chart.series
        for x, y in zip(series.x, series.y, strict=True)
    ]
    rows += [(mark.label, mark.x, mark.y) for mark in chart.marks]
    nothing = math.nan
    for rule in chart.rules:
        rows.append((rule.label, *((rule.at, nothing) if rule.axis == "x" else (nothing, rule.at))))
    return _table([Column(label="series"), measured(chart.x), measured(chart.y)], rows)


def _bars(chart: Bars) -> Table:
    """Return one row per segment, with a total if segments are stacked and there are several."""
    measure = measured(chart.axis)
    several = len(chart.segments) > 1
    rows: list[tuple[Scalar, ...]] = []
    for bar, name in enumerate(chart.labels):
        lengths = [segment.lengths[bar] for segment in chart.segments]
        for segment, length in zip(chart.segments, lengths, strict=True):
            rows.append((name, *[segment.name] * several, length))
        if several and chart.stacked:
            rows.append((name, "total", math.fsum(lengths)))
    rows += [(rule.label, *["reference"] * several, rule.at) for rule in chart.rules]
    return _table([*_named("bar", *["part"] * several), measure], rows)


def _diagram(chart: Diagram) -> Table:
    rows: list[tuple[Scalar, ...]] = [
        (box.name, " / ".join(box.lines)) for box in chart.boxes if box.lines
    ]
    for link in chart.links:
        joint = "↔" if link.both_ways else "→"
        rows.append((f"{link.source} {joint} {link.target}", link.label))
    return _table(_named("box or arrow", "text"), rows)
