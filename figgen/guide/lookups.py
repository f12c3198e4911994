"""What an inline value may look up: entries of the catalog, a schedule, a communicator, a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

RANGES = {
    "bandwidth_bytes_per_s": "bandwidth",
    "hbm_bandwidth_bytes_per_s": "hbm_bandwidth",
    "hbm_bytes": "hbm_capacity",
}
"""Bare numbers of the catalog, with the fields that have the range of each."""


def _schedule(name: str, *, stages: int, microbatches: int, **options: Any) -> object:
    from figgen.models.pipeline.schedules import build
    from figgen.models.pipeline.simulate import simulate

    return simulate(build(name, stages=stages, microbatches=microbatches, **options))


def _communicator(preset: str, axes: str) -> object:
    from figgen.catalog import map_preset
    from figgen.models.machine.layout import layout
    from figgen.models.machine.placement import communicator

    sizes = map_preset(preset)
    names = ("nodes", "gpus_per_node", "tp", "cp", "pp", "ep", "etp")
    return communicator(layout(**{name: getattr(sizes, name) for name in names}), axes)


def _job(model: str, sizes: str, options: str = "") -> object:
    from figgen.scenarios.stories.journey import job

    return job(model, sizes, options)


def _rung(page: int) -> object:
    from figgen.scenarios.stories.journey import rung

    return rung(page)


def _entry(kind: str) -> Callable[[str], object]:
    def look_up(name: str) -> object:
        import figgen.catalog

        return getattr(figgen.catalog, kind)(name)

    return look_up


ENTRIES = (
    "accelerator",
    "interruption",
    "link",
    "measurement",
    "model",
    "preset",
    "residuals",
    "run",
)
LOOKUPS: dict[str, Callable[..., object]] = {
    **{kind: _entry(kind) for kind in ENTRIES},
    "schedule": _schedule,
    "communicator": _communicator,
    "job": _job,
    "rung": _rung,
}
