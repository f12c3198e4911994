"""What a step runs on: the rates of one GPU and its two kinds of links."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.errors import InputError

USUAL_MEMORY_BYTES_PER_S = 3.35e12
"""The memory bandwidth of an H100, used for a GPU whose memory is unknown."""

MOST_LATENCY_S = 1_000_000
"""Larger latencies are typos, and times would overflow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Equal GPUs in equal nodes, each with its own share of the network.

    `peak_flops_per_s` is dense; bandwidths are of one GPU and one direction, latencies those of
    one step of a collective. Raises InputError for a rate that is not positive.
    """

    peak_flops_per_s: float
    scale_up_bandwidth_bytes_per_s: float
    network_bandwidth_bytes_per_s: float
    scale_up_latency_s: float = 0.0
    network_latency_s: float = 0.0
    memory_bandwidth_bytes_per_s: float = USUAL_MEMORY_BYTES_PER_S

    def __post_init__(self) -> None:
        for name in (
            "peak_flops_per_s",
            "scale_up_bandwidth_bytes_per_s",
            "network_bandwidth_bytes_per_s",
            "memory_bandwidth_bytes_per_s",
        ):
            if getattr(self, name) <= 0:
                raise InputError(f"{name} of a cluster", expected="> 0", got=getattr(self, name))
        for name in ("scale_up_latency_s", "network_latency_s"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} of a cluster", expected=">= 0", got=getattr(self, name))
            if getattr(self, name) > MOST_LATENCY_S:
                expected = f"at most {MOST_LATENCY_S:,} s"
                raise InputError(f"{name} of a cluster", expected=expected, got=getattr(self, name))
