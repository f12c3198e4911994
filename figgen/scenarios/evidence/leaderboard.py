"""Predictors of training steps, scored on runs of publishers that none of them was fitted to.

The split is frozen by publisher (`catalog/leaderboard.py`): its runs had no part in any constant
here, and runs that are added to the catalog later do not enter it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

from figgen.catalog.leaderboard import frozen_split
from figgen.errors import InputError, unknown
from figgen.lookups import remembered
from figgen.scenarios.evidence.publishers import catalog_seconds, published_runs
from figgen.scenarios.runs.described import DescribedRun

SIZES = (
    "layers",
    "hidden",
    "heads",
    "kv_heads",
    "head_dim",
    "ffn_hidden",
    "ffn",
    "vocab",
    "tied_embeddings",
    "window",
    "full_every",
)
LAYOUT = (
    "gpus", "gpus_per_node", "tp", "cp", "pp", "ep", "etp", "schedule", "virtual_stages",
    "microbatch", "global_batch", "sequence", "zero_stage", "number_format", "recompute",
    "framework", "release", "source",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow:
    """Errors of a predictor on the runs that it answers; every publisher counts once.

    `ours` is the mean error of this site's model on the same runs.
    """

    name: str
    version: str
    source: str
    runs: int
    publishers: int
    mean_absolute: float
    median_absolute: float
    within_quarter: float
    ours: float


@remembered(1)
def our_seconds() -> dict[str, float]:
    """Return this site's predicted seconds for every run of the split, doubtful ones included."""
    runs = _split_runs()
    return dict(zip(runs, map(float, catalog_seconds(list(runs.values()))), strict=True))


def _split_runs() -> dict[str, DescribedRun]:
    """Return the runs of the split, by name."""
    wanted = _measured()
    return {
        one.run.name: one.run
        for one in published_runs()
        if one.run.name in wanted and not one.fitted
    }


def board() -> tuple[BoardRow, ...]:
    """Return the predictors, smallest mean error first; ties go to the one with more runs."""
    ours = scored("this site", "today's", "", our_seconds())
    others = [scored(e.name, e.version, e.source, e.seconds) for e in frozen_split().entrants]
    return tuple(sorted([ours, *others], key=lambda row: (row.mean_absolute, -row.runs)))


def scored(name: str, version: str, source: str, seconds: Mapping[str, float]) -> BoardRow:
    """Return the row of a predictor. Raises InputError for unknown runs and invalid times."""
    measured = _measured()
    for run, time_s in seconds.items():
        if run not in measured:
            raise unknown("run of the split", run, measured)
        if isinstance(time_s, bool) or not isinstance(time_s, int | float) or not time_s > 0:
            raise InputError(f"seconds of {run}", expected="a positive number", got=time_s)
    if not seconds:
        raise InputError("answers", expected="seconds by run", got="none")
    by_publisher = _by_publisher(seconds)
    errors = [error for each in by_publisher.values() for error in each]
    return BoardRow(
        name=name,
        version=version,
        source=source,
        runs=len(errors),
        publishers=len(by_publisher),
        mean_absolute=fmean(map(fmean, by_publisher.values())),
        median_absolute=median(errors),
        within_quarter=fmean(error <= 0.25 for error in errors),
        ours=fmean(map(fmean, _by_publisher(our_seconds(), seconds).values())),
    )


def split_jobs() -> list[dict[str, Any]]:
    """Return every run of the split as plain data in SI units, for other predictors."""
    publisher_of = {run: name for name, runs in frozen_split().publishers.items() for run in runs}
    return [
        {"run": name, "publisher": publisher_of[name]} | {"measured_s": run.step_time_s} | _job(run)
        for name, run in _split_runs().items()
    ]


def _job(run: DescribedRun) -> dict[str, Any]:
    experts = run.shape.experts
    chip = run.accelerator
    return {
        "model": {name: getattr(run.shape, name) for name in SIZES}
        | {"experts": None if experts is None else asdict(experts)},
        "accelerator": chip.name,
        "peak_bf16_flops_per_s": chip.bf16.value if chip.bf16 else None,
        "memory_bandwidth_bytes_per_s": chip.hbm_bandwidth.value,
        "network": run.network.name,
        "network_bytes_per_s": run.network.bandwidth.value,
        **{name: getattr(run, name) for name in LAYOUT},
    }


def _measured() -> dict[str, float]:
    return {run: s for runs in frozen_split().publishers.values() for run, s in runs.items()}


def _by_publisher(
    seconds: Mapping[str, float], only: Mapping[str, float] | None = None
) -> dict[str, list[float]]:
    """Return absolute relative errors by publisher, only on runs in `only` if it is given."""
    found: dict[str, list[float]] = {}
    for publisher, runs in frozen_split().publishers.items():
        asked = [run for run in runs if run in seconds and (only is None or run in only)]
        if asked:
            found[publisher] = [abs(seconds[run] / runs[run] - 1) for run in asked]
    return found
