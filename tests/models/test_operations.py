"""Lists of operations compared with what PyTorch dispatched, saved and traced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from figgen.models.operations.device_job import DeviceJob
from figgen.models.operations.device_step import layer_operations, step_operations
from figgen.models.operations.operation import (
    ATTENTION,
    BACKWARD,
    FORWARD,
    GROUPED,
    MATMUL,
    WEIGHT,
    Operation,
    of_phase,
    total_kept_bytes,
    total_kernels,
)
from figgen.models.operations.peak_memory import device_memory
from figgen.models.operations.stack import STACKS
from figgen.models.shape.model_shape import ExpertShape, ModelShape
from tests.models.jobs import sized

ORACLES = Path(__file__).parents[1] / "oracles"
RECORDED = json.loads((ORACLES / "transformers_operations.json").read_text())["models"]
TRACE = json.loads((ORACLES / "trace_tinyllama.json").read_text())
NAMES = [f"{one['class']}-{'autocast' if one['autocast'] else 'bf16'}" for one in RECORDED]
DENSE = [one for one in RECORDED if not one["experts"]]
PHASES = {FORWARD: (FORWARD,), BACKWARD: (BACKWARD, WEIGHT)}
DENSE_NAMES = [name for name, one in zip(NAMES, RECORDED, strict=True) if not one["experts"]]


def total_flops(operations: tuple[Operation, ...]) -> float:
    """Return FLOPs of operations, each counted as often as it runs."""
    return sum(one.flops * one.count for one in operations)


def total_moved_bytes(operations: tuple[Operation, ...]) -> float:
    """Return bytes that the passes of operations read and write."""
    return sum(one.moved_bytes * one.count for one in operations)


def experts_of(one: dict[str, Any]) -> ExpertShape | None:
    """Return the experts of a recorded model."""
    if not one["experts"]:
        return None
    count, top_k = one["experts"]
    return ExpertShape(count=count, top_k=top_k, ffn_hidden=one["ffn_hidden"])


def recorded_job(one: dict[str, Any]) -> DeviceJob:
    """Return the recorded job: 2 sequences of 64 tokens."""
    gpt2 = one["class"] == "gpt2"
    shape = ModelShape(
        layers=2,
        hidden=one["hidden"],
        heads=one["heads"],
        kv_heads=one["kv_heads"],
        head_dim=one["head_dim"],
        ffn_hidden=one["ffn_hidden"],
        vocab=one["vocab"],
        sequence=512,
        ffn="gelu" if gpt2 else "swiglu",
        norm="layernorm" if gpt2 else "rmsnorm",
        bias=gpt2,
        learned_positions=gpt2,
        tied_embeddings=gpt2,
        qk_norm="per-head" if one["class"] == "qwen3" else "none",
        experts=experts_of(one),
    )
    stack = STACKS[False, one["autocast"]]
    return DeviceJob(shape=shape, stack=stack, microbatch=2, microbatches=1, sequence=64)


@pytest.mark.parametrize("one", RECORDED, ids=NAMES)
def test_a_layer_keeps_the_bytes_that_autograd_saved(one: dict[str, Any]) -> None:
    layer = layer_operations(recorded_job(one), experts=bool(one["experts"]))
    casts = sum(operation.cached_bytes for operation in layer)
    ours = total_kept_bytes(layer) + casts
    # Beside experts autocast also caches the cast of the router and the offsets of experts.
    tolerance = 1e-3 if one["experts"] else 0
    assert ours == pytest.approx(one["layer"]["kept_bytes"], rel=tolerance)


@pytest.mark.parametrize("one", DENSE, ids=DENSE_NAMES)
@pytest.mark.parametrize("phase", PHASES)
def test_a_dense_layer_makes_the_passes_that_were_dispatched(
    one: dict[str, Any], phase: str
) -> None:
    layer = of_phase(layer_operations(recorded_job(one), experts=False), *PHASES[phase])
    products = [operation for operation in layer if operation.kind == MATMUL]
    others = [operation for operation in layer if operation.kind not in (MATMUL, ATTENTION)]
    passes = sum(1 if operation.moved_bytes else operation.kernels for operation in others)
    # A layer norm's backward is one operator and two kernels.
    norms = 2 if one["class"] == "gpt2" and phase == BACKWARD else 0
    assert len(products) == one["layer"][f"{phase}_matmuls"]
    assert total_flops(tuple(products)) == one["layer"][f"{phase}_flops"]
    assert passes - norms == one["layer"][f"{phase}_passes"]
    moved = total_moved_bytes(layer)
    # Vectors such as weights of norms, which the lists leave out, are up to a per cent here.
    assert moved == pytest.approx(one["layer"][f"{phase}_bytes"], rel=0.03 if norms else 0.01)


def test_experts_in_bf16_move_the_bytes_that_were_dispatched() -> None:
    one = next(one for one in RECORDED if one["experts"] and not one["autocast"])
    layer = layer_operations(recorded_job(one), experts=True)
    for phase in PHASES:
        moved = total_moved_bytes(of_phase(layer, *PHASES[phase]))
        assert moved == pytest.approx(one["layer"][f"{phase}_bytes"], rel=0.04)


def test_matmuls_of_experts_cost_six_flops_a_weight_and_routed_token() -> None:
    one = next(one for one in RECORDED if one["experts"])
    job = recorded_job(one)
    layer = layer_operations(job, experts=True)
    grouped = tuple(operation for operation in layer if operation.kind == GROUPED)
    weights = 3 * one["hidden"] * one["ffn_hidden"]
    assert total_flops(grouped) == 6 * weights * job.tokens * one["experts"][1]


def tinyllama() -> DeviceJob:
    """Return the job of the trace."""
    shape = sized(22, 2048, 32, 4, 64, 5632, 32000, 2048)
    stack = STACKS[False, True]
    return DeviceJob(shape=shape, stack=stack, microbatch=4, microbatches=1, sequence=2048)


def test_a_step_launches_the_kernels_of_the_trace() -> None:
    traced = sum(TRACE["kernels"].values())
    assert total_kernels(step_operations(tinyllama())) == pytest.approx(traced, rel=0.04)


def test_gelu_new_in_eager_autocast_moves_194_bytes_an_element() -> None:
    """Counted from the operators of `NewGELUActivation`, in step-evidence.md."""
    one = next(one for one in RECORDED if one["class"] == "gpt2")
    job = recorded_job({**one, "autocast": True})
    names = ("half", "cube", "scale", "sum", "tanh", "plus one", "product", "square", "triple")
    layer = layer_operations(job, experts=False)
    inner = [operation for operation in layer if operation.name in (*names, "to FP32", "to BF16")]
    each = sum(operation.moved_bytes for operation in inner) / (job.tokens * one["ffn_hidden"])
    assert each == 194


def test_recomputing_adds_a_forward_and_keeps_inputs_only() -> None:
    job = tinyllama()
    again = DeviceJob(
        shape=job.shape,
        stack=job.stack,
        microbatch=4,
        microbatches=1,
        sequence=2048,
        recomputed=True,
    )
    layer = of_phase(layer_operations(job, experts=False), FORWARD)
    more = total_flops(step_operations(again)) - total_flops(step_operations(job))
    assert more == pytest.approx(22 * total_flops(layer))
    inputs = 22 * 4 * 4 * 2048 * 2048
    kept = device_memory(job).forward_bytes - device_memory(again).forward_bytes
    layers = 22 * sum(one.kept_bytes + one.cached_bytes for one in layer)
    assert kept == pytest.approx(layers - inputs)
