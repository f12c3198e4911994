"""Which gradients exist at the peak of a step, compared with recordings on an H100."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from figgen import catalog
from figgen.__main__ import main
from figgen.models.machine.layout import layout
from figgen.models.memory.memory import RankMemory, memory
from figgen.models.memory.rank_bytes import FRAGMENTED
from figgen.models.setup.framework_memory import FRAMEWORKS
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.recipes import RECIPES
from figgen.scenarios.runs.device_run import measured_steps
from figgen.scenarios.runs.record import described_run
from figgen.scenarios.runs.setup import run_setup
from tests.models.jobs import job

RECORDED = Path(__file__).parents[1] / "oracles" / "profiles" / "llama1b-amp-eager.pickle.gz"
FREED = [name for name, one in FRAMEWORKS.items() if one.frees_gradients]


def recorded_step(name: str) -> tuple[dict[str, Any], TrainingSetup]:
    """Return a measured step of plain PyTorch on one GPU, and its setup."""
    (record,) = (one for one in measured_steps() if one["id"] == name)
    said = {"framework": "PyTorch", "habits": "hf-trainer", "state_bytes": [2, 2, 4]}
    return record, run_setup(described_run({**record, **said}))


def first_rank(setup: TrainingSetup, **options: Any) -> RankMemory:
    return memory(replace(setup, **options), reserve_bytes=0).ranks[0]


def test_a_step_of_one_backward_has_no_gradients_at_the_peak_of_its_forward(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The snapshot of that step has almost no gradients at its peak, and neither does the
    prediction."""
    assert main(["memory-snapshot", str(RECORDED), "--json"]) == 0
    kinds = json.loads(capsys.readouterr().out)["peak"]["kinds"]
    parameters = catalog.model("llama-3-1b").parameters
    assert kinds.get("gradients", 0) < 0.05 * 4 * parameters
    _, setup = recorded_step("llama1b-amp-eager")
    assert first_rank(setup).bytes_of("gradients") == 0
    assert first_rank(setup).bytes_of("activations") > 0


def test_where_layers_are_recomputed_the_end_of_backward_needs_most() -> None:
    """Llama 3 8B all in BF16: all gradients, and the activations of only one layer."""
    record, setup = recorded_step("llama8b-bf16-full")
    found = first_rank(setup)
    assert found.bytes_of("gradients") == 2 * found.parameters
    assert found.bytes_of("activations") == 0
    assert found.allocated_bytes == pytest.approx(record["peak_allocated_bytes"], rel=0.02)
    assert found.reserved_bytes == pytest.approx(record["peak_reserved_bytes"], rel=0.03)
    # With the gradients of a step before there would be a tenth too much.
    kept = first_rank(setup, microbatches=2)
    assert kept.allocated_bytes > 1.1 * record["peak_allocated_bytes"]


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_gradients_are_there_from_the_second_microbatch_on_or_always(name: str) -> None:
    setup = job("llama-3-8b", microbatches=1, sequence=8192, zero_stage=3, framework=name)
    one, two = first_rank(setup), first_rank(setup, microbatches=2)
    assert two.held.accumulated == 4 * two.parameters / 8
    assert one.held.accumulated == (0 if name in FREED else two.held.accumulated)
    assert one.allocated_bytes == pytest.approx(
        two.allocated_bytes - two.held.accumulated * (name in FREED)
    )
    beyond = one.held.allocator - two.held.allocator
    assert beyond == pytest.approx(FRAGMENTED * two.held.accumulated * (name in FREED))
    piped = replace(setup, parallel=layout(nodes=1, gpus_per_node=8, pp=2), zero_stage=1)
    assert memory(piped).ranks[0].held.accumulated == 4 * memory(piped).ranks[0].parameters


def test_a_norm_written_out_keeps_its_input_in_fp32_and_its_product() -> None:
    """Eager layers of transformers: 16 bytes per hidden element and token, next to 8 of
    the others."""
    shape = catalog.model("llama-3-8b").shape
    setup = job(shape, gpus_per_node=1, microbatches=2, sequence=1024)
    kept = [
        memory(replace(setup, framework=name)).ranks[0].held.activations / 1024
        for name in ("pytorch-compiled", "pytorch")
    ]
    h, f, q, kv = shape.hidden, shape.ffn_hidden, 4096, 1024
    ends = [2 * h + 2 * h + 8 + size * shape.vocab for size in (2, 4)]
    layers = [(found - end) / shape.layers for found, end in zip(kept, ends, strict=True)]
    assert layers == [8 * h + 4 * q + 4 * kv + 6 * f, 16 * h + 4 * q + 4 * kv + 8 * f]


def test_the_update_needs_most_where_gradients_are_widened_and_little_is_kept() -> None:
    """Gradients in BF16 next to FP32 copies of a rank's share: Megatron-LM at d98e8a64,
    core/optimizer/distrib_optimizer.py, `_copy_model_grads_to_main_grads`."""
    setup = job(
        "llama-3-8b",
        microbatches=2,
        sequence=1024,
        recompute="full",
        recipe=replace(RECIPES["zero16"], update_bytes=4),
        zero_stage=0,
    )
    found, without = first_rank(setup), first_rank(setup, recipe=RECIPES["zero16"])
    assert found.allocated_bytes == (2 + 2 + 12 + 4) * found.parameters
    assert found.bytes_of("activations") == found.bytes_of("communication") == 0
    assert without.bytes_of("activations") > 0
    # What is kept for backward needs more than the copies.
    kept = first_rank(setup, recompute="none", sequence=32768)
    assert kept.held.update == 0 < kept.bytes_of("activations")


def test_an_optimizer_in_backward_leaves_one_gradient() -> None:
    """It is the largest one, of the table: torchtune's `optimizer_in_bwd`."""
    setup = job(
        "llama-3-8b",
        gpus_per_node=1,
        microbatches=1,
        sequence=2048,
        recipe=replace(RECIPES["bf16_8"], gradient_bytes=0),
        framework="torchtune",
    )
    assert first_rank(setup).bytes_of("gradients") == 2 * 128256 * 4096


@pytest.mark.parametrize(
    ("framework", "recipe", "microbatches"),
    [("megatron", "mcore18", 1), ("torchtitan", "fsdp16", 1), ("pytorch", "bf16_8", 3)],
)
@pytest.mark.parametrize("update_bytes", [0, 4, 64])
def test_the_peak_is_never_below_that_without_an_update(
    framework: str, recipe: str, microbatches: int, update_bytes: float
) -> None:
    setup = job(
        "llama-3-8b",
        microbatches=microbatches,
        sequence=4096,
        zero_stage=0,
        recipe=RECIPES[recipe],
        framework=framework,
    )
    plain = first_rank(setup)
    found = first_rank(setup, recipe=replace(RECIPES[recipe], update_bytes=update_bytes))
    updating = plain.parameters * (RECIPES[recipe].total_bytes + update_bytes) + found.held.buckets
    assert found.allocated_bytes == pytest.approx(max(plain.allocated_bytes, updating))
