"""Pictures of context parallelism: the causal triangle, work over time, and its exactness."""

from __future__ import annotations

import numpy as np

from figgen.charts import (
    Axis,
    Bars,
    Box,
    Column,
    Diagram,
    Named,
    Scalar,
    Slot,
    Table,
    Timeline,
)
from figgen.errors import check_between
from figgen.figures.parameters import CutName
from figgen.formulas.context_parallel import tokens_per_context_rank
from figgen.models.algorithms.context_parallel import (
    SCHEMES,
    RunningSoftmax,
    causal_attention,
    chunks_of_rank,
    no_keys_yet,
    pairs_by_step,
    ring_attention,
    ring_timeline,
)
from figgen.plotting.placed import box_at, headings
from figgen.plotting.series import segments
from figgen.registry import figure

CELL, HIGH, LABEL = 0.44, 0.36, 1.05


@figure("cp-triangle")
def cp_triangle(*, cp: int = 4, sequence_length: int = 32768) -> Diagram:
    """Pairs of query and key chunks, colored by rank, for two ways to cut a sequence."""
    check_between("cp", cp, 2, 4)
    count = 2 * cp
    panel = LABEL + count * CELL + 0.6
    boxes: list[Box] = []
    for side, scheme in enumerate(("contiguous", "zig-zag")):
        left = side * panel
        owner = {c: rank for rank in range(cp) for c in chunks_of_rank(scheme, cp, rank)}
        boxes.append(
            box_at(
                scheme, (f"{scheme}: keys 0 to {count - 1} across",), (left, 0), (panel - 0.6, 0.4)
            )
        )
        for chunk in range(count):
            boxes += _triangle_row(scheme, chunk, owner[chunk], left)
    values = {
        "cp": Named(cp, "rank"),
        "chunks": Named(count),
        "chunk_tokens": Named(sequence_length // count, "token"),
        "tokens": Named(tokens_per_context_rank(sequence_length, cp), "token"),
        "first_contiguous": Named(_blocks("contiguous", cp, 0)),
        "last_contiguous": Named(_blocks("contiguous", cp, cp - 1)),
        "first_zigzag": Named(_blocks("zig-zag", cp, 0)),
        "last_zigzag": Named(_blocks("zig-zag", cp, cp - 1)),
    }
    return Diagram(
        boxes=tuple(boxes),
        links=(),
        width=2 * panel - 0.6,
        height=0.5 + count * HIGH,
        values=values,
    )


def _triangle_row(scheme: str, chunk: int, rank: int, left: float) -> list[Box]:
    role = f"rank-{rank}"
    y = 0.5 + chunk * HIGH
    name = box_at(
        f"{scheme} {chunk}",
        (f"{chunk}: rank {rank}",),
        (left, y),
        (LABEL - 0.05, HIGH - 0.05),
        role,
    )
    cells = [
        box_at(
            f"{scheme} {chunk} {key}",
            ("½" if key == chunk else "1",),
            (left + LABEL + key * CELL, y),
            (CELL - 0.05, HIGH - 0.05),
            role,
        )
        for key in range(chunk + 1)
    ]
    return [name, *cells]


def _blocks(scheme: str, cp: int, rank: int) -> float:
    """Return the work of a rank in whole chunk × chunk blocks; one on the diagonal is half."""
    return sum(chunk + 0.5 for chunk in chunks_of_rank(scheme, cp, rank))


LONGEST = 2**22
"""Tokens that are counted one by one in a moment."""


@figure("cp-balance", recomputed=True)
def cp_balance(*, cp: int = 4, sequence_length: int = 32768) -> Bars:
    """The share of all causal pairs of query and key that each rank computes, by counting them."""
    check_between("cp", cp, 2, 64)
    check_between("sequence_length", sequence_length, 1, LONGEST)
    shares = {
        scheme: tuple(sum(row) / (sequence_length * (sequence_length + 1) / 2) for row in rows)
        for scheme in ("contiguous", "zig-zag")
        for rows in [pairs_by_step(scheme, cp, sequence_length)]
    }
    values = {"even": Named(1 / cp), "cp": Named(cp, "rank")}
    for scheme, found in shares.items():
        key = scheme.replace("-", "")
        values |= {f"{key}_first": Named(found[0]), f"{key}_last": Named(found[-1])}
        values[f"{key}_over_even"] = Named(max(found) * cp)
    return Bars(
        labels=tuple(f"rank {rank}" for rank in range(cp)),
        segments=segments(shares, ("neutral", "cp")),
        axis=Axis(label="share of the causal work", low=0.0, spec=".0%"),
        stacked=False,
        values=values,
    )


@figure("ring-attention", recomputed=True)
def ring_attention_timeline(
    *,
    scheme: CutName = "zig-zag",
    cp: int = 4,
    transfer: float = 0.5,
    sequence_length: int = 4096,
) -> Timeline:
    """Each rank's attention over time; a balanced step takes 1, a message `transfer`."""
    check_between("cp", cp, 2, 8)
    check_between("transfer", transfer, 0, 10)
    check_between("sequence_length", sequence_length, 1, LONGEST)
    pairs = pairs_by_step(scheme, cp, sequence_length)
    balanced = sequence_length * (sequence_length + 1) / 2 / cp**2
    steps = ring_timeline(pairs, pair_s=1 / balanced, block_s=transfer)
    end = max(step.end for step in steps)
    slots = tuple(
        Slot(
            lane=step.rank,
            start=step.start,
            end=step.end,
            role=f"rank-{step.block}",
            label=f"kv {step.block}",
            detail=f"rank {step.rank}, step {step.step}: keys and values of rank {step.block}",
        )
        for step in steps
        if step.end > step.start
    )
    values = {
        "makespan": Named(end),
        "idle": Named(1 - cp / end),
        "over_even": Named(end / cp),
        "slots": Named(len(slots)),
        "cp": Named(cp, "rank"),
        "transfer": Named(transfer),
    }
    return Timeline(
        lanes=tuple(f"rank {rank}" for rank in range(cp)),
        slots=slots,
        end=end,
        time_label="time; 1 is one step with the work shared evenly",
        values=values,
    )


DIGITS = 10


WORKED = ((1.0, 10.0), (0.0, 20.0), (3.0, 30.0), (1.0, 40.0), (2.0, 50.0), (0.0, 60.0))
"""Keys of a worked case: their score with the one query, and their value, a single number."""


@figure("online-softmax")
def online_softmax(*, keys_per_block: int = 2) -> Table:
    """One query's attention to six keys that arrive in blocks, and to all of them at once."""
    check_between("keys_per_block", keys_per_block, 1, len(WORKED))
    rows: list[tuple[Scalar, ...]] = []
    state = no_keys_yet(1, 1)
    for start in range(0, len(WORKED), keys_per_block):
        label = "own block" if start == 0 else f"block {start // keys_per_block + 1} arrives"
        row, state = _arrival(label, WORKED[start : start + keys_per_block], state)
        rows.append(row)
    last = rows[-1]
    rows.append(_arrival("all keys at once", WORKED, no_keys_yet(1, 1))[0])
    return Table(
        columns=(
            *headings("what arrives", "scores", "values"),
            Column(label="largest score m", spec="g"),
            Column(label="old sums times"),
            Column(label="sum of weights l", spec=".3f"),
            *headings("weighted values o", "o ÷ l", spec=".2f"),
        ),
        rows=tuple(rows),
        values={
            "result": Named(float(last[-1])),
            "whole": Named(float(rows[-1][-1])),
            "first": Named(float(rows[0][-1])),
            "fade": Named(float(np.exp(WORKED[0][0] - WORKED[2][0]))),
        },
    )


def _arrival(
    label: str, keys: tuple[tuple[float, float], ...], old: RunningSoftmax
) -> tuple[tuple[Scalar, ...], RunningSoftmax]:
    """Return the row of an arriving block, and the running sums after it."""
    scores, values = (np.array(side) for side in zip(*keys, strict=True))
    new = old.after(scores[None, :], values[:, None])
    highest, total, output = (float(part[0, 0]) for part in (new.highest, new.total, new.output))
    fade = f"{np.exp(old.highest[0, 0] - highest):.3f}" if old.total[0, 0] else "–"
    said = (", ".join(f"{one:g}" for one in side) for side in (scores, values))
    return (label, *said, highest, fade, total, output, output / total), new


@figure("cp-identity")
def cp_identity(*, cp: int = 4, sequence_length: int = 64, width: int = 8) -> Table:
    """Ring attention and unsplit attention in 64 bits, for three ways to cut the sequence."""
    for name, value, low, high in (
        ("cp", cp, 2, 64), ("sequence_length", sequence_length, 4, 2048), ("width", width, 1, 256)
    ):  # fmt: skip
        check_between(name, value, low, high)
    draw = np.random.default_rng(0).standard_normal
    q, k, v = (draw((sequence_length, width)) for _ in range(3))
    whole = causal_attention(q, k, v)
    rows = []
    for scheme in SCHEMES:
        found = ring_attention(q, k, v, cp=cp, scheme=scheme)
        pairs = pairs_by_step(scheme, cp, sequence_length)
        worst = max(max(row[step] for row in pairs) for step in range(1, cp))
        least = min(min(row[step] for row in pairs) for step in range(1, cp))
        sums = [sum(row) for row in pairs]
        rows.append(
            (
                scheme,
                round(float(np.abs(found - whole).max()), DIGITS),
                least,
                worst,
                min(sums),
                max(sums),
            )
        )
    columns = (
        Column(label="cut"),
        Column(label="largest difference", spec=".3g"),
        *headings("pairs per step, least", "most", "pairs per rank, least", "most", spec=","),
    )
    values = {
        "largest": Named(max(row[1] for row in rows)),
        "digits": Named(DIGITS),
        "sequence_length": Named(sequence_length, "token"),
        "cp": Named(cp, "rank"),
        "striped_least": Named(rows[2][4]),
        "striped_most": Named(rows[2][5]),
    }
    return Table(columns=columns, rows=tuple(rows), values=values)
