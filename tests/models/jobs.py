"""Jobs of tests in one line: a model, its layout and its options, and the cluster of most tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from figgen import catalog
from figgen.models.machine.cluster import Cluster
from figgen.models.machine.layout import layout
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.model_shape import ModelShape

H100 = Cluster(
    peak_flops_per_s=989.4e12,
    scale_up_bandwidth_bytes_per_s=450e9,
    network_bandwidth_bytes_per_s=50e9,
    scale_up_latency_s=3.4e-6,
    network_latency_s=14e-6,
)
LAID_OUT = ("nodes", "gpus_per_node", "tp", "cp", "pp", "ep", "etp", "dp", "order")


def job(model: str | ModelShape, **given: Any) -> TrainingSetup:
    """Return a job of a catalog model or of a shape, on one node of 8 GPUs if nothing is given."""
    shape = catalog.model(model).shape if isinstance(model, str) else model
    sizes = {name: given.pop(name) for name in LAID_OUT if name in given}
    return TrainingSetup(
        shape=shape, parallel=layout(**{"nodes": 1, "gpus_per_node": 8} | sizes), **given
    )


SIZES = ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn_hidden", "vocab", "sequence")


def sized(*sizes: int, **more: Any) -> ModelShape:
    """Return a model with these eight `SIZES`."""
    return ModelShape(**dict(zip(SIZES, sizes, strict=True)), **more)


def small(**more: Any) -> ModelShape:
    """Return a model with numbers small enough to count by hand."""
    return replace(sized(6, 16, 4, 4, 4, 24, 24, 8), **more)
