"""figgen step: bytes and seconds that add up, and one line for bad input."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from figgen.__main__ import main
from figgen.units import format_quantity
from tests.arguments import without

Said = Callable[..., str]
CLUSTER = ("--nodes", "8", "--gpus-per-node", "8", "--tp", "8", "--pp", "8")
GPT_3 = ("--model", "gpt-3-175b", *CLUSTER, "--microbatches", "16")
LATENCIES = ("3.4us", "6.8us", "13.6us")
"""NCCL's latency of a hop over NVLink, and two and four times as much."""


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def run(*arguments: str) -> str:
        assert main(("step", *arguments)) == 0
        return capsys.readouterr().out

    return run


def test_gpt_3_sends_352_megabytes_a_layer_inside_the_node_and_messages_outside(said: Said) -> None:
    answer = json.loads(said(*GPT_3, "--json"))
    layers = [
        row for row in answer["communication"] if (row["axis"], row["purpose"]) == ("tp", "layers")
    ]
    assert sum(row["sent_bytes"] for row in layers) == 16 * 12 * 352_321_536
    assert {row["level"] for row in layers} == {"scale-up"}
    (messages,) = (row for row in answer["communication"] if row["axis"] == "pp")
    assert messages["level"] == "network"
    assert messages["buffer_bytes"] == 50_331_648 / 8
    for row in answer["communication"]:
        assert row["sent_bytes"] == row["calls"] * row["call_bytes"]
        assert row["rule"]


def test_parts_add_up_to_the_step(said: Said) -> None:
    for extra in ((), ("--recompute", "full"), ("--zero", "3"), ("--no-overlap",)):
        answer = json.loads(said(*GPT_3, *extra, "--json"))
        parts = answer["compute_s"] + answer["recompute_s"] + answer["bubble_s"]
        parts += sum(answer["exposed_s"].values())
        assert parts == pytest.approx(answer["step_time_s"])
        rate = answer["tokens_per_step"] / answer["step_time_s"] / answer["world_size"]
        assert answer["tokens_per_s_per_gpu"] == pytest.approx(rate)


def test_efficiency_scales_matmuls_only(said: Said) -> None:
    half, whole = (
        json.loads(said(*GPT_3, "--efficiency", value, "--json")) for value in ("0.5", "1")
    )
    assert half["compute_s"] / 2 < whole["compute_s"] < 0.7 * half["compute_s"]
    assert whole["exposed_s"]["tp"] == pytest.approx(half["exposed_s"]["tp"])
    assert whole["step_time_s"] > half["step_time_s"] / 2


STEP_PARTS = ("step:", "compute:")


def test_text_names_links_rules_of_thumb_and_shares(said: Said) -> None:
    lines = said(*GPT_3).splitlines()
    assert lines[0].startswith("GPT-3 175B on 64 × NVIDIA H100 SXM5 80GB takes ")
    assert lines[1].startswith("gpt-3-175b on 64 GPUs: tp=8 cp=1 dp=1 pp=8")
    assert lines[3].startswith("as predicted for megatron-bridge 26.04; eight in ten runs")
    assert lines[5].split()[:4] == ["axis", "what", "collective", "link"]
    parts = [line.split("(") for line in lines if line.endswith("%)")]
    shares = {name: float(share.rstrip("%)")) for name, share in parts}
    kinds = {name: share for name, share in shares.items() if name.startswith("  ")}
    step, compute = (next(s for n, s in shares.items() if n.startswith(of)) for of in STEP_PARTS)
    assert step == 100
    assert sum(shares.values()) - sum(kinds.values()) == pytest.approx(2 * step, abs=0.3)
    assert sum(kinds.values()) == pytest.approx(compute, abs=0.4)
    assert next(iter(kinds)).startswith("  matmuls:")
    assert "of the dense bf16 peak" in lines[-1]


def test_mfu_names_the_peak_of_what_is_multiplied_in(said: Said) -> None:
    """DeepSeek-V3 prints 38.9% of BF16's peak (Zhao et al., Table 4); FP8's is twice as high."""
    asked = ("--preset", "deepseek-v3")
    mfu = json.loads(said(*asked, "--json"))["model_flops_utilisation"]
    assert f"MFU {mfu:.1%} of the dense fp8 peak (6nd+attention)" in said(*asked)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "gpt-5"), "unknown model 'gpt-5'"),
        (("--nic", "infiniband"), "unknown link 'infiniband'"),
        (("--efficiency", "1.5"), "compute_efficiency: expected a number from 0.01 to 1, got 1.5"),
        (("--efficiency", "nan"), "compute_efficiency"),
        (("--dtype", "fp4"), "has no dense fp4 matrix peak"),
        (("--ep", "2", "--etp", "1"), "ep: expected 1, the model has no experts"),
        (("--gpus-per-node", "16", "--nodes", "4"), "gpus_per_node: expected at most 8"),
    ],
)
def test_bad_input_is_one_line_and_status_two(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert main(("step", *without(GPT_3, arguments), *arguments)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("figgen: ")
    assert error.count("\n") == 1


def test_levels_bubbles_utilisations_and_buckets_are_in_the_answer(said: Said) -> None:
    answer = json.loads(said(*GPT_3, "--json"))
    assert [load["level"] for load in answer["levels"]] == ["scale-up", "network"]
    idle = answer["bubble_s"]
    assert answer["bubble_fraction"] == pytest.approx(idle / answer["step_time_s"])
    assert answer["bubble_overhead"] == pytest.approx(idle / answer["compute_s"])
    rates = answer["utilisation"]
    assert rates["6nd+attention"] == pytest.approx(answer["model_flops_utilisation"])
    assert answer["hardware_flops_utilisation"] == answer["model_flops_utilisation"]
    assert rates["causal"] < rates["6nd+attention"] < rates["hfu-full"]
    assert answer["gradient_buckets"] is None


def test_hfu_stands_beside_mfu_where_something_is_computed_again(said: Said) -> None:
    again = ("--recompute", "full")
    answer = json.loads(said(*GPT_3, *again, "--json"))
    hfu = answer["hardware_flops_utilisation"]
    assert hfu == pytest.approx(answer["utilisation"]["hfu-full"])
    assert f"HFU {hfu:.1%} (with recomputation: full)" in said(*GPT_3, *again)
    assert "HFU" not in said(*GPT_3)


def test_text_says_what_each_level_needs(said: Said) -> None:
    lines = said(*GPT_3).splitlines()
    answer = json.loads(said(*GPT_3, "--json"))
    for line, load in zip(lines[-3:-1], answer["levels"], strict=True):
        assert line.startswith(f"{load['level']}: ")
        needed = format_quantity(load["needed_bandwidth_bytes_per_s"], "B/s")
        assert f"can hide at {needed} or more " in line


def test_the_global_batch_gives_the_microbatches(said: Said) -> None:
    given = ("--model", "llama-3-8b", "--nodes", "2", "--gpus-per-node", "8", "--tp", "4")
    answer = json.loads(said(*given, "--global-batch", "64", "--microbatch-size", "2", "--json"))
    assert (answer["dp"], answer["microbatches"], answer["microbatch_size"]) == (4, 8, 2)


def test_a_link_of_a_node_is_shared_by_its_gpus(said: Said) -> None:
    answer = json.loads(said(*GPT_3, "--nic", "efa-v2-p5", "--json"))
    (network,) = (load for load in answer["levels"] if load["level"] == "network")
    assert network["bandwidth_bytes_per_s"] == 400e9 / 8


def test_options_take_numbers_as_people_write_them(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["step", "--nodes", "16", "--gpus-per-node", "8", "--tp", "8", "--pp", "4", "--json"]
    model = ["--model", "llama-3-70b", "--efficiency"]
    assert main([*asked, *model, "0.45", "--sequence", "8192", "--global-batch", "512"]) == 0
    plain = json.loads(capsys.readouterr().out)
    typed = ["45%", "--sequence", "8k", "--global-batch", "4M tokens"]
    assert main([*asked, *model, *typed]) == 0
    assert json.loads(capsys.readouterr().out) == plain
    assert main([*asked, "--preset", "gpt-3-175b", "--global-batch", "4M tokens"]) == 2
    assert "--sequence together with a batch in tokens" in capsys.readouterr().err


def test_latencies_of_a_reader_change_the_predicted_time_in_proportion(said: Said) -> None:
    asked = (*GPT_3, "--json", "--scale-up-latency-s")
    known_s, *longer = (json.loads(said(*asked, value))["step_time_s"] for value in LATENCIES)
    assert known_s == json.loads(said(*GPT_3, "--json"))["step_time_s"]
    first, second = (step_s - known_s for step_s in longer)
    assert first > 0
    assert second == pytest.approx(3 * first, rel=1e-4)


def test_operations_of_a_layer_add_up_to_what_its_microbatches_take(said: Said) -> None:
    answer = json.loads(said(*GPT_3, "--operations", "--json"))
    layer, update = (answer["operations"][name] for name in ("dense", "update"))
    whole = sum(one["time_s"] for one in layer)
    waits = sum(one["time_s"] for one in layer if one["kind"] == "message")
    kinds = answer["kinds_s"]
    inside = sum(kinds[name] for name in ("matmuls", "attention", "elementwise"))
    inside += kinds["waiting for the host"] + kinds["recomputation"] + answer["exposed_s"]["tp"]
    # 16 microbatches of the 12 layers of a stage.
    assert 16 * 12 * whole == pytest.approx(inside, rel=1e-6)
    assert 16 * 12 * waits == pytest.approx(answer["exposed_s"]["tp"])
    paid_once = answer["kinds_s"]["update"] + answer["exposed_s"]["dp"]
    assert sum(one["time_s"] for one in update) == pytest.approx(paid_once)
    # 24·s·h² FLOPs of four matmuls forward, thrice over a layer, a seq of 2048 on 8 GPUs.
    flops = sum(one["flops"] for one in layer if one["kind"] == "matmul")
    assert flops == pytest.approx(3 * 24 * 2048 * 12288**2 / 8)


def test_operations_are_listed_with_what_bounds_them(said: Said) -> None:
    lines = said("--preset", "deepseek-v3", "--operations").splitlines()
    head = next(line for line in lines if line.startswith("operation "))
    assert head.split() == [
        "operation",
        "phase",
        "kind",
        "FLOPs",
        "bytes",
        "time",
        "bound",
        "by",
        "keeps",
    ]
    assert sum(line.startswith("operation ") for line in lines) == 3, (
        "DeepSeek-V3 has dense layers and layers of experts, and an update"
    )
    rows = [line for line in lines if line.startswith("expert gate and up")]
    assert len(rows) == 3, "forward and both gradients"
    assert all(" compute" in row for row in rows)
    assert next(line for line in lines if line.startswith("rotation")).split()[-1] == "memory"
