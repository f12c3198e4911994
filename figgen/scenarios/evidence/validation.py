"""Every measured run next to its prediction, and the errors of groups of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from figgen.errors import unknown
from figgen.lookups import remembered
from figgen.models.memory.fit_probability import SAFE
from figgen.models.memory.memory import memory
from figgen.models.step.calibration import spearman
from figgen.scenarios.evidence.calibrate import Predictor
from figgen.scenarios.evidence.measured import measured_runs, run_sides, shown_runs
from figgen.scenarios.evidence.split import TEST
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.rates import era_of
from figgen.scenarios.runs.residual_classes import class_of, generation_of
from figgen.scenarios.runs.setup import run_setup

FEWEST_LAYOUTS = 5
"""Fewest layouts of one model on one number of GPUs for which a ranking is reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRun:
    """A run, its measured and predicted seconds, and whether it helped to fit the constants."""

    run: DescribedRun
    measured_s: float
    predicted_s: float
    tested: bool

    @property
    def error(self) -> float:
        """Predicted over measured, less one; positive if the prediction is too slow."""
        return self.predicted_s / self.measured_s - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Relative errors of a group of runs."""

    name: str
    runs: int
    mean_absolute: float
    median_absolute: float
    bias: float
    worst: float
    within_quarter: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """How well the order of layouts of one model on one number of GPUs is predicted.

    `choice` is the measured time of the layout that the planner would choose over that of the
    fastest. `choice_without_waits` is the same among runs that are not `polling`, or None if fewer
    than `FEWEST_LAYOUTS` remain.
    """

    name: str
    gpus: int
    layouts: int
    spearman: float
    choice: float
    choice_without_waits: float | None


@remembered(1)
def judged_runs() -> tuple[JudgedRun, ...]:
    """Return all runs with a known time, except those whose source is suspect."""
    runs = [
        run
        for run in (*measured_runs(), *shown_runs())
        if run.step_time_s is not None and not run.suspect
    ]
    seconds, sides = Predictor(runs, ())(np.zeros(0)), run_sides()
    return tuple(
        JudgedRun(
            run=run,
            measured_s=float(run.step_time_s or 0),
            predicted_s=float(found),
            tested=sides[run.name] == TEST,
        )
        for run, found in zip(runs, seconds, strict=True)
    )


FORMATS = {
    "bf16": "16 bits", "fp16": "16 bits", "fp8": "FP8", "fp8-current": "FP8",
    "fp8-rowwise": "FP8", "mxfp8": "MXFP8", "nvfp4": "NVFP4", "tf32": "TF32",
}  # fmt: skip


def _release(run: DescribedRun) -> str:
    return era_of(run).replace("-", " ", 1) if run.shape.experts else "dense models"


GROUPINGS: Mapping[str, Callable[[DescribedRun], str]] = {
    "class": class_of,
    "generation": lambda run: generation_of(run.accelerator).capitalize(),
    "format": lambda run: FORMATS[run.number_format],
    "framework": lambda run: run.framework,
    "experts": _release,
}
"""The groupings of runs, by name."""


def grouping(name: str) -> Callable[[DescribedRun], str]:
    """Return the grouping `name`. Raises InputError, with the nearest, if it is unknown."""
    if name not in GROUPINGS:
        raise unknown("grouping of runs", name, GROUPINGS)
    return GROUPINGS[name]


def errors_of(name: str, judged: Iterable[JudgedRun]) -> Errors | None:
    """Return the errors of some runs, or None for no runs."""
    errors = np.array([run.error for run in judged])
    if not len(errors):
        return None
    sizes = np.abs(errors)
    return Errors(
        name=name,
        runs=len(errors),
        mean_absolute=float(sizes.mean()),
        median_absolute=float(np.median(sizes)),
        bias=float(np.median(errors)),
        worst=float(errors[sizes.argmax()]),
        within_quarter=float((sizes <= 0.25).mean()),
    )


def grouped(by: str) -> dict[str, list[JudgedRun]]:
    """Return the runs of every group, ordered by group name."""
    key = grouping(by)
    found: dict[str, list[JudgedRun]] = {}
    for judged in judged_runs():
        found.setdefault(key(judged.run), []).append(judged)
    return dict(sorted(found.items()))


def rankings(*, tested_only: bool) -> list[Ranking]:
    """Return how the layouts of the large sweep are ranked, by model and number of GPUs."""
    groups: dict[tuple[str, int], list[JudgedRun]] = {}
    for judged in judged_runs():
        run = judged.run
        if run.framework == "nanotron" and (judged.tested or not tested_only):
            groups.setdefault((swept_model(run), run.gpus), []).append(judged)
    return [_ranking(group) for _, group in sorted(groups.items()) if len(group) >= FEWEST_LAYOUTS]


SWEPT = {2048: "1B", 3072: "3B", 4096: "8B", 8192: "80B"}
"""Names of the sweep's models, by width."""


def swept_model(run: DescribedRun) -> str:
    """Return the sweep's name for the model of a run.

    Its largest model was also run with fewer key heads.
    """
    shape = run.shape
    return SWEPT[shape.hidden] + ("" if shape.kv_heads == shape.heads else ", grouped queries")


def _ranking(group: Sequence[JudgedRun]) -> Ranking:
    run = group[0].run
    awake = [judged for judged in group if not polling(judged)]
    return Ranking(
        name=swept_model(run),
        gpus=run.gpus,
        layouts=len(group),
        spearman=spearman(
            [judged.predicted_s for judged in group], [judged.measured_s for judged in group]
        ),
        choice=_choice(group),
        choice_without_waits=_choice(awake) if len(awake) >= FEWEST_LAYOUTS else None,
    )


def _choice(group: Sequence[JudgedRun]) -> float:
    """Return the measured time of the chosen layout over that of the fastest."""
    return offered(group).measured_s / min(judged.measured_s for judged in group)


POLLED_TWO_STAGES_S, POLLED_MORE_STAGES_S = (0.3, 0.8), (0.55, 1.3)
"""Seconds per slot beyond the prediction, for pipelines of two and of more stages, that runs of the
sweep took whose messages slept: a branch of nanotron checks every 0.1 s whether the two small
messages that precede each tensor have arrived."""


def polling_runs() -> list[JudgedRun]:
    """Return the runs of the sweep that are `polling`."""
    swept = [judged for judged in judged_runs() if judged.run.framework == "nanotron"]
    return [judged for judged in swept if polling(judged)]


def polling(judged: JudgedRun) -> bool:
    """Return whether a run exceeds its prediction as a pipeline that polls for messages does.

    Only the time can tell, because the sweep doesn't record which runs used that branch.
    """
    run = judged.run
    if run.pp == 1 or judged.measured_s <= CRAWLING * judged.predicted_s:
        return False
    slots = run.microbatches + run.pp - 1
    least, most = POLLED_TWO_STAGES_S if run.pp == 2 else POLLED_MORE_STAGES_S
    return least <= (judged.measured_s - judged.predicted_s) / slots <= most


def offered(group: Sequence[JudgedRun], chance: float = SAFE) -> JudgedRun:
    """Return the layout that the planner would choose: the fastest that fits with this chance.

    If none does, it is the fastest.
    """
    ranked = sorted(group, key=lambda judged: judged.predicted_s)
    return next((judged for judged in ranked if fit_chance(judged.run) >= chance), ranked[0])


def fit_chance(run: DescribedRun) -> float:
    """Return the probability that a run fits, by its predicted memory."""
    held = memory(run_setup(run), capacity_bytes=run.accelerator.capacity_bytes)
    return held.fit_probability or 0.0


TIGHT, CRAWLING = 2 / 3, 1.35
"""The probability of fitting below which a run is tight, and the factor over its predicted time
from which it crawls."""


def tight_runs() -> tuple[list[JudgedRun], list[JudgedRun]]:
    """Return the runs of the sweep that were unlikely to fit, and those of them that crawled.

    An allocator that runs out of space frees its cache and asks the device again, in every
    microbatch.
    """
    swept = [judged for judged in judged_runs() if judged.run.framework == "nanotron"]
    tight = [judged for judged in swept if fit_chance(judged.run) < TIGHT]
    return tight, [judged for judged in tight if judged.measured_s > CRAWLING * judged.predicted_s]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSpread:
    """One layout under several releases of its framework, with the fastest and slowest step."""

    run: DescribedRun
    releases: int
    fastest_s: float
    slowest_s: float
    predicted_s: float

    @property
    def spread(self) -> float:
        """Relative excess of the slowest step."""
        return self.slowest_s / self.fastest_s - 1


def release_spreads() -> list[ReleaseSpread]:
    """Return the layouts that several releases of a framework ran, widest spread first."""
    groups: dict[str, list[JudgedRun]] = {}
    for judged in judged_runs():
        if judged.run.framework != "nanotron" and judged.run.release:
            groups.setdefault(judged.run.config_key, []).append(judged)
    found = []
    for group in groups.values():
        releases = {judged.run.release for judged in group}
        if len(releases) > 1:
            times = [judged.measured_s for judged in group]
            found.append(
                ReleaseSpread(
                    run=group[-1].run,
                    releases=len(releases),
                    fastest_s=min(times),
                    slowest_s=max(times),
                    predicted_s=group[-1].predicted_s,
                )
            )
    return sorted(found, key=lambda entry: -entry.spread)
