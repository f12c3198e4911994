"""The constants of the model of time: complete, sourced, and as certain as the fit reports."""

from __future__ import annotations

import re

import numpy as np
import pytest

from figgen.catalog import load
from figgen.catalog.rates import FILE, JUDGEMENT, constants, read_constants
from figgen.commands.calibrate import rewritten
from figgen.errors import InputError
from figgen.models.step.calibration import TOLERATED, slopes, uncertainty
from figgen.scenarios.evidence.measured import measured_runs, run_sides, shown_runs

TEXT = load.content(FILE)


def test_every_constant_says_where_its_guess_is_from_and_who_decided_its_value() -> None:
    for constant in constants().values():
        assert constant.source == JUDGEMENT or re.search(r"[a-z]", constant.source)
        assert constant.confidence in ("read", "secondary", "memory")
        assert 0 <= constant.known <= constant.spread
        assert constant.decided == "guess" or constant.runs > 0
        if constant.runs == 0:
            assert constant.value == pytest.approx(constant.start, rel=0.02)


def test_runs_of_a_constant_are_those_whose_time_it_moves() -> None:
    sides = run_sides()
    runs = [
        run
        for run in (*measured_runs(), *shown_runs())
        if sides[run.name] == "calibration" and not run.suspect and run.step_time_s
    ]
    formats = [run.number_format for run in runs]
    for name in ("nvfp4", "mxfp8", "fp8-rowwise"):
        assert constants()[f"format_share.{name}"].runs == formats.count(name)
    mixtures = sum(run.shape.experts is not None for run in runs)
    assert 0 < constants()["expert_share.all"].runs <= mixtures


def test_a_constant_alone_is_known_as_the_mean_of_its_runs_is() -> None:
    """With n runs of one constant and no prior, its error is that of a single run divided by √n."""
    moved = slopes(lambda at: np.full(25, np.exp(at[0])), np.zeros(1))
    [found] = uncertainty(moved, np.ones(25), np.array([1e6]))
    assert found == pytest.approx(TOLERATED / 5, rel=1e-4)


def test_what_no_run_concerns_stays_as_unknown_as_the_guess() -> None:
    moved = slopes(lambda at: np.exp(at[:1]), np.zeros(2))
    found = uncertainty(moved, np.ones(1), np.array([0.2, 0.3]))
    assert found == pytest.approx([(1 / 0.2**2 + 1 / TOLERATED**2) ** -0.5, 0.3], rel=1e-4)


def test_writing_what_is_known_changes_nothing() -> None:
    values = {name: constant.value for name, constant in constants().items()}
    decided = {n: (c.runs, c.known) for n, c in constants().items() if c.spread}
    assert rewritten(TEXT, values, decided) == TEXT


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('confidence = "memory"', 'confidence = "sure"', "rates.toml.*matmul_share.*confidence"),
        ('source = "judgement"', 'source = "jugement"', "unknown source"),
        (r"(ampere = .*?)start", r"\1begin", "begin"),
        (r"hopper = { value = [\d.]+", 'hopper = { value = "much"', "hopper.*value"),
        (r"hopper = { value = [\d.]+", "hopper = { value = 0", "hopper.*value"),
        (r"(hopper = .*?)runs", r"\1run", "did you mean runs"),
    ],
)
def test_a_slip_in_the_file_is_named(old: str, new: str, says: str) -> None:
    text, times = re.subn(old, new, TEXT, count=1)
    assert times == 1
    with pytest.raises(InputError, match=f"(?s){says}"):
        read_constants(text, load.sources())
