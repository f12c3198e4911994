"""The planner's bytes compared with the memory model, for random layouts.

`tests/scenarios/test_planner_space.py` tries all layouts of a few jobs; these are single layouts of
many jobs.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from figgen.errors import InputError
from figgen.models.machine.layout import layout
from figgen.models.planner.plan_space import CHUNKS
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.recipes import RECIPES
from tests.scenarios.test_planner_space import (
    SMALL_DENSE,
    SMALL_EXPERTS,
    SMALL_HYBRID,
    planned,
    reason_of,
    small_job,
    total_of,
    up_to_each_reason,
)

AXES = ("tp", "cp", "pp", "ep", "etp")
RECOMPUTED = ("none", "full", "selective", "layernorm,moe_act", "mlp")


def drawn(draw: random.Random) -> tuple[TrainingSetup, dict[str, object]]:
    """Return a step of a small model, and options with which a search lists only this step."""
    while True:
        shape = draw.choice((SMALL_DENSE, SMALL_EXPERTS, SMALL_HYBRID))
        shape = replace(
            shape,
            layers=draw.randint(2, 9),
            vocab=draw.choice((16, 1000)),
            ffn_hidden=draw.choice((16, 96, 960)),
            tied_embeddings=draw.random() < 0.5,
        )
        gpus, order = draw.choice((2, 4, 8)), draw.choice(("megatron", "tp-ep-dp-pp"))
        axes = {axis: draw.choice((1, 1, 2, 4)) for axis in AXES} | {"pp": draw.choice((1, 2, 4))}
        schedule = draw.choice(tuple(CHUNKS)) if axes["pp"] > 1 else "1f1b"
        options = {
            "mtp_layers": draw.choice((0, 0, 1)),
            "sequence_parallel": draw.random() < 0.7,
            "flash_attention": draw.random() < 0.7,
            "double_buffering": draw.random() < 0.7,
            "framework": draw.choice(("megatron", "torchtitan")),
            "recipe": draw.choice(tuple(RECIPES.values())),
        }
        chunks = draw.choice(CHUNKS[schedule][:3])
        try:
            setup = TrainingSetup(
                shape=shape,
                parallel=layout(nodes=1, gpus_per_node=gpus, order=order, **axes),
                microbatches=draw.randint(1, 12),
                sequence=64,
                schedule=schedule,
                chunks=chunks,
                microbatch_size=draw.choice((1, 2)),
                zero_stage=draw.randint(0, 3),
                recompute=draw.choice(RECOMPUTED),
                **options,  # type: ignore[arg-type]
            )
            setup.order  # noqa: B018
        except InputError:
            continue
        fixed = axes | {"chunks": chunks, "microbatch_size": setup.microbatch_size}
        told = {"schedules": (schedule,), "recompute": (setup.recompute,), "order": order}
        return setup, options | told | {"fixed": fixed | {"zero_stage": setup.zero_stage}}


@pytest.mark.parametrize("seed", range(8))
def test_a_layout_takes_what_the_ledger_says_and_is_refused_for_the_first_part_too_much(
    seed: int,
) -> None:
    draw = random.Random(seed)
    for _ in range(12):
        setup, told = drawn(draw)
        job = small_job(setup.shape, setup.parallel.world_size, **told)  # type: ignore[arg-type]
        sums = up_to_each_reason(setup, job)
        capacity = float(draw.choice(sums)) * draw.choice((0.999, 1.001))
        job = replace(job, global_batch=setup.global_batch, capacity_bytes=capacity)
        (total,) = planned(job, total_of).values()
        assert total == pytest.approx(sums[-1], rel=1e-12), setup
        (first,) = planned(job, reason_of).values()
        assert first == np.sum(sums <= capacity), setup
