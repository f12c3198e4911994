"""Labels placed apart from each other and from marks, in exhaustive small cases and random ones."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from figgen.renderers.placing import (
    Rect,
    around,
    covered,
    flags,
    obstacles,
    place,
    spread,
)

WITHIN = Rect(0, 0, 300, 200)

labels = st.lists(st.tuples(st.integers(0, 100), st.integers(1, 12)), min_size=1, max_size=7).map(
    sorted
)


@given(labels)
def test_spread_labels_keep_their_order_and_do_not_overlap(given: list[tuple[int, int]]) -> None:
    wanted, sizes = [w for w, _ in given], [s for _, s in given]
    centres = spread(wanted, sizes, -200, 300)
    for (a, b), (m, n) in zip(itertools.pairwise(centres), itertools.pairwise(sizes), strict=True):
        assert b - a >= (m + n) / 2 - 1e-9


@given(labels, st.integers(0, 40))
def test_spread_labels_stay_between_the_bounds_where_they_fit(
    given: list[tuple[int, int]], low: int
) -> None:
    wanted, sizes = [w for w, _ in given], [s for _, s in given]
    high = low + sum(sizes) + 3
    centres = spread(wanted, sizes, low, high)
    assert centres[0] - sizes[0] / 2 >= low - 1e-9
    assert centres[-1] + sizes[-1] / 2 <= high + 1e-9


def least_shift(wanted: tuple[int, ...], size: int) -> float:
    """Return the least sum of squared shifts over all positions on a fine grid, by
    trying them all."""
    step = 0.5
    grid = [step * k for k in range(-12, 24)]
    return min(
        sum((c - w) ** 2 for c, w in zip(centres, wanted, strict=True))
        for centres in itertools.combinations(grid, len(wanted))
        if all(b - a >= size for a, b in itertools.pairwise(centres))
    )


@pytest.mark.parametrize("wanted", [(0, 0), (0, 1, 5), (2, 2, 2), (0, 3, 3), (1, 4, 8)])
def test_spread_labels_move_as_little_as_possible(wanted: tuple[int, ...]) -> None:
    centres = spread(wanted, [2] * len(wanted), -100, 100)
    moved = sum((c - w) ** 2 for c, w in zip(centres, wanted, strict=True))
    assert moved <= least_shift(wanted, 2) + 1e-9


def test_covered_counts_the_common_area_once_for_each_obstacle() -> None:
    rect = Rect(0, 0, 10, 10)
    assert covered(rect, obstacles([Rect(5, 5, 20, 20), Rect(8, -5, 9, 5)])) == 25 + 5
    assert covered(rect, obstacles([Rect(10, 0, 20, 10)])) == 0
    assert covered(rect, obstacles([])) == 0


@given(st.lists(st.tuples(st.integers(0, 290), st.integers(0, 190)), max_size=30))
def test_a_label_that_is_said_to_be_free_touches_nothing(points: list[tuple[int, int]]) -> None:
    taken = [around(point, 5) for point in points]
    spot = place((150, 100), (60, 15), obstacles(taken), WITHIN)
    assert spot is not None
    assert WITHIN.contains(spot.rect)
    touching = [
        rect
        for rect in taken
        if min(rect.right, spot.rect.right) > max(rect.left, spot.rect.left)
        and min(rect.bottom, spot.rect.bottom) > max(rect.top, spot.rect.top)
    ]
    assert (spot.covered == 0) == (not touching)


def test_a_free_label_stands_right_of_its_point() -> None:
    spot = place((150, 100), (60, 15), obstacles([]), WITHIN)
    assert spot is not None
    assert spot.rect == Rect(158, 92.5, 218, 107.5)


@pytest.mark.parametrize("x", [1, 299])
@pytest.mark.parametrize("y", [1, 100, 199])
def test_a_label_at_the_edge_stands_within_at_the_nearest_distance(x: int, y: int) -> None:
    spot = place((x, y), (40, 15), obstacles([]), WITHIN)
    assert spot is not None
    assert WITHIN.contains(spot.rect)
    assert (spot.distance, spot.rect.left > x) == (8, x == 1)


def test_a_label_that_fits_nowhere_is_not_placed() -> None:
    assert place((150, 100), (400, 15), obstacles([]), WITHIN) is None


uprights = st.lists(
    st.tuples(st.integers(0, 300), st.integers(20, 120)), max_size=6, unique_by=lambda p: p[0]
).map(sorted)


@given(uprights)
def test_flags_do_not_overlap(given: list[tuple[int, int]]) -> None:
    lines, sizes = [x for x, _ in given], [s for _, s in given]
    placed = flags(lines, sizes, 400)
    spans = [
        (f.at - s, f.at) if f.leftwards else (f.at, f.at + s)
        for f, s in zip(placed, sizes, strict=True)
    ]
    for (f, a), (g, b) in itertools.combinations(zip(placed, spans, strict=True), 2):
        assert f.row != g.row or min(a[1], b[1]) <= max(a[0], b[0])


@given(uprights)
def test_no_line_runs_through_a_flag_that_stands_right_of_its_own(
    given: list[tuple[int, int]],
) -> None:
    lines, sizes = [x for x, _ in given], [s for _, s in given]
    placed = flags(lines, sizes, math.inf)
    for flag, size in zip(placed, sizes, strict=True):
        assert not flag.leftwards
        for other in placed:
            if flag.at < other.at < flag.at + size:
                assert other.row < flag.row


def test_a_flag_turns_round_at_the_edge() -> None:
    assert [f.leftwards for f in flags([10, 390], [50, 50], 400)] == [False, True]
    assert [f.leftwards for f in flags([350, 351], [50, 50], 400)] == [False, True]


def test_flags_stand_as_low_as_lines_and_flags_before_them_allow() -> None:
    # From right to left: 30 alone, 20 over the line of 30, 0 beside 20, 90 turned over all of them.
    found = flags([0, 20, 30, 90], [20, 15, 5, 80], 100)
    assert [(f.row, f.leftwards) for f in found] == [
        *((0, False), (1, False), (0, False), (2, True))
    ]
