"""The closed form of a step compared with kernels, messages and experts counted one by one."""

from __future__ import annotations

import random
from dataclasses import fields

import pytest

from figgen.models.pipeline.filling import PipelineIdle
from figgen.models.pipeline.pass_lines import Passes
from figgen.models.shape.model_shape import (
    ExpertShape,
    LatentAttention,
    ModelShape,
    StateSpace,
)
from figgen.models.step.attained import Attained
from figgen.models.step.job import Job, shape_numbers
from figgen.models.step.layer_time import dense_layer, expert_layer, longer
from figgen.models.step.timed_step import timed_step
from tests.models import ledger
from tests.models.ledger_kernels import ShapedJob

FLAGS = (
    "repeats_layer", "repeats_core", "quantized", "overlapped", "per_tensor", "gathers_alone",
    "offload_overlapped",
    "gathers_keys", "trades_heads", "trades_in_node", "keys_in_turns", "in_order",
)  # fmt: skip
LIMITED = {"expert_groups": 4, "reached_groups": 2}
RATES = [field.name for field in fields(Attained) if field.name.endswith("_per_s")]


def drawn_constants(draw: random.Random) -> Attained:
    """Return made-up chips on which all parts of a step take times of the same order."""
    found = {field.name: 2 ** draw.uniform(-2, 2) for field in fields(Attained)}
    does = {"dispatcher": 3, "expert_overlap": 2, "cuda_graphs": 3}
    return Attained(**found | {name: draw.randint(1, most) for name, most in does.items()})


def drawn_shape(draw: random.Random) -> ModelShape:
    """Return a model with experts, all widths of a few channels, and any kind of attention."""

    def few() -> int:
        return draw.randint(1, 9)

    latent, mixers, heads = None, None, few()
    kind = draw.choice(("grouped", "latent", "mixers"))
    if kind == "latent":
        latent = LatentAttention(
            query_rank=draw.choice((0, few())), kv_rank=few(), nope_head_dim=few(),
            rope_head_dim=few(), value_head_dim=few(),
        )  # fmt: skip
    if kind == "mixers":
        mixers = StateSpace(
            mixer_heads=few(), mixer_head_dim=few(), state=few(), attention_every=draw.randint(0, 3)
        )
    return ModelShape(
        layers=draw.randint(2, 9),
        hidden=few(),
        heads=heads * draw.randint(1, 3),
        kv_heads=heads,
        head_dim=2 * few(),
        ffn_hidden=few(),
        vocab=few(),
        sequence=few(),
        ffn=draw.choice(("gelu", "swiglu")),
        latent=latent,
        state_space=mixers,
        experts=ExpertShape(
            count=draw.randint(3, 9),
            top_k=draw.randint(1, 3),
            ffn_hidden=few(),
            shared=draw.randint(0, 2),
        ),
    )


def drawn_job(draw: random.Random) -> ShapedJob:
    sizes = {axis: draw.choice((1, 1, 2, 4)) for axis in ("cp", "pp")}
    sizes["dp"] = draw.choice((1, 2, 3, 96))
    ep, etp = draw.choice((1, 2, 4, 8)), draw.choice((1, 2))
    tp = draw.choice((1, 2, 4, 8, 16))
    # The ranks of a stage hold all experts some times over, or one of a few times fewer.
    while (parts := tp * sizes["cp"] * sizes["dp"]) % (ep * etp) and (ep * etp) % parts:
        sizes["dp"] *= 2
    gpus = tp * sizes["cp"] * sizes["dp"] * sizes["pp"]
    shape = drawn_shape(draw)
    widths = {field.name: draw.randint(1, 9) for field in fields(Job)}
    layers = shape.layers
    return ShapedJob(
        shape=shape,
        **widths
        | shape_numbers(shape, draw.randint(0, 2))
        | {flag: draw.randint(0, 1) for flag in FLAGS}
        | {
            "expert_layers": draw.randint(0, layers),
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
            "idle": drawn_idle(draw),
            "offloaded": draw.choice((0, 0.5, 1)),
            "dispatcher": draw.randint(0, 3),
            "expert_overlap": draw.randint(0, 2),
            "cuda_graphs": draw.randint(0, 3),
            "expert_skew": draw.choice((1, 1.5, 3)),
            **draw.choice(({"expert_groups": 1, "reached_groups": 1}, LIMITED)),
            "window": draw.randint(1, 9),
            "windowed_share": 0 if shape.state_space else draw.choice((0, 0.25, 0.5)),
            "keys_apart": 0 if shape.state_space else draw.choice((0, 0.1, 0.2)),
            "away_dense": draw.choice((0, 0.5, 8)),
            "away_experts": draw.choice((0, 0.5, 8)),
            **drawn_sharding(draw),
            **drawn_adapters(draw),
        },
    )


def drawn_idle(draw: random.Random) -> PipelineIdle:
    """Return random chains, by which a stage of half of the jobs also idles in every microbatch."""

    def lines(low: float) -> tuple[Passes, ...]:
        return tuple(
            Passes(**{name: draw.uniform(low, 3) for name in ("forward", "inputs", "weights")})
            for _ in range(draw.randint(1, 4))
        )

    return PipelineIdle(filling=lines(-1), stalling=lines(-6), held=draw.randint(1, 9))


def drawn_adapters(draw: random.Random) -> dict[str, float]:
    """Return adapters for half of the jobs."""
    rank = draw.choice((0, 0, 4, 16))
    names = ("tuned_dense", "tuned_experts", "tuned_routed", "adapters", "expert_adapters")
    beside = {name: draw.randint(1, 9) * (rank > 0) for name in names}
    return {**beside, "lora_rank": rank, "frozen_bytes": draw.choice((2, 1, 0.5))}


def drawn_sharding(draw: random.Random) -> dict[str, int]:
    zero, whole_stage = draw.randint(0, 3), draw.random() < 0.3
    gathers, scatters = 2 * (zero == 3 and not whole_stage), int(zero > 1 and not whole_stage)
    return {"zero_stage": zero, "gathers": gathers, "scatters": scatters}


def cases(seed: int) -> list[tuple[ShapedJob, Attained]]:
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
