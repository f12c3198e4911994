"""What a virtual stage sends for data parallelism: gradients, sharded weights, a tied table.

ZeRO-0 all-reduces gradients. ZeRO-1 reduce-scatters them and gathers the updated weights. ZeRO-2
scatters after each microbatch, since only shards accumulate. ZeRO-3 gathers weights before each
forward and each backward and scatters gradients after each backward. If a framework keeps a
pipeline stage unsharded, ZeRO-2 and ZeRO-3 move the same bytes as ZeRO-1. DualPipe's sum over its
two copies of the model is not counted.
Source: Rajbhandari et al. 2020 (ZeRO), arXiv:1910.02054, section 7.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from figgen.models.memory.rank_parameters import copies_embedding, table_held
from figgen.models.memory.trained_state import kept_by_stage
from figgen.models.setup.stage_layers import shares_of_rank, virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.layer_traffic import boundary_traffic, microbatch_traffic
from figgen.models.step.step_traffic import BACKWARD, END, FORWARD, START, Traffic, merged

GRADIENTS = "gradients"
WEIGHTS = "weights"
TIED = "gradients of the tied table"


def stage_traffic(setup: TrainingSetup, stage: int) -> tuple[Traffic, ...]:
    """Return everything that a rank of virtual stage `stage` sends."""
    return _by_stage(setup)[stage]


@lru_cache(maxsize=64)
def _by_stage(setup: TrainingSetup) -> tuple[tuple[Traffic, ...], ...]:
    """Return what every virtual stage sends.

    Stages without a table that have equal layers and neighbors share one result.
    """
    found: dict[object, tuple[Traffic, ...]] = {}
    shares = virtual_stage_shares(setup)
    keys: list[object] = [
        stage
        if share.embedding or share.head
        else (share.anywhere, *boundary_traffic(setup, stage))
        for stage, share in enumerate(shares)
    ]
    for stage, key in enumerate(keys):
        if key not in found:
            found[key] = (*microbatch_traffic(setup, stage), *data_traffic(setup, stage))
    return tuple(found[key] for key in keys)


def step_calls(setup: TrainingSetup, stage: int) -> Iterator[tuple[Traffic, int]]:
    """Yield each kind of call of a rank of virtual stage `stage`, with its number per step."""
    passing = setup.microbatches_of_stage
    for entry in stage_traffic(setup, stage):
        yield entry, entry.calls * (passing if entry.per_microbatch else 1)


def calls_of(setup: TrainingSetup) -> int:
    """Return the number of calls per step, summed over one GPU of every virtual stage."""
    stages = range(setup.placement.stages)
    return sum(number for stage in stages for _, number in step_calls(setup, stage))


def data_traffic(setup: TrainingSetup, stage: int) -> tuple[Traffic, ...]:
    """Return the data-parallel calls of a rank of virtual stage `stage`."""
    share, kept = virtual_stage_shares(setup)[stage], kept_by_stage(setup, stage)
    units = share.layers + share.embedding + share.head + copies_embedding(setup, stage)
    shards, edp = setup.dense_shards, setup.parallel.edp
    frozen = kept.frozen_bytes
    found = list(_group(setup, setup.dense_data_axis, shards, kept.trained, frozen, units))
    frozen = kept.frozen_routed_bytes
    found += _group(setup, "edp", edp, kept.trained_routed, frozen, share.expert_layers)
    if _copies_table(setup, stage):
        size = table_held(setup) * setup.recipe.gradient_bytes
        found.append(
            Traffic(
                axis="embedding",
                purpose=TIED,
                collective="all-reduce",
                phase=END,
                calls=1,
                buffer_bytes=size,
                size=2,
            )
        )
    return merged(found)


def _group(
    setup: TrainingSetup, axis: str, size: int, trained: int, frozen_bytes: float, units: int
) -> Iterator[Traffic]:
    """Yield the calls for one group's parameters, in equal buckets.

    By default there is one bucket per layer or table. Frozen weights move only if ZeRO gathers
    weights.
    """
    buckets = setup.buckets or units
    gathered = frozen_bytes if setup.gathers else 0
    weights = trained * setup.recipe.weight_bytes + gathered

    def call(purpose: str, collective: str, phase: str, whole: float) -> Iterator[Traffic]:
        if whole:
            yield Traffic(
                axis=axis,
                purpose=purpose,
                collective=collective,
                phase=phase,
                calls=buckets,
                buffer_bytes=whole / buckets,
                size=size,
            )

    gradients = trained * setup.recipe.gradient_bytes
    if setup.zero_stage == 0:
        yield from call(GRADIENTS, "all-reduce", END, gradients)
        return
    yield from call(GRADIENTS, "reduce-scatter", BACKWARD if setup.scatters else END, gradients)
    if not setup.gathers:
        yield from call(WEIGHTS, "all-gather", START, weights)
        return
    yield from call(WEIGHTS, "all-gather", FORWARD, weights)
    yield from call(WEIGHTS, "all-gather", BACKWARD, weights)


def _copies_table(setup: TrainingSetup, stage: int) -> bool:
    """Whether this stage holds one of two copies of a table that is tied or used by MTP modules."""
    share = virtual_stage_shares(setup)[stage]
    twice = setup.shape.tied_embeddings or setup.mtp_layers
    frozen = setup.lora_rank is not None
    if frozen or not twice or not (share.embedding or share.head):
        return False
    rank = setup.placement.rank_of_stage[stage]
    ends = shares_of_rank(setup, rank)
    return not (any(end.embedding for end in ends) and any(end.head for end in ends))
