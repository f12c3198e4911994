"""Looks up entries of the catalog by name (`figgen.lookups.stored`)."""

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
    """Return the accelerator `name`. Raises InputError, with the nearest names, if unknown."""
    return _find("accelerator", name, load.accelerators.only(name))


@stored(load.links.names)
def link(name: str) -> Link:
    """Return the link `name`. Raises InputError, with the nearest names, if it is unknown."""
    return _find("link", name, load.links.only(name))


@stored(load.models.names)
def model(name: str) -> Model:
    """Return the model `name`. Raises InputError, with the nearest names, if it is unknown."""
    return _find("model", name, load.models.only(name))


@stored(load.runs.names)
def run(name: str) -> Run:
    """Return the published run `name`. Raises InputError, with the nearest names, if unknown."""
    return _find("run", name, load.runs.only(name))


def preset(name: str) -> Preset:
    """Return the preset `name`. Raises InputError, with the nearest names, if it is unknown."""
    return _find("preset", name, load.presets.only(name))


def map_preset(name: str) -> MapPreset:
    """Return the rank map `name`. Raises InputError if unknown or a different kind of preset."""
    return _of_kind(MapPreset, "a rank map", name)


@stored(lambda: presets_of(HardwarePreset))
def hardware_preset(name: str) -> HardwarePreset:
    """Return the kind of node called `name`. Raises InputError as `map_preset` does."""
    return _of_kind(HardwarePreset, "a hardware preset", name)


@stored(lambda: presets_of(TrainingPreset))
def training_preset(name: str) -> TrainingPreset:
    """Return the published configuration `name`. Raises InputError as `map_preset` does."""
    return _of_kind(TrainingPreset, "a training preset", name)


@stored(load.measurements.names)
def measurement(name: str) -> Measurement:
    """Return the measurement `name`. Raises InputError, with the nearest names, if unknown."""
    return _find("measurement", name, load.measurements.only(name))


def residuals(name: str) -> Residuals:
    """Return the errors of predictions for a class of runs. Raises InputError if it is unknown."""
    return _find("class of runs", name, class_residuals())


@stored()
def nccl_tuning() -> NcclTuning:
    """Return NCCL's tuning constants."""
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
