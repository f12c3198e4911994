"""What the modeler computes, in a real browser without its page, against the command line."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import math
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
from figgen.models.activation_formats import FORMATS
from figgen.models.framework_memory import FRAMEWORKS
from figgen.models.frameworks import CONVENTIONS
from figgen.models.model_shape import FFN_MATRICES, NORM_VECTORS, QK_NORMS
from figgen.models.recipes import RECIPES
from figgen.models.schedules import SCHEDULES
from figgen.models.transformer import parameter_counts
from figgen.publish.build import JOINED
from figgen.scenarios.config_json import shape_of_config
from figgen.scenarios.software import FORMER_FRAMEWORKS, known_software, memory_of
from tests.browser.engine import Ask
from tests.browser.site import ROOT

SUITES = "modeler_suites.js"
FIRST = "nodes=12&tp=8&pp=4&microbatches=8"


def printed(command: str) -> Any:
    """What the command line prints for `command`."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert main(shlex.split(command)[1:]) == 0
    return json.loads(said.getvalue())


def same(one: Any, other: Any) -> bool:
    """Equal values under equal keys; sums of floats may differ in the last digits."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float | int) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)
    return bool(one == other)


@pytest.mark.parametrize("tool", ["modeler", "rank-map", "converter"])
def test_script_of_a_tool_is_one_file_of_at_most_60_kb(site_folder: Path, tool: str) -> None:
    script = (site_folder / f"assets/javascripts/tools/{tool}.js").read_bytes()
    assert not re.search(rb'^import\b[^("]+"', script, re.M), "everything is in it"
    assert len(gzip.compress(script, 9)) <= 60_000


@pytest.mark.parametrize("name", JOINED["modeler"])
def test_what_few_readers_ask_for_takes_from_the_tool_what_it_has(
    site_folder: Path, name: str
) -> None:
    part = (site_folder / f"assets/javascripts/tools/{name}.js").read_bytes()
    assert b'from "./modeler.js";' in part
    # Worked lines bring every formula of the guide along: a hundred bytes for each new one.
    assert len(gzip.compress(part, 9)) <= 19_000


def random_query(rng: random.Random) -> str:
    """Any choices side by side; about half of them do not fit together."""
    given: dict[str, object] = {
        "nodes": rng.choice((1, 2, 4, 12, 16)), "gpus": rng.choice((4, 8, 8, 8)),
        "tp": rng.choice((1, 2, 3, 4, 8)), "pp": rng.choice((1, 2, 3, 4)),
        "cp": rng.choice((1, 1, 1, 2)), "microbatches": rng.choice(("auto", 1, 5, 8, 24)),
        "model": rng.choice(("llama-3-8b", "llama-3-70b", "gpt-3-175b", "mixtral-8x7b")),
        "schedule": rng.choice(("1f1b", "1f1b", "gpipe", "interleaved-1f1b", "zb1p", "zbv")),
        "zero": rng.randint(0, 3), "recompute": rng.choice(("none", "selective", "full")),
        "microbatch_size": rng.choice((1, 1, 2)), "sp": rng.choice((1, 1, 1, 0)),
        "double": rng.randint(0, 1), "overlap": rng.randint(0, 1), "flash": rng.randint(0, 1),
        "chip": rng.choice(("h100-sxm-80gb", "a100-sxm-80gb")),
        "efficiency": rng.choice((0.4, 0.6)),
    }  # fmt: skip
    if given["model"] == "mixtral-8x7b":
        given["ep"] = rng.choice((1, 2, 4, 8))
    kept = rng.sample(sorted(given), rng.randint(3, len(given)))
    return "&".join(f"{key}={given[key]}" for key in sorted({*kept, "nodes"}))


def test_every_preset_and_random_choices_answer_what_the_command_line_prints(ask: Ask) -> None:
    rng = random.Random(27)
    presets = [f"preset={name}" for name, kind in ask("presets", []) if kind == "training"]
    assert len(presets) >= 18
    tried = ask("addresses", [random_query(rng) for _ in range(60)])
    valid = [case["again"] for case in tried if case["error"] is None]
    assert len(valid) >= 12
    queries = ["", *presets, *valid[:12]]
    for query, answer in zip(queries, ask("answers", queries), strict=True):
        for name, command in zip(("step", "memory"), answer["commands"], strict=True):
            assert same(answer[name], printed(command)), (query, command)
        assert answer["parts"] == pytest.approx(answer["step"]["step_time_s"], rel=1e-9)
        rows = list(csv.DictReader(io.StringIO(answer["csv"][0])))
        for row, sent in zip(rows, answer["step"]["communication"], strict=True):
            assert row.keys() == sent.keys()
            assert all(row[key] == str(value) or float(row[key]) == value for key, value in
                       sent.items()), row  # fmt: skip
        assert answer["sent"] == pytest.approx(sum(float(row["sent_bytes"]) for row in rows))
        held = list(csv.DictReader(io.StringIO(answer["csv"][1])))
        assert [float(row["total_bytes"]) for row in held] == [
            rank["total_bytes"] for rank in answer["memory"]["ranks"]
        ]


WITH: dict[str, dict[str, object]] = {
    "dtype": {"chip": "b200-sxm-hgx"}, "schedule": {"pp": 4, "microbatches": 8},
    "exchange": {"cp": 2}, "order": {"tp": 2, "pp": 2}, "recompute": {"pp": 2},
    "nic": {"tp": 2}, "zero": {"pp": 2},
}  # fmt: skip
# Configurations of which one at least suits an option: some hardware, experts, a dense model.
SUITING: tuple[dict[str, object], ...] = (
    {"nodes": 4}, {"nodes": 4, "model": "mixtral-8x7b", "ep": 4}, {"nodes": 1, "gpus": 1},
    {"nodes": 4, "dtype": "fp16"}, {"nodes": 4, "model": "mixtral-8x7b", "ep": 2, "etp": 1},
)  # fmt: skip


def test_every_option_is_answered_as_the_command_line_answers_it(ask: Ask) -> None:
    """A choice that is offered nowhere, or that an address may not say, is drawn here."""
    options = ask("options", None)
    registries: dict[str, Iterable[str]] = {
        "recipe": RECIPES, "activations": FORMATS, "schedule": SCHEDULES, "dtype": DTYPES,
        "model": catalog.MODELS, "chip": catalog.ACCELERATORS, "order": CONVENTIONS,
        "zero": "0123", "software": known_software(),
        "exchange": ("p2p", "all-gather"), "ffn": FFN_MATRICES,
        "norm": NORM_VECTORS, "qk_norm": QK_NORMS,
        "nic": [name for name, link in catalog.LINKS.items() if link.kind == "scale-out"],
    }  # fmt: skip
    for key, names in registries.items():
        assert set(names) <= set(options[key]), key
    assert set(options) - {"preset", "recompute"} == registries.keys()
    drawn = [
        (key, name)
        for key, names in options.items()
        if key not in ("preset", "ffn", "norm", "qk_norm")
        for name in names
        if name != "own"
    ]
    queries = [
        urlencode(base | WITH.get(key, {}) | {key: name}) for key, name in drawn for base in SUITING
    ]
    cases = ask("addresses", queries)
    assert [case["problems"] for case in cases if case["problems"]] == []
    shown = {}
    for at, choice in enumerate(drawn):
        tried = range(len(SUITING) * at, len(SUITING) * (at + 1))
        good = [queries[one] for one in tried if cases[one]["error"] is None]
        assert good, choice
        shown[choice] = good[0]
    for query, answer in zip(shown.values(), ask("answers", list(shown.values())), strict=True):
        for name, command in zip(("step", "memory"), answer["commands"], strict=True):
            assert same(answer[name], printed(command)), (query, command)
        assert answer["mfu"] <= answer["step"]["compute_efficiency"] * (1 + 1e-12), query


def test_a_pasted_config_json_is_read_as_python_reads_it(ask: Ask) -> None:
    cases = json.loads((ROOT / "tests/oracles/config_json.json").read_text("utf-8"))["cases"]
    files = [case["config"] for case in cases]
    biased = files[0] | {"attention_bias": True, "tie_word_embeddings": True}
    wrong = [files[0] | {"model_type": "lama"}, files[0] | {"hidden_size": None},
             files[11] | {"moe_layer_freq": 2}, files[11] | {"mlp_only_layers": [1]}]  # fmt: skip
    texts = [json.dumps(config) for config in [*files, biased, *wrong]]
    shown = ask("configs", [*texts, "[]", "no"])
    for config, found in zip([*files, biased], shown, strict=False):
        counts = parameter_counts(shape_of_config(config))
        assert found["parameters"] == {"total": counts.total, "active": counts.active}, config
        assert found["again"], "a state holds all of the shape"
    for config, found in zip(wrong, shown[len(files) + 1 :], strict=False):
        with pytest.raises(InputError) as refused:
            shape_of_config(config)
        assert found["error"] == str(refused.value)
    assert all("config.json" in found["error"] for found in shown[-2:])


def test_no_attention_is_counted_that_is_not_computed(ask: Ask) -> None:
    long = "nodes=64&tp=8&pp=4&cp=8&sequence=1048576&efficiency=1&microbatches=8"
    found = ask("answers", [long, f"{long}&flash=0"])
    for answer in found:
        assert answer["mfu"] <= 1
        step = answer["step"]
        # Without communication and idle time the two would be equal.
        assert answer["mfu"] == pytest.approx(step["compute_s"] / step["step_time_s"], rel=0.2)
    assert found[0]["step"]["utilisation"]["6nd+attention"] > 1, "what the headline said before"


def test_a_dense_model_after_one_with_experts_is_offered_without_them(ask: Ask) -> None:
    dense = ("llama-3-8b", "llama-3-70b", "gpt-3-175b")
    queries = [f"preset=deepseek-v3&model={name}" for name in dense]
    for case in ask("addresses", queries):
        assert "ep: expected 1" in case["error"]
        assert case["offers"][0]["text"].startswith("EP 64 → 1"), case["offers"]


def test_what_does_not_fit_gets_offers_that_do_and_every_address_is_stable(ask: Ask) -> None:
    rng = random.Random(3)
    queries = [random_query(rng) for _ in range(90)]
    for preset in ("gpt-3-175b", "map-128", "deepseek-v3"):
        for other in ("map-256", "llama-3-405b-131k"):
            second = random_query(rng).replace("&", "&b.")
            queries.append(f"preset={preset}&b.preset={other}&b.{second}")
    queries += ["model=llama-3-8b&nodes=2&tp=16", "nodes=1&gpus=16", "nodes=2&pp=3&gpus=8",
                "nodes=4&ep=8&model=llama-3-70b", "chip=v100-sxm2-32gb&nodes=2",
                "nodes=3&tp=5&pp=7", "nodes=100000&gpus=100000"]  # fmt: skip
    cases = ask("addresses", queries)
    refused = [case for case in cases if case["error"] is not None]
    assert 20 <= len(refused) <= 100
    for case in cases:
        assert case["stable"], case["again"]
        assert case["problems"] == []
    for case in refused[:-1]:
        assert case["offers"], case["error"]
        assert all(offer["error"] is None and offer["text"] for offer in case["offers"])


def test_an_address_compares_two_configurations(ask: Ask) -> None:
    [alone, both, other, undone, experts] = ask("addresses", [
        "", "preset=gpt-3-175b&b.pp=16&b.microbatches=auto", f"{FIRST}&b.preset=deepseek-v3",
        "preset=gpt-3-175b&microbatches=auto", "nodes=4&ep=8",
    ])  # fmt: skip
    assert alone["b"] is None
    assert alone["again"] == ""
    assert both["b"]["pp"] == 16
    assert both["b"]["microbatches"] is None
    assert both["a"]["microbatches"] == 384
    assert {key for key in both["a"] if both["a"][key] != both["b"][key]} == {"pp", "microbatches"}
    assert other["b"]["model"] == "deepseek-v3"
    assert other["a"] == alone["a"]
    assert undone["a"]["microbatches"] is None
    assert experts["a"]["model"] == "mixtral-8x7b", "a layout with experts gets a model with them"


def test_an_address_of_the_time_when_software_was_two_options_is_understood(ask: Ask) -> None:
    memories = {name: memory_of(known) for name, known in FORMER_FRAMEWORKS.items()}
    assert memories == {name: name for name in FRAMEWORKS}, "every framework has its software"
    start = "model=llama-3-8b&framework"
    queries = [f"{start}={name}" for name in FRAMEWORKS]
    queries += [f"{start}=nanotrn", f"{start}=constructor", f"{start}=fsdp&software=nanotron"]
    *cases, misspelt, hostile, both, compared = ask("addresses", [*queries, "b.framework=nanotron"])
    for name, case in zip(FRAMEWORKS, cases, strict=True):
        assert case["problems"] == []
        assert case["a"]["software"] == FORMER_FRAMEWORKS[name]
        assert "framework" not in case["again"]
    assert "did you mean nanotron" in misspelt["problems"][0]
    assert "unknown framework" in hostile["problems"][0]
    assert both["a"]["software"] == "nanotron"
    assert compared["b"]["software"] == "nanotron"


HOSTILE = (
    "tp=<script>alert(1)</script>&nodes=-1", "tp=8&tp=4", "model=constructor", "tp=1e3&pp=0x10",
    "efficiency=NaN&reserve=-4", "zero=4&schedule=__proto__", "b.tp=%00&preset=../../etc",
    "nodes=99999999999999999999", "show=%3Cimg%20src%3E", f"model={'a' * 5000}", "hidden=8&tpp=2",
)  # fmt: skip


def test_a_hostile_address_is_refused_in_words_and_leaves_the_defaults(ask: Ask) -> None:
    [first, *cases] = ask("addresses", ["", *HOSTILE])
    for query, case in zip(HOSTILE, cases, strict=True):
        assert case["problems"], query
        assert all(len(problem) < 300 for problem in case["problems"])
        if "nodes" not in query and "tp" not in query:
            assert case["a"] | {"hidden": 8192} == first["a"], query


def test_pipeline_cases_of_the_source_are_recommended(ask: Ask) -> None:
    """P = 4, M = 8: 27.3% idle; M = 16: 15.8%; P = 3: 20%."""
    [found] = ask("advised", [""])
    texts = {tip["text"]: tip for tip in found["tips"]}
    more, fewer, least = (
        texts[name] for name in ("microbatches 8 → 16", "PP 4 → 3", "microbatches 8 → 12")
    )
    assert "pipeline efficiency 72.7% → 84.2%" in more["reasons"]
    assert "pipeline efficiency 72.7% → 80.0%" in fewer["reasons"]
    assert "pipeline efficiency 72.7% → 80.0%" in least["reasons"]
    assert found["least"] == 12
    [first, sixteen, three] = ask("answers", ["", f"{FIRST[:-1]}16", FIRST.replace("pp=4", "pp=3")])
    shares = [case["pipeline"]["bubble_fraction"] for case in (first, sixteen, three)]
    assert shares == pytest.approx([3 / 11, 3 / 19, 2 / 10])


def test_recommendations_fit_and_gain_what_they_say(ask: Ask) -> None:
    full = "nodes=8&tp=8&microbatches=16"
    planned = "nodes=1250&tp=8&pp=10&model=llama-3-405b&microbatches=16&nic=roce-400g"
    queries = ["", "preset=llama-3-405b-131k", full, "nodes=1&tp=8&model=llama-3-8b",
               "nodes=2&tp=16", planned, "preset=opt-175b"]  # fmt: skip
    answers = ask("advised", queries)
    for query, found in zip(queries, answers, strict=True):
        tips = found["tips"]
        assert tips, query
        assert all(tip["fits"] is not False for tip in tips), query
        for same in (True, False):
            gains = [tip["gain"] for tip in tips if tip["same"] is same]
            assert gains == pytest.approx(sorted(gains, reverse=True), abs=0.006), query
            assert len(gains) <= 5
        assert all(tip["batch"] == found["batch"] for tip in tips if tip["same"])
        if found["fits"]:
            assert all(tip["gain"] > 0.005 for tip in tips), query
        assert len({tip["text"] for tip in tips}) == len(tips)
        assert {unit["name"].split(" ")[0] for unit in found["units"]} >= {"microbatches", "peak"}
        faster = next(unit for unit in found["units"] if unit["name"].startswith("peak"))
        assert 0 < faster["throughput"] < 0.1, "ten percent more peak buys at most ten percent"
        assert faster["memory_bytes"] == 0
    # A layout with fewer replicas works on as much: PP 4 → 6 takes DP from 3 to 2.
    laid = [unit for unit in answers[0]["units"] if unit["name"][:2] in ("TP", "PP", "CP")]
    assert any(unit["name"] == "PP 4 → 6, microbatches 8 → 12" for unit in laid)
    assert {unit["batch"] for unit in laid} == {answers[0]["batch"]}
    assert not answers[2]["fits"], "70B in eight parts is too much for 80 GB"
    assert any("nodes" in tip["changes"] for tip in answers[4]["tips"]), "only more GPUs help"
    assert any("TP groups leave their node" in tip["reasons"] for tip in answers[5]["tips"])
    halved = next(tip for tip in answers[6]["tips"] if tip["changes"].get("tp") == 4)
    assert halved["same"], "one microbatch is halved to keep the batch"


def test_what_a_recommendation_changes_gives_what_it_promises(ask: Ask) -> None:
    base = "nodes=8&tp=4&pp=4&microbatches=8&model=llama-3-70b"
    [before] = ask("answers", [base])
    [found] = ask("advised", [base])
    names = {"chunks": "auto"}
    queries = []
    for tip in found["tips"]:
        changes = {**dict(pair.split("=") for pair in base.split("&")), **tip["changes"]}
        queries.append(
            "&".join(f"{k}={names.get(k) if v is None else v}" for k, v in changes.items())
        )
    for tip, after in zip(found["tips"], ask("answers", queries), strict=True):
        rates = [answer["step"]["tokens_per_s_per_gpu"] for answer in (after, before)]
        # The share of the peak at which parts add up to the prediction is solved, not computed.
        assert rates[0] / rates[1] - 1 == pytest.approx(tip["gain"])


UNITS = {"s": 1, "ms": 1e-3, "µs": 1e-6, "min": 60, "B": 1, "FLOP": 1, "FLOP/B": 1} | {
    f"{prefix}{unit}": 10.0**power
    for prefix, power in zip("kMGTPEZ", range(3, 24, 3), strict=True)
    for unit in ("B", "B/s", "FLOP", "FLOP/s")
}
COUNTS = {"": 1, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
NUMBER = re.compile(r"([\d.]+)(?:\u00a0([^\s)]+)|([KMBT]?)(?![\w%])|%)")


def adds_up(text: str) -> bool:
    """Whether the line is a calculation; fails where its numbers do not give its result."""
    if "= " not in text or re.search(r"[^\d\s.,·+−/()=%KMBTkGPEZFLOPsmiµn]", text):
        return False

    def number(match: re.Match[str]) -> str:
        value, unit, count = match.groups()
        factor = UNITS[unit] if unit else COUNTS[count] if count is not None else 0.01
        return repr(float(value) * factor)

    plain = NUMBER.sub(number, re.sub(r"(?<=\d),(?=\d{3})", "", text)).translate(
        str.maketrans("·−", "*-")
    )
    given, result = plain.rsplit("= ", 1)
    # Each number is shown with three digits; what is left of a difference has fewer.
    slack = (
        0.006 * sum(map(float, re.findall(r"\d[\d.]*(?:e[+-]?\d+)?", given)))
        if "*" not in given
        else 0
    )
    assert eval(given) == pytest.approx(float(result), rel=0.016, abs=slack), text
    return True


def test_every_number_has_a_worked_line_that_ends_in_it(ask: Ask) -> None:
    queries = [
        "",
        "preset=deepseek-v3",
        "preset=llama-3-405b-131k",
        "nodes=2&zero=3&schedule=gpipe",
    ]
    checked = 0
    for query, lines in zip(queries, ask("worked", queries), strict=True):
        assert len(lines) > 80
        for key, found in lines.items():
            assert found, (query, key)
            for line in found:
                assert line["doc"], (query, key)
                assert "undefined" not in json.dumps(line), (query, key, line)
                assert "NaN" not in json.dumps(line), (query, key, line)
                if "name" not in line:
                    checked += adds_up(line["text"])
    assert checked > 300
    [first] = ask("worked", [""])
    forwards, both = first["operations"]
    assert forwards["text"] == "4 · 8 = 32"
    assert both["text"] == "32 + 32 = 64"
    assert first["fraction"][0]["text"] == "(4 − 1) / (8 + 4 − 1) ≈ 27.3%"
    assert first["efficiency"][1]["text"].endswith("= 12 microbatches".replace(" m", "\u00a0m"))


def test_one_call_of_every_row_takes_what_its_formula_says(ask: Ask) -> None:
    """The bandwidth that a worked line names is the one that the engine computed with."""
    queries = ["", "preset=gpt-3-175b", "preset=qwen-3-235b-a22b", "preset=llama-3-405b-131k"]
    answers, lines = ask("answers", queries), ask("worked", queries)
    checked = 0
    for answer, worked in zip(answers, lines, strict=True):
        for index, row in enumerate(answer["step"]["communication"]):
            call = worked[f"row:{index}"][0]
            if "value" in call:
                assert call["value"] * row["calls"] == pytest.approx(row["time_s"], rel=1e-9), call
                checked += 1
    assert checked > 20
