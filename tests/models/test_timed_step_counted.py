"""The closed form of a step against kernels, messages and experts counted one by one."""

from __future__ import annotations

import random
from dataclasses import fields

import pytest

from figgen.models.step.attained import Attained
from figgen.models.step.job import Job
from figgen.models.step.layer_time import dense_layer, expert_layer, longer
from figgen.models.step.timed_step import timed_step
from tests.models import ledger

FLAGS = (
    "repeats_layer", "repeats_core", "quantized", "overlapped", "per_tensor", "offload_overlapped",
    "gathers_keys", "trades_heads", "keys_in_turns", "in_order",
)  # fmt: skip
LIMITED = {"expert_groups": 4, "reached_groups": 2}
RATES = [field.name for field in fields(Attained) if field.name.endswith("_per_s")]


def drawn_constants(draw: random.Random) -> Attained:
    """Chips that nobody built: all parts of a step take times of one order."""
    found = {field.name: 2 ** draw.uniform(-2, 2) for field in fields(Attained)}
    does = {"dispatcher": 3, "expert_overlap": 2, "cuda_graphs": 3}
    return Attained(**found | {name: draw.randint(1, most) for name, most in does.items()})


def drawn_job(draw: random.Random) -> Job:
    sizes = {axis: draw.choice((1, 1, 2, 4)) for axis in ("cp", "pp")}
    sizes["dp"] = draw.choice((1, 2, 3, 96))
    ep, etp = draw.choice((1, 2, 4, 8)), draw.choice((1, 2))
    tp = draw.choice((1, 2, 4, 8, 16))
    # The ranks of a stage hold all experts some times over, or one of a few times fewer.
    while (parts := tp * sizes["cp"] * sizes["dp"]) % (ep * etp) and (ep * etp) % parts:
        sizes["dp"] *= 2
    gpus = tp * sizes["cp"] * sizes["dp"] * sizes["pp"]
    widths = {field.name: draw.randint(1, 9) for field in fields(Job)}
    layers = draw.randint(2, 9)
    return Job(
        **widths
        | {flag: draw.randint(0, 1) for flag in FLAGS}
        | {
            "layers": layers,
            "expert_layers": draw.randint(0, layers),
            "top_k": draw.randint(0, 3),
            "ffn_matrices": draw.randint(2, 3),
            "cp": sizes["cp"],
            "pp": sizes["pp"],
            "tp": tp,
            "ep": ep,
            "etp": etp,
            "gpus": gpus,
            "gpus_per_node": draw.choice((2, 4, 8)),
            "fullest_layers": draw.randint(1, layers),
            "head_layers": draw.randint(0, layers),
            "chunks": draw.randint(1, 3),
            "offloaded": draw.choice((0, 0.5, 1)),
            "dispatcher": draw.randint(0, 3),
            "expert_overlap": draw.randint(0, 2),
            "cuda_graphs": draw.randint(0, 3),
            "expert_skew": draw.choice((1, 1.5, 3)),
            **draw.choice(({"expert_groups": 1, "reached_groups": 1}, LIMITED)),
            "windowed_share": draw.choice((0, 0.25, 0.5)),
            "mixer_share": draw.choice((0, 0.25, 0.5)),
            "away_dense": draw.choice((0, 0.5, 8)),
            "away_experts": draw.choice((0, 0.5, 8)),
            "keys_apart": draw.choice((0, 0.1, 0.2)),
            **drawn_sharding(draw),
            **drawn_adapters(draw),
        }
    )


def drawn_adapters(draw: random.Random) -> dict[str, float]:
    """None for half of the jobs."""
    rank = draw.choice((0, 0, 4, 16))
    names = ("tuned_dense", "tuned_experts", "tuned_routed", "adapters", "expert_adapters")
    beside = {name: draw.randint(1, 9) * (rank > 0) for name in names}
    return {**beside, "lora_rank": rank, "frozen_bytes": draw.choice((2, 1, 0.5))}


def drawn_sharding(draw: random.Random) -> dict[str, int]:
    zero, whole_stage = draw.randint(0, 3), draw.random() < 0.3
    gathers, scatters = 2 * (zero == 3 and not whole_stage), int(zero > 1 and not whole_stage)
    return {"zero_stage": zero, "gathers": gathers, "scatters": scatters}


def cases(seed: int) -> list[tuple[Job, Attained]]:
    draw = random.Random(seed)
    return [(drawn_job(draw), drawn_constants(draw)) for _ in range(25)]


EIGHT = pytest.mark.parametrize("seed", range(2026, 2034))


@EIGHT
def test_layers_take_what_their_kernels_and_messages_take(seed: int) -> None:
    for job, at in cases(seed):
        for found, experts in ((dense_layer(job, at), False), (expert_layer(job, at), True)):
            for part, seconds in ledger.layer(job, at, experts=experts).items():
                assert getattr(found, part) == pytest.approx(seconds, rel=1e-9), (part, job)


@EIGHT
def test_steps_take_what_their_layers_and_messages_take(seed: int) -> None:
    for job, at in cases(seed):
        found = timed_step(job, at)
        parts = ledger.step_parts(job, at)
        for part, seconds in parts.items():
            # What sharding adds is a difference of the times of microbatches.
            assert getattr(found, part) == pytest.approx(
                seconds, rel=1e-9, abs=1e-12 * parts["work_s"]
            ), (part, job)
        assert found.total_s == pytest.approx(sum(parts.values()) - parts["head_s"])


def test_two_times_meet_in_their_sixth_norm() -> None:
    for one, other in ((1.0, 1.0), (3.0, 2.0), (2.0, 3.0), (5.0, 0.0)):
        assert longer(one, other) == pytest.approx(ledger.meet(one, other))
    assert longer(0.0, 0.0) == 0
