"""Hardware of the catalog as the models of a step take it."""

from __future__ import annotations

from figgen.catalog.hardware import Accelerator, Link
from figgen.catalog.load import nccl
from figgen.errors import InputError
from figgen.models.machine.cluster import Cluster


def cluster(chip: Accelerator, nic: Link, dtype: str, gpus_per_node: int) -> Cluster:
    """Nodes of `gpus_per_node` chips that multiply in `dtype`, each chip with its share of `nic`.

    Latencies are those of one step of a ring, NCCL's unless the link has its own. Raises
    InputError for nodes that are wider than the scale-up domain, and for a type that the chip has
    no dense peak for.
    """
    if gpus_per_node > chip.scale_up_domain:
        expected = f"at most {chip.scale_up_domain}, the scale-up domain of {chip.name}"
        raise InputError("gpus_per_node", expected=expected, got=gpus_per_node)
    sharing = gpus_per_node if nic.per == "node" else 1
    return Cluster(
        peak_flops_per_s=chip.peak_flops_per_s(dtype),
        scale_up_bandwidth_bytes_per_s=chip.scale_up_bandwidth_bytes_per_s,
        network_bandwidth_bytes_per_s=nic.bandwidth_bytes_per_s / sharing,
        scale_up_latency_s=nccl().latency_in_node_s(chip.scale_up),
        network_latency_s=nccl().network_latency_s,
        memory_bandwidth_bytes_per_s=chip.hbm_bandwidth.value,
    )
