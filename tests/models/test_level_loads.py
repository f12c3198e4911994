"""Bytes on a GPU's own links compared with the bytes of every NIC, and the bandwidth they need."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from figgen import catalog
from figgen.models.machine.cluster import Cluster
from figgen.models.machine.layout import layout
from figgen.models.machine.mesh import coordinate_array
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.level_loads import LevelLoad, level_loads
from figgen.models.step.step import StepEstimate, step
from tests.models.jobs import H100
from tests.models.leaving import leaving_by_gpu


def estimate(model: str, sizes: dict[str, int], **options: Any) -> StepEstimate:
    given = {"microbatches": 16, "sequence": 4096} | options
    parallel = layout(**{"gpus_per_node": 8} | sizes)
    return step(TrainingSetup(shape=catalog.model(model).shape, parallel=parallel, **given), H100)


def loads(found: StepEstimate, cluster: Cluster = H100) -> dict[str, LevelLoad]:
    return {load.level: load for load in level_loads(found, cluster, 0.5)}


@pytest.mark.parametrize(
    ("model", "sizes", "options"),
    [
        ("llama-3-70b", {"nodes": 8, "tp": 8, "pp": 4}, {"recompute": "full"}),
        ("llama-3-70b", {"nodes": 8, "tp": 2, "pp": 4}, {"zero_stage": 3}),
        ("llama-3-8b", {"nodes": 8, "tp": 4, "cp": 4, "pp": 4}, {"context_exchange": "all-gather"}),
        ("llama-3-8b", {"nodes": 4}, {"zero_stage": 2}),
        ("mixtral-8x7b", {"nodes": 4, "tp": 4, "etp": 1, "ep": 8, "pp": 1}, {}),
        ("deepseek-v3", {"nodes": 32, "pp": 8, "ep": 32}, {}),
    ],
)
def test_network_bytes_are_those_of_the_nics_of_the_bottleneck(
    model: str, sizes: dict[str, int], options: dict[str, Any]
) -> None:
    found = estimate(model, sizes, **options)
    dense = found.setup.parallel.dense
    stages = coordinate_array(dense)[:, dense.names.index("pp")]
    by_gpu = leaving_by_gpu(found.setup).ravel()[stages == found.bottleneck]
    assert loads(found)["network"].port_bytes == pytest.approx(np.mean(by_gpu))


def test_inside_one_node_nothing_needs_the_network_and_all_bytes_go_over_scale_up() -> None:
    found = estimate("llama-3-8b", {"nodes": 1, "tp": 4, "pp": 2})
    (load,) = level_loads(found, H100, 0.5)
    assert load.level == "scale-up"
    assert load.port_bytes == sum(row.sent_bytes for row in found.rows)
    assert load.time_s == sum(row.time_s for row in found.rows)


def test_at_the_needed_bandwidth_bytes_take_as_long_as_computing() -> None:
    sizes = {"nodes": 8, "tp": 8, "pp": 4}
    before = estimate("llama-3-70b", sizes)
    needed = loads(before)["network"].needed_bandwidth_bytes_per_s
    slow = replace(H100, network_bandwidth_bytes_per_s=needed, network_latency_s=0.0)
    after = step(before.setup, slow)
    load = loads(after, slow)["network"]
    assert load.time_s == pytest.approx(after.compute_s + after.recompute_s)
    assert load.ccr == pytest.approx(load.ridge)
    assert load.efficiency_with_overlap == pytest.approx(1)
    assert load.efficiency_without_overlap == pytest.approx(0.5)


def test_half_the_needed_bandwidth_halves_what_can_be_reached() -> None:
    found = estimate("llama-3-8b", {"nodes": 4}, zero_stage=3, microbatches=1)
    needed = loads(found)["network"].needed_bandwidth_bytes_per_s
    slow = replace(H100, network_bandwidth_bytes_per_s=needed / 2)
    assert loads(found, slow)["network"].efficiency_with_overlap == pytest.approx(0.5)
