"""What the modeler offers and recommends, and which addresses it reads, without its page."""

from __future__ import annotations

import random

import pytest

from figgen.models.setup.framework_memory import FRAMEWORKS
from figgen.scenarios.runs.software import FORMER_FRAMEWORKS, memory_of
from tests.browser.engine import Ask
from tests.browser.modeler import FIRST, printed, random_query

SUITES = "modeler_suites.js"


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
    [alone, both, other, undone, experts] = ask(
        "addresses",
        [
            "",
            "preset=gpt-3-175b&b.pp=16&b.microbatches=auto",
            f"{FIRST}&b.preset=deepseek-v3",
            "preset=gpt-3-175b&microbatches=auto",
            "nodes=4&ep=8",
        ],
    )
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


def test_an_address_may_say_a_batch_and_replicas_as_a_command_does(ask: Ask) -> None:
    start = "nodes=8&model=llama-3-8b&tp=2"
    plain, small, odd, both, other, left, compared = ask(
        "addresses",
        [
            f"{start}&dp=32&global_batch=512",
            f"{start}&global_batch=512&microbatch_size=2",
            f"{start}&global_batch=48",
            f"{start}&global_batch=512&microbatches=16",
            f"{start}&global_batch=512&microbatches=4",
            f"{start}&dp=64",
            f"{start}&microbatches=2&b.tp=1&b.global_batch=512",
        ],
    )
    command = "--nodes 8 --gpus-per-node 8 --model llama-3-8b --tp 2 --global-batch 512"
    assert plain["problems"] == []
    assert plain["a"]["microbatches"] == printed(f"figgen step {command} --json")["microbatches"]
    assert "global_batch" not in plain["again"]
    assert (small["a"]["microbatches"], small["problems"]) == (8, [])
    assert odd["problems"] == ["global_batch: expected a multiple of 32, got '48'"]
    assert both["problems"] == []
    assert other["problems"] == ["global_batch: expected 128, got '512'"]
    assert left["problems"] == ["dp: expected 32, which is left, got '64'"]
    assert (compared["a"]["microbatches"], compared["b"]["microbatches"]) == (2, 8)


def test_a_batch_that_an_address_says_is_that_of_both_configurations(ask: Ask) -> None:
    start = "nodes=8&model=llama-3-8b&tp=2&global_batch=512"
    kept, larger, own, preset, odd = ask(
        "addresses",
        [
            f"{start}&b.tp=1",
            f"{start}&b.microbatch_size=4",
            f"{start}&b.tp=1&b.microbatches=2",
            f"{start}&b.preset=gpt-3-175b",
            f"{start}&b.nodes=12",
        ],
    )
    command = "--nodes 8 --gpus-per-node 8 --model llama-3-8b --tp 1 --global-batch 512"
    same = printed(f"figgen step {command} --json")["microbatches"]
    assert (kept["a"]["microbatches"], kept["b"]["microbatches"]) == (16, same)
    assert larger["b"]["microbatches"] == 4
    assert own["b"]["microbatches"] == 2
    assert preset["b"]["microbatches"] == 384
    assert odd["problems"] == ["B: global_batch: expected a multiple of 48, got '512'"]
    assert all(found["stable"] for found in (kept, larger, own, preset, odd))
    assert all(found["problems"] == [] for found in (kept, larger, own, preset))


def test_an_address_of_the_time_when_software_was_two_options_is_understood(ask: Ask) -> None:
    memories = {name: memory_of(known) for name, known in FORMER_FRAMEWORKS.items()}
    # These came later, and were never an option of their own in an address.
    later = {
        "megatron-2024", "megatron-fused-loss", "torchtune", "torchtune-eager", "torchtune-logits",
        "pytorch", "pytorch-compiled", "litgpt", "unknown", "deepspeed", "deepspeed-liger",
        "hf-trainer", "prime-rl", "prime-rl-logits",
    }  # fmt: skip
    named = [name for name in FRAMEWORKS if name not in later]
    assert memories == {name: name for name in named}, "every framework has its software"
    start = "model=llama-3-8b&framework"
    queries = [f"{start}={name}" for name in named]
    queries += [f"{start}=nanotrn", f"{start}=constructor", f"{start}=fsdp&software=nanotron"]
    *cases, misspelt, hostile, both, compared = ask("addresses", [*queries, "b.framework=nanotron"])
    for name, case in zip(named, cases, strict=True):
        assert case["problems"] == []
        assert case["a"]["software"] == FORMER_FRAMEWORKS[name]
        assert "framework" not in case["again"]
    assert "did you mean nanotron" in misspelt["problems"][0]
    assert "unknown framework" in hostile["problems"][0]
    assert both["a"]["software"] == "nanotron"
    assert compared["b"]["software"] == "nanotron"


HOSTILE = (
    "tp=<script>alert(1)</script>&nodes=-1",
    "tp=8&tp=4",
    "model=constructor",
    "tp=1e3&pp=0x10",
    "efficiency=NaN&reserve=-4",
    "zero=4&schedule=__proto__",
    "b.tp=%00&preset=../../etc",
    "nodes=99999999999999999999",
    "show=%3Cimg%20src%3E",
    f"model={'a' * 5000}",
    "hidden=8&tpp=2",
)


def test_a_hostile_address_is_refused_in_words_and_leaves_the_defaults(ask: Ask) -> None:
    [first, *cases] = ask("addresses", ["", *HOSTILE])
    for query, case in zip(HOSTILE, cases, strict=True):
        assert case["problems"], query
        assert all(len(problem) < 300 for problem in case["problems"])
        assert not any("one of ," in problem for problem in case["problems"])
        if "nodes" not in query and "tp" not in query:
            assert case["a"] | {"hidden": 8192} == first["a"], query


def test_what_an_address_says_twice_is_told_whoever_reads_it(ask: Ask) -> None:
    start = "nodes=8&model=llama-3-8b&tp=2"
    twice = {
        "global_batch": f"{start}&global_batch=512&global_batch=256",
        "dp": f"{start}&dp=32&dp=16",
        "software": f"{start}&software=nanotron&framework=fsdp",
        "tp": f"{start}&tp=4",
        "B: tp": f"{start}&b.tp=4&b.tp=8",
    }
    for (key, query), found in zip(twice.items(), ask("addresses", [*twice.values()]), strict=True):
        assert f"{key}: expected one value, got 'several'" in found["problems"], query


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
