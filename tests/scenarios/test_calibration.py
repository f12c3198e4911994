"""How well the fitted constants predict runs that were not used to fit them, and a repeated fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import pytest

from figgen.catalog.rates import constants
from figgen.catalog.residuals import residuals
from figgen.models.step.calibration import TOLERATED, softened, spearman
from figgen.scenarios.evidence.calibrate import (
    FEWEST,
    LEAST,
    Predictor,
    calibrating,
    device_residuals,
)
from figgen.scenarios.evidence.class_intervals import class_residuals
from figgen.scenarios.evidence.measured import measured_runs, run_sides, shown_runs
from figgen.scenarios.evidence.publishers import judged_publishers
from figgen.scenarios.evidence.split import TEST
from figgen.scenarios.runs.classes import run_class
from figgen.scenarios.runs.predicted import predicted_step
from figgen.scenarios.runs.rate_row import GivenRates
from figgen.scenarios.runs.residual_classes import (
    LARGE,
    TIMED,
    class_of,
    family_of,
    generation_of,
)

RUNS = [run for run in measured_runs() if not run.suspect]
SIDES = run_sides()
TESTED = [run for run in RUNS if SIDES[run.name] == TEST]


@cache
def seconds() -> np.ndarray:
    """Return the predicted times of the test runs."""
    return Predictor(TESTED, ())(np.zeros(0))


def errors(name: str) -> np.ndarray:
    """Return relative errors of the test runs whose class starts with this."""
    wrong = seconds() / np.array([run.step_time_s for run in TESTED]) - 1
    found = [
        error for run, error in zip(TESTED, wrong, strict=True) if class_of(run).startswith(name)
    ]
    return np.array(found)


@pytest.mark.parametrize(
    ("name", "mean", "worst"),
    [
        ("dense", 0.10, 0.25),
        ("mixtures", 0.12, 0.65),
        ("llm-foundry", 0.10, 0.30),
        ("torchtitan", 0.20, 0.40),
    ],
)
def test_unseen_runs_are_predicted_within(name: str, mean: float, worst: float) -> None:
    found = np.abs(errors(name))
    assert len(found) >= 10
    assert found.mean() <= mean
    assert found.max() <= worst


def test_the_sweep_is_predicted_in_the_middle_and_its_layouts_are_ranked() -> None:
    assert np.median(np.abs(errors("nanotron"))) <= 0.10
    groups: dict[object, list[tuple[float, float]]] = {}
    for run, predicted_s in zip(TESTED, seconds(), strict=True):
        if run.framework == "nanotron":
            groups.setdefault((run.shape, run.gpus), []).append((predicted_s, run.step_time_s or 0))
    ranked = [spearman(*zip(*pairs, strict=True)) for pairs in groups.values() if len(pairs) >= 5]
    assert len(ranked) >= 20
    assert np.median(ranked) >= 0.88


@pytest.mark.parametrize(
    ("stages", "low_s", "high_s", "least"), [((2,), 0.4, 0.8, 10), ((4, 8), 0.85, 1.4, 10)]
)
def test_runs_of_the_sweep_stall_by_the_number_of_their_stages(
    stages: tuple[int, ...], low_s: float, high_s: float, least: int
) -> None:
    """Seconds per microbatch as on the validation page, or almost none, on 256 GPUs and more."""
    swept = [run for run in RUNS if run.framework == "nanotron" and run.gpus >= 256]
    found = [run for run in swept if run.pp in stages]
    late_s = [
        ((run.step_time_s or 0.0) - predicted_s) * run.dp * run.microbatch / run.global_batch
        for run, predicted_s in zip(found, Predictor(found, ())(np.zeros(0)), strict=True)
    ]
    stalled = [late for late in late_s if low_s <= late <= high_s]
    prompt = [late for late in late_s if abs(late) < low_s / 2]
    assert len(stalled) >= least
    assert len(stalled) + len(prompt) >= 0.8 * len(found)


def test_no_fitted_constant_wants_to_move() -> None:
    """No gradient is left: a Newton step from the fit moves no constant by 3%.

    A fit that stopped in a long valley once left the host's time of a layer at half of this.
    """
    runs, weights, free = calibrating()
    known, predictor = constants(), Predictor(runs, free)
    point = np.log([known[constant.name].value for constant in free])
    spread = np.array([constant.spread for constant in free])
    measured = np.log([run.step_time_s or 0.0 for run in runs])

    def residuals(at: np.ndarray) -> np.ndarray:
        errors = (np.log(predictor(at)) - measured) / TOLERATED
        pulled = (at - np.log([constant.start for constant in free])) / spread
        return np.concatenate([softened(errors) * weights, pulled])

    step, now = 1e-4, residuals(point)
    moved = np.array([residuals(point + step * unit) - now for unit in np.eye(len(free))]) / step
    wanted = np.linalg.solve(moved @ moved.T, -moved @ now)
    assert dict(zip([c.name for c in free], wanted, strict=True)) == pytest.approx(
        {constant.name: 0.0 for constant in free}, abs=0.03
    )


def test_the_intervals_of_the_catalog_are_those_of_publishers() -> None:
    found = [*class_residuals(judged_publishers()), device_residuals()]
    assert {entry.name for entry in found} == residuals().keys()
    assert {run_class(run).name for run in RUNS} <= residuals().keys()
    for entry in found:
        known = residuals()[entry.name]
        assert (known.publishers, known.runs) == (entry.publishers, entry.runs)
        assert known.low == pytest.approx(entry.low, abs=0.011)
        assert known.high == pytest.approx(entry.high, abs=0.011)
        assert known.low < 1 < known.high


def test_an_efficiency_given_by_hand_replaces_what_was_fitted() -> None:
    run = next(run for run in RUNS if class_of(run) == "dense models on Hopper")
    half, whole = (
        predicted_step(run, said=GivenRates(compute_efficiency=share)) for share in (0.5, 1.0)
    )
    assert whole.step_time_s < predicted_step(run).step_time_s < half.step_time_s
    assert half.low_s < half.step_time_s < half.high_s


REPORTS = ("mt-nlg", "llama-3", "nemotron-4")


def held_by_the_others(classes: Mapping[str, Sequence[tuple[str, float]]]) -> int:
    """Return runs that lie in the interval that their class has without their own source."""
    held = 0
    for runs in classes.values():
        for left_out in {source for source, _ in runs}:
            rest = [ratio for source, ratio in runs if source != left_out]
            low = min(1 - LEAST, float(np.quantile(rest, 0.1, method="lower")))
            high = max(1 + LEAST, float(np.quantile(rest, 0.9, method="higher")))
            held += sum(low <= ratio <= high for source, ratio in runs if source == left_out)
    return held


@pytest.mark.parametrize("reports", [REPORTS, (*REPORTS, "megascale")])
def test_trainings_and_benchmarks_on_thousands_of_gpus_are_no_two_classes(
    reports: tuple[str, ...],
) -> None:
    """If they ever differ by more than a single run of these few, the class should be divided."""
    ratios: dict[str, list[tuple[str, float]]] = {}
    for run in (run for run in shown_runs() if run.step_time_s and class_of(run) == LARGE):
        source = run.name.split("-")[0] if "mlperf" not in run.name else run.name[:11]
        kind = "training" if run.name.startswith(reports) else "benchmark"
        ratio = run.step_time_s / predicted_step(run).step_time_s
        ratios.setdefault(kind, []).append((source, ratio))
    together = [one for runs in ratios.values() for one in runs]
    assert len(together) >= 11
    assert held_by_the_others(ratios) <= held_by_the_others({"all": together}) + 1
    assert min(map(len, ratios.values())) < FEWEST


def test_classes_are_of_software_that_eight_runs_of_the_fit_used_on_such_chips() -> None:
    runs, _, _ = calibrating()
    used = Counter(
        (family_of(run), generation_of(run.accelerator))
        for run in runs
        if run.shape.experts is None
    )
    timed = {(family, chips) for family, found in TIMED.items() for chips in found}
    assert timed == {pair for pair, count in used.items() if count >= FEWEST}
