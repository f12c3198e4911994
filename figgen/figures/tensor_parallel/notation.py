"""The piece of every tensor on a GPU, and the matmuls that need a message."""

from __future__ import annotations

from figgen.charts import Box, Diagram, DiagramLink, Named
from figgen.errors import check_between
from figgen.figures.tensor_parallel.layers import ACROSS, HIGH, sub
from figgen.formulas.collectives import all_reduce_bytes_sent
from figgen.plotting.placed import box_at
from figgen.registry import figure

NAMES = 1.5
"""Width of the column of names, in grid units."""

NEXT, APART = 0.87, 1.15
"""From one line of boxes to the next, without and with arrows between them, in grid units."""


def _pieces(gpus: list[tuple[int, int]]) -> dict[str, tuple[tuple[str, ...], list[str]]]:
    """Return, by row of the figure, its name and the piece on each GPU."""
    return {
        "x": (("x", 'P("dp", None)'), [sub("x", d) for d, _ in gpus]),
        "A": (("A", 'P(None, "tp")'), [sub("A", t) for _, t in gpus]),
        "h": (("x·A", 'P("dp", "tp")'), [sub("x", d) + sub("A", t) for d, t in gpus]),
        "B": (("B", 'P("tp", None)'), [sub("B", t) for _, t in gpus]),
        "part": (
            ("x·A·B", "partial over tp"),
            [sub("x", d) + sub("A", t) + sub("B", t) for d, t in gpus],
        ),
        "y": (("y", 'P("dp", None)'), [sub("y", d) for d, _ in gpus]),
    }


def _piece_boxes(gpus: list[tuple[int, int]], width: float) -> list[Box]:
    """Return a row of boxes for the mesh and each piece.

    The result is below the place of its sum.
    """
    rows: dict[str, tuple[tuple[str, ...], list[tuple[str, ...]]]] = {
        "mesh": (("GPU", "dp, tp"), [(f"{at}", f"{d}, {t}") for at, (d, t) in enumerate(gpus)]),
    }
    for name, (says, texts) in _pieces(gpus).items():
        rows[name] = says, [(one,) for one in texts]
    cut = {"x": "dp", "A": "tp", "B": "tp", "y": "dp"}
    boxes: list[Box] = []
    y = 0.0
    for name, (says, pieces) in rows.items():
        y += 2 * (APART - NEXT) + NEXT if name == "y" else 0.0
        boxes.append(box_at(name, says, (0, y), (NAMES - 0.1, HIGH)))
        boxes += [
            box_at(
                f"{name}{at}",
                lines,
                (NAMES + at * width, y),
                (width - 0.06, HIGH),
                _role(cut.get(name, ""), *gpus[at]),
            )
            for at, lines in enumerate(pieces)
        ]
        y += NEXT
    return boxes


@figure("sharded-product")
def sharded_product(
    *,
    dp: int = 2,
    tp: int = 2,
    tokens: int = 8192,
    hidden: int = 4096,
    bytes_per_element: float = 2,
) -> Diagram:
    """x·A·B on a mesh of `dp` × `tp` GPUs: the piece on each GPU, and the only sum.

    Pieces of one color are cut by one axis; pieces of one shade are equal.
    """
    check_between("dp", dp, 1, 3)
    check_between("tp", tp, 2, 3)
    check_between("GPUs", dp * tp, 2, 4)
    gpus = [(d, t) for d in range(dp) for t in range(tp)]
    width = (ACROSS - NAMES + 0.06) / len(gpus)
    boxes = _piece_boxes(gpus, width)
    height = boxes[-1].y + HIGH
    summed = next(box.y for box in boxes if box.name == "part") + APART
    boxes += [
        box_at(
            f"sum{d}",
            ("all-reduce over tp",),
            (NAMES + d * tp * width, summed),
            (tp * width - 0.06, HIGH),
            "exposed",
        )
        for d in range(dp)
    ]
    links = [
        link
        for at, (d, _) in enumerate(gpus)
        for link in (
            DiagramLink(source=f"part{at}", target=f"sum{d}", role="exposed"),
            DiagramLink(source=f"sum{d}", target=f"y{at}", role="exposed"),
        )
    ]
    size = tokens / dp * hidden * bytes_per_element
    values = {
        "gpus": Named(len(gpus)),
        "tokens": Named(tokens, "token"),
        "result": Named(size, "B"),
        "sent": Named(float(all_reduce_bytes_sent(tp, size)), "B"),
    }
    return Diagram(
        boxes=tuple(boxes), links=tuple(links), width=ACROSS, height=height, values=values
    )


def _role(axis: str, d: int, t: int) -> str:
    return f"{axis}-{d if axis == 'dp' else t}" if axis else "neutral"
