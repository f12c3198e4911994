"""Convert the `d` of an SVG path to a matplotlib path."""

from __future__ import annotations

import re
from collections.abc import Iterator

from matplotlib.path import Path

from figgen.errors import InputError

ARITY = {"m": 2, "l": 2, "h": 1, "v": 1, "q": 4, "c": 6, "z": 0}
CODES = {"m": Path.MOVETO, "q": Path.CURVE3, "c": Path.CURVE4}
KAPPA = 0.5522847498
"""The distance of a Bézier curve's handle for a quarter of a circle of radius 1."""
_STEP = re.compile(r"([A-Za-z])|(-?(?:\d+\.?\d*|\.\d+)(?:e-?\d+)?)")


def path_of(d: str) -> Path:
    """Convert a `d` of moves, lines, curves and closings.

    Raises InputError for arcs and smooth curves, which figures do not use.
    """
    points: list[tuple[float, float]] = []
    codes: list[int] = []
    here = start = (0.0, 0.0)
    for letter, numbers in _commands(d):
        small = letter.lower()
        if small == "z":
            points.append(start)
            codes.append(int(Path.CLOSEPOLY))
            here = start
            continue
        ends = _ends(letter, numbers, here)
        points += ends
        codes += [int(CODES.get(small, Path.LINETO))] * len(ends)
        here = ends[-1]
        if small == "m":
            start = here
    return Path(points, codes)


def _ends(
    letter: str, numbers: list[float], here: tuple[float, float]
) -> list[tuple[float, float]]:
    """Return the points of one command; lower-case letters are relative to the current point."""
    x, y = here if letter.islower() else (0.0, 0.0)
    match letter.lower():
        case "h":
            return [(numbers[0] + x, here[1])]
        case "v":
            return [(here[0], numbers[0] + y)]
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    return [(right + x, down + y) for right, down in pairs]


def _commands(d: str) -> Iterator[tuple[str, list[float]]]:
    """Yield each command with its numbers; numbers that follow a move's are lines."""
    letter, numbers = "", list[float]()
    for found, number in _STEP.findall(d):
        if found:
            if found.lower() not in ARITY:
                raise InputError("a path for paper", expected=" ".join(ARITY), got=found)
            letter, numbers = found, []
        else:
            numbers.append(float(number))
        if letter and len(numbers) == ARITY[letter.lower()]:
            yield letter, numbers
            letter = {"m": "l", "M": "L"}.get(letter, letter)
            numbers = []


def rectangle(x: float, y: float, width: float, height: float, radius: float = 0.0) -> Path:
    """Return a rectangle, with rounded corners if `radius` is positive."""
    r = min(radius, width / 2, height / 2)
    right, bottom = x + width, y + height
    if r <= 0:
        corners = [(x, y), (right, y), (right, bottom), (x, bottom), (x, y)]
        return Path(corners, [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY])
    c = r * (1 - KAPPA)
    points = [
        (x + r, y), (right - r, y), (right - c, y), (right, y + c), (right, y + r),
        (right, bottom - r), (right, bottom - c), (right - c, bottom), (right - r, bottom),
        (x + r, bottom), (x + c, bottom), (x, bottom - c), (x, bottom - r),
        (x, y + r), (x, y + c), (x + c, y), (x + r, y), (x + r, y),
    ]  # fmt: skip
    side = [Path.LINETO, *[Path.CURVE4] * 3]
    return Path(points, [Path.MOVETO, *side * 4, Path.CLOSEPOLY])
