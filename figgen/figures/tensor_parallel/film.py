"""Columns, then rows, as a film: two matmuls on two GPUs, with every entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from figgen.charts import Film, Named, Question, Scene, Thing
from figgen.plotting.placed import thing_at
from figgen.registry import figure

Matrix = NDArray[np.int64]
Held = list[dict[str, Matrix]]
"""The tensors of every GPU, by place in the picture."""
Spot = tuple[float, float]

X: Matrix = np.array([[1, 2], [3, 1]])
A: Matrix = np.array([[1, 1, 0, -1], [-2, 3, 1, 1]])
B: Matrix = np.array([[1, 1], [1, 2], [2, 1], [0, 1]])
"""Small, and with an entry below 0 in each half of X A, so that the function between matters."""

GPUS = 2
HALVES = tuple(slice(gpu * 2, gpu * 2 + 2) for gpu in range(GPUS))
CELL, ROW, TOP, LEFT, GAP = 20.0, 56.0, 20.0, 36.0, 12.0
PLACES = ("X", "A", "XA", "B", "part", "other")
SIGNS = {"A": "×", "XA": "=", "B": "×", "part": "=", "other": "+"}
"""The label before a matrix."""
ACTIVE = {"XA": "ReLU"}
"""The hidden layer's name after ReLU."""


@figure("split-film")
def split_film() -> Film:
    """Y = ReLU(X A) B on two GPUs: columns of A, rows of B, and one sum of their results.

    The color shows the GPU that holds a matrix; matrices on both are gray.
    """
    held: Held = [{"X": X, "A": A[:, half], "B": B[half]} for half in HALVES]
    hidden = [X @ A[:, half] for half in HALVES]
    active = [np.maximum(each, 0) for each in hidden]
    parts = [each @ B[half] for each, half in zip(active, HALVES, strict=True)]
    whole = np.maximum(X @ A, 0) @ B
    return Film(
        width=_x("other") + 2 * CELL + 2,
        height=TOP + GPUS * ROW - GAP,
        scenes=(
            *_cut_in_two(held),
            *_first_product(held, hidden),
            *_second_product(_with(held, XA=active), parts),
            *_all_reduce(_with(held, XA=active, part=parts), whole),
        ),
        stills=(1, 3, 5, 7),
        opens=5,
        values=_values(hidden, parts, whole),
    )


def _with(held: Held, **found: list[Matrix]) -> Held:
    """Return the tensors of every GPU, with its part of each computed matrix."""
    return [
        mine | {name: each[gpu] for name, each in found.items()} for gpu, mine in enumerate(held)
    ]


def _cut_in_two(held: Held) -> tuple[Scene, ...]:
    return (
        Scene(
            says="One GPU would compute Y = ReLU(X A) B. Colors are where two will cut: A by "
            "columns, B by rows.",
            things=_whole(),
        ),
        Scene(
            says="Two GPUs get half of the columns of A each, the matching rows of B, and all of "
            "X.",
            things=_things(held, origins=_cut()),
        ),
    )


def _first_product(held: Held, hidden: list[Matrix]) -> tuple[Scene, ...]:
    """Return scenes that ask for one entry of X A, compute it, and then compute all."""
    entry, first = int(hidden[0][0, 0]), (X[0, 0] * A[0, 0], X[0, 1] * A[1, 0])
    one = Scene(
        says=f"The first row of X times the first column of A: {_written(X[0, 0])}·"
        f"{_written(A[0, 0])} + {_written(X[0, 1])}·({_written(A[1, 0])}) = {_written(entry)}.",
        things=_things(
            held,
            strong=("X 0 0 0", "X 0 0 1", "A 0 0 0", "A 0 1 0", "XA 0 0 0"),
            extra=_matrix("XA", 0, hidden[0], only=(0, 0), strong=True),
        ),
        asks=Question(
            text="GPU 0 multiplies the first row of X by its first column of A. What comes out?",
            choices=tuple(map(_written, (entry, first[0], first[0] - first[1]))),
            right=0,
            because="It has the whole row and the whole column, so the entry is final.",
        ),
    )
    every = Scene(
        says="Each GPU has two columns of X A, complete. Nothing was sent.",
        things=_things(_with(held, XA=hidden), strong=("XA",)),
    )
    return one, every


def _second_product(held: Held, parts: list[Matrix]) -> tuple[Scene, ...]:
    """Return scenes with ReLU, whose result is in `held`, and each GPU's matmul with rows of B."""
    return (
        Scene(
            says="ReLU makes a 0 of what is negative. Of a complete entry a GPU can tell by "
            "itself.",
            things=_things(held, strong=("XA",), names=ACTIVE),
        ),
        Scene(
            says="Times the rows of B: a result of full size on each GPU, but only a part of "
            "every entry.",
            things=_things(_with(held, part=parts), strong=("part",), names=ACTIVE),
        ),
    )


def _all_reduce(held: Held, whole: Matrix) -> tuple[Scene, ...]:
    """Return scenes in which GPUs exchange parts, the reader finds the sum, and both have it."""
    parts = [mine["part"] for mine in held]
    corners = [int(part[0, 0]) for part in parts]
    return (
        Scene(
            says="All-reduce: each GPU gets the part of the other.",
            things=_things(held, extra=_exchanged(parts), names=ACTIVE),
            asks=Question(
                text=f"The upper left entry is {corners[0]} on GPU 0 and {corners[1]} on GPU 1. "
                "What has Y there?",
                choices=tuple(map(_written, (max(corners), sum(corners), corners[0] * corners[1]))),
                right=1,
                because="A row of X A times a column of B is one long sum; each GPU has half of "
                "its terms.",
            ),
        ),
        Scene(
            says="Added up, both have Y, entry by entry what one GPU would have computed.",
            things=_things(
                _with(held, part=[whole] * GPUS), strong=("part",), names=ACTIVE | {"part": "Y"}
            ),
        ),
    )


def _values(hidden: list[Matrix], parts: list[Matrix], whole: Matrix) -> dict[str, Named]:
    """Return the entries named in caption and text, and the result of cutting by rows first."""
    entry = int(hidden[0][0, 0])
    rows = [int(X[0, at] * A[at, 0]) for at in range(GPUS)]
    return {
        "entry": Named(entry),
        "corner": Named(int(parts[0][0, 0])),
        "other": Named(int(parts[1][0, 0])),
        "first": Named(int(whole[0, 0])),
        # Of rows first: the two terms of X A's upper left entry, and ReLU of each added up.
        "row_0": Named(rows[0]),
        "row_1": Named(rows[1]),
        "rows_first": Named(sum(max(0, term) for term in rows)),
        "columns_first": Named(max(0, entry)),
    }


def _written(entry: int | np.integer) -> str:
    return str(entry).replace("-", "−")


def _x(place: str) -> float:
    return LEFT + PLACES.index(place) * (2 * CELL + GAP)


def _y(gpu: int) -> float:
    return TOP + gpu * ROW


def _cells(
    name: str,
    matrix: Matrix,
    role: str,
    x: float,
    y: float,
    strong: Iterable[str] = (),
    origins: Mapping[str, Spot] | None = None,
) -> tuple[Thing, ...]:
    """Return a matrix as cells `name row column`; `strong` names cells or whole matrices."""
    found = []
    for (row, column), entry in np.ndenumerate(matrix):
        cell = f"{name} {row} {column}"
        found.append(
            thing_at(
                cell,
                (x + column * CELL, y + row * CELL),
                (CELL - 1, CELL - 1),
                _written(entry),
                role,
                origin=(origins or {}).get(cell),
                strong=cell in strong or name.split()[0] in strong,
            )
        )
    return tuple(found)


def _matrix(
    place: str, gpu: int, matrix: Matrix, only: tuple[int, int] | None = None, strong: bool = False
) -> tuple[Thing, ...]:
    """Return a GPU's matrix in its place, or one of its entries."""
    cells = _cells(
        f"{place} {gpu}", matrix, _role(place, gpu), _x(place), _y(gpu), (place,) if strong else ()
    )
    return tuple(c for c in cells if only is None or c.name == f"{place} {gpu} {only[0]} {only[1]}")


def _role(place: str, gpu: int) -> str:
    return "neutral" if place == "X" else f"rank-{gpu}"


def _things(
    held: Held,
    strong: tuple[str, ...] = (),
    extra: tuple[Thing, ...] = (),
    origins: Mapping[str, Spot] | None = None,
    names: Mapping[str, str] | None = None,
) -> tuple[Thing, ...]:
    """Return the tensors of every GPU at their places, or under other `names`, and `extra`."""
    shown = [place for place in PLACES if place in held[0]]
    called = {"XA": "X A", **(names or {})}
    summed = called.get("part") == "Y"
    things = [
        thing_at(f"head {place}", (_x(place), 0), (2 * CELL, 16), called.get(place, place))
        for place in shown
    ]
    for gpu, mine in enumerate(held):
        y = _y(gpu)
        things.append(thing_at(f"gpu {gpu}", (0, y + CELL / 2), (34, CELL), f"gpu {gpu}"))
        for place in shown:
            if place != "X" and (place != "B" or "XA" in shown):
                things.append(_sign(place, gpu))
            role = "neutral" if summed and place == "part" else _role(place, gpu)
            things += _cells(f"{place} {gpu}", mine[place], role, _x(place), y, strong, origins)
    return (*things, *extra)


def _sign(place: str, gpu: int) -> Thing:
    return thing_at(
        f"sign {place} {gpu}", (_x(place) - GAP + 2, _y(gpu) + CELL / 2), (8, CELL), SIGNS[place]
    )


B_LEFT = LEFT + 6 * CELL + 2 * GAP
"""The place of the whole B before it is cut, next to A."""


def _whole() -> tuple[Thing, ...]:
    heads = (("X", _x("X")), ("A", _x("A")), ("B", B_LEFT))
    by_column = _cells("all A", A, "", _x("A"), TOP)
    by_row = _cells("all B", B, "", B_LEFT, TOP)
    return (
        *(thing_at(f"head {t}", (x, 0), (2 * CELL, 16), t) for t, x in heads),
        *_cells("all X", X, "neutral", _x("X"), TOP),
        *(replace(cell, role=f"rank-{at % 4 // 2}") for at, cell in enumerate(by_column)),
        *(replace(cell, role=f"rank-{at // 4}") for at, cell in enumerate(by_row)),
    )


def _cut() -> dict[str, Spot]:
    """Return where the entries of each GPU's matrices are in the whole ones."""
    found = {}
    for gpu, half in enumerate(HALVES):
        for row, column in np.ndindex(2, 2):
            across, down = half.start + column, half.start + row
            found[f"X {gpu} {row} {column}"] = _x("X") + column * CELL, TOP + row * CELL
            found[f"A {gpu} {row} {column}"] = _x("A") + across * CELL, TOP + row * CELL
            found[f"B {gpu} {row} {column}"] = B_LEFT + column * CELL, TOP + down * CELL
    return found


def _exchanged(parts: list[Matrix]) -> tuple[Thing, ...]:
    """Return each GPU's part on the other GPU, moving from where it was computed."""
    things: list[Thing] = []
    for gpu, part in enumerate(parts):
        there = (gpu + 1) % GPUS
        origins = {
            f"other {there} {row} {column}": (_x("part") + column * CELL, _y(gpu) + row * CELL)
            for row, column in np.ndindex(2, 2)
        }
        things.append(_sign("other", there))
        things += _cells(f"other {there}", part, f"rank-{gpu}", _x("other"), _y(there), (), origins)
    return tuple(things)
