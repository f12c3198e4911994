"""The channels that NCCL finds, compared with its logs and with what its own rules allow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from figgen.catalog import LINKS
from figgen.catalog.nccl_links import nccl_group
from figgen.errors import InputError
from figgen.models.machine.nccl_channels import (
    SPEEDS_GB_S,
    Channels,
    ring_channels,
    switch_channels,
)

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "nccl_channels.json").read_text())
LANE_GB_S = {"volta": 20.0, "ampere": 20.0, "hopper": 20.6, "blackwell": 40.1}
"""From NCCL's src/graph/topo.h."""


def gb_s(found: Channels | None) -> list[float]:
    if found is None:
        return [0, 0, 0]
    return [found.count, found.inside_bytes_per_s / 1e9, found.across_bytes_per_s / 1e9]


def test_channels_are_those_that_nccls_own_search_finds() -> None:
    for row in ORACLE["rows"]:
        check_channels(*row)


def check_channels(
    architecture: str, lanes: int, port_gbit_s: int, gpus: int, *expected: float
) -> None:
    # A port of 100 Gb/s counts 12 GB/s, as one behind PCIe does.
    port = port_gbit_s / 100 * 12e9 or None
    machine = (architecture, lanes * LANE_GB_S[architecture] * 1e9, gpus, port)
    assert gb_s(ring_channels(*machine)) == pytest.approx(expected[:3])
    if expected[3] > 1:
        assert gb_s(switch_channels(*machine)) == pytest.approx(expected[3:])
    else:
        assert (switch_channels(*machine) or Channels(1, 0, 0)).count == 1


@pytest.mark.parametrize("architecture", SPEEDS_GB_S)
def test_the_bandwidths_that_are_tried_are_those_of_nccl(architecture: str) -> None:
    prefix = {"hopper": "sm90S", "blackwell": "sm100S"}.get(architecture, "s")
    for across, place in enumerate(("Intra", "Inter")):
        theirs = ORACLE["speeds_gb_s"][f"{prefix}peedArray{place}"]
        assert list(SPEEDS_GB_S[architecture][across]) == theirs


def test_nvls_between_nodes_stops_at_exactly_twice_the_bandwidth_within_one() -> None:
    """search.cc raises bwInter while it is below 2 × bwIntra; the next value in its list is 90
    GB/s."""
    assert switch_channels("blackwell", 9 * 40e9 + 1e6, 8) == Channels(8, 40e9, 80e9)


def test_the_rings_of_an_h100_carry_360_gb_s_of_its_370_8() -> None:
    link = 18 * 20.6e9
    assert ring_channels("hopper", link, 8) == Channels(12, 30e9, 30e9)
    within = [speed * int(link / 1e9 / speed) for speed in SPEEDS_GB_S["hopper"][0] if speed >= 30]
    assert max(within) == 360


def test_a100_fills_all_lanes_and_b200_nearly() -> None:
    assert ring_channels("ampere", 240e9, 8) == Channels(12, 20e9, 20e9)
    assert ring_channels("blackwell", 18 * 40.1e9, 8) == Channels(16, 45e9, 45e9)


@pytest.mark.parametrize("architecture", ["ampere", "hopper", "blackwell"])
@pytest.mark.parametrize("gb_s", [60, 100, 164.8, 240, 300, 370.8, 500])
def test_no_listed_bandwidth_carries_more_than_what_was_found(
    architecture: str, gb_s: float
) -> None:
    """Every bandwidth from half of the result upward is tried by hand."""
    found = ring_channels(architecture, gb_s * 1e9, 8)
    total = found.count * found.inside_bytes_per_s / 1e9
    assert total <= gb_s
    best = max(
        speed * min(32, int(gb_s / speed + 1e-9))
        for speed in SPEEDS_GB_S[architecture][0]
        if speed >= found.inside_bytes_per_s / 1e9
    )
    assert total == pytest.approx(best)


def carried(count: int, gb_s: float, gpus: int, link: float, port: float) -> bool:
    """Return whether this many rings fit: each leaves by one GPU's port and crosses all others'
    links."""
    leaving = [len(range(gpu, count, gpus)) for gpu in range(gpus)]
    ports = all(rings * gb_s <= port + 1e-4 for rings in leaving)
    return ports and all((count - rings) * gb_s <= link + 1e-3 for rings in leaving)


@pytest.mark.parametrize("architecture", ["ampere", "hopper", "blackwell"])
@pytest.mark.parametrize("gpus", [1, 2, 3, 8])
def test_between_nodes_nothing_listed_carries_more(architecture: str, gpus: int) -> None:
    """Every number of rings at every bandwidth is laid on ports and links one by one."""
    for link in (14.5, 60.0, 164.8, 240.0, 370.8, 721.8):
        for port in (12.0, 24.0, 48.0, 100.0):
            check_rings(architecture, gpus, link, port)


def check_rings(architecture: str, gpus: int, link: float, port: float) -> None:
    tried = [speed for speed in SPEEDS_GB_S[architecture][1] if speed <= port]
    best = count_then = speed_then = 0.0
    for speed in tried:
        if best and speed <= 0.49 * speed_then:  # search.cc goes no further down
            continue
        fits = [n for n in range(33) if carried(n, speed, gpus, link, port)]
        if max(fits) * speed > best * (1 + 1e-12):
            best, count_then, speed_then = max(fits) * speed, max(fits), speed
        if best >= link and gpus > 1:
            break
    found = ring_channels(architecture, link * 1e9, gpus, port * 1e9)
    assert found.across_bytes_per_s == found.inside_bytes_per_s
    assert found.count * found.across_bytes_per_s == pytest.approx(best * 1e9)
    # ncclTopoDupChannels: from 25 GB/s on, but on newer GPUs not more than four below 50.
    kept = architecture != "ampere" and speed_then < 50 and count_then > 4
    twice = speed_then >= 25 and not kept
    assert found.count == min(32, count_then * (2 if twice else 1))


@pytest.mark.parametrize("architecture", ["hopper", "blackwell"])
@pytest.mark.parametrize("gpus", [2, 5, 8])
def test_nvls_takes_the_fastest_channels_that_heads_can_carry(architecture: str, gpus: int) -> None:
    """A head's link carries its own channel twice, and that of every other head once."""
    for link in (14.5, 47.0, 164.8, 370.8, 721.8):
        for port in (None, 12.0, 48.0, 100.0):
            check_nvls(architecture, gpus, link, port)


def check_nvls(architecture: str, gpus: int, link: float, port: float | None) -> None:
    best: tuple[int, float] = (0, 0.0)
    for speed in (s for s in SPEEDS_GB_S[architecture][port is not None] if s <= (port or 1e9)):
        if best[0] and speed <= 0.49 * best[1]:
            break
        heads = [n for n in range(1, gpus + 1) if (n + 1) * speed <= link + 1e-4]
        if not heads or (port is None and max(heads) < gpus):
            continue
        if (max(heads), max(heads) * speed) > (best[0], best[0] * best[1]):
            best = (max(heads), speed)
    found = switch_channels(architecture, link * 1e9, gpus, port and port * 1e9)
    assert gb_s(found)[:2] == pytest.approx(best)
    if found is not None:
        assert found.inside_bytes_per_s <= found.across_bytes_per_s
        assert found.across_bytes_per_s <= 1e9 * (port or 1e9)


def test_a_port_of_400_gb_s_is_one_channel_of_48_and_one_alone_is_two_of_24() -> None:
    assert ring_channels("hopper", 370.8e9, 8, 48e9) == Channels(8, 48e9, 48e9)
    assert ring_channels("hopper", 370.8e9, 1, 48e9) == Channels(2, 24e9, 24e9)
    assert ring_channels("ampere", 240e9, 8, 24e9) == Channels(8, 24e9, 24e9)


def test_nvls_of_eight_h200_predicts_what_was_measured_at_16_gib() -> None:
    """480.0 and 482.3 GB/s of busbw were measured; with one channel per lane it would be 595."""
    found = switch_channels("hopper", 18 * 20.6e9, 8)
    assert found == Channels(8, 40e9, 60e9)
    assert found.count * found.inside_bytes_per_s * 0.85 * 7 / 8 * 2 == pytest.approx(
        482.26e9, rel=0.015
    )


def test_every_head_of_nvls_fits_twice_on_its_own_link() -> None:
    for architecture, link in (("hopper", 370.8e9), ("blackwell", 721.8e9)):
        for gpus in range(2, 9):
            found = switch_channels(architecture, link, gpus)
            assert found is not None
            assert found.count == gpus
            assert (gpus + 1) * found.inside_bytes_per_s <= link
    assert switch_channels("ampere", 240e9, 8) is None


def test_a_machine_without_a_listed_bandwidth_is_refused() -> None:
    with pytest.raises(InputError, match="fits a channel"):
        ring_channels("ampere", 1e9, 8)
    with pytest.raises(InputError, match="did you mean hopper"):
        ring_channels("hoper", 1e9, 8)


def test_a_group_takes_the_channels_of_its_machine() -> None:
    group = nccl_group(LINKS["nvlink3"], 8, 1, LINKS["ib-hdr"])
    assert (group.channels, group.channel_bytes_per_s, group.switched) == (12, 20e9, None)
