"""Look up entries of the catalog by name (`figgen.lookups.stored`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from figgen.catalog import load
from figgen.catalog.hardware import Accelerator, Link
from figgen.catalog.measurements import Measurement
from figgen.catalog.models import Model
from figgen.catalog.nccl import NcclTuning
from figgen.catalog.presets import HardwarePreset, MapPreset, Preset, TrainingPreset
from figgen.catalog.residuals import Residuals
from figgen.catalog.residuals import residuals as class_residuals
from figgen.catalog.runs import Run
from figgen.errors import InputError, unknown
from figgen.lookups import stored


@stored(load.accelerators.names)
def accelerator(name: str) -> Accelerator:
    """The accelerator of that name; an unknown one raises InputError with the nearest."""
    return _find("accelerator", name, load.accelerators.only(name))


@stored(load.links.names)
def link(name: str) -> Link:
    """The link of that name; an unknown one raises InputError with the nearest."""
    return _find("link", name, load.links.only(name))


@stored(load.models.names)
def model(name: str) -> Model:
    """The model of that name; an unknown one raises InputError with the nearest."""
    return _find("model", name, load.models.only(name))


@stored(load.runs.names)
def run(name: str) -> Run:
    """The published run of that name; an unknown one raises InputError with the nearest."""
    return _find("run", name, load.runs.only(name))


def preset(name: str) -> Preset:
    """The preset of that name; an unknown one raises InputError with the nearest."""
    return _find("preset", name, load.presets.only(name))


def map_preset(name: str) -> MapPreset:
    """The rank map of that name; InputError for an unknown one and for another kind of preset."""
    return _of_kind(MapPreset, "a rank map", name)


@stored(lambda: presets_of(HardwarePreset))
def hardware_preset(name: str) -> HardwarePreset:
    """The kind of node of that name; InputError as for `map_preset`."""
    return _of_kind(HardwarePreset, "a hardware preset", name)


@stored(lambda: presets_of(TrainingPreset))
def training_preset(name: str) -> TrainingPreset:
    """The published configuration of that name; InputError as for `map_preset`."""
    return _of_kind(TrainingPreset, "a training preset", name)


@stored(load.measurements.names)
def measurement(name: str) -> Measurement:
    """The measurement of that name; an unknown one raises InputError with the nearest."""
    return _find("measurement", name, load.measurements.only(name))


def residuals(name: str) -> Residuals:
    """How runs of a class of predictions were measured; an unknown one raises InputError."""
    return _find("class of runs", name, class_residuals())


@stored()
def nccl_tuning() -> NcclTuning:
    """NCCL's tuning constants."""
    return load.nccl()


def presets_of(kind: type[Preset]) -> tuple[str, ...]:
    """Return the names of the presets of one kind."""
    return tuple(name for name, found in load.presets().items() if isinstance(found, kind))


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
