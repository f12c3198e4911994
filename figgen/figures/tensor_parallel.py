"""Tensor parallelism as pictures: split matrices, blocks per rank, a layer with its exchanges."""

from __future__ import annotations

from typing import Literal

from figgen.catalog import Model
from figgen.catalog import model as catalog_model
from figgen.charts import Box, Diagram, Link, Named
from figgen.errors import InputError, check_between
from figgen.formulas.tensor_parallel import heads_per_rank, sharded_width
from figgen.models.model_shape import FFN_MATRICES
from figgen.registry import figure

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
TALL, ROW = 2.4, 0.85


def sub(letter: str, index: int) -> str:
    """`A₃` for A and 3."""
    return letter + str(index).translate(SUBSCRIPTS)


def _link(source: str, target: str, label: str = "", role: str = "neutral") -> Link:
    return Link(source=source, target=target, label=label, role=role)


@figure("tp-linear")
def tp_linear(
    *,
    split: Literal["column", "row"],
    inputs: int = 4096,
    outputs: int = 4096,
    tp: int = 4,
    bytes_per_element: float = 2,
) -> Diagram:
    """One matrix product Y = X·A with A split by columns or by rows over `tp` ranks."""
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
    return Diagram(boxes=boxes, links=links, width=11, height=TALL, values=values)


Drawn = tuple[tuple[Box, ...], tuple[Link, ...]]


def _strips(letter: str, shape: tuple[str, ...], tp: int, left: float, wide: float) -> list[Box]:
    return [
        Box(
            name=f"{letter}{rank}", lines=(sub(letter, rank), *shape),
            x=left + rank * wide, y=0, width=wide - 0.06, height=TALL, role="tp",
        )
        for rank in range(tp)
    ]  # fmt: skip


def _columns(inputs: int, outputs: int, tp: int, width: int) -> Drawn:
    whole = Box(
        name="X", lines=("X", f"s × {inputs}", "on every rank"),
        x=0, y=0, width=1.9, height=TALL, role="neutral",
    )  # fmt: skip
    weights = _strips("A", (f"{inputs} ×", f"{width}"), tp, 2.7, 4.0 / tp)
    results = _strips("Y", ("s ×", f"{width}"), tp, 7.5, 3.5 / tp)
    links = (_link("X", "A0", "·"), _link(f"A{tp - 1}", "Y0", "="))
    return (whole, *weights, *results), links


def _rows(inputs: int, outputs: int, tp: int, width: int) -> Drawn:
    high = TALL / tp
    boxes = _strips("X", ("s ×", f"{width}"), tp, 0, 2.9 / tp)
    links = [_link(f"X{tp - 1}", f"A{tp // 2}", "·")]
    for rank in range(tp):
        y = rank * high
        boxes += [
            Box(
                name=f"A{rank}", lines=(f"{sub('A', rank)}:  {width} × {outputs}",),
                x=3.5, y=y, width=2.5, height=high - 0.06, role="tp",
            ),
            Box(
                name=f"P{rank}", lines=(f"{sub('X', rank)}{sub('A', rank)}",),
                x=6.5, y=y, width=0.9, height=high - 0.06, role="tp",
            ),
        ]  # fmt: skip
        links += [_link(f"A{rank}", f"P{rank}"), _link(f"P{rank}", "sum", role="exposed")]
    boxes += [
        Box(
            name="sum", lines=("all-reduce", "sum of", f"{tp} parts"),
            x=7.8, y=0, width=1.3, height=TALL, role="exposed",
        ),
        Box(
            name="Y", lines=("Y", f"s × {outputs}", "on every rank"),
            x=9.5, y=0, width=1.5, height=TALL,
        ),
    ]  # fmt: skip
    return tuple(boxes), (*links, _link("sum", "Y"))


@figure("tp-block")
def tp_block(*, block: Literal["attention", "mlp"], model: str, tp: int = 8) -> Diagram:
    """One block of a layer on every rank: columns in, rows out, one sum at the end."""
    shape = catalog_model(model)
    check_between("tp", tp, 2, 64)
    per_rank = _mlp_rows(shape, tp) if block == "mlp" else _attention_rows(shape, tp)
    shown = list(range(tp)) if tp <= 4 else [0, 1, -1, tp - 1]
    high = ROW * len(shown)
    boxes = [
        Box(name="X", lines=("x", f"s × {shape.hidden}", "on every", "rank"), x=0, y=0,
            width=1.35, height=high),
        Box(name="g", lines=("g", "sum over", f"{tp} ranks"), x=9.25, y=0, width=1.25, height=high,
            role="exposed"),
        Box(name="Y", lines=("y", f"s × {shape.hidden}", "on every", "rank"), x=10.9, y=0,
            width=1.35, height=high),
    ]  # fmt: skip
    links = [_link("g", "Y")]
    for place, rank in enumerate(shown):
        boxes_here, links_here = _rank_row(per_rank, rank, place)
        boxes += boxes_here
        links += links_here
    values = {
        "tp": Named(tp, "rank"),
        "hidden": Named(shape.hidden),
        "heads_per_rank": Named(heads_per_rank(shape.heads, tp)),
        "kv_heads_per_rank": Named(max(1, shape.kv_heads // tp)),
        "kv_copies": Named(max(1, tp // shape.kv_heads)),
        "ffn_per_rank": Named(sharded_width(shape.shape.ffn_hidden, tp)),
    }
    return Diagram(boxes=tuple(boxes), links=tuple(links), width=12.25, height=high, values=values)


Row = tuple[tuple[str, ...], ...]


def _rank_row(per_rank: tuple[Row, ...], rank: int, place: int) -> tuple[list[Box], list[Link]]:
    y = place * ROW
    if rank < 0:
        gap = Box(name="…", lines=("…",), x=1.75, y=y, width=7.1, height=ROW - 0.1, role="neutral")
        return [gap], []
    spots = ((1.75, 2.85), (4.85, 1.65), (6.75, 2.15))
    boxes = [
        Box(name=f"{rank}.{at}", lines=lines, x=x, y=y, width=width, height=ROW - 0.1, role="tp")
        for at, (lines, (x, width)) in enumerate(zip(per_rank[rank], spots, strict=True))
    ]
    links = [
        _link("X", f"{rank}.0"), _link(f"{rank}.0", f"{rank}.1"),
        _link(f"{rank}.1", f"{rank}.2"), _link(f"{rank}.2", "g", role="exposed"),
    ]  # fmt: skip
    return boxes, links


def _mlp_rows(model: Model, tp: int) -> tuple[Row, ...]:
    kind, hidden = model.shape.ffn, model.hidden
    width = int(sharded_width(model.shape.ffn_hidden, tp))
    gated = FFN_MATRICES[kind] == 3
    entry = "gate, up" if gated else "up"
    times = "2 × " if gated else ""
    name = {"swiglu": "SwiGLU", "gelu": "GELU", "geglu": "GeGLU"}.get(kind, kind)
    return tuple(
        (
            (f"rank {rank}: {entry}, columns", f"{times}{hidden} × {width}"),
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
        rows.append((
            (f"rank {rank}: Q {_span(rank * heads, (rank + 1) * heads - 1)}",
             f"K, V {_span(first, last)}"),
            (f"{heads} heads", f"s × {width}"),
            ("O, rows", f"{width} × {model.hidden}"),
        ))  # fmt: skip
    return tuple(rows)


def _span(first: int, last: int) -> str:
    return f"head {first}" if first == last else f"heads {first}–{last}"


@figure("tp-layer")
def tp_layer(*, sequence_parallel: bool = False) -> Diagram:
    """A layer, right and back left: what is whole, what is split, and where the ranks talk."""
    whole = "s/T × h" if sequence_parallel else "s × h"
    calm = "tp" if sequence_parallel else "neutral"
    enter = ("in", "fwd all-gather", "bwd reduce-", "scatter") if sequence_parallel else (
        "f", "fwd nothing", "bwd all-reduce")  # fmt: skip
    leave = ("out", "fwd reduce-", "scatter", "bwd all-gather") if sequence_parallel else (
        "g", "fwd all-reduce", "bwd nothing")  # fmt: skip
    halves = (
        (("Q, K, V", "by columns"), ("attention", "a/T heads"), ("O", "by rows")),
        (("MLP up", "by columns"), ("activation", "s × 4h/T"), ("MLP down", "by rows")),
    )
    widths = (1.15, 1.55, 1.2, 1.2, 1.2, 1.55, 1.2)
    across = sum(widths) + 6 * 0.25
    boxes, links = [], []
    for row, middle in enumerate(halves):
        x, before = 0.0, ""
        steps = (("norm", whole), enter, *middle, leave, ("+ residual", whole))
        roles = (calm, "exposed", "tp", "tp", "tp", "exposed", calm)
        for at, (lines, role, width) in enumerate(zip(steps, roles, widths, strict=True)):
            name = f"{row}.{at}"
            boxes.append(Box(
                name=name, lines=lines, x=across - x - width if row else x, y=row * 1.45,
                width=width, height=1.0, role=role,
            ))  # fmt: skip
            links += [_link(before, name)] if before else []
            before, x = name, x + width + 0.25
    links.append(_link("0.6", "1.0"))
    values = {"exchanges": Named(8 if sequence_parallel else 4)}
    return Diagram(boxes=tuple(boxes), links=tuple(links), width=across, height=2.45, values=values)
