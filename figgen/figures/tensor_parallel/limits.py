"""Tensor parallelism checked and bounded: the identity, thin matrices, memory, overlap."""

from __future__ import annotations

from math import ceil

import numpy as np

from figgen.catalog import hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import Axis, Bars, Column, Named, Scalar, Slot, Table, Timeline
from figgen.errors import InputError, check_between
from figgen.figures.parameters import HardwareName, ModelName
from figgen.formulas.activation_memory import (
    layer_activation_bytes,
    selective_recompute_layer_activation_bytes,
    sequence_parallel_layer_activation_bytes,
    tensor_parallel_layer_activation_bytes,
)
from figgen.formulas.compute_and_roofline import ridge_point
from figgen.models.algorithms.tensor_parallel import (
    Block,
    Weights,
    attention_block,
    column_row_slices,
    gelu,
    largest_difference,
    mlp_block,
    row_first_mlp,
    sharded_pass,
)
from figgen.models.shape.model_shape import ModelShape, check_gpt_layer
from figgen.plotting.placed import headings
from figgen.plotting.series import segments
from figgen.registry import figure

BYTES = 2
TOKENS, WIDTH, INNER, HEADS, KV_HEADS, HEAD_DIM = 6, 16, 64, 8, 4, 4
DIGITS = 10
"""Digits to which differences are rounded; the order of sums changes further ones."""


@figure("tp-identity")
def tp_identity(*, tp: int = 4) -> Table:
    """Whole and split blocks computed side by side in 64 bits: the largest differences."""
    if tp < 1 or KV_HEADS % tp:
        raise InputError("tp", expected=f"a divisor of {KV_HEADS} key and value heads", got=tp)
    draw = np.random.default_rng(0).standard_normal
    x, upstream = draw((TOKENS, WIDTH)), draw((TOKENS, WIDTH))
    heads, kv = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    mlp: Weights = (draw((WIDTH, INNER)), draw((INNER, WIDTH)))
    attention: Weights = tuple(
        draw(size) for size in ((WIDTH, heads), (WIDTH, kv), (WIDTH, kv), (heads, WIDTH))
    )
    blocks: tuple[tuple[str, Block, Weights], ...] = (
        ("MLP", mlp_block, mlp),
        ("attention", attention_block(HEAD_DIM, HEADS // KV_HEADS), attention),
    )
    rows: list[tuple[Scalar, ...]] = []
    for name, block, weights in blocks:
        sharded = sharded_pass(block, x, column_row_slices(weights, tp), upstream)
        found = largest_difference(block(x, weights, upstream), sharded)
        rows.append((f"{name}, columns then rows", *(round(d, DIGITS) for d in found), "1", "1"))
    whole = gelu(x @ mlp[0]) @ mlp[1]
    right, wrong = (
        float(np.abs(row_first_mlp(x, mlp, tp, sum_first=first) - whole).max())
        for first in (True, False)
    )
    rows += [
        ("MLP, rows first, summed before GELU", round(right, DIGITS), "–", "–", "2", "2"),
        ("MLP, rows first, GELU of each part", wrong, "–", "–", "–", "–"),
    ]
    columns = (
        Column(label="block and split"),
        *headings("output", "gradient of x", "gradients of weights", spec=".3g"),
        *headings("sums forward", "sums backward"),
    )
    values = {
        "tp": Named(tp, "rank"),
        "largest": Named(max(float(d) for row in rows[:2] for d in row[1:4])),
        "wrong": Named(wrong),
        "typical": Named(float(np.abs(whole).max())),
        "digits": Named(DIGITS),
    }
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("tp-limits")
def tp_limits(
    *,
    model: str = "llama-3-8b",
    preset: str = "h100-ndr",
    sizes: tuple[int, ...] = (1, 2, 4, 8, 16, 32),
    tokens: int = 8192,
    multiprocessors: int = 132,
    tile_rows: int = 128,
    tile_columns: int = 256,
) -> Table:
    """One rank's part: heads, key-value heads, its widest matmul, full waves.

    The matmul is the MLP's fused up-projection. A wave is one output tile on every multiprocessor;
    the last one may be nearly empty.
    """
    node, found = hardware_preset(preset), catalog_model(model)
    ridge = ridge_point(
        node.accelerator.peak_flops_per_s(), node.accelerator.hbm_bandwidth_bytes_per_s
    )
    rows, values = [], {"hbm_ridge": Named(ridge, "FLOP/B"), "tokens": Named(tokens, "token")}
    for tp in sizes:
        if found.heads % tp or found.shape.ffn_hidden % tp:
            raise InputError("tp", expected=f"a divisor of {found.heads} heads", got=tp)
        width = _way_up(found.shape) // tp
        moved = BYTES * (tokens * found.hidden + found.hidden * width + tokens * width)
        intensity = 2 * tokens * found.hidden * width / moved
        tiles = ceil(tokens / tile_rows) * ceil(width / tile_columns)
        filled = tiles / (ceil(tiles / multiprocessors) * multiprocessors)
        copies = max(1, tp // found.kv_heads)
        rows.append(
            (
                tp,
                found.heads // tp,
                max(1, found.kv_heads // tp),
                copies,
                f"{found.hidden} × {width}",
                intensity,
                tiles,
                filled,
            )
        )
        values |= {
            f"tp{tp}_intensity": Named(intensity, "FLOP/B"),
            f"tp{tp}_filled": Named(filled),
            f"tp{tp}_copies": Named(copies),
        }
    columns = (
        *headings(
            "T",
            "Q heads per rank",
            "KV heads per rank",
            "copies of each KV head",
            "gate and up per rank",
        ),
        Column(label="intensity", unit="FLOP/B", spec=",.0f"),
        Column(label="tiles", spec=","),
        Column(label="waves filled", spec=".0%"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


def _way_up(shape: ModelShape) -> int:
    """Return the columns of the MLP's first matmul; a gated one has gate and up-projection."""
    return (2 if shape.ffn in ("swiglu", "geglu") else 1) * shape.ffn_hidden


@figure("sp-memory", recomputed=True)
def sp_memory(*, model: ModelName = "gpt-3-175b", tp: int = 8) -> Bars:
    """Activations of one layer and sequence on a rank: parts that TP and that only SP divides.

    34·s·b·h and 5·a·s²·b are GPT's layer; other layers raise InputError.
    """
    shape = catalog_model(model)
    check_gpt_layer(shape.shape)
    s, h, a = shape.shape.sequence, shape.hidden, shape.heads
    unit, core = s * h, 5 * a * s * s
    cases = {
        "nothing": ("one rank", 10 * unit, 24 * unit, core),
        "tp": (f"TP {tp}", 10 * unit, 24 * unit / tp, core / tp),
        "sp": (f"TP {tp} with SP", 10 * unit / tp, 24 * unit / tp, core / tp),
        "selective": ("and no attention core", 10 * unit / tp, 24 * unit / tp, 0.0),
    }
    checked = {
        "nothing": layer_activation_bytes(s, 1, h, a),
        "tp": tensor_parallel_layer_activation_bytes(s, 1, h, a, tp),
        "sp": sequence_parallel_layer_activation_bytes(s, 1, h, a, tp),
        "selective": selective_recompute_layer_activation_bytes(s, 1, h, tp),
    }
    parts = zip(*(case[1:] for case in cases.values()), strict=True)
    names = ("norms and dropout", "matmuls", "attention core")
    lengths = {name: map(float, part) for name, part in zip(names, parts, strict=True)}
    return Bars(
        labels=tuple(case[0] for case in cases.values()),
        segments=segments(lengths, ("neutral", "tp", "series-2")),
        axis=Axis(label="activations per rank per layer", unit="B", low=0.0, spec="bytes"),
        values={f"{name}_bytes": Named(total, "B") for name, total in checked.items()},
    )


@figure("tp-overlap", recomputed=True)
def tp_overlap(
    *, model: ModelName = "llama-3-8b", preset: HardwareName = "h100-ndr", tp: int = 8
) -> Timeline:
    """The gather before the MLP's up-projection and its matmul, in sequence and in T pieces.

    The matmul runs at the accelerator's measured rate. Piece by piece, a rank begins with its own
    tokens while those of the next rank arrive.
    """
    node, shape = hardware_preset(preset), catalog_model(model)
    check_between("tp", tp, 2, 16)
    measured = node.accelerator.measured_bf16
    rate = measured.value if measured else node.accelerator.peak_flops_per_s()
    tokens = shape.shape.sequence
    width = _way_up(shape.shape) // tp
    piece = 2 * tokens * shape.hidden * width / rate / tp
    send = tokens / tp * shape.hidden * BYTES / node.scale_up_bandwidth_bytes_per_s
    send += node.scale_up_latency_s
    slots, free = [], 0.0
    for at in range(tp):
        if at < tp - 1:
            slots.append(_slot(1, at * send, (at + 1) * send, "exposed", at + 1))
            slots.append(_slot(3, at * send, (at + 1) * send, "hidden", at + 1))
        start = (tp - 1) * send + at * piece
        slots.append(_slot(0, start, start + piece, "forward", at))
        free = max(free, at * send)
        slots.append(_slot(2, free, free + piece, "forward", at))
        free += piece
    blocking = (tp - 1) * send + tp * piece
    return Timeline(
        lanes=("blocking: cores", "blocking: link", "pieces: cores", "pieces: link"),
        slots=tuple(slots),
        end=blocking,
        time_label="time",
        time_unit="s",
        values={
            "blocking_s": Named(blocking, "s"),
            "pieces_s": Named(free, "s"),
            "gather_s": Named((tp - 1) * send, "s"),
            "product_s": Named(tp * piece, "s"),
            "hidden_share": Named((blocking - free) / ((tp - 1) * send)),
            "tp": Named(tp, "rank"),
            "part": Named(node.gpu),
        },
    )


def _slot(lane: int, start: float, end: float, role: str, piece: int) -> Slot:
    return Slot(lane=lane, start=start, end=end, role=role, label=str(piece))
