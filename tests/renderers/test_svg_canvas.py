"""Points omitted from a line make no visible difference, and markers fill their square."""

from __future__ import annotations

import itertools
import math
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from figgen.renderers.placing import Rect
from figgen.renderers.svg_canvas import Look, Markers, Stroke, short, strokes
from figgen.renderers.svg_plot import MARKERS

Point = tuple[float, float]
BOX = Rect(0, 0, 40, 30)
EVERYWHERE = Rect(-1e6, -1e6, 1e6, 1e6)
MANY = 128  # from how many points on matplotlib leaves out those that do not bend a line
HALF_TENTH = 0.05 * math.sqrt(2) + 1e-9


def pieces(drawn: str) -> list[tuple[Point, Point]]:
    """Return the straight pieces of a path as written."""
    found = []
    for part in re.findall(r"M([^M\"]*)", drawn):
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", part)]
        found += pairwise(zip(numbers[::2], numbers[1::2], strict=True))
    return found


def distance(point: Point, piece: tuple[Point, Point]) -> float:
    """Return a point's distance from the nearest point of a piece."""
    start, end = (complex(*corner) for corner in piece)
    along, way = end - start, complex(*point) - start
    share = (way * along.conjugate()).real / (abs(along) ** 2 or 1)
    return abs(way - min(max(share, 0), 1) * along)


def inside(point: Point, margin: float) -> bool:
    return BOX.grown(margin).contains(Rect(*point, *point))


places = st.tuples(st.integers(-60, 100), st.integers(-50, 80))


@given(st.lists(places, min_size=2, max_size=5))
def test_what_is_seen_of_a_line_is_drawn_and_nothing_else(points: list[Point]) -> None:
    drawn = pieces(strokes([Stroke(points, "ink")], BOX))
    assert all(inside(end, 1.1) for piece in drawn for end in piece)
    for (x0, y0), (x1, y1) in pairwise(points):
        for share in range(21):
            point = x0 + share / 20 * (x1 - x0), y0 + share / 20 * (y1 - y0)
            if inside(point, 0):
                assert min(distance(point, piece) for piece in drawn) <= HALF_TENTH


def test_a_line_has_a_gap_where_a_point_is_missing() -> None:
    line = [(1.0, 1.0), (2.0, 2.0), (math.nan, math.nan), (4.0, 4.0), (5.0, 1.0), (6.0, 2.0)]
    assert 'd="M1 1L2 2M4 4L5 1 6 2"' in strokes([Stroke(line, "ink")], BOX)


@pytest.mark.parametrize("radius", [3, 20, 200])
def test_points_of_a_long_line_are_left_out_only_where_it_does_not_bend(radius: float) -> None:
    straight = [(float(x), 2.0 * x) for x in range(-90, 1)]
    turns = (math.pi * step / 180 for step in range(181))
    bent = [(radius * math.sin(t), radius - radius * math.cos(t)) for t in turns]
    points = [*straight, *bent]
    drawn = pieces(strokes([Stroke(points, "ink")], EVERYWHERE))
    assert len(points) >= MANY
    assert len(drawn) < len(points) / 2 or radius == 200
    assert drawn[0][0] == (-90, -180)
    assert drawn[0][1] == pytest.approx((0, 0), abs=0.2)
    for point in points:
        assert min(distance(point, piece) for piece in drawn) < 0.1 + HALF_TENTH


def test_a_line_of_few_points_keeps_them_all() -> None:
    points = [(float(x), 0.0) for x in range(MANY - 1)]
    assert len(pieces(strokes([Stroke(points, "ink")], EVERYWHERE))) == MANY - 2


@pytest.mark.parametrize("shape", MARKERS)
def test_markers_are_as_large_as_asked_and_no_two_alike(shape: str) -> None:
    drawn = Markers("f").at([(1, 2)], Look(shape, 20, "ink"))
    d = re.findall(r' d="([^"]*)z"', drawn)[0]
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", d)]
    reach = max(map(abs, numbers))
    assert reach == pytest.approx(10 * math.sqrt(2) if shape == "D" else 10, abs=0.05)
    assert sum(numbers[1::2]) == pytest.approx(0, abs=10.1)


def test_a_circle_is_round() -> None:
    d = re.findall(r' d="M([^"]*)z"', Markers("f").at([(0, 0)], Look("o", 2000, "ink")))[0]
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", d)]
    points = list(zip(numbers[::2], numbers[1::2], strict=True))
    for start, one, other, end in zip(*(points[at::3] for at in range(4)), strict=False):
        for share in (0.0, 0.25, 0.5, 0.75):
            rest = 1 - share
            weights = rest**3, 3 * rest**2 * share, 3 * rest * share**2, share**3
            spot = [
                sum(w * p[axis] for w, p in zip(weights, (start, one, other, end), strict=True))
                for axis in (0, 1)
            ]
            assert math.hypot(*spot) == pytest.approx(1000, abs=0.1)


def test_a_look_is_defined_once_and_every_id_begins_with_the_prefix() -> None:
    markers = Markers("fig-x--w")
    looks = [Look(shape, size, "ink") for shape in "os" for size in (7, 8)]
    drawn = "".join(markers.at([(1, 1)], look) for look in itertools.chain(looks, looks))
    ids = re.findall(r' id="([^"]*)"', drawn)
    assert ids == [f"fig-x--w--{n}" for n in (1, 2, 3, 4)]
    assert re.findall(r'href="#([^"]*)"', drawn) == [*ids, *ids]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.04, "0"), (-0.04, "0"), (1.96, "2"), (-2.5, "-2.5"), (100.0, "100"), (1.1 * 3, "3.3")],
)
def test_numbers_have_a_tenth_that_says_something(value: float, shown: str) -> None:
    assert short(value) == shown


def test_a_half_is_rounded_alike_however_it_was_computed() -> None:
    assert short(12.25) == short(math.nextafter(12.25, 0)) == short(math.nextafter(12.25, 20))
