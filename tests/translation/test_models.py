"""The printed models: every number of random jobs is equal to the bit."""

from __future__ import annotations

import dataclasses
import json
import random
from math import isclose
from pathlib import Path
from typing import Any

import pytest

from figgen.models.shape.adapters import ADAPTED, FROZEN
from figgen.scenarios.options.schema import OPTIONS
from figgen.scenarios.tools.data import configurations
from figgen.translation.modules import closure, printed
from figgen.translation.sources import Place
from tests import thorough
from tests.browser import training_cases
from tests.browser.training_cases import Choices
from tests.models import ledger
from tests.models.test_timed_step_counted import drawn_constants, drawn_job
from tests.translation.run import imported, ran, started

JOBS = thorough.drawn(120, 2000)
PROGRAM = """
import fs from "node:fs";
import { jobOf } from "./assets/javascripts/engine/job.js";
import { plain } from "./assets/javascripts/engine/records.js";
import { page_answers } from "./assets/javascripts/scenarios/tools/page_answers.js";
const { catalog, cases } = JSON.parse(fs.readFileSync("data.json", "utf8"));
function answered(choices) {
  try {
    return plain(page_answers(jobOf(catalog, choices)));
  } catch (error) {
    return { error: error.name === "InputError" ? error.message : error.stack };
  }
}
console.log(JSON.stringify(cases.map(answered)));
"""

BASE: Choices = {"model": "llama-3-8b", "nodes": 8, "gpus_per_node": 8}
OWN = {
    "layers": 8, "hidden": 512, "heads": 8, "kv_heads": 8, "head_dim": 64, "ffn_hidden": 2048,
    "vocab": 1000, "sequence": 512,
}  # fmt: skip
CHIP = {"peak_flops_per_s": 1e15, "memory_bytes": 8e10, "scale_up_bandwidth_bytes_per_s": 4e11}
HARDWARE = {"nic": {"bandwidth_bytes_per_s": 5e10}, "scale_up_latency_s": 0, "network_latency_s": 0}
WRONG: list[Choices] = [
    {"model": "gpt-4"}, {"model": "llama-3-8B"}, {"model": ""}, {"model": "constructor"},
    {"accelerator": "h100"}, {"nic": "infiniband"}, {"dtype": "fp4"}, {"dtype": "int8"},
    {"recipe": "mcore16"}, {"schedule": "1f2b"}, {"order": "megatrn"}, {"tp": 3}, {"tp": 64},
    {"pp": 64}, {"cp": 7}, {"ep": 2, "etp": 1}, {"nodes": 0}, {"nodes": 1.5}, {"tp": -1},
    {"gpus_per_node": 16}, {"microbatches": 0}, {"microbatches": 2.5}, {"microbatch_size": 0},
    {"sequence": -1}, {"sequence": 2**41}, {"sequence": 8191, "cp": 2}, {"sequence": 4, "tp": 8},
    {"global_batch": 63}, {"global_batch": 0}, {"zero_stage": 4}, {"recompute": "some"},
    {"recompute": "mlp,moe,"}, {"recompute": "block:0"}, {"recompute": "uniform"},
    {"lora_rank": 0}, {"lora_rank": 2.5}, {"lora_rank": 5000}, {"lora_matrices": "all"},
    {"frozen_weights": "nf4"}, {"lora_rank": 8, "frozen_weights": "nf8"},
    {"lora_rank": 8, "mtp_layers": 1}, {"lora_rank": 8, "activations": "fp8"},
    {"model": "deepseek-v3", "lora_rank": 8, "lora_matrices": "query-value"},
    {"activations": "fp9"}, {"context_exchange": "ring"}, {"dispatcher": "flex"},
    {"expert_overlap": "yes"}, {"cuda_graphs": "full"},
    {"expert_skew": 0.5}, {"document_tokens": [0]}, {"document_tokens": [4096, 8]},
    {"document_tokens": [2048], "zigzag": False}, {"offloaded_activations": 1.5},
    {"offloaded_activations": 0.5, "cuda_graphs": "step"},
    {"buckets": 0}, {"buckets": 1.5}, {"compute_efficiency": 1.5},
    {"compute_efficiency": 0}, {"compute_efficiency": -0.25}, {"reserve_bytes": -1},
    {"schedule": "dualpipe", "pp": 4, "microbatches": 5}, {"schedule": "zbv", "chunks": 3},
    {"schedule": "1f1b", "chunks": 2}, {"schedule": "interleaved-1f1b", "pp": 8, "chunks": 5},
    {"model": "mixtral-8x7b", "tp": 8, "sequence_parallel": False, "etp": 1},
    {"model": "mixtral-8x7b", "order": "llama3"}, {"model": "mixtral-8x7b", "ep": 16, "etp": 1},
    {"model": "deepseek-v3", "tp": 1, "ep": 3, "nodes": 9}, {"model": "gpt-2-xl", "tp": 8},
    {"microbatches": 2**17, "pp": 2}, {"model": OWN | {"layers": 0}},
    {"model": OWN | {"heads": -2}}, {"model": OWN | {"kv_heads": 3}}, {"dtype": "constructor"},
    {"model": OWN | {"ffn": "tanh"}},
    {"model": OWN | {"norm": "none"}}, {"model": OWN | {"qk_norm": "yes"}},
    {"model": OWN | {"experts": {"count": 4, "top_k": 5, "ffn_hidden": 64}}},
    {"model": OWN | {"experts": {"count": 4, "top_k": 2, "ffn_hidden": 64, "dense_layers": 8}}},
    {"accelerator": CHIP | {"peak_flops_per_s": 0}, **HARDWARE},
    {"accelerator": CHIP | {"memory_bytes": 0}, **HARDWARE},
    {"accelerator": CHIP | {"scale_up_bandwidth_bytes_per_s": -1}, **HARDWARE},
    {"accelerator": CHIP, **HARDWARE, "network_latency_s": -1},
]  # fmt: skip

# What one draw in several hundred has: mixers that exchange heads of a sequence that is divided.
SELDOM: list[Choices] = [{"model": "mamba-2-hybrid-8b", "tp": 2, "cp": 2}]


def drawn(count: int) -> list[Choices]:
    """Return random jobs over the options of the schema, for catalog models and made-up ones."""
    rng = random.Random(24)
    draws = (training_cases.random_choices, training_cases.own_choices)
    return [draws[rng.random() < 0.2](rng) for _ in range(count)]


def presets() -> list[Choices]:
    known = configurations()["presets"].values()
    return [preset["choices"] for preset in known if preset["kind"] == "training"]


def test_jobs_are_answered_and_refused_on_a_page_as_by_the_command_line(tmp_path: Path) -> None:
    cases = [*presets(), *(BASE | one for one in (*WRONG, *SELDOM)), *drawn(JOBS)]
    data = {"catalog": configurations(), "cases": cases}
    answers = started(tmp_path, PROGRAM, imported(PROGRAM), data)
    wanted = list(map(training_cases.answered, cases))
    found = answers()
    different = [(case, *next(differing(got, want)))
                 for case, got, want in zip(cases, found, wanted, strict=True)
                 if got != want]  # fmt: skip
    assert different == []
    chosen = [{**OPTIONS, **case} for case in cases]
    for name in set(OPTIONS) - {"order", "model", "accelerator", "nic", "dtype"}:
        assert len({repr(case.get(name)) for case in chosen}) > 1, f"{name} is never drawn"
    valid = [case for case, want in zip(cases, wanted, strict=True) if "error" not in want]
    for name, least in (("schedule", 12), ("zero_stage", 4), ("recompute", 20), ("recipe", 5)):
        assert len({case.get(name) for case in valid}) >= least
    tuned = [case for case in valid if case.get("lora_rank") is not None]
    assert {case["lora_matrices"] for case in tuned} == set(ADAPTED)
    assert {case["frozen_weights"] for case in tuned} == set(FROZEN)
    assert len({want["error"] for want in wanted if "error" in want}) > 100


def differing(got: Any, want: Any, path: str = "") -> Any:
    """Return paths at which two answers differ, with both values.

    The last digit of a power depends on the processor: NumPy's kernels are not the browser's.
    """
    if isinstance(got, dict) and isinstance(want, dict):
        for key in got.keys() | want.keys():
            yield from differing(got.get(key), want.get(key), f"{path}.{key}")
    elif isinstance(got, list) and isinstance(want, list) and len(got) == len(want):
        for at, pair in enumerate(zip(got, want, strict=True)):
            yield from differing(*pair, f"{path}[{at}]")
    elif got != want and not (isinstance(got, float) and isclose(got, want, rel_tol=1e-14)):
        yield path, got, want


SHOWN = """
const shown = (value) => (value && typeof value === "object" ? Object.fromEntries(
  [...Object.keys(value), ...Object.getOwnPropertyNames(Object.getPrototypeOf(value))]
    .filter((name) => name !== "constructor").map((name) => [name, shown(value[name])])) : value);
"""


def test_the_printed_step_takes_what_its_kernels_and_messages_take(tmp_path: Path) -> None:
    draw = random.Random(5)
    cases = [(drawn_job(draw), drawn_constants(draw)) for _ in range(60)]
    given = [
        (
            dataclasses.asdict(job) | {"dp": job.dp, "tokens": job.tokens, "frozen": job.frozen},
            dataclasses.asdict(at),
        )
        for job, at in cases
    ]
    program = (
        'import { timed_step } from "./assets/javascripts/models/step/timed_step.js";\n'
        f"{SHOWN}"
        f"const given = {json.dumps(given)};\n"
        "console.log(JSON.stringify(given.map((one) => shown(timed_step(...one)))));"
    )
    scripts = printed([Place("figgen.models.step.timed_step", "timed_step")])
    for (job, at), found in zip(cases, ran(tmp_path, program, scripts), strict=True):
        parts = ledger.step_parts(job, at)
        rounding = 1e-12 * sum(parts.values())
        assert {name: found[name] for name in parts} == pytest.approx(parts, rel=1e-9, abs=rounding)
        assert found["total_s"] == pytest.approx(sum(parts.values()) - parts["head_s"])
        dense = ledger.layer(job, at, experts=False)
        assert {name: found["dense"][name] for name in dense} == pytest.approx(dense, rel=1e-9)


def test_a_closure_has_no_array_and_no_file() -> None:
    modules = closure([
        Place("figgen.models.step.step", "step"), Place("figgen.models.memory.memory", "memory"),
        Place("figgen.models.step.step_timeline", "step_timeline"),
    ])  # fmt: skip
    assert len(modules) > 40
    assert not [name for name in modules if "planner" in name or "profiles" in name]
