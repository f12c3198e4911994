"""Hardware, links, models, published runs and presets: data with units, sources and checks.

    >>> from figgen.catalog import accelerator
    >>> accelerator("h100-sxm-80gb").hbm_bandwidth.value
    3350000000000

The data is in the TOML files beside this module; a file is read when it is first needed, and
any fault in it is an InputError that names file, entry and key. Numbers are SI; bandwidths
are of one direction, peaks are dense.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from figgen.catalog import load
from figgen.catalog.clusters import chip_of, cluster, network_of
from figgen.catalog.hardware import Accelerator, Link
from figgen.catalog.interruptions import interruption
from figgen.catalog.measurements import Measurement
from figgen.catalog.models import Model
from figgen.catalog.nccl import NcclTuning
from figgen.catalog.presets import HardwarePreset, MapPreset, Preset, TrainingPreset
from figgen.catalog.residuals import Residuals
from figgen.catalog.residuals import residuals as class_residuals
from figgen.catalog.runs import Run
from figgen.entries.schema import Value
from figgen.errors import InputError, unknown

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


def accelerator(name: str) -> Accelerator:
    """The accelerator of that name; an unknown one raises InputError with the nearest."""
    return _find("accelerator", name, load.accelerators.only(name))


def link(name: str) -> Link:
    """The link of that name; an unknown one raises InputError with the nearest."""
    return _find("link", name, load.links.only(name))


def model(name: str) -> Model:
    """The model of that name; an unknown one raises InputError with the nearest."""
    return _find("model", name, load.models.only(name))


def run(name: str) -> Run:
    """The published run of that name; an unknown one raises InputError with the nearest."""
    return _find("run", name, load.runs.only(name))


def preset(name: str) -> Preset:
    """The preset of that name; an unknown one raises InputError with the nearest."""
    return _find("preset", name, load.presets.only(name))


def map_preset(name: str) -> MapPreset:
    """The rank map of that name; InputError for an unknown one and for another kind of preset."""
    return _of_kind(MapPreset, "a rank map", name)


def hardware_preset(name: str) -> HardwarePreset:
    """The kind of node of that name; InputError as for `map_preset`."""
    return _of_kind(HardwarePreset, "a hardware preset", name)


def training_preset(name: str) -> TrainingPreset:
    """The published configuration of that name; InputError as for `map_preset`."""
    return _of_kind(TrainingPreset, "a training preset", name)


def measurement(name: str) -> Measurement:
    """The measurement of that name; an unknown one raises InputError with the nearest."""
    return _find("measurement", name, load.measurements.only(name))


def residuals(name: str) -> Residuals:
    """How runs of a class of predictions were measured; an unknown one raises InputError."""
    return _find("class of runs", name, class_residuals())


def nccl_tuning() -> NcclTuning:
    """NCCL's tuning constants."""
    return load.nccl()


Thing = TypeVar("Thing")
Kind = TypeVar("Kind", MapPreset, HardwarePreset, TrainingPreset)


def _of_kind(kind: type[Kind], words: str, name: str) -> Kind:
    found = preset(name)
    if not isinstance(found, kind):
        raise InputError(f"preset {name!r}", expected=words, got=found.kind)
    return found


def _find(kind: str, name: str, known: Mapping[str, Thing]) -> Thing:
    if name not in known:
        raise unknown(kind, name, known)
    return known[name]
