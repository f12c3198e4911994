"""plan --tokens: what failures leave of the fastest layout's time, and the days of a training."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from figgen.catalog.interruptions import Interruptions
from figgen.commands.training import aligned
from figgen.scenarios.planning.goodput_plan import SavedTraining, kept
from figgen.scenarios.planning.plan_question import PlanQuestion
from figgen.scenarios.planning.plan_rows import PlanRow
from figgen.scenarios.planning.saving import CONFIDENCE, WAYS
from figgen.units import format_quantity

MOST_TOKENS = 1e18


def tokens_of(text: str) -> float:
    """A number of tokens, for argparse. Raises ArgumentTypeError for anything else."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found <= MOST_TOKENS:
        raise argparse.ArgumentTypeError(f"expected 1 to {MOST_TOKENS:g} tokens, got {text!r}")
    return found


def goodput_data(
    question: PlanQuestion, row: PlanRow, tokens: float, failures: Interruptions
) -> dict[str, Any]:
    """For JSON: by way to save, what is kept and the days with their interval."""
    ways = {
        one.way: asdict(one) | {"days": _days(question, row, one, tokens)}
        for one in _ways(question, failures)
    }
    return {"tokens": tokens, "failures": failures.name, "goodput": ways}


def goodput_text(
    question: PlanQuestion, row: PlanRow, tokens: float, failures: Interruptions
) -> list[str]:
    """The same for people."""
    found = _ways(question, failures)
    first = found[0]
    lines = [
        "",
        f"training the fastest layout on {tokens:.3g} tokens, with failures as in "
        f"{failures.title}: one every "
        f"{format_quantity(first.mtbf_s, 's', 'time')}, "
        f"{format_quantity(first.checkpoint_bytes, 'B', 'bytes')} per checkpoint, "
        f"{first.spares} spare nodes are enough {CONFIDENCE:.0%} of the time",
    ]
    head = ["saved", "stall", "save every", "goodput", "days", "interval"]
    body = []
    for one in found:
        days, low, high = _days(question, row, one, tokens)
        body.append(
            [
                WAYS[one.way],
                format_quantity(one.saving.stall_s, "s", "time"),
                format_quantity(one.interval_s, "s", "time"),
                f"{one.goodput:.1%}",
                f"{days:.3g}",
                f"{low:.3g} to {high:.3g}",
            ]
        )
    return [*lines, *aligned([head, *body], left=1)]


def _ways(question: PlanQuestion, failures: Interruptions) -> list[SavedTraining]:
    return [kept(question.job.setup, way, failures) for way in WAYS]


def _days(question: PlanQuestion, row: PlanRow, one: SavedTraining, tokens: float) -> list[float]:
    """Predicted, lowest and highest: a step's interval carries over to the whole."""
    batch = question.job.global_batch * question.job.setup.sequence
    return [one.days(tokens, batch, step_s) for step_s in (row.step_s, row.low_s, row.high_s)]
