"""Compute limits, ticks and a label with the unit from an `Axis` and its data.

All renderers that draw axes use this module, so a point lies at the same place between the same
ticks in the static and in the interactive picture.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from figgen.charts import Axis, Bars, Curves
from figgen.renderers.markup import text_width
from figgen.renderers.ticks import labelled, linear_ticks, log_ticks
from figgen.renderers.ticks import value_text as value_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledAxis:
    """An axis ready to be drawn; `low`, `high`, `ticks` and `minor` are data values."""

    label: str
    logarithmic: bool
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    minor: tuple[float, ...] = ()

    def shows(self, value: float) -> bool:
        """Return whether `value` is within the axis."""
        return math.isfinite(value) and self.low <= value <= self.high

    def share(self, value: float) -> float:
        """Return the position of `value` along the axis, from 0 at `low` to 1 at `high`."""
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def curve_scales(chart: Curves) -> tuple[ScaledAxis, ScaledAxis]:
    """Return the axes of a chart of curves, wide enough for its series, marks and rules."""
    x = [value for series in chart.series for value in series.x]
    y = [value for series in chart.series for value in series.y]
    x += [mark.x for mark in chart.marks] + [r.at for r in chart.rules if r.axis == "x"]
    y += [mark.y for mark in chart.marks] + [r.at for r in chart.rules if r.axis == "y"]
    dotted = bool(chart.marks) or any(series.style == "points" for series in chart.series)
    return scale(chart.x, x, air=0.03 if dotted else 0.0), scale(chart.y, y, rounded=True)


def bar_scale(chart: Bars) -> ScaledAxis:
    """Return the scale of a bar chart, which starts at zero unless the chart sets a lower end."""
    totals = bar_totals(chart) if chart.stacked else ()
    parts = [length for segment in chart.segments for length in segment.lengths]
    data = [*totals, *([] if chart.stacked else parts), *(rule.at for rule in chart.rules)]
    return scale(chart.axis, [*data, 0.0] if chart.axis.scale == "linear" else data)


def bar_totals(chart: Bars) -> tuple[float, ...]:
    """Return the length of every bar, over all of its segments."""
    columns = zip(*(segment.lengths for segment in chart.segments), strict=True)
    return tuple(math.fsum(lengths) for lengths in columns)


def scale(
    axis: Axis, data: Iterable[float], *, air: float = 0.0, rounded: bool = False
) -> ScaledAxis:
    """Return limits and ticks for `data`, with margins `air`; `rounded` ends on a tick."""
    logarithmic = axis.scale != "linear"
    low, high = _extent(axis, [v for v in data if math.isfinite(v) and (v > 0 or not logarithmic)])
    if logarithmic:
        margin = (high / low) ** (0.04 if rounded else air)
        low = low / margin if axis.low is None else axis.low
        high = high * margin if axis.high is None else axis.high
        values, minor = log_ticks(axis, low, high)
        ticks, suffix = labelled(axis, values)
        return _scaled(axis, low, high, ticks, suffix, minor)
    if axis.low is None and low >= 0 and (rounded or low < 0.3 * high):
        low = 0.0
    if axis.low is None and low != 0:
        low -= air * (high - low)
    if axis.high is None:
        high += air * (high - low)
    ticks, suffix = linear_ticks(axis, low, high, rounded)
    if rounded and axis.high is None and ticks:
        high = max(high, ticks[-1][0])
    if rounded and axis.low is None and ticks:
        low = min(low, ticks[0][0])
    inside = [tick for tick in ticks if low <= tick[0] <= high]
    return _scaled(axis, low, high, inside, suffix, ())


def fitting(scaled: ScaledAxis, room: float, gap: float = 10.0) -> tuple[tuple[float, str], ...]:
    """Return ticks whose labels fit side by side in `room` px: all, or every second, third …"""
    ticks = scaled.ticks
    ratios = {round(b / a, 6) for (a, _), (b, _) in pairwise(ticks)} if scaled.logarithmic else {0}
    # Of 1, 2, 5, 10 … every third is a power of ten; every second would have no pattern.
    for step in range(1, len(ticks)) if len(ratios) == 1 else (1, *range(3, len(ticks), 3)):
        kept = ticks[_first_power(ticks[:step]) if scaled.logarithmic else 0 :: step]
        places = [(scaled.share(value) * room, text_width(text)) for value, text in kept]
        if all(x1 - x0 >= (w0 + w1) / 2 + gap for (x0, w0), (x1, w1) in pairwise(places)):
            return kept
    return ticks[:1]


def _first_power(ticks: Sequence[tuple[float, str]]) -> int:
    """Return the index of the first power of ten among ticks 1, 2, 5, 10, …; every third is one."""
    powers = (i for i, (value, _) in enumerate(ticks) if _is_whole(math.log10(value)))
    return next(powers, 0)


def _is_whole(value: float) -> bool:
    return math.isclose(value, round(value), abs_tol=1e-9)


def _scaled(
    axis: Axis,
    low: float,
    high: float,
    ticks: list[tuple[float, str]],
    suffix: str,
    minor: tuple[float, ...],
) -> ScaledAxis:
    # A label that contains a word such as "microbatches" needs no unit; a unit such as "s" is
    # written as "(s)", because most labels contain the letter.
    said = f"({suffix})" in axis.label or (
        len(suffix) > 2 and suffix.lower().rstrip("s") in axis.label.lower()
    )
    label = f"{axis.label} ({suffix})" if suffix and not said else axis.label
    return ScaledAxis(
        label=label,
        logarithmic=axis.scale != "linear",
        low=low,
        high=high,
        ticks=tuple(ticks),
        minor=minor,
    )


def _extent(axis: Axis, data: list[float]) -> tuple[float, float]:
    """Return the range of the data, or a drawable range if it is empty."""
    logarithmic = axis.scale != "linear"
    low = axis.low if axis.low is not None else min(data, default=1.0 if logarithmic else 0.0)
    high = axis.high if axis.high is not None else max(data, default=10.0 * low or 1.0)
    if low < high:
        return low, high
    return (low / 2, high * 2) if logarithmic else (low, high + (abs(high) or 1.0))
