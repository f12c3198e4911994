"""What the ranks of a pipeline hold when they are fullest, without running a schedule where closed
forms say it: the few moments among which the fullest GPU of a layout is found.

1F1B holds min(P − r, M) microbatches on rank r; interleaved 1F1B holds what its window of forwards
ahead covers, whose counts per chunk come from cumulated turns; GPipe and breadth first hold all M.
Every other schedule is walked action by action.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from figgen.models.memory.rank_load import kept_counts, kinds_held, lasting_counts
from figgen.models.pipeline.one_f_one_b import chunk_turns, microbatch_group_size
from figgen.models.pipeline.order import Schedule
from figgen.models.pipeline.schedules import build
from figgen.models.pipeline.stage_placement import Placement, contiguous, looping
from figgen.models.setup.stage_layers import StageShare
from figgen.models.shape.model_shape import ModelShape
from figgen.models.shape.recomputation import Recomputation

Counts = np.ndarray
"""Microbatches in flight of each virtual stage that a rank holds: moments × stages held."""

STATIC = ("dense_layers", "expert_layers", "embeddings", "heads", "tables", "mixers")
KEPT = (
    "kept_inputs", "kept_dense", "kept_experts", "kept_embeddings", "kept_heads", "kept_outputs",
    "kept_mixers",
)  # fmt: skip
KINDS = ("only_dense", "only_experts", "both")
LOADED = (*STATIC, *KEPT, *KINDS)
"""The columns of `rank_loads`, which are the fields of `RankLoad`."""

WINDOWED = ("1f1b", "interleaved-1f1b")
"""Schedules in which an earlier rank holds at least what a later one with the same stages does."""


def alike(schedule: str, stages: int, microbatches: np.ndarray, chunks: int) -> np.ndarray:
    """The least numbers of microbatches with which a schedule idles and holds as with these.

    A pipeline that is full does the same again with every microbatch, or every P of them where
    chunks take turns. Tested for every schedule.
    """
    if schedule == "1f1b":
        return np.asarray(np.minimum(microbatches, stages))
    if schedule in ("naive", "gpipe", "looped-bfs"):
        return microbatches
    if schedule == "interleaved-1f1b" or (schedule == "zb1p" and chunks > 1):
        whole = microbatches % stages == 0
        return np.where(whole, np.minimum(microbatches, 4 * stages), microbatches)
    odd = microbatches % 2 if schedule == "dualpipe" else 0
    return np.asarray(np.minimum(microbatches, 4 * stages + odd))


@lru_cache(maxsize=8192)
def rank_loads(
    schedule: str,
    stages: int,
    microbatches: int,
    chunks: int,
    shares: tuple[StageShare, ...],
    shape: ModelShape,
    again: Recomputation,
) -> np.ndarray:
    """Loads of a pipeline of P `stages`, a row of `LOADED` each, none of which another one exceeds.

    `shares` of `shape` are those of all virtual stages, which recompute `again`.
    Raises InputError where the schedule cannot have these sizes.
    """
    placement, counts = _in_flight(schedule, stages, microbatches, chunks)
    rows, seen = [], set[tuple[tuple[int, int, bool, bool, int], ...]]()
    for rank in range(stages):
        held = [shares[stage] for stage in placement.stages_of_rank(rank)]
        key = tuple((s.layers, s.expert_layers, s.embedding, s.head, s.mixer_layers) for s in held)
        if schedule in WINDOWED and key in seen:
            continue
        seen.add(key)
        kept = counts(rank) @ np.array([kept_counts(shape, again, share) for share in held])
        static, kinds = lasting_counts(held, shape.tied_embeddings), kinds_held(held)
        width = len(STATIC) + len(KEPT)
        block = np.empty((len(kept), len(LOADED)))
        block[:, : len(STATIC)], block[:, len(STATIC) : width] = static, kept
        block[:, width:] = kinds
        rows.append(block)
    return _undominated(np.concatenate(rows))


def _in_flight(
    schedule: str, stages: int, microbatches: int, chunks: int
) -> tuple[Placement, Callable[[int], Counts]]:
    """The placement, and what each rank holds at its fullest moments."""
    if schedule == "1f1b":
        return contiguous(stages), lambda rank: np.array([[min(stages - rank, microbatches)]])
    if schedule == "naive":
        return contiguous(stages), lambda rank: np.array([[1]])
    if schedule == "gpipe":
        return contiguous(stages), lambda rank: np.array([[microbatches]])
    if schedule == "looped-bfs":
        return looping(stages, chunks), lambda rank: np.array([[microbatches] * chunks])
    if schedule == "interleaved-1f1b":
        return looping(stages, chunks), _interleaved(stages, microbatches, chunks)
    order = build(schedule, stages=stages, microbatches=microbatches, chunks=chunks)
    return order.placement, lambda rank: _walked(order, rank)


def _interleaved(stages: int, microbatches: int, chunks: int) -> Callable[[int], Counts]:
    """A window over the turns of chunks: forwards done so far less backwards done so far."""
    group, visits = microbatch_group_size(stages, microbatches), microbatches * chunks
    turns = np.array([chunk for chunk, _ in chunk_turns(microbatches, chunks, group)])
    forward = np.zeros((visits + 1, chunks), dtype=int)
    np.cumsum(turns[:, None] == np.arange(chunks), axis=0, out=forward[1:])
    backward = forward[:, ::-1]
    period = stages * chunks if group == stages else visits

    def held(rank: int) -> Counts:
        ahead = min(2 * (stages - rank - 1) + (chunks - 1) * group, visits)
        # After P·V forwards of full groups the window meets the same counts again.
        steps = min(visits - ahead, period)
        return forward[ahead + 1 : ahead + 1 + steps] - backward[:steps] if steps else forward[-1:]

    return held


def _walked(order: Schedule, rank: int) -> Counts:
    held = dict.fromkeys(order.placement.stages_of_rank(rank), 0)
    moments: dict[tuple[int, ...], None] = {}
    for action in order.orders[rank]:
        if action.kind == "F":
            held[action.stage] += 1
            moments[tuple(held.values())] = None
        elif action.kind != "I":
            held[action.stage] -= 1
    return np.array(list(moments))


def _undominated(rows: np.ndarray) -> np.ndarray:
    """The rows that no other one has in full: bytes grow with every count.

    With those of layers that have a mixer and of layers that have none.
    """
    at = LOADED.index
    attention = (
        rows[:, [at("dense_layers"), at("expert_layers")]].sum(axis=1) - rows[:, at("mixers")]
    )
    kept = rows[:, [at("kept_dense"), at("kept_experts")]].sum(axis=1) - rows[:, at("kept_mixers")]
    counted = np.column_stack((rows, attention, kept))
    kinds = slice(at("only_dense"), at("both"))
    counted[:, kinds] = np.maximum(counted[:, kinds], rows[:, [at("both")]])
    order = np.argsort(-counted.sum(axis=1), kind="stable")
    rows, counted, found = rows[order], counted[order], []
    while len(rows):
        found.append(rows[0])  # nothing that follows has more of everything
        within = np.all(counted <= counted[0], axis=1)
        rows, counted = rows[~within], counted[~within]
    return np.array(found)
