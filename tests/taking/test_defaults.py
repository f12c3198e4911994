"""What a text leaves open gets its trainer's default or a plain one, and is listed."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from figgen.errors import InputError
from figgen.models.pipeline.schedules import USUAL_CHUNKS
from figgen.models.setup.training_setup import TrainingSetup
from figgen.scenarios.options.resolve import SIZES, TrainingStep, training_step
from figgen.scenarios.options.schema import OPTIONS
from figgen.scenarios.taking.left_open import NO_JOBS
from figgen.scenarios.taking.options import options_of
from tests.taking.jobs import CASES, ORACLES, take

TRAINERS = json.loads((ORACLES / "trainer_defaults.json").read_text("utf-8"))


def test_what_nobody_said_is_assumed_and_not_taken() -> None:
    job = take("torchrun --nproc_per_node 8 x.py --tensor-model-parallel-size 2")
    assert job.assumed["nodes"] == 1
    assert "nodes" not in job.taken
    assert (
        take("torchrun --nnodes 2 x.py --tensor-model-parallel-size 1").assumed["gpus_per_node"]
        == 1
    )
    layout_only = take("[parallelism]\ntensor_parallel_degree = 4\n")
    assert "nodes" not in layout_only.assumed
    assert layout_only.missing == ["model", "nodes"]
    assert {"zero_stage", "recompute"} <= set(layout_only.usual), "the step's, not torchtitan's"


ALWAYS = (
    "tp", "pp", "cp", "ep", "microbatch_size", "recompute", "dtype", "recipe", "zero_stage",
    "lora_rank", "offloaded_optimizer", "offloaded_activations", "schedule", "chunks",
    "activations", "accelerator", "nic", "software", "flash_attention", "dropout", "gpus_per_node",
)  # fmt: skip
"""Options that affect time or memory of every job."""


def computed_with(step: TrainingStep) -> dict[str, object]:
    """Return what a step is computed with, by the names of its options."""
    setup = step.setup
    values: dict[str, object] = {f.name: getattr(setup, f.name) for f in fields(TrainingSetup)}
    values |= {name: getattr(setup.parallel, name) for name in SIZES}
    return values | {
        "nodes": setup.parallel.world_size // setup.parallel.gpus_per_node,
        "recipe": setup.recipe.name,
        "lora_rank": setup.lora_rank or "none",
        "chunks": setup.chunks or USUAL_CHUNKS[setup.schedule],
        "global_batch": setup.microbatches * setup.microbatch_size * setup.parallel.dp,
        "recompute": str(setup.recompute),
        "dtype": step.dtype,
        "accelerator": step.accelerator.name,
        "nic": step.nic.name,
        "software": step.software,
    }


# What the text leaves out and no default gives, so that the step can be computed.
GIVEN: dict[str, int | str | bool] = {
    "model": "llama-3-8b", "nodes": 16, "gpus_per_node": 8, "vocab": 32_000, "heads": 32,
    "hidden": 4096,
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_what_decides_time_or_memory_is_listed_with_the_value_that_the_step_takes(
    case: dict[str, Any],
) -> None:
    job = take(case["text"])
    if job.asked or job.dialect in NO_JOBS:
        assert not job.usual
        return
    listed = {**job.assumed, **job.taken}
    assert set(job.because) == set(job.assumed)
    assert set(ALWAYS) <= listed.keys() | set(job.missing)
    assert {"model", "layers"} & listed.keys() or "model" in job.missing
    assert {"global_batch", "microbatches"} & listed.keys()
    assert ("nodes" in listed) != ("nodes" in job.missing)
    chosen = options_of(
        replace(job, taken={**{name: GIVEN[name] for name in job.missing}, **job.taken})
    )
    try:
        step = training_step(**chosen)
    except InputError:
        return  # the file doesn't fit together, which the step says
    found = computed_with(step)
    for name in listed.keys() & found.keys():
        if name in ("microbatches", "shape") or name in job.missing:
            continue
        said = listed[name]
        value = OPTIONS[name].read(said) if isinstance(said, str) and said != "none" else said
        assert found[name] == value, name


@pytest.mark.parametrize("trainer", TRAINERS["trainers"], ids=lambda trainer: trainer["name"])
def test_a_trainers_default_is_what_its_own_code_declares(trainer: dict[str, str]) -> None:
    silent, said = take(trainer["file"]), take(trainer["file"] + trainer["defaults"])
    assert {**silent.assumed, **silent.taken} == {**said.assumed, **said.taken}
    spelled = said.taken.keys() - silent.taken.keys()
    assert spelled
    assert {silent.because[name] for name in spelled} == {f"{silent.dialect}'s default"}


def test_a_preset_decides_what_a_text_leaves_open() -> None:
    text = "torchrun --nnodes 2 --nproc-per-node 8 x.py --tensor-model-parallel-size 2"
    found = options_of(take(text))
    assert found["tp"] == 2
    assert not {"zero_stage", "dtype", "nic", "recompute"} & found.keys()
    based = take("figgen step --preset llama-3-70b-on-64-h100 --tp 4")
    assert not based.usual
