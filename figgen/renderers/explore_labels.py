"""Keeps labels of marks apart in a recomputed figure.

The module is short because pages load it printed; the static picture's placement also avoids
curves.
"""

from __future__ import annotations

from figgen.charts import Curves
from figgen.renderers.scale import ScaledAxis

WIDTH, HEIGHT = 640.0, 360.0
"""The plot in pixels; one on a phone is narrower, so labels may touch there."""
LETTER, LINE, MARK = 6.6, 18.0, 7.0
"""Pixels of an average letter, of a line of text, and of half a mark."""
LEVELS = tuple(sign * (24 + 20 * level) for level in range(6) for sign in (-1, 1))
"""Distances of a label above or below its mark, in order of preference."""


def spread_labels(chart: Curves, x: ScaledAxis, y: ScaledAxis) -> list[tuple[float, float]]:
    """Return each mark's label position in pixels, to the right of and below its mark."""
    points = [(x.share(m.x) * WIDTH, (1 - y.share(m.y)) * HEIGHT) for m in chart.marks]
    taken = [(px - MARK, py - MARK, px + MARK, py + MARK) for px, py in points]
    found: list[tuple[float, float]] = []
    for mark, (px, py) in zip(chart.marks, points, strict=True):
        half = LETTER * len(mark.label) / 2
        middle = max(half, min(WIDTH - half, px))
        best, fewest = LEVELS[0], float("inf")
        for down in LEVELS:
            top = py + down - LINE / 2
            outside = 1.0 if top < 0 or top + LINE > HEIGHT else 0.0
            count = outside + sum(
                1.0
                for left, high, right, low in taken
                if left < middle + half
                and middle - half < right
                and high < top + LINE
                and top < low
            )
            if count < fewest:
                best, fewest = down, count
        taken.append((middle - half, py + best - LINE / 2, middle + half, py + best + LINE / 2))
        found.append((round(middle - px), best))
    return found
