"""Every option of a trainer is read, said to matter, or known to change nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from figgen.scenarios.taking.job import TakenJob
from figgen.scenarios.taking.options import job_in

ORACLES = Path(__file__).parents[1] / "oracles"
TRAINERS = json.loads((ORACLES / "trainer_options.json").read_text("utf-8"))["trainers"]

HUGGING_FACE_MODEL = "meta-llama/Llama-3.1-8B"
HUGGING_FACE = {"model_name_or_path": HUGGING_FACE_MODEL, "per_device_train_batch_size": "1"}
FILES: dict[str, tuple[str, dict[str, str]]] = {
    "transformers": ("", HUGGING_FACE),
    "trl": ("", HUGGING_FACE),
    "peft": ("peft_config.", HUGGING_FACE),
    "accelerate": ("", {"num_machines": "1", "mixed_precision": "bf16"}),
    "deepspeed": ("", {"zero_optimization.stage": "2", "train_micro_batch_size_per_gpu": "1"}),
    "axolotl": ("", {"base_model": "NousResearch/Llama-2-7b-hf", "micro_batch_size": "1"}),
    "llama-factory": ("", HUGGING_FACE | {"finetuning_type": "full"}),
    "llm-foundry": ("", {"global_train_batch_size": "8", "model.d_model": "512"}),
    "maxtext": ("", {"per_device_batch_size": "1", "model_name": "llama2-7b"}),
    "prime-rl": ("trainer.model.", {"trainer.model.attn": "auto", "orchestrator.batch_size": "8"}),
    "torchtune": ("", {"model._component_": "torchtune.models.llama2.llama2_7b"}),
    "torchtitan": ("", {"model.flavor": "8B", "parallelism.tensor_parallel_degree": "1"}),
    "litgpt": (
        "",
        {"train.micro_batch_size": "1", "out_dir": "out", "model_name": "Llama-2-7b-hf"},
    ),
    "openrlhf": ("", {"ds.zero_stage": "2", "model.model_name_or_path": HUGGING_FACE_MODEL}),
    "fairseq2": ("", {"dataset.max_num_tokens": "4096", "model.arch": "llama3_8b"}),
    "open-instruct": ("", HUGGING_FACE),
    "olmo-core": ("", {"rank_microbatch_size": "4096", "max_sequence_length": "2048"}),
}
"""Where a trainer's options stand in a file, and settings that tell whose file it is."""

NOISE = 0.38
"""Largest share of harmless options that may be said to matter, most of them rare."""


def with_option(trainer: str, name: str, value: str) -> TakenJob:
    prefix, base = FILES[trainer]
    lines = [f"{key}: {said}" for key, said in base.items() if key != prefix + name]
    return job_in("\n".join([*lines, f"{prefix}{name}: {value}"]), {})


def is_silent(trainer: str, name: str, value: str) -> bool:
    job = with_option(trainer, name, value)
    spellings = {FILES[trainer][0] + name, name}  # a reader may leave a section out
    return bool(spellings & set(job.left)) and not spellings & set(job.unsure)


@pytest.mark.parametrize("trainer", TRAINERS)
def test_every_option_that_matters_is_read_or_listed(trainer: str) -> None:
    names = TRAINERS[trainer]["matters"].split()
    values = ("true", "3", "false")  # some are switches that matter only if they are off
    silent = [one for one in names if all(is_silent(trainer, one, value) for value in values)]
    assert silent == []


def test_most_options_that_change_nothing_are_not_said_to_matter() -> None:
    flagged, count = 0, 0
    for trainer, options in TRAINERS.items():
        prefix, base = FILES[trainer]
        plain = job_in("\n".join(f"{key}: {said}" for key, said in base.items()), {})
        for name in options["harmless"].split():
            if prefix + name in base:
                continue
            job = with_option(trainer, name, "3")
            assert job.taken == plain.taken, (trainer, name)
            flagged += bool({prefix + name, name} & set(job.unsure))
            count += 1
    assert flagged / count <= NOISE


def test_every_option_is_sorted_once() -> None:
    count = 0
    for trainer, options in TRAINERS.items():
        matters, harmless = options["matters"].split(), options["harmless"].split()
        assert len({*matters, *harmless}) == len(matters) + len(harmless), trainer
        count += len(matters) + len(harmless)
    assert count >= 2500
