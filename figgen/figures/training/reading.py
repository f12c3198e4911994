"""How fast a job reads its data (tokens, images, volumes), and how fast storage delivers."""

from __future__ import annotations

from figgen.catalog import run
from figgen.charts import Column, Named, Scalar, Table
from figgen.errors import InputError, check_between
from figgen.models.planner.saving import STORAGE_BYTES_PER_S
from figgen.plotting.placed import headings
from figgen.registry import figure

TOKEN_BYTES = 4

TEXT = ("mlperf-v5.0-llama-3-405b-h100-8192", "mbridge-26.04.01-llama-3-405b-h100-fp8-1024")

KEYS = ("resnet", "cosmo", "unet")
SAMPLES = {
    "ResNet-50": (400, 114_660.07, 0.224),
    "CosmoFlow": (1, 2_828_486.0, 0.0035),
    "3D U-Net": (7, 146_600_628.0, 0.323),
}
"""Samples of a batch, bytes of a sample, seconds of an H100 for the batch.

Source: mlcommons/storage, configs/dlio/workload, `resnet50_h100`, `cosmoflow_h100` and
`unet3d_h100`: `batch_size`, `record_length_bytes`, `computation_time`."""


@figure("reading-rates")
def reading_rates(*, gpus: int = 1024) -> Table:
    """Bytes per second for one GPU and for `gpus`, and the number of GPUs that a storage serves."""
    check_between("gpus", gpus, 1, 10**7)
    each: dict[str, tuple[str, float]] = {}
    for name in TEXT:
        found = run(name)
        rate = found.tokens_per_s_per_gpu
        if rate is None:
            raise InputError("run", expected="one with tokens per second", got=name)
        each[found.title] = f"tokens of {TOKEN_BYTES} B", TOKEN_BYTES * rate
    for name, (samples, size, seconds) in SAMPLES.items():
        each[f"{name}, H100"] = "samples", samples * size / seconds
    rows: list[tuple[Scalar, ...]] = []
    values = {"gpus": Named(gpus), "storage": Named(STORAGE_BYTES_PER_S, "B/s")}
    for name, (what, rate) in each.items():
        rows.append((name, what, rate, gpus * rate, STORAGE_BYTES_PER_S / rate))
    rates = [rate for _, rate in each.values()]
    for key, rate in zip(("llama", *KEYS), (rates[0], *rates[len(TEXT) :]), strict=True):
        values |= {
            f"{key}_rate": Named(rate, "B/s"),
            f"{key}_all": Named(gpus * rate, "B/s"),
            f"{key}_fed": Named(STORAGE_BYTES_PER_S / rate),
        }
    columns = (
        *headings("job", "reads"),
        *headings("per GPU", f"{gpus:,} GPUs", unit="B/s", spec="si"),
        Column(label="GPUs that the storage feeds", spec="si"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
