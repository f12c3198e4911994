"""Steps and memory of the tools' engine, in a real browser, against what the command line prints.

Counts, names and messages are the same; floats differ by what rounding leaves of sums, which Python
adds up in full precision in places and JavaScript never does.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest

from figgen import catalog
from figgen.models.shape.activation_formats import FORMATS
from figgen.models.shape.adapters import ADAPTED, FROZEN
from figgen.models.shape.recomputation import MODULES
from figgen.models.step.compute import CONVENTIONS
from figgen.models.step.newton_schulz import update_flops
from figgen.scenarios.tools.data import configurations
from tests.browser.engine import Ask
from tests.browser.site import ROOT
from tests.browser.training_cases import (
    Choices,
    answered,
    asked_setup,
    own_choices,
    random_choices,
)

ORACLE = json.loads((ROOT / "tests/oracles/megatron_memory_and_flops.json").read_text())


def different(got: Any, want: Any, scale: float = 1.0, path: str = "") -> Iterator[tuple[Any, ...]]:
    """Paths at which two answers differ, with both values; `scale` is the length of the step."""
    if isinstance(want, dict) and isinstance(got, dict):
        scale = max(scale, want.get("step_time_s") or 0.0)
        if list(got) != list(want):
            yield path, list(got), list(want)
        for key in want.keys() & got.keys():
            yield from different(got[key], want[key], scale, f"{path}.{key}")
    elif isinstance(want, list) and isinstance(got, list):
        if len(got) != len(want):
            yield path, len(got), len(want)
        for index, pair in enumerate(zip(got, want, strict=False)):
            yield from different(*pair, scale, f"{path}[{index}]")
    elif got != want and not _close(got, want, scale):
        yield path, got, want


def _close(got: Any, want: Any, scale: float) -> bool:
    return isinstance(want, float) and got == pytest.approx(want, rel=1e-12, abs=1e-12 * scale)


def compared(ask: Ask, cases: list[Choices]) -> list[Any]:
    """The answers of Python; fails where the page answers otherwise."""
    expected = [answered(choices) for choices in cases]
    shown = ask("training", cases)
    assert len(shown) == len(cases)
    wrong = [
        (choices, found)
        for choices, got, want in zip(cases, shown, expected, strict=True)
        if (found := list(different(got, want))[:3])
    ]
    assert not wrong, f"{len(wrong)} of {len(cases)} differ, as {wrong[:2]}"
    return expected


def presets() -> list[Choices]:
    """What each preset of a training chooses."""
    known = configurations()["presets"].values()
    return [preset["choices"] for preset in known if preset["kind"] == "training"]


def test_every_published_step_is_the_same(ask: Ask) -> None:
    expected = compared(ask, presets())
    assert len(expected) == sum(p.kind == "training" for p in catalog.PRESETS.values())
    assert not any("error" in answer for answer in expected)


def test_random_steps_and_their_messages_are_the_same(ask: Ask) -> None:
    rng = random.Random(11)
    cases = [random_choices(rng) for _ in range(800)]
    expected = compared(ask, cases)
    valid = [case for case, answer in zip(cases, expected, strict=True) if "error" not in answer]
    assert len(valid) >= 500
    for key, least in (
        ("schedule", 12),
        ("zero_stage", 4),
        ("recompute", 20),
        ("recipe", 5),
        ("activations", 3),
        ("lora_rank", 4),
    ):
        assert len({case[key] for case in valid}) >= least
    tuned = [case for case in valid if case["lora_rank"] is not None]
    assert {case["lora_matrices"] for case in tuned} == set(ADAPTED)
    assert {case["frozen_weights"] for case in tuned} == set(FROZEN)
    messages = {answer["error"].split(":")[0] for answer in expected if "error" in answer}
    assert len(messages) >= 8


def test_products_of_muons_update_are_the_same(ask: Ask) -> None:
    rng = random.Random(14)
    cases = [case | {"recipe": "muon14"} for case in (random_choices(rng) for _ in range(300))]
    cases = [case for case in cases if "error" not in answered(case)]
    assert len(cases) >= 150
    assert sum(case["lora_rank"] is not None for case in cases) >= 30
    expected = []
    for case in cases:
        setup = asked_setup(case)
        expected.append([update_flops(setup, rank) for rank in range(setup.parallel.pp)])
    for case, got, want in zip(cases, ask("training_update", cases), expected, strict=True):
        assert got == pytest.approx(want, rel=1e-12), case
    assert all(any(works) for works in expected)


def test_own_models_and_own_hardware_are_the_same(ask: Ask) -> None:
    rng = random.Random(5)
    expected = compared(ask, [own_choices(rng) for _ in range(150)])
    assert sum("error" not in answer for answer in expected) >= 70


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
    {"activations": "fp9"}, {"context_exchange": "ring"},
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


def test_wrong_choices_have_the_same_messages(ask: Ask) -> None:
    expected = compared(ask, [BASE | choices for choices in WRONG])
    assert all("error" in answer for answer in expected)
    assert len({answer["error"] for answer in expected}) > len(WRONG) - 5


def test_hostile_values_are_refused_in_words_or_answered_in_numbers(ask: Ask) -> None:
    mixture = {"model": "mixtral-8x7b", "nodes": 2, "gpus_per_node": 8, "ep": 4, "tp": 2, "pp": 2}
    for found in ask("training_hostile", [BASE | {"pp": 2, "tp": 2}, mixture]):
        assert found["wrong"] == []
        assert found["refused"] > 400
        assert found["answered"] > 100


def test_names_labels_and_bytes_of_formats_and_conventions_are_the_same(ask: Ask) -> None:
    shown = ask("training_names", None)
    assert shown["modules"] == list(MODULES)
    for name, kept in FORMATS.items():
        assert shown["formats"][name] == list(asdict(kept).values())[1:]
    assert list(shown["formats"]) == list(FORMATS)
    conventions = [[c.name, c.label, c.hardware] for c in CONVENTIONS.values()]
    assert shown["conventions"] == conventions


def plain_shape(name: str) -> Choices:
    """A shape as Megatron's estimate knows it: no biases, learned positions or inner norms."""
    plain = {"bias": False, "learned_positions": False, "extra": 0, "qk_norm": "none"}
    return asdict(catalog.model(name).shape) | plain


def test_state_is_megatrons_own_estimate(ask: Ask) -> None:
    cases = [
        {
            "model": plain_shape(case["model"]),
            "nodes": case["nodes"],
            "gpus_per_node": 8,
            "tp": case["tp"],
            "pp": case["pp"],
            "ep": case.get("ep", 1),
            "etp": case.get("etp"),
            "zero_stage": case["zero"],
        }
        for case in ORACLE["memory"]
    ]
    for case, answer in zip(ORACLE["memory"], ask("training", cases), strict=True):
        held = answer["memory"]["ranks"][0]["bytes"]
        state = held["weights"] + held["gradients"] + held["optimizer"]
        assert state == pytest.approx(case["state_bytes"], rel=1e-5)


def test_activations_of_gpt_are_megatrons_own_estimate(ask: Ask) -> None:
    known = [c for c in ORACLE["memory"] if c["model"] in ("gpt-3-175b", "mt-nlg-530b")]
    cases = [
        {
            "model": case["model"],
            "nodes": case["nodes"],
            "gpus_per_node": 8,
            "tp": case["tp"],
            "pp": case["pp"],
            "microbatches": case["microbatches"],
            "sequence": 2048,
            "recompute": "selective",
            "dropout": True,
            "chunks": case.get("chunks"),
            "schedule": "interleaved-1f1b" if "chunks" in case else "1f1b",
        }
        for case in known
    ]
    for case, answer in zip(known, ask("training", cases), strict=True):
        found = answer["memory"]["ranks"][0]["bytes"]["activations"]
        tolerance = 2e-3 if "chunks" in case else 3e-5
        assert found == pytest.approx(case["activation_bytes"], rel=tolerance)


def test_flops_without_the_masked_half_are_what_megatron_logs(ask: Ask) -> None:
    cases = [
        {"model": case["model"], "nodes": 1, "gpus_per_node": 1, "sequence": case["sequence"]}
        for case in ORACLE["flops"]
    ]
    for case, answer in zip(ORACLE["flops"], ask("training", cases), strict=True):
        found = answer["step"]
        per_token = found["utilisation"]["causal"] * 989.4e12 / found["tokens_per_s_per_gpu"]
        logged = case["flops"] / (case["batch"] * case["sequence"])
        mixture = catalog.model(case["model"]).shape.experts
        assert per_token == pytest.approx(logged, rel=0.003 if mixture else 1e-12)


def test_timeline_lasts_as_long_as_the_step(ask: Ask) -> None:
    for drawn in ask("training_timeline", presets()):
        whole = drawn["before_s"] + drawn["makespan"] + drawn["after_s"]
        assert whole == drawn["step_time_s"]
        assert max(drawn["last"]) == drawn["makespan"]
        assert min(drawn["first"]) == 0
