"""Figures of tensor parallelism: split matrices, blocks per rank, a layer with exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

from figgen.catalog import Model
from figgen.catalog import model as catalog_model
from figgen.charts import Box, Diagram, DiagramLink, Named
from figgen.errors import InputError, check_between
from figgen.formulas.tensor_parallel import heads_per_rank, sharded_width
from figgen.models.shape.model_shape import FFN_MATRICES
from figgen.plotting.placed import box_at
from figgen.registry import figure

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
ACROSS = 5.1
"""Width of a diagram that fits a phone, in grid units; its height is that of its lines of boxes."""

PITCH, HIGH, BETWEEN = 1.05, 0.75, 0.5
"""From one line of boxes to the next, the height of a box, and the space between two columns."""


def sub(letter: str, index: int) -> str:
    """Return `A₃` for A and 3."""
    return letter + str(index).translate(SUBSCRIPTS)


def _link(source: str, target: str, label: str = "", role: str = "neutral") -> DiagramLink:
    return DiagramLink(source=source, target=target, label=label, role=role)


@figure("tp-linear")
def tp_linear(
    *,
    split: Literal["column", "row"],
    inputs: int = 4096,
    outputs: int = 4096,
    tp: int = 4,
    bytes_per_element: float = 2,
) -> Diagram:
    """One matmul Y = X·A with A split by columns or by rows over `tp` ranks."""
    check_between("tp", tp, 2, 4)
    drawn = _columns if split == "column" else _rows
    width = sharded_width(outputs if split == "column" else inputs, tp)
    boxes, links = drawn(inputs, outputs, tp, int(width))
    values = {
        "tp": Named(tp, "rank"),
        "shard_width": Named(width),
        "weight_bytes": Named(inputs * outputs * bytes_per_element, "B"),
        "shard_bytes": Named(inputs * outputs * bytes_per_element / tp, "B"),
    }
    return Diagram(boxes=boxes, links=links, width=ACROSS, height=boxes[-1].y + HIGH, values=values)


Drawn = tuple[tuple[Box, ...], tuple[DiagramLink, ...]]


def _row(
    letter: str, texts: Sequence[tuple[str, ...]], line: int, role: str = "tp", gap: float = 0.06
) -> list[Box]:
    """Return a box for each text, side by side over the whole width; `line` counts from the top."""
    width = (ACROSS + gap) / len(texts)
    return [
        box_at(f"{letter}{at}", lines, (at * width, line * PITCH), (width - gap, HIGH), role)
        for at, lines in enumerate(texts)
    ]


def _columns(inputs: int, outputs: int, tp: int, width: int) -> Drawn:
    ranks = range(tp)
    boxes = _row("X", [("X", f"s × {inputs}, on every rank")], 0, "neutral")
    boxes += _row("A", [(sub("A", rank), f"{inputs} × {width}") for rank in ranks], 1)
    boxes += _row(
        "Y", [(f"{sub('Y', rank)} = X{sub('A', rank)}", f"s × {width}") for rank in ranks], 2
    )
    links = [_link("X0", f"A{rank}") for rank in ranks]
    return tuple(boxes), (*links, *(_link(f"A{rank}", f"Y{rank}") for rank in ranks))


def _rows(inputs: int, outputs: int, tp: int, width: int) -> Drawn:
    ranks = range(tp)
    terms = [f"{sub('X', rank)}{sub('A', rank)}" for rank in ranks]
    boxes = _row("X", [(sub("X", rank), f"s × {width}") for rank in ranks], 0)
    boxes += _row("A", [(sub("A", rank), f"{width} × {outputs}") for rank in ranks], 1)
    boxes += _row("P", [(term, f"s × {outputs}") for term in terms], 2)
    boxes += _row("sum", [("all-reduce", " + ".join(terms))], 3, "exposed")
    boxes += _row("Y", [("Y", f"s × {outputs}, on every rank")], 4, "neutral")
    links = [
        _link(
            f"{source}{rank}",
            f"{target}{rank if target != 'sum' else 0}",
            role="exposed" if target == "sum" else "neutral",
        )
        for source, target in pairwise(("X", "A", "P", "sum"))
        for rank in ranks
    ]
    return tuple(boxes), (*links, _link("sum0", "Y0"))


@figure("tp-block")
def tp_block(*, block: Literal["attention", "mlp"], model: str, tp: int = 8) -> Diagram:
    """One block of a layer on every rank: columns in, rows out, one sum at the end."""
    shape = catalog_model(model)
    check_between("tp", tp, 2, 64)
    per_rank = _mlp_rows(shape, tp) if block == "mlp" else _attention_rows(shape, tp)
    shown = list(range(tp)) if tp <= 4 else [0, 1, -1, tp - 1]
    state = f"s × {shape.hidden}, on every rank"
    boxes = [
        *_row("x", [("x", state)], 0, "neutral"),
        *_row("g", [("g", f"sum over {tp} ranks")], 4, "exposed"),
        *_row("y", [("y", state)], 5, "neutral"),
    ]
    links = [_link("g0", "y0")]
    for line in range(3):
        row = _row("", [per_rank[rank][line] if rank >= 0 else ("…",) for rank in shown], line + 1)
        boxes += [replace(box, name=f"{rank}.{line}") for rank, box in zip(shown, row, strict=True)]
    for rank in shown:
        way = ("x0", *(f"{rank}.{line}" for line in range(3)), "g0")
        links += [
            _link(*ends, role="exposed" if ends[1] == "g0" else "neutral") for ends in pairwise(way)
        ]
    values = {
        "tp": Named(tp, "rank"),
        "hidden": Named(shape.hidden),
        "heads_per_rank": Named(heads_per_rank(shape.heads, tp)),
        "kv_heads_per_rank": Named(max(1, shape.kv_heads // tp)),
        "kv_copies": Named(max(1, tp // shape.kv_heads)),
        "ffn_per_rank": Named(sharded_width(shape.shape.ffn_hidden, tp)),
    }
    return Diagram(
        boxes=tuple(boxes), links=tuple(links), width=ACROSS, height=5 * PITCH + HIGH, values=values
    )


Row = tuple[tuple[str, ...], ...]


def _mlp_rows(model: Model, tp: int) -> tuple[Row, ...]:
    kind, hidden = model.shape.ffn, model.hidden
    width = int(sharded_width(model.shape.ffn_hidden, tp))
    gated = FFN_MATRICES[kind] == 3
    entry = "gate, up, cols" if gated else "up, columns"
    name = {"swiglu": "SwiGLU", "gelu": "GELU", "geglu": "GeGLU"}.get(kind, kind)
    return tuple(
        (
            (f"rank {rank}", entry, f"{hidden} × {width}"),
            (name, f"s × {width}"),
            ("down, rows", f"{width} × {hidden}"),
        )
        for rank in range(tp)
    )


def _attention_rows(model: Model, tp: int) -> tuple[Row, ...]:
    heads, kv = int(heads_per_rank(model.heads, tp)), model.kv_heads
    if kv % tp and tp % kv:
        raise InputError("tp", expected=f"a divisor or multiple of {kv} KV heads", got=tp)
    width = heads * model.head_dim
    rows = []
    for rank in range(tp):
        first = rank * kv // tp
        last = first + max(1, kv // tp) - 1
        rows.append(
            (
                (
                    f"rank {rank}",
                    f"Q {_span(rank * heads, (rank + 1) * heads - 1)}",
                    f"K, V {_span(first, last)}",
                ),
                (f"{heads} heads", f"s × {width}"),
                ("O, rows", f"{width} × {model.hidden}"),
            )
        )
    return tuple(rows)


def _span(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first}–{last}"


@figure("tp-layer")
def tp_layer(*, sequence_parallel: bool = False) -> Diagram:
    """A layer, attention on the left and MLP on the right: tensors whole, split or exchanged."""
    whole = "s/T × h" if sequence_parallel else "s × h"
    calm = "tp" if sequence_parallel else "neutral"
    enter = ("in", "fwd all-gather", "bwd reduce-scatter") if sequence_parallel else (
        "f", "fwd nothing", "bwd all-reduce")  # fmt: skip
    leave = ("out", "fwd reduce-scatter", "bwd all-gather") if sequence_parallel else (
        "g", "fwd all-reduce", "bwd nothing")  # fmt: skip
    halves = (
        (("Q, K, V", "by columns"), ("attention", "a/T heads"), ("O", "by rows")),
        (("MLP up", "by columns"), ("activation", "s × 4h/T"), ("MLP down", "by rows")),
    )
    roles = (calm, "exposed", "tp", "tp", "tp", "exposed", calm)
    width = (ACROSS - BETWEEN) / 2
    boxes, links = [], []
    for half, middle in enumerate(halves):
        steps = (("norm", whole), enter, *middle, leave, ("+ residual", whole))
        boxes += [
            box_at(
                f"{half}.{at}",
                lines,
                (half * (width + BETWEEN), PITCH * (6 - at if half else at)),
                (width, HIGH),
                role,
            )
            for at, (lines, role) in enumerate(zip(steps, roles, strict=True))
        ]
        links += [_link(f"{half}.{at}", f"{half}.{at + 1}") for at in range(len(steps) - 1)]
    links.append(_link("0.6", "1.0"))
    values = {"exchanges": Named(8 if sequence_parallel else 4)}
    return Diagram(
        boxes=tuple(boxes), links=tuple(links), width=ACROSS, height=6 * PITCH + HIGH, values=values
    )
