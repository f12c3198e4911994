"""plan --tokens: what failures cost the fastest layout, and how many days the training takes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from figgen.catalog.interruptions import Interruptions
from figgen.commands.training import aligned
from figgen.errors import InputError
from figgen.models.planner.saving import CONFIDENCE, WAYS, SavedTraining
from figgen.scenarios.options.typed import typed_amount
from figgen.scenarios.planning.goodput_plan import kept
from figgen.scenarios.planning.plan_question import PlanQuestion
from figgen.scenarios.planning.plan_rows import PlanRow
from figgen.units import format_quantity

MOST_TOKENS = 1e18


def tokens_of(text: str) -> float:
    """Parse a number of tokens, such as 15e12 or 1T, for argparse.

    Raises ArgumentTypeError for any other text.
    """
    return amount_of("tokens", "token", 1.0, MOST_TOKENS)(text)


def amount_of(name: str, unit: str, scale: float, most: float) -> Callable[[str], float]:
    """Return a reader of amounts above 0 for argparse; bare numbers count `scale` times `unit`."""

    def read(text: str) -> float:
        try:
            found = typed_amount(name, text, unit, scale)
        except InputError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        if not 0 < found <= most:
            raise argparse.ArgumentTypeError(f"expected {name} above 0, to {most:g}, got {text!r}")
        return found

    return read


def goodput_data(
    question: PlanQuestion, row: PlanRow, tokens: float, failures: Interruptions
) -> dict[str, Any]:
    """Return, for JSON and by way to save, the share of time kept and the days with interval."""
    ways = {
        one.way: asdict(one) | {"days": _days(question, row, one, tokens)}
        for one in _ways(question, failures)
    }
    return {"tokens": tokens, "failures": failures.name, "goodput": ways}


def goodput_text(
    question: PlanQuestion, row: PlanRow, tokens: float, failures: Interruptions
) -> list[str]:
    """Return the data of `goodput_data` as text."""
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
    """Return predicted, lowest and highest days, in proportion to the interval of a step."""
    batch = question.job.global_batch * question.job.setup.sequence
    return [one.days(tokens, batch, step_s) for step_s in (row.step_s, row.low_s, row.high_s)]
