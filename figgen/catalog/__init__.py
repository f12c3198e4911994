"""Hardware, links, models, published runs and presets: data with units, sources and checks.

>>> from figgen.catalog import accelerator
>>> accelerator("h100-sxm-80gb").hbm_bandwidth.value
3350000000000

The data is in the TOML files of this folder. A file is read when it is first needed, and any
mistake in it is an InputError that names file, entry and key. Numbers are in SI units; bandwidths
are per direction, peaks are dense.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from figgen.catalog import load
from figgen.catalog.by_name import (
    accelerator,
    hardware_preset,
    link,
    map_preset,
    measurement,
    model,
    nccl_tuning,
    preset,
    residuals,
    run,
    training_preset,
)
from figgen.catalog.clusters import chip_of, cluster, network_of
from figgen.catalog.hardware import Accelerator, Link
from figgen.catalog.interruptions import interruption
from figgen.catalog.measurements import Measurement
from figgen.catalog.models import Model
from figgen.catalog.nccl import NcclTuning
from figgen.catalog.presets import HardwarePreset, MapPreset, Preset, TrainingPreset
from figgen.catalog.runs import Run
from figgen.entries.schema import Value

__all__ = [
    "ACCELERATORS",
    "LINKS",
    "MEASUREMENTS",
    "MODELS",
    "PRESETS",
    "RUNS",
    "SOURCES",
    "Accelerator",
    "HardwarePreset",
    "Link",
    "MapPreset",
    "Measurement",
    "Model",
    "NcclTuning",
    "Preset",
    "Run",
    "TrainingPreset",
    "Value",
    "accelerator",
    "chip_of",
    "cluster",
    "hardware_preset",
    "interruption",
    "link",
    "map_preset",
    "measurement",
    "model",
    "nccl_tuning",
    "network_of",
    "preset",
    "residuals",
    "run",
    "training_preset",
]

# Filled by __getattr__ when first asked for.
ACCELERATORS: Mapping[str, Accelerator]
LINKS: Mapping[str, Link]
MODELS: Mapping[str, Model]
RUNS: Mapping[str, Run]
PRESETS: Mapping[str, Preset]
SOURCES: Mapping[str, str]
MEASUREMENTS: Mapping[str, Measurement]

_TABLES: Mapping[str, Callable[[], object]] = {
    "ACCELERATORS": load.accelerators,
    "LINKS": load.links,
    "MODELS": load.models,
    "RUNS": load.runs,
    "PRESETS": load.presets,
    "SOURCES": load.sources,
    "MEASUREMENTS": load.measurements,
}


def __getattr__(name: str) -> object:
    if name in _TABLES:
        return _TABLES[name]()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
