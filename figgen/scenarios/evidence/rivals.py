"""Other open models of training time, and ours, on the runs that each can express."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from figgen.catalog.rivals import Rival, rivals
from figgen.scenarios.evidence.validation import Errors, JudgedRun, errors_of, judged_runs
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.residual_classes import class_of

RUN_GROUPS = ("dense, tuned", "dense, FSDP", "mixtures of experts", "nanotron's sweep")
"""Kinds of runs; a rival model has one constant for each."""

FEWEST = 8
"""Test runs of a kind that a rival must express for its error to be reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A rival's errors on the test runs of a kind, with both of its constants, and ours.

    `of` is the number of test runs of that kind, of which the rival can express `theirs.runs`.
    """

    rival: Rival
    kind: str
    of: int
    documented: Errors
    fitted: Errors
    ours: Errors


def kind_of(run: DescribedRun) -> str:
    """Return the kind of a run."""
    tuned, sharded, mixture, sweep = RUN_GROUPS
    if run.shape.experts is not None:
        return mixture
    found = class_of(run)
    return sweep if found == "nanotron" else tuned if found.startswith("dense") else sharded


def comparisons() -> list[Comparison]:
    """Return every rival on every kind of run of which it can express enough."""
    found = []
    for kind in RUN_GROUPS:
        tests = [one for one in judged_runs() if one.tested and kind_of(one.run) == kind]
        for rival in rivals().values():
            expressed = [one for one in tests if one.run.name in rival.seconds]
            if len(expressed) >= FEWEST:
                found.append(_compared(rival, kind, len(tests), expressed))
    return found


def _compared(rival: Rival, kind: str, of: int, runs: Sequence[JudgedRun]) -> Comparison:
    documented, fitted = (
        errors_of(
            rival.name,
            [
                JudgedRun(
                    run=one.run,
                    measured_s=one.measured_s,
                    predicted_s=rival.seconds[one.run.name][place],
                    tested=True,
                )
                for one in runs
            ],
        )
        for place in (0, 1)
    )
    ours = errors_of("ours", runs)
    assert documented
    assert fitted
    assert ours
    return Comparison(
        rival=rival, kind=kind, of=of, documented=documented, fitted=fitted, ours=ours
    )


def refusals() -> dict[str, dict[str, int]]:
    """Return, by rival and by missing feature, the number of test runs it cannot express."""
    tests = {one.run.name for one in judged_runs() if one.tested}
    found: dict[str, dict[str, int]] = {}
    for rival in rivals().values():
        reasons = [reason for run, reason in rival.refused.items() if run in tests]
        found[rival.name] = {
            reason: reasons.count(reason)
            for reason in sorted(set(reasons), key=lambda reason: -reasons.count(reason))
        }
    return found
