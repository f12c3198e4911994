"""Every option of torchtitan's releases is used, known to have no effect, or reported
as relevant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from figgen.scenarios.taking.job import TakenJob, read_job
from figgen.scenarios.taking.names import key_of
from figgen.scenarios.taking.options import own_names
from figgen.scenarios.taking.torchtitan import (
    AS_MODELLED,
    NEUTRAL,
    OFF_AS_MODELLED,
    SECTIONS,
)

ORACLES = Path(__file__).parents[1] / "oracles"
KNOWN = json.loads((ORACLES / "framework_options.json").read_text("utf-8"))
RELEASES = {name: KNOWN[name]["sections"] for name in ("torchtitan", "torchtitan-0.3")}
COMMAND = "torchrun --nnodes 2 --nproc-per-node 8 -m torchtitan.train --module llama3 --config "


def read(options: str) -> TakenJob:
    return read_job(f"{COMMAND}llama3_8b {options}", {}, own_names())


@pytest.mark.parametrize("release", RELEASES)
def test_every_option_of_torchtitan_is_used_or_known_to_change_nothing_or_said_to_matter(
    release: str,
) -> None:
    """No section about sizes or computation has an option that nobody judged."""
    judged = 0
    for section in SECTIONS:
        for name in RELEASES[release].get(section, ()):
            full = f"{section}.{name}"
            matters = full in AS_MODELLED or full in OFF_AS_MODELLED
            ways = (key_of(full) != "", matters, full.startswith(NEUTRAL))
            assert sum(ways) == 1, full
            judged += 1
    assert judged >= 44


def test_no_option_is_judged_that_torchtitan_does_not_have() -> None:
    has = {
        f"{section}.{name}"
        for sections in RELEASES.values()
        for section, names in sections.items()
        for name in names
    }
    assert {*AS_MODELLED, *OFF_AS_MODELLED, *NEUTRAL} <= has


def test_options_beside_the_step_change_nothing_and_are_not_said_to_matter() -> None:
    plain = read("")
    assert (plain.taken["model"], plain.left, plain.unsure) == ("llama-3-8b", [], [])
    sections = ("comm", "profiler", "metrics", "checkpoint", "lr_scheduler", "validator")
    given = [
        f"--{section}.{name} {value}"
        for section in sections
        for name, value in RELEASES["torchtitan-0.3"][section].items()
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
