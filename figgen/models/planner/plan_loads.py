"""What the ranks of a pipeline hold at the moments when one of them may be the fullest GPU.

Where a closed form gives these loads, no schedule is run: 1F1B holds min(P − r, M) microbatches on
rank r; interleaved 1F1B holds the microbatches in its window of forwards ahead; GPipe and breadth
first hold all M. Every other schedule is walked action by action.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from figgen.models.memory.rank_load import RankLoad, kept_counts, kinds_held, lasting_counts
from figgen.models.pipeline.one_f_one_b import chunk_turns, microbatch_group_size
from figgen.models.pipeline.order import Schedule
from figgen.models.pipeline.schedules import build
from figgen.models.pipeline.stage_placement import Placement, contiguous, looping
from figgen.models.setup.stage_layers import StageShare
from figgen.models.shape.model_shape import ModelShape
from figgen.models.shape.recomputation import Recomputation

Counts = tuple[int, ...]
"""Microbatches in flight on each virtual stage that a rank holds."""

LOADED = (
    "dense_layers", "expert_layers", "embeddings", "heads", "tables", "mixers", "kept_inputs",
    "kept_dense", "kept_experts", "kept_embeddings", "kept_heads", "kept_outputs", "kept_mixers",
    "only_dense", "only_experts", "both",
)  # fmt: skip
"""The fields of `RankLoad`, in the order of the counts below."""

WINDOWED = ("1f1b", "interleaved-1f1b")
"""Schedules in which a rank holds at least as much as any later rank with the same stages."""


@lru_cache(maxsize=8192)
def rank_loads(
    schedule: str,
    stages: int,
    microbatches: int,
    chunks: int,
    shares: tuple[StageShare, ...],
    shape: ModelShape,
    again: Recomputation,
) -> tuple[RankLoad, ...]:
    """Return the loads of a pipeline of P `stages` that no other load exceeds in every count.

    `shares` are those of all virtual stages of a model of `shape`, and `again` says how they are
    recomputed. Raises InputError where the schedule cannot have these sizes.
    """
    placement, moments = _in_flight(schedule, stages, microbatches, chunks)
    rows: list[Counts] = []
    seen = set[tuple[tuple[int, int, bool, bool, int], ...]]()
    for rank in range(stages):
        held = [shares[stage] for stage in placement.stages_of_rank(rank)]
        key = tuple((s.layers, s.expert_layers, s.embedding, s.head, s.mixer_layers) for s in held)
        if schedule in WINDOWED and key in seen:
            continue
        seen.add(key)
        still, kinds = (
            lasting_counts(held, shape.tied_embeddings),
            [int(kind) for kind in kinds_held(held)],
        )
        each = list(zip(*[kept_counts(shape, again, share) for share in held], strict=True))
        rows += [(*still, *_weighted(counts, each), *kinds) for counts in moments(rank)]
    return tuple(RankLoad(**dict(zip(LOADED, row, strict=True))) for row in _undominated(rows))


def _in_flight(
    schedule: str, stages: int, microbatches: int, chunks: int
) -> tuple[Placement, Callable[[int], list[Counts]]]:
    """Return the placement, and what each rank holds at its fullest moments."""
    if schedule == "1f1b":
        return contiguous(stages), lambda rank: [(min(stages - rank, microbatches),)]
    if schedule == "naive":
        return contiguous(stages), lambda rank: [(1,)]
    if schedule == "gpipe":
        return contiguous(stages), lambda rank: [(microbatches,)]
    if schedule == "looped-bfs":
        return looping(stages, chunks), lambda rank: [(microbatches,) * chunks]
    if schedule == "interleaved-1f1b":
        return looping(stages, chunks), _interleaved(stages, microbatches, chunks)
    order = build(schedule, stages=stages, microbatches=microbatches, chunks=chunks)
    return order.placement, lambda rank: _walked(order, rank)


def _interleaved(stages: int, microbatches: int, chunks: int) -> Callable[[int], list[Counts]]:
    """Return a function from a rank to its counts: forwards minus backwards done so far."""
    group = microbatch_group_size(stages, microbatches)
    turns = [chunk for chunk, _ in chunk_turns(microbatches, chunks, group)]
    visits = len(turns)
    period = stages * chunks if group == stages else visits

    def held(rank: int) -> list[Counts]:
        ahead = min(2 * (stages - rank - 1) + (chunks - 1) * group, visits)
        now = [0] * chunks
        for turn in turns[: ahead + 1]:
            now[turn] += 1
        found = {tuple(now): True}
        # With full groups, the counts repeat after P·V forwards.
        for step in range(1, min(visits - ahead, period)):
            now[turns[ahead + step]] += 1
            now[chunks - 1 - turns[step - 1]] -= 1
            found[tuple(now)] = True
        return list(found)

    return held


def _walked(order: Schedule, rank: int) -> list[Counts]:
    held = dict.fromkeys(order.placement.stages_of_rank(rank), 0)
    moments: dict[Counts, bool] = {}
    for action in order.orders[rank]:
        if action.kind == "F":
            held[action.stage] += 1
            moments[tuple(held.values())] = True
        elif action.kind != "I":
            held[action.stage] -= 1
    return list(moments)


def _weighted(counts: Counts, columns: Sequence[Counts]) -> list[int]:
    """Return, for each column, the sum of its numbers times the counts."""
    found = [0 for _ in columns]
    for place in range(len(columns)):
        for at in range(len(counts)):
            found[place] += counts[at] * columns[place][at]
    return found


def _undominated(rows: list[Counts]) -> list[Counts]:
    """Return the rows that no other row exceeds in every count: bytes grow with each count."""
    counted = [_counted(row) for row in rows]
    sizes = [sum(counts) for counts in counted]
    found: list[int] = []
    for place in sorted(range(len(rows)), key=lambda place: -sizes[place]):
        mine = counted[place]  # no later row can exceed this one
        if not any(_within(mine, counted[other]) for other in found):
            found.append(place)
    return [rows[place] for place in found]


def _within(counts: Counts, others: Counts) -> bool:
    return all(counts[at] <= others[at] for at in range(len(counts)))


def _counted(row: Counts) -> Counts:
    """Return all counts, those of attention layers, and mixed stages counted as both kinds."""
    load = dict(zip(LOADED, row, strict=True))
    layers = load["dense_layers"] + load["expert_layers"] - load["mixers"]
    kept = load["kept_dense"] + load["kept_experts"] - load["kept_mixers"]
    both = load["both"]
    alone = max(load["only_dense"], both), max(load["only_experts"], both)
    return (*row[:-3], *alone, both, layers, kept)
