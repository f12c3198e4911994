"""Reads each catalog file once, when it is first needed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from figgen.catalog.hardware import Accelerator, Link, read_accelerators, read_links
from figgen.catalog.measurements import Measurement, read_measurements
from figgen.catalog.models import Model, read_models
from figgen.catalog.nccl import NcclTuning, read_nccl
from figgen.catalog.presets import Preset, read_presets
from figgen.catalog.runs import Run, read_runs
from figgen.entries.read import read_sources
from figgen.errors import EntryPlace, InputError
from figgen.lookups import LookupTable

FOLDER = Path(__file__).parent
ACCELERATOR_FILES = ("accelerators.toml", "accelerators-cards.toml", "accelerators-announced.toml")
MODEL_FILES = ("models.toml", "models-benchmarks.toml")
RUN_FILES = ("runs-reports.toml", "runs-megatron.toml", "runs-benchmarks.toml")


def content(file: str) -> str:
    """Return the text of a catalog file. Raises InputError if it is missing or not UTF-8."""
    try:
        return (FOLDER / file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        what = f"{file} is not UTF-8 text: byte {error.start}"
        raise InputError(what, got=error.object[error.start]) from None


@cache
def sources() -> dict[str, str]:
    return read_sources(content("sources.toml"))


@LookupTable
def links() -> dict[str, Link]:
    return read_links(content("links.toml"), sources())


@LookupTable
def accelerators() -> dict[str, Accelerator]:
    found: dict[str, Accelerator] = {}
    for file in ACCELERATOR_FILES:
        for name, chip in read_accelerators(file, content(file), sources(), links()).items():
            if name in found:
                raise EntryPlace(file=file, entry=name).fault("twice in the catalog")
            found[name] = chip
    return found


@LookupTable
def models() -> dict[str, Model]:
    found: dict[str, Model] = {}
    for file in MODEL_FILES:
        for name, model in read_models(file, content(file), sources()).items():
            if name in found:
                raise EntryPlace(file=file, entry=name).fault("twice in the catalog")
            if bool(model.gpu_hours) != (model.trained_on in accelerators()):
                where, known = (
                    EntryPlace(file=file, entry=name, key="trained_on"),
                    ", ".join(accelerators()),
                )
                raise where.fault("GPU hours of what", expected=known, got=model.trained_on)
            found[name] = model
    return found


@LookupTable
def runs() -> dict[str, Run]:
    found: dict[str, Run] = {}
    for file in RUN_FILES:
        for name, run in read_runs(
            file, content(file), sources(), models(), accelerators()
        ).items():
            if name in found:
                raise EntryPlace(file=file, entry=name).fault("twice in the catalog")
            found[name] = run
    return found


@LookupTable
def nccl() -> NcclTuning:
    return read_nccl(content("nccl.toml"), sources())


@LookupTable
def presets() -> dict[str, Preset]:
    return read_presets(
        content("presets.toml"),
        sources(),
        accelerators=accelerators(),
        links=links(),
        runs=runs(),
        nccl=nccl(),
    )


@LookupTable
def measurements() -> dict[str, Measurement]:
    return read_measurements(content("measurements.toml"), sources(), accelerators())
