"""Chips and networks by their datasheets, and the cluster that a job makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from figgen.errors import InputError
from figgen.models.machine.cluster import USUAL_MEMORY_BYTES_PER_S, Cluster

NARROW = ("fp8", "fp4")
"""Number formats of fewer than 16 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """An accelerator with its dense peaks by number format, FLOP/s.

    Bandwidths are per direction, and a latency is that of one step of a ring. The two numbers of
    its memory are None if unknown; without a `scale_up_domain`, nodes may be of any width.
    `host_gpus` are those of one host if several hosts share a domain, else 0.
    """

    name: str
    peaks: Mapping[str, float]
    memory_bytes: float | None
    memory_bandwidth_bytes_per_s: float | None
    scale_up_bandwidth_bytes_per_s: float
    scale_up_latency_s: float
    scale_up_domain: int | None = None
    host_gpus: int = 0

    def peak_flops_per_s(self, dtype: str) -> float:
        """Return the dense peak in a number format, FLOP/s. Raises InputError if there is none."""
        if dtype not in self.peaks:
            expected = " or ".join(self.peaks)
            raise InputError(
                f"{self.name} has no dense {dtype} matrix peak", expected=expected, got=dtype
            )
        return self.peaks[dtype]

    def wide_peak_flops_per_s(self, dtype: str) -> float:
        """Return the dense peak in FLOP/s of a number format, or of 16 bits if it is narrower."""
        return self.peak_flops_per_s("bf16" if dtype in NARROW and "bf16" in self.peaks else dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A network between nodes: the bandwidth in one direction of a GPU or of a node, as `per` says.

    `latency_s` is that of one step of a ring.
    """

    name: str
    bandwidth_bytes_per_s: float
    per: str
    latency_s: float


def cluster_of(chip: Chip, network: Network, dtype: str, gpus_per_node: int) -> Cluster:
    """Return nodes of chips with matmuls in `dtype`, each chip with its share of the network.

    Raises InputError for nodes wider than the scale-up domain, and for a format without a dense
    peak.
    """
    if chip.scale_up_domain is not None and gpus_per_node > chip.scale_up_domain:
        expected = f"at most {chip.scale_up_domain}, the scale-up domain of {chip.name}"
        raise InputError("gpus_per_node", expected=expected, got=gpus_per_node)
    sharing = gpus_per_node if network.per == "node" else 1
    return Cluster(
        peak_flops_per_s=chip.peak_flops_per_s(dtype),
        scale_up_bandwidth_bytes_per_s=chip.scale_up_bandwidth_bytes_per_s,
        network_bandwidth_bytes_per_s=network.bandwidth_bytes_per_s / sharing,
        scale_up_latency_s=chip.scale_up_latency_s,
        network_latency_s=network.latency_s,
        memory_bandwidth_bytes_per_s=chip.memory_bandwidth_bytes_per_s or USUAL_MEMORY_BYTES_PER_S,
    )
