"""The tuning model compared with NCCL's own code, and its constants with measurements."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from figgen.errors import InputError
from figgen.models.machine.nccl_channels import ring_channels
from figgen.models.machine.nccl_tuning import (
    NcclGroup,
    TuningConstants,
    bandwidth_bytes_per_s,
    candidates,
    latency_s,
    predicted_time_s,
    predictions,
    step_count,
)

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "nccl_tuning.json").read_text())


def scaled(numbers: dict[str, float], unit: float) -> dict[str, float]:
    return {
        key: number * (1 if key == "nvls_efficiency" else unit) for key, number in numbers.items()
    }


CONSTANTS = TuningConstants(
    base_latency_s=scaled(ORACLE["constants"]["base_us"], 1e-6),
    step_latency_s={
        link: scaled(steps, 1e-6) for link, steps in ORACLE["constants"]["step_us"].items()
    },
    network_overhead_s=scaled(ORACLE["constants"]["overhead_us"], 1e-6),
    bandwidth_caps={
        architecture: scaled(caps, 1e9)
        for architecture, caps in ORACLE["constants"]["caps_gb_s"].items()
    },
)


def group_of(entry: dict) -> NcclGroup:
    return NcclGroup(
        ranks=entry["ranks"],
        nodes=entry["nodes"],
        channels=entry["channels"],
        channel_bytes_per_s=entry["channel_gb_s"] * 1e9,
        network_bytes_per_s=entry["network_gb_s"] * 1e9,
        architecture=entry["architecture"],
        host=entry["host"],
        transport=entry["transport"],
    )


every_group = pytest.mark.parametrize(
    "entry",
    ORACLE["groups"],
    ids=lambda e: f"{e['ranks']}-on-{e['nodes']}-{e['architecture']}-{e['host']}-{e['transport']}",
)

ONE_NODE = NcclGroup(ranks=8, channels=12, channel_bytes_per_s=30e9)


@every_group
def test_latency_bandwidth_and_time_are_those_of_nccl(entry: dict) -> None:
    group = group_of(entry)
    for collective, algorithm, protocol, latency_us, bandwidth_gb_s, *times_us in entry["rows"]:
        way = (CONSTANTS, group, collective, algorithm, protocol)
        assert latency_s(*way) == pytest.approx(latency_us * 1e-6, rel=1e-6)
        assert bandwidth_bytes_per_s(*way) == pytest.approx(bandwidth_gb_s * 1e9, rel=1e-6)
        for size, time_us in zip(ORACLE["sizes_bytes"], times_us, strict=True):
            assert predicted_time_s(*way, size) == pytest.approx(time_us * 1e-6, rel=1e-6)


@every_group
def test_the_candidates_are_those_of_nccl(entry: dict) -> None:
    group = group_of(entry)
    theirs = {tuple(row[:3]) for row in entry["rows"]}
    ours = {
        (collective, *pair)
        for collective in ("all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce")
        for pair in candidates(CONSTANTS, group, collective)
    }
    assert ours == theirs


@every_group
def test_the_first_prediction_is_the_fastest_of_nccl(entry: dict) -> None:
    group = group_of(entry)
    for i, size in enumerate(ORACLE["sizes_bytes"]):
        times = {(a, p): times[i] for c, a, p, _, _, *times in entry["rows"] if c == "all-reduce"}
        first = predictions(CONSTANTS, group, "all-reduce", size)[0]
        assert times[first.algorithm, first.protocol] == min(times.values())


@pytest.mark.parametrize(("protocol", "published_us"), [("ll", 15), ("simple", 56)])
def test_ring_all_reduce_of_8_over_nvlink_has_the_published_latency(
    protocol: str, published_us: float
) -> None:
    latency = latency_s(CONSTANTS, ONE_NODE, "all-reduce", "ring", protocol)
    assert latency == pytest.approx(published_us * 1e-6)


@pytest.mark.parametrize(
    ("architecture", "link_gb_s", "measured_gb_s", "within"),
    [
        ("ampere", 12 * 20.0, 234.9, 0.022),
        ("hopper", 18 * 20.6, 367.2, 0.021),
        ("blackwell", 18 * 40.1, 682.2, 0.056),
    ],
)
def test_a_large_ring_comes_close_to_the_measured_bus_bandwidth(
    architecture: str, link_gb_s: float, measured_gb_s: float, within: float
) -> None:
    """It uses the channels that NCCL finds on one GPU's lanes; measured at 16, 16 and 8 GiB."""
    found = ring_channels(architecture, link_gb_s * 1e9, 8)
    group = NcclGroup(
        ranks=8,
        channels=found.count,
        channel_bytes_per_s=found.inside_bytes_per_s,
        architecture=architecture,
    )
    size = 16 * 2**30
    time_s = predicted_time_s(CONSTANTS, group, "all-reduce", "ring", "simple", size)
    bus_gb_s = size / time_s * 2 * 7 / 8 / 1e9
    assert bus_gb_s == pytest.approx(measured_gb_s, rel=within)


CORRECTED = [
    # src/graph/tuning.cc, ncclTopoGetAlgoTime: logSize = log2i(nBytes >> 6); trees below 23, NVLS
    # trees of Blackwell on x86 below 24; treeCorrectionFactor[NCCL_PROTO_SIMPLE] is these.
    ("tree", "intel_x86", 63, 1.0),
    ("tree", "intel_x86", 64, 0.9),
    ("tree", "intel_x86", 2**28, 0.9),
    ("tree", "intel_x86", 2**29 - 1, 0.9),
    ("tree", "intel_x86", 2**29, 1.0),
    ("nvls_tree", "intel_x86", 63, 1.0),
    ("nvls_tree", "amd_x86", 64, 0.9),
    ("nvls_tree", "amd_x86", 2**16, 0.6),
    ("nvls_tree", "intel_x86", 2**29, 0.9),
    ("nvls_tree", "amd_x86", 2**30 - 64, 0.9),
    ("nvls_tree", "intel_x86", 2**30, 1.0),
    ("nvls_tree", "other", 2**29, 1.0),
]


@pytest.mark.parametrize(("algorithm", "host", "size", "left"), CORRECTED)
def test_trees_are_marked_down_exactly_where_nccl_does_it(
    algorithm: str, host: str, size: int, left: float
) -> None:
    group = NcclGroup(
        ranks=64,
        channels=8,
        channel_bytes_per_s=48e9,
        network_bytes_per_s=48e9,
        nodes=8,
        architecture="blackwell",
        host=host,
    )
    way = (CONSTANTS, group, "all-reduce", algorithm, "simple")
    sending = predicted_time_s(*way, size) - latency_s(*way)
    assert sending == pytest.approx(size / (left * bandwidth_bytes_per_s(*way)), rel=1e-6)


def test_an_nvls_tree_of_hopper_is_never_marked_down() -> None:
    group = NcclGroup(
        ranks=64, channels=8, channel_bytes_per_s=48e9, network_bytes_per_s=48e9, nodes=8
    )
    way = (CONSTANTS, group, "all-reduce", "nvls_tree", "simple")
    for size in (64, 2**16, 2**29):
        sending = predicted_time_s(*way, size) - latency_s(*way)
        assert sending == pytest.approx(size / bandwidth_bytes_per_s(*way), rel=1e-6)


def test_small_messages_go_by_ll_and_large_ones_by_simple() -> None:
    chosen = [predictions(CONSTANTS, ONE_NODE, "all-reduce", 1 << bits)[0] for bits in (10, 34)]
    assert chosen[0].protocol == "ll"
    assert chosen[1].protocol == "simple"


def test_the_network_limit_of_ll_follows_the_cpu_not_the_gpu() -> None:
    for host, cap_gb_s in (("intel_x86", 20.4), ("amd_x86", 19.0)):
        group = NcclGroup(
            ranks=64,
            channels=16,
            channel_bytes_per_s=24e9,
            network_bytes_per_s=24e9,
            nodes=8,
            host=host,
        )
        bandwidth = bandwidth_bytes_per_s(CONSTANTS, group, "all-reduce", "ring", "ll")
        assert bandwidth == pytest.approx(cap_gb_s * 1e9 * 64 / 126)


def test_nvls_needs_two_channels() -> None:
    algorithms = {
        channels: {
            a
            for a, _ in candidates(
                CONSTANTS,
                NcclGroup(ranks=8, channels=channels, channel_bytes_per_s=20e9),
                "all-reduce",
            )
        }
        for channels in (1, 2)
    }
    assert algorithms == {1: {"tree", "ring"}, 2: {"tree", "ring", "nvls"}}


def test_an_empty_message_takes_the_latency() -> None:
    first = predictions(CONSTANTS, ONE_NODE, "all-reduce", 0)[0]
    assert first.time_s == latency_s(CONSTANTS, ONE_NODE, "all-reduce", "ring", "ll")


def test_predictions_are_ordered_by_time() -> None:
    times = [p.time_s for p in predictions(CONSTANTS, ONE_NODE, "all-reduce", 1 << 20)]
    assert len(times) == 7
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ranks": 1}, "ranks: expected 2 or more"),
        ({"ranks": 9, "nodes": 2}, "equal on 2 nodes, got 9"),
        ({"channels": 0}, "channels: expected a whole number ≥ 1, got 0"),
        ({"channel_bytes_per_s": 0}, "channel_bytes_per_s: expected > 0, got 0"),
        ({"nodes": 0}, "nodes: expected a whole number ≥ 1, got 0"),
        ({"nodes": 4}, "network_bytes_per_s: expected > 0"),
        ({"architecture": "hoper"}, "did you mean hopper"),
        ({"host": "arm"}, "unknown host 'arm'"),
        ({"transport": "nvlnk"}, "did you mean nvlink"),
    ],
)
def test_a_group_that_cannot_be_is_refused(arguments: dict, message: str) -> None:
    valid = {"ranks": 8, "channels": 8, "channel_bytes_per_s": 20e9}
    with pytest.raises(InputError, match=message):
        NcclGroup(**valid | arguments)


def test_what_nccl_has_not_is_refused_with_what_it_has() -> None:
    with pytest.raises(InputError, match="one of ring ll, ring ll128, ring simple"):
        latency_s(CONSTANTS, ONE_NODE, "broadcast", "tree", "ll")
    with pytest.raises(InputError, match="got 'nvls ll'"):
        bandwidth_bytes_per_s(CONSTANTS, ONE_NODE, "all-reduce", "nvls", "ll")
    with pytest.raises(InputError, match="did you mean all-reduce"):
        candidates(CONSTANTS, ONE_NODE, "allreduce")
    with pytest.raises(InputError, match="unknown NCCL collective"):
        step_count("all-to-all", 8)
    with pytest.raises(InputError, match="message_bytes: expected ≥ 0"):
        predictions(CONSTANTS, ONE_NODE, "all-reduce", -1)
