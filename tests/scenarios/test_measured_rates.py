"""A reader's measurements replace datasheets, with the results of a computation by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from figgen.catalog.measured_file import FORMAT, VERSION, read_measured
from figgen.catalog.rates import constants
from figgen.errors import InputError
from figgen.scenarios.options.resolve import TrainingStep, training_step
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.planning.plan_question import plan_question
from figgen.scenarios.planning.plan_rows import plan_rows
from figgen.scenarios.planning.planner import plan
from figgen.scenarios.runs.machine_rates import MeasuredRates, rates_of, read_rates
from figgen.scenarios.runs.own_rates import layer_parts_s

SUSTAINED = constants()["matmul_share.hopper"].value
BYTES = 2.0**30


def written(ranks: int = 8, nodes: int = 1, **tables: list[dict[str, Any]]) -> str:
    """Return a file of an H100 with these tables."""
    machine = {
        "device": "NVIDIA H100 80GB HBM3", "kind": "cuda", "memory_bytes": 85_520_809_984,
        "ranks": ranks, "nodes": nodes, "torch": "2.9.0", "runtime": "12.8", "date": "2026-11-22",
    }  # fmt: skip
    return json.dumps({"format": FORMAT, "version": VERSION, "machine": machine, **tables})


def found(**given: Any) -> MeasuredRates:
    return rates_of(read_measured(written(**given)))


def products(flops_per_s: float, start_s: float = 0.0, name: str = "bf16") -> list[dict[str, Any]]:
    """Return square matmuls of a machine with this rate and this wait before each."""
    return [
        {"format": name, "m": n, "n": n, "k": n, "seconds": start_s + 2 * n**3 / flops_per_s}
        for n in (1024, 4096, 16384)
    ]


def passes(forward_s: float, backward_s: float, head_dim: int = 128) -> list[dict[str, Any]]:
    size = {"format": "bf16", "batch": 1, "heads": 32, "head_dim": head_dim, "sequence": 8192}
    return [
        size | {"pass": "forward", "seconds": forward_s},
        size | {"pass": "backward", "seconds": backward_s},
    ]


def rings(
    name: str, bus_bytes_per_s: float, ranks: int, nodes: int, start_s: float = 0.0
) -> list[dict[str, Any]]:
    """Return a collective's busbw by size as nccl-tests prints it, with a latency per hop."""
    times = 2 if name == "all_reduce" else 1
    return [
        {
            "collective": name,
            "ranks": ranks,
            "nodes": nodes,
            "message_bytes": int(size),
            "seconds": times
            * ((ranks - 1) * start_s + (ranks - 1) / ranks * size / bus_bytes_per_s),
        }
        for size in (2.0**12, 2.0**20, BYTES)
    ]


def job(**given: Any) -> TrainingStep:
    usual = {"model": "llama-3-8b", "nodes": 1, "gpus_per_node": 8, "microbatches": 4}
    return training_step(**{**usual, **given})


def test_rate_and_start_of_products_come_back_from_their_times() -> None:
    known = found(products=products(700e12, 5e-6) + products(1200e12, 4e-6, "fp8")).known
    assert known["bf16"] == pytest.approx((700e12, 5e-6))
    assert known["fp8"] == pytest.approx((1200e12, 4e-6))
    one = {"format": "bf16", "m": 8192, "n": 8192, "k": 8192, "seconds": 2 * 8192**3 / 6e14}
    assert found(products=[one]).known["bf16"] == pytest.approx((6e14, 0.0))


def test_links_are_lines_of_a_rate_and_a_start_of_every_hop() -> None:
    near = rings("all_reduce", 360e9, 8, 1, 3e-6) + rings("all_gather", 360e9, 8, 1, 3e-6)
    known = found(collectives=near + rings("all_to_all", 300e9, 8, 1)).known
    assert known["near"] == pytest.approx((360e9, 3e-6))
    assert known["nearshuffle"] == pytest.approx((300e9,))
    assert "far" not in known
    # A ring over two nodes crosses between them on eight adapters, one of each pair of ranks.
    known = found(collectives=rings("all_gather", 320e9, 16, 2, 12e-6)).known
    assert known["far"] == pytest.approx((40e9, 12e-6))
    # Half of what a rank sends to 16 ranks on two nodes goes to the other one, by its own adapter.
    row = {"collective": "all_to_all", "ranks": 16, "nodes": 2, "message_bytes": 2**30,
           "seconds": 2**29 / 45e9}  # fmt: skip
    assert found(collectives=[row]).known["farshuffle"] == pytest.approx((45e9,))


def test_attention_and_memory_are_work_over_time() -> None:
    forward = 2.0 * 32 * 128 * 8192**2
    known = found(attention=passes(forward / 600e12, 2.5 * forward / 400e12)).known
    # Seven parts of work: two at 600 and five at 400 TFLOP/s.
    assert known["attention"] == pytest.approx((3.5 / (1 / 600e12 + 2.5 / 400e12),))
    narrow = found(attention=passes(1.0, 2.5, head_dim=64)).known["attention"][0]
    wide = found(attention=passes(2.0, 5.0)).known["attention"][0]
    assert narrow / wide == pytest.approx(2 ** (1 / 3))
    kernels = [{"kernel": "copy", "bytes": 3e9, "seconds": 1e-3},
               {"kernel": "norm", "bytes": 1e9, "seconds": 1e-3}]  # fmt: skip
    assert found(kernels=kernels).known["memory"] == pytest.approx((2e12,))


def test_half_the_rate_of_products_takes_what_one_computes_by_hand(tmp_path: Path) -> None:
    fast, slow = tmp_path / "fast.json", tmp_path / "slow.json"
    fast.write_text(written(products=products(800e12)))
    slow.write_text(written(products=products(400e12, 10e-6)))
    one, other = (job(measured=str(path)).predicted for path in (fast, slow))
    # Weights of a layer: Q and O of 4096 × 4096, K and V of 4096 × 1024, three of 4096 × 14336.
    weights = 2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336
    work = 3 * 2 * 8192 * weights
    assert one.parts.dense.matmuls_s == pytest.approx(work / (800e12 * SUSTAINED), rel=1e-5)
    slower = work / (400e12 * SUSTAINED) + 12 * 10e-6
    assert other.parts.dense.matmuls_s == pytest.approx(slower, rel=1e-5)
    head = 6 * 8192 * 128_256 * 4096 / SUSTAINED * (1 / 400e12 - 1 / 800e12) + 3 * 10e-6
    layers = 32 * (slower - work / (800e12 * SUSTAINED))
    # Four microbatches; what the host waits for is hidden; a step of eight GPUs has no stragglers.
    assert other.step_time_s - one.step_time_s == pytest.approx(4 * (layers + head), rel=1e-3)


def test_other_rates_take_what_one_computes_by_hand() -> None:
    asked = "attention-400000_memory-2000_near-300-5_far-40-20_capacity-60"
    plain, other = job(tp=2, nodes=2), job(tp=2, nodes=2, measured=asked)
    core = 2 * 8192 * 8192 * 4096 / 2
    assert other.predicted.parts.dense.attention_s == pytest.approx(3.5 * core / 400e12)
    shares = constants()
    before = 3.35e12 * shares["memory_share.all"].value
    ratio = other.predicted.parts.dense.memory_s / plain.predicted.parts.dense.memory_s
    assert ratio == pytest.approx(before / 2e12)
    # Ten gathers or scatters, a half of the hidden states each to the other rank, and a start.
    call = 8192 * 4096 * 2 / 2 / 300e9 + 5e-6
    exposed = shares["exposed_tensor.megatron"].value
    assert other.predicted.parts.dense.messages_s == pytest.approx(10 * call * exposed)
    cluster = other.cluster
    assert cluster.scale_up_bandwidth_bytes_per_s == 300e9
    network = (cluster.network_bandwidth_bytes_per_s, cluster.network_latency_s)
    assert network == pytest.approx((40e9, 20e-6))
    assert other.memory.capacity_bytes == 60e9
    assert (
        job(tp=2, nodes=2, measured=asked, network_latency_s=1e-6).cluster.network_latency_s == 1e-6
    )


def test_a_layer_is_held_against_its_parts_by_hand() -> None:
    taken = read_rates("bf16-500000-2_attention-400000_memory-2000")
    row = {"format": "bf16", "hidden": 4096, "ffn": 14336, "heads": 32, "sequence": 8192,
           "batch": 1, "both_s": 1.0}  # fmt: skip
    products = 12 * 2e-6 + 3 * 2 * 8192 * (4 * 4096**2 + 3 * 4096 * 14336) / 500e12
    core = 3.5 * 2 * 8192 * 8192 * 4096 / 400e12
    # Norms and sums, queries, keys and values rotated, the gate: twice as many bytes backward.
    kernels = 3 * 8192 * (20 * 4096 + 4 * 3 * 4096 + 2 * 3 * 14336) / 2e12
    assert layer_parts_s(row, taken) == pytest.approx(products + core + kernels)
    assert layer_parts_s(row, read_rates("bf16-500000-2_memory-2000")) is None


def test_what_was_not_measured_stays_as_it_was() -> None:
    fp8 = {"dtype": "fp8", "software": "megatron-bridge 26.04"}
    plain, other = job(**fp8), job(**fp8, measured="bf16-1-0")
    assert other.predicted.parts.dense == plain.predicted.parts.dense
    assert other.predicted.parts.head_s > 100 * plain.predicted.parts.head_s
    alike = job(nodes=2, ep=8, model="mixtral-8x7b", measured="near-300-5_nearshuffle-150")
    rings_alone = job(nodes=2, ep=8, model="mixtral-8x7b", measured="near-300-5")
    ratio = alike.predicted.parts.expert.messages_s / rings_alone.predicted.parts.expert.messages_s
    assert ratio == pytest.approx(2)


def test_the_planner_says_of_its_layouts_what_a_step_says() -> None:
    rates = "bf16-500000-4_fp8-900000-5_attention-300000_memory-2000_near-300-5_far-40-20"
    asked = scenario(
        model="llama-3-8b", nodes=2, gpus_per_node=8, global_batch=32, measured=rates, pp=2, cp=1
    )
    searched = plan(plan_question(asked))
    for row in plan_rows(searched, range(0, 40, 13)):
        step = training_step(**{**dict(asked.chosen), **row.choices})
        assert step.predicted.step_time_s == pytest.approx(row.step_s, rel=1e-12)
    without = plan(plan_question(asked.but(measured=None)))
    assert searched.found.step_s[0] > without.found.step_s[0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bf15-1-2", "bf15.*did you mean bf16"),
        ("bf16-1", "measured bf16: expected a positive rate and a non-negative start, got '1'"),
        ("memory-0", "measured memory: expected a positive rate, got '0'"),
        ("memory-x", "measured memory"),
        ("memory-nan", "measured memory"),
        ("bf16-1-inf", "measured bf16"),
        ("bf16-0-1", "measured bf16: expected a positive rate"),
        ("bf16--1-1", "measured bf16"),
        ("memory-1_memory-2", "measured"),
        ("memory-" + "1" * 700, "at most 600 characters"),
        ("/nowhere.json", "a file of measure.py"),
    ],
)
def test_what_is_wrong_in_measured_rates_is_named(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        scenario(model="llama-3-8b", measured=text)


def test_rates_are_read_again_as_they_were_written() -> None:
    """This includes tiny matmuls of a CPU, whose rates are far below one GFLOP/s."""
    sample = Path(__file__).parents[1] / "catalog" / "measured_cpu.json"
    text = read_rates(str(sample)).text
    assert read_rates(text).text == text
    assert not re.search(r"\de", text)
    tiny = MeasuredRates({"bf16": (1.234567891e3, 1e-10), "capacity": (80e9,)})
    assert read_rates(tiny.text).known["bf16"] == pytest.approx((1.23457e3, 1e-10))


def test_a_file_in_which_nothing_was_measured_is_refused() -> None:
    empty = json.loads(written())
    empty["machine"]["memory_bytes"] = 0
    with pytest.raises(InputError, match="something measured"):
        rates_of(read_measured(json.dumps(empty)))
