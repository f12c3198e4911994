"""The cluster of a job: datasheet values, and the measured or chosen values that replace them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from figgen.json_text import record_of
from figgen.models.machine.cluster import Cluster
from figgen.models.machine.hardware import Chip, Network, cluster_of
from figgen.scenarios.runs.measured_rates import Measured, links_of


def known_cluster(
    chip: Chip, network: Network, dtype: str, gpus_per_node: int, measured: Measured | None
) -> Cluster:
    """Return the cluster with datasheet values, or with measured values where they are given.

    Raises InputError as `cluster_of` does.
    """
    found = cluster_of(chip, network, dtype, gpus_per_node)
    return found if measured is None else changed_cluster(found, links_of(measured))


def own_latencies_of(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the latencies that are set among a job's options."""
    names = ("scale_up_latency_s", "network_latency_s")
    return {name: values[name] for name in names if values[name] is not None}


def changed_cluster(known: Cluster, changed: Mapping[str, float]) -> Cluster:
    """Return the cluster with the `changed` fields replaced."""
    return record_of(Cluster, {**asdict(known), **changed})
