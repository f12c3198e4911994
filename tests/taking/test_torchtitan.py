"""torchtitan's options are read, said to matter, or known to change nothing."""

from __future__ import annotations

import json
from pathlib import Path

from figgen.scenarios.taking.job import TakenJob, read_job
from figgen.scenarios.taking.options import own_names

ORACLES = Path(__file__).parents[1] / "oracles"
SECTIONS = json.loads((ORACLES / "framework_options.json").read_text("utf-8"))["torchtitan-0.3"][
    "sections"
]
COMMAND = "torchrun --nnodes 2 --nproc-per-node 8 -m torchtitan.train --module llama3 --config "


def read(options: str) -> TakenJob:
    return read_job(f"{COMMAND}llama3_8b {options}", {}, own_names())


def test_options_beside_the_step_change_nothing_and_are_not_said_to_matter() -> None:
    plain = read("")
    assert (plain.taken["model"], plain.left, plain.unsure) == ("llama-3-8b", [], [])
    sections = ("comm", "profiler", "metrics", "checkpoint", "lr_scheduler", "validator")
    given = [
        f"--{section}.{name} {value}"
        for section in sections
        for name, value in SECTIONS[section].items()
    ]
    whole = read(" ".join(given))
    assert (whole.taken, whole.unsure) == (plain.taken, [])
    assert len(whole.left) == len(given) > 40


def test_what_changes_the_answer_is_taken_or_named() -> None:
    assert read("--training.dtype bfloat16").taken["recipe"] == "bf16_8"
    assert read("activation_checkpoint:full").taken["recompute"] == "full"
    said = "--compile.enable activation-checkpoint:none --parallelism.tensor-parallel-degree 2"
    job = read(f"{said} --parallelism.no-enable-sequence-parallel")
    assert (job.taken["recompute"], job.taken["tp"]) == ("none", 2)
    assert job.taken["sequence_parallel"] is False
    assert job.unsure == []
    job = read("--compile.no-enable --optimizer.implementation for-loop --debug.deterministic")
    assert job.unsure == ["--compile.enable", "--optimizer.implementation", "--debug.deterministic"]
    assert read("--training.brand_new 1").unsure == ["--training.brand_new"]
