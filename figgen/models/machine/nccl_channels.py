"""The channels that NCCL finds on a node whose GPUs are all on one switch.

NCCL (2.30.7, src/graph/search.cc) does not divide a link into its lanes: it tries the bandwidths of
a list, from the largest down, lays as many channels of that bandwidth as the links carry, and keeps
what carries most in total. The 370.8 GB/s of an H100's eighteen lanes are therefore never reached:
no number of channels at a listed bandwidth adds up to more than 360.

Not modeled: paths over PCI that are slower than the NIC, several NICs per GPU, GPUs without a
switch, the search of trees, which have more inside the node on two nodes, and `NCCL_*` variables.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.errors import InputError, check_size, unknown

_UNTIL_AMPERE = (
    (40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3),
    (48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12),
)
SPEEDS_GB_S: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "volta": _UNTIL_AMPERE,
    "ampere": _UNTIL_AMPERE,
    "hopper": (
        (60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3),
        (48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12),
    ),
    "blackwell": (
        (90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18),
        (96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12),
    ),
}
"""Architecture: bandwidths of a channel that are tried within one node, and across nodes."""

MOST_RINGS = 32
"""Half of NCCL's MAXCHANNELS: every channel of the search runs twice."""

SLACK = 1e-3
"""GB/s; NCCL rounds the remaining bandwidth of a link to a thousandth."""

LEAST_STEP = 0.49
"""Once there is a solution, no bandwidth below this share of it is tried."""


@dataclass(frozen=True, slots=True)
class Channels:
    """`count` channels with these bandwidths in B/s per direction, within and between nodes."""

    count: int
    inside_bytes_per_s: float
    across_bytes_per_s: float


def ring_channels(
    architecture: str, link_bytes_per_s: float, gpus: int, nic_bytes_per_s: float | None = None
) -> Channels:
    """Return the rings of a node of `gpus`, or of several nodes with one NIC per GPU.

    Bandwidths are NCCL's own, per direction: those of a GPU to the switch and of a port. Raises
    InputError for an unknown architecture or a link too slow for any listed bandwidth.
    """
    check_size("gpus", gpus)
    link, port = link_bytes_per_s / 1e9, (nic_bytes_per_s or 0) / 1e9

    def fitting(speed: float) -> int:
        if nic_bytes_per_s is None:
            return _whole(link / speed)
        count = gpus * _whole(port / speed)
        # a ring leaves the node from one GPU, which sends nothing of it over its link
        while (count - count // gpus) * speed > link + SLACK:
            count -= 1
        return count

    limit = link if nic_bytes_per_s is None else port
    count, speed = 0, 0.0
    for tried in _speeds(architecture, nic_bytes_per_s):
        if tried > limit or tried <= LEAST_STEP * speed:
            continue
        rings = min(fitting(tried), MOST_RINGS)
        if rings * tried > count * speed:
            count, speed = rings, tried
        if count * speed >= link and gpus > 1:
            break
    if not count:
        raise InputError("bandwidth", expected="one that fits a channel of NCCL's list", got=limit)
    return _doubled(architecture, count, speed)


def _doubled(architecture: str, count: int, speed: float) -> Channels:
    """Return two channels of half the bandwidth for each fast one, so that more GPU blocks work."""
    newer = architecture in ("hopper", "blackwell")
    if speed >= 25 and not (newer and speed < 50 and count > 4):
        twice = min(2 * count, MOST_RINGS)
        speed /= -(-twice // count)
        count = twice
    return Channels(count, speed * 1e9, speed * 1e9)


def switch_channels(
    architecture: str, link_bytes_per_s: float, gpus: int, nic_bytes_per_s: float | None = None
) -> Channels | None:
    """Return the channels of NVLS, each headed by a different GPU; None before Hopper.

    The head's link carries its own channel twice in each direction, that of every other GPU once.
    """
    if architecture not in ("hopper", "blackwell") or gpus < 2:
        return None
    link = link_bytes_per_s / 1e9
    speeds = _speeds(architecture, nic_bytes_per_s)
    limit = float("inf") if nic_bytes_per_s is None else nic_bytes_per_s / 1e9
    count, inside = 0, 0.0
    for speed in speeds:
        if speed > limit or speed <= LEAST_STEP * inside:
            continue
        heads = min(gpus, _whole(link / speed) - 1)
        if nic_bytes_per_s is None and heads < gpus:  # within a node every GPU must be a head
            continue
        if heads > count or heads * speed > count * inside:
            count, inside = heads, speed
    if not count:
        return None
    # then the bandwidth between nodes is raised on its own: within a node nothing stands against
    # it but the list and twice the other
    across = inside
    for speed in reversed([s for s in speeds if inside < s <= limit]):
        if across < 2 * inside:
            across = speed
    return Channels(count, inside * 1e9, across * 1e9)


def _speeds(architecture: str, nic_bytes_per_s: float | None) -> tuple[float, ...]:
    if architecture not in SPEEDS_GB_S:
        raise unknown("architecture", architecture, SPEEDS_GB_S)
    return SPEEDS_GB_S[architecture][nic_bytes_per_s is not None]


def _whole(quotient: float) -> int:
    return int(quotient + 1e-6)
