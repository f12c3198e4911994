"""Labels of recomputed figures do not overlap if the plot has room."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from figgen.charts import Axis, Curves, Mark, Series
from figgen.renderers.explore_labels import HEIGHT, LETTER, LINE, WIDTH, spread_labels
from figgen.renderers.scale import curve_scales

SHARES = st.tuples(st.floats(0, 1), st.floats(0.1, 0.9))


def boxes(places: list[tuple[float, float]]) -> list[tuple[float, float, float, float]]:
    """Return labels of eight letters on a plot whose axes go from 0 to 1."""
    chart = Curves(
        x=Axis(label="x", low=0.0, high=1.0),
        y=Axis(label="y", low=0.0, high=1.0),
        series=(Series(name="all", x=(0.0, 1.0), y=(0.0, 1.0), role="series-1"),),
        marks=tuple(Mark(x=x, y=y, label="8 tokens", role="series-2") for x, y in places),
    )
    x, y = curve_scales(chart)
    half = LETTER * len("8 tokens") / 2
    found = []
    for mark, (right, down) in zip(chart.marks, spread_labels(chart, x, y), strict=True):
        middle = x.share(mark.x) * WIDTH + right
        top = (1 - y.share(mark.y)) * HEIGHT + down - LINE / 2
        found.append((middle - half, top, middle + half, top + LINE))
    return found


@given(st.lists(SHARES, min_size=2, max_size=4, unique=True))
def test_up_to_four_labels_never_overlap(places: list[tuple[float, float]]) -> None:
    for one, other in combinations(boxes(places), 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart


@given(st.lists(SHARES, min_size=1, max_size=8, unique=True))
def test_labels_stay_inside_the_plot_from_side_to_side(places: list[tuple[float, float]]) -> None:
    assert all(left >= -1 and right <= WIDTH + 1 for left, _, right, _ in boxes(places))
