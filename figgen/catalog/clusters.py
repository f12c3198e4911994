"""Converts hardware of the catalog to the form that the models of a step take."""

from __future__ import annotations

from figgen.catalog.by_name import nccl_tuning
from figgen.catalog.hardware import Accelerator, Link
from figgen.models.machine.cluster import Cluster
from figgen.models.machine.hardware import Chip, Network, cluster_of


def cluster(chip: Accelerator, nic: Link, dtype: str, gpus_per_node: int) -> Cluster:
    """Return nodes of chips with their share of `nic`. Raises InputError as `cluster_of` does.

    Latencies are those of one step of a ring: NCCL's, unless the link has its own.
    """
    return cluster_of(chip_of(chip), network_of(nic), dtype, gpus_per_node)


def chip_of(entry: Accelerator) -> Chip:
    """Return what the models need of an accelerator."""
    return Chip(
        name=entry.name,
        peaks=entry.peaks,
        memory_bytes=entry.capacity_bytes,
        memory_bandwidth_bytes_per_s=entry.hbm_bandwidth.value,
        scale_up_bandwidth_bytes_per_s=entry.scale_up_bandwidth_bytes_per_s,
        scale_up_latency_s=nccl_tuning().latency_in_node_s(entry.scale_up),
        scale_up_domain=entry.scale_up_domain,
        host_gpus=entry.host_gpus or 0,
    )


def network_of(entry: Link) -> Network:
    """Return what the models need of a network."""
    return Network(
        name=entry.name,
        bandwidth_bytes_per_s=entry.bandwidth_bytes_per_s,
        per=entry.per,
        latency_s=nccl_tuning().network_latency_s,
    )
