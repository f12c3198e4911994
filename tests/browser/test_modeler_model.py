"""What the modeler computes, in a real browser without its page, compared with the command line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from figgen import catalog
from figgen.__main__ import main
from figgen.catalog.hardware import DTYPES
from figgen.errors import InputError
from figgen.guide.tool_scripts import JOINED
from figgen.models.machine.frameworks import CONVENTIONS
from figgen.models.pipeline.schedules import SCHEDULES
from figgen.models.setup.training_setup import CUDA_GRAPHS, DISPATCHERS, EXPERT_OVERLAPS
from figgen.models.shape.activation_formats import FORMATS
from figgen.models.shape.adapters import ADAPTED, FROZEN
from figgen.models.shape.model_shape import FFN_MATRICES, NORM_VECTORS, QK_NORMS
from figgen.models.shape.recipes import RECIPES
from figgen.models.shape.transformer import parameter_counts
from figgen.models.step.compute import MFU_CONVENTION
from figgen.scenarios.options.config_json import shape_of_config
from figgen.scenarios.options.own_model import SIZES as MODEL_SIZES
from figgen.scenarios.options.schema import OPTIONS
from figgen.scenarios.runs.software import known_software
from tests.browser.engine import Ask
from tests.browser.modeler import printed, random_query
from tests.browser.site import ROOT
from tests.thorough import drawn, one_in

SUITES = "modeler_suites.js"
ORACLES = ROOT / "tests" / "oracles"


LARGEST = {"modeler": 77_310, "rank-map": 30_050, "converter": 12_150, "planner": 28_500}
"""Size of a tool's script in bytes as sent."""


@pytest.mark.parametrize("tool", LARGEST)
def test_script_of_a_tool_is_one_file_and_no_larger_than_it_was(
    site_folder: Path, tool: str
) -> None:
    script = (site_folder / f"assets/javascripts/tools/{tool}.js").read_bytes()
    assert not re.search(rb'^import\b[^("]+"', script, re.M), "everything is in it"
    assert len(gzip.compress(script, 9)) <= LARGEST[tool]


@pytest.mark.parametrize("name", JOINED["modeler"])
def test_what_few_readers_ask_for_takes_from_the_tool_what_it_has(
    site_folder: Path, name: str
) -> None:
    part = (site_folder / f"assets/javascripts/tools/{name}.js").read_bytes()
    assert b'from"./modeler.js";' in part
    # Worked lines bring every formula of the guide along: a hundred bytes for each new one. The
    # reader of scripts comes when there is one, that of a model's own file with such a file, the
    # published runs when a measured speed does, and with them the reader of logs. The reader of
    # scripts knows the names, the defaults and the words of thirty-five trainers.
    most = {"modeler_taken": 55_000, "modeler_verdict": 43_500}
    assert len(gzip.compress(part, 9)) <= most.get(name, 20_750)


def test_every_preset_and_random_choices_answer_what_the_command_line_prints(ask: Ask) -> None:
    rng = random.Random(27)
    presets = [f"preset={name}" for name, kind in ask("presets", []) if kind == "training"]
    assert len(presets) >= 18
    presets = one_in(4, presets)
    tried = ask("addresses", [random_query(rng) for _ in range(30)])
    valid = [case["again"] for case in tried if case["error"] is None]
    assert len(valid) >= 4
    trays = "model=qwen-3-30b-a3b&chip=gb200-nvl72&nodes=32&gpus=4&ep=8"
    queries = ["", trays, f"{trays}&join=0", *presets, *valid[:4]]
    for query, answer in zip(queries, ask("answers", queries), strict=True):
        for name, command in zip(("step", "memory"), answer["commands"], strict=True):
            assert answer[name] == printed(command), (query, command)
        assert answer["parts"] == pytest.approx(answer["step"]["step_time_s"], rel=1e-9)
        rows = list(csv.DictReader(io.StringIO(answer["csv"][0])))
        for row, sent in zip(rows, answer["step"]["communication"], strict=True):
            assert row.keys() == sent.keys()
            assert all(
                row[key] == str(value) or float(row[key]) == value for key, value in sent.items()
            ), row
        assert answer["sent"] == pytest.approx(sum(float(row["sent_bytes"]) for row in rows))
        held = list(csv.DictReader(io.StringIO(answer["csv"][1])))
        assert [float(row["total_bytes"]) for row in held] == [
            rank["total_bytes"] for rank in answer["memory"]["ranks"]
        ]


WITH: dict[str, dict[str, object]] = {
    "dtype": {"chip": "b200-sxm-hgx"}, "schedule": {"pp": 4, "microbatches": 8},
    "exchange": {"cp": 2}, "order": {"tp": 2, "pp": 2}, "recompute": {"pp": 2},
    "nic": {"tp": 2}, "zero": {"pp": 2}, "lora_matrices": {"lora_rank": 8},
    "frozen_weights": {"lora_rank": 8},
}  # fmt: skip
# Configurations of which one at least suits an option: some hardware, experts, a dense model.
SUITING: tuple[dict[str, object], ...] = (
    {"nodes": 4}, {"nodes": 4, "model": "mixtral-8x7b", "ep": 4}, {"nodes": 1, "gpus": 1},
    {"nodes": 4, "dtype": "fp16"}, {"nodes": 4, "model": "mixtral-8x7b", "ep": 2, "etp": 1},
)  # fmt: skip


def test_every_option_is_answered_as_the_command_line_answers_it(ask: Ask) -> None:
    """The cases include choices that no form offers and that an address may not contain."""
    options = ask("options", None)
    registries: dict[str, Iterable[str]] = {
        "recipe": RECIPES,
        "activations": FORMATS,
        "schedule": SCHEDULES,
        "dtype": DTYPES,
        "model": catalog.MODELS,
        "chip": catalog.ACCELERATORS,
        "order": CONVENTIONS,
        "zero": "0123",
        "software": known_software(),
        "exchange": ("p2p", "all-gather"),
        "dispatcher": DISPATCHERS,
        "eoverlap": EXPERT_OVERLAPS,
        "graphs": CUDA_GRAPHS,
        "ffn": FFN_MATRICES,
        "lora_matrices": ADAPTED,
        "frozen_weights": FROZEN,
        "norm": NORM_VECTORS,
        "qk_norm": QK_NORMS,
        "nic": [name for name, link in catalog.LINKS.items() if link.kind == "scale-out"],
    }
    for key, names in registries.items():
        assert set(names) <= set(options[key]), key
    assert set(options) - {"preset", "recompute"} == registries.keys()
    choices = [
        (key, name)
        for key, names in options.items()
        if key not in ("preset", "ffn", "norm", "qk_norm")
        for name in names
        if name != "own"
    ]
    shown: dict[tuple[str, str], str] = {}
    for base in SUITING:
        left = [choice for choice in choices if choice not in shown]
        queries = [urlencode(base | WITH.get(key, {}) | {key: name}) for key, name in left]
        cases = ask("addresses", queries)
        assert [case["problems"] for case in cases if case["problems"]] == []
        tried = zip(left, queries, cases, strict=True)
        shown |= {choice: query for choice, query, case in tried if case["error"] is None}
    assert shown.keys() == set(choices)
    answers = ask("answers", list(shown.values()))
    # That Python says the same, to the bit, is asked of more jobs in tests/translation.
    for query, answer in one_in(6, list(zip(shown.values(), answers, strict=True))):
        for name, command in zip(("step", "memory"), answer["commands"], strict=True):
            assert answer[name] == printed(command), (query, command)
    for query, answer in zip(shown.values(), answers, strict=True):
        step = answer["step"]
        counted = step["utilisation"][MFU_CONVENTION]
        assert answer["mfu"] == step["model_flops_utilisation"] == counted, query
        assert computed_share(answer) <= step["compute_efficiency"] * (1 + 1e-12), query


def test_a_pasted_config_json_is_read_as_python_reads_it(ask: Ask) -> None:
    cases = json.loads((ROOT / "tests/oracles/config_json.json").read_text("utf-8"))["cases"]
    files = [case["config"] for case in cases]
    bamba = files[-1]
    biased = files[0] | {"attention_bias": True, "tie_word_embeddings": True}
    wrong = [
        files[-1] | {"attn_layer_indices": [9, 18]},
        files[-1] | {"mamba_n_groups": 3},
        files[-1] | {"mamba_n_heads": 100},
        files[-1] | {"mamba_proj_bias": True},
        files[0] | {"num_attention_heads": 0},
        files[9] | {"moe_intermediate_size": 0},
    ]
    files += [files[-2] | {"num_local_experts": 0, "shared_intermediate_size": 8192}]
    files += [bamba | {"attn_layer_indices": [20], "attention_bias": True}]
    files += [files[0] | {"model_type": "gemma3_text", "sliding_window": 1024}]
    files += [files[0] | {"model_type": "mistral", "sliding_window": 4096}]
    texts = [json.dumps(config) for config in [*files, biased, *wrong]]
    shown = ask("configs", [*texts, "[]", "no"])
    for config, found in zip([*files, biased], shown, strict=False):
        counts = parameter_counts(shape := shape_of_config(config))
        assert found["windows"] == [shape.window, shape.full_every], config
        assert found["parameters"] == {"total": counts.total, "active": counts.active}, config
    for config, found in zip(wrong, shown[len(files) + 1 :], strict=False):
        with pytest.raises(InputError) as refused:
            shape_of_config(config)
        assert found["error"] == str(refused.value)
    assert all("config.json" in found["error"] for found in shown[-2:])


def test_every_published_config_json_becomes_a_state_with_all_its_parameters(ask: Ask) -> None:
    rows = json.loads((ORACLES / "config_json_transformers.json").read_text("utf-8"))["counts"]
    shown = ask("taken", [json.dumps(row["config"]) for row in rows])
    states = ask("configs", [json.dumps(row["config"]) for row in rows])
    assert [found["dialect"] for found in shown] == ["config.json"] * len(rows)
    for row, found in zip(rows, states, strict=True):
        shape = shape_of_config(row["config"])
        assert found["parameters"]["total"] == parameter_counts(shape).total, row["name"]


def test_texts_that_a_reader_brings_become_the_state_that_the_command_line_takes(ask: Ask) -> None:
    cases = json.loads((ORACLES / "taken_jobs.json").read_text("utf-8"))["cases"]
    shown = ask("taken", [case["text"] for case in cases])
    names = {"dp", "global_batch", "order", "microbatches"} | MODEL_SIZES.keys()
    for case, found in zip(cases, shown, strict=True):
        assert "error" not in found, (case["file"], found)
        if found["asked"]:
            continue
        for name in {name for name, value in case["taken"].items() if value is not None} - names:
            value = found["state"][OPTIONS[name].address_key]
            assert str(value) == str(case["taken"][name]), (case["file"], name)


MEASURED = {
    "400 tok/s/GPU": ["--tokens-per-s", "400 tokens/s"],
    "0.4k tokens/s": ["--tokens-per-s", "0.4k"],
    "40 s": ["--step-time", "40 s"],
    "150 TFLOP/s per GPU": ["--tflops", "150"],
    "38%": ["--mfu", "38%"],
}


def test_a_measured_speed_gets_the_verdict_of_the_command_line(
    ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    queries = [
        "model=llama-3-8b&nodes=2&tp=2&zero=1",
        "model=llama-3-70b&nodes=8&tp=8&pp=4&microbatches=32&recompute=full&software=nemo",
        "model=mixtral-8x7b&nodes=4&ep=8&zero=1&microbatches=8&nic=ib-hdr",
        "model=llama-3-8b&nodes=1&zero=3&software=torchtitan&chip=a100-sxm-80gb&flash=0",
    ]
    cases = [(query, text) for query in queries for text in MEASURED]
    for (_, text), shown in zip(cases, ask("verdicts", cases), strict=True):
        words = shlex.split(shown["command"].replace("\\\n", " "))
        words = words[words.index("step") + 1 :]
        assert main(["verdict", *words, *MEASURED[text], "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert shown["measured"] == pytest.approx(told["measured_step_time_s"])
        assert [shown["low"], shown["high"]] == pytest.approx(told["step_time_interval_s"])
        assert (shown["class"], shown["utilisation"]) == (
            told["interval_of"],
            pytest.approx(told["model_flops_utilisation"]),
        )
        assert len(shown["like"]) == told["like_runs"]["runs"]
        nearest = [one["row"]["name"] for one in shown["like"][:5]]
        assert nearest == [one["name"] for one in told["like_runs"]["nearest"]]
        assert [one["name"] for one in shown["reasons"]] == [
            one["cause"] for one in told["reasons"]
        ]
        for ours, theirs in zip(shown["reasons"], told["reasons"], strict=True):
            assert ours["score"] == pytest.approx(theirs["score"])
            assert ours["worth_s"] == (theirs["worth_s"] and pytest.approx(theirs["worth_s"]))


def test_a_log_is_judged_with_its_own_batch(ask: Ask) -> None:
    query = "model=llama-3-8b&nodes=2&tp=2&zero=1&microbatches="
    line = "elapsed time per iteration (ms): 90000.0 | global batch size: 256 |"
    by_log, by_time = ask(
        "verdicts", [(query + "4", "\n".join([line] * 4)), (query + "32", "90 s")]
    )
    for name in ("measured", "predicted", "utilisation"):
        assert by_log[name] == by_time[name]


def test_commands_and_addresses_that_the_modeler_writes_are_taken_back(ask: Ask) -> None:
    rng = random.Random(31)
    tried = ask("addresses", [random_query(rng) for _ in range(drawn(60, 200))])
    again = [case["again"] for case in tried if case["error"] is None and case["again"]]
    again = [one for one in again if "=own" not in one and "preset=" not in one]
    assert len(again) > 8
    commands = [answer["commands"][0] for answer in ask("answers", again)]
    for texts in (commands, [f"https://site/tools/modeler/?{one}" for one in again]):
        shown = ask("taken", texts)
        assert [found["query"] for found in shown] == again
        assert not any(found["problems"] for found in shown)


def computed_share(answer: Any) -> float:
    """Return MFU with attention counted as computed: in full, or without its masked half."""
    whole = "--no-flash-attention" in answer["commands"][0]
    return float(answer["step"]["utilisation"][MFU_CONVENTION if whole else "causal"])


def test_the_mfu_counts_masked_attention_and_the_causal_one_only_what_is_computed(ask: Ask) -> None:
    long = "nodes=64&tp=8&pp=4&cp=8&sequence=1048576&efficiency=1&microbatches=8"
    skipping, whole = found = ask("answers", [long, f"{long}&flash=0"])
    for answer in found:
        step = answer["step"]
        computing = step["compute_efficiency"] * step["compute_s"] / step["step_time_s"]
        assert computed_share(answer) <= 1
        assert computed_share(answer) == pytest.approx(computing, rel=0.01)
    assert whole["mfu"] == computed_share(whole)
    assert skipping["mfu"] > 1.8 * computed_share(skipping), "half of nearly all work is masked"


BASE = {"model": "llama-3-8b", "nodes": 8, "gpus_per_node": 8, "pp": 2, "tp": 2}
MIXTURE = {"model": "mixtral-8x7b", "nodes": 2, "gpus_per_node": 8, "ep": 4, "tp": 2, "pp": 2}


def test_hostile_values_are_refused_in_words_or_answered_in_numbers(ask: Ask) -> None:
    for found in ask("hostile", [BASE, MIXTURE]):
        assert found["wrong"] == []
        assert found["refused"] > 100
        assert found["answered"] > 15
