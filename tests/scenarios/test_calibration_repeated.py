"""Repeats the whole fit, and compares every run with its interval; these tests take seconds."""

from __future__ import annotations

import pytest

from figgen.catalog.rates import constants
from figgen.catalog.residuals import residuals
from figgen.scenarios.evidence.calibrate import calibrated
from figgen.scenarios.evidence.measured import measured_runs, run_sides, shown_runs
from figgen.scenarios.runs.device_run import CLASS
from figgen.scenarios.runs.predicted import predicted_step
from figgen.scenarios.runs.residual_classes import class_of
from tests.thorough import THOROUGH


def test_the_constants_of_the_catalog_are_those_of_the_fit() -> None:
    known = constants()
    for name, value in calibrated(afresh=THOROUGH).items():
        assert known[name].value == pytest.approx(value, rel=0.01), name


def test_eight_of_ten_runs_lie_within_the_interval_of_their_class() -> None:
    """All runs are counted, and tests alone, because fitted runs may be harder to predict."""
    by_class: dict[str, list[tuple[bool, bool]]] = {}
    for run in (*measured_runs(), *shown_runs()):
        if run.suspect or run.step_time_s is None:
            continue
        found = predicted_step(run)
        inside = found.low_s <= run.step_time_s <= found.high_s
        by_class.setdefault(class_of(run), []).append((inside, run_sides()[run.name] == "test"))
    # Those on one GPU are counted in tests/scenarios/test_device_run.py.
    assert by_class.keys() | {"jobs with few or no published runs", CLASS} == residuals().keys()
    for name, runs in by_class.items():
        tests = [inside for inside, is_test in runs if is_test]
        for group in ([inside for inside, _ in runs], tests if len(tests) >= 8 else []):
            assert sum(group) >= 0.8 * len(group), (name, sum(group), len(group))
    assert len(by_class["dense models on thousands of GPUs"]) >= 8
