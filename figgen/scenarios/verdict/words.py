"""A verdict in sentences, for the command line and the pages."""

from __future__ import annotations

import re

from figgen.errors import InputError
from figgen.quantity_shown import shown, span_shown
from figgen.quantity_text import read_quantity, read_time
from figgen.scenarios.options.typed import work_rate
from figgen.scenarios.runs.class_ends import UNKNOWN
from figgen.scenarios.verdict.like import LikeRun
from figgen.scenarios.verdict.reasons import Reason

WORDS = ("faster than predicted", "as predicted", "slower than predicted")

_TOKEN_RATE = re.compile(r"(.*[\dkKM])\s*(?:tokens?|toks?)\s*(?:/|per)\s*(?:s|sec|second)")
"""A rate such as "11k tok/s"."""

FASTER = (
    "If that seems too good, check whether it's the rate of the whole job, and whether the run has "
    "the same sequence, number format (such as FP8), and number of trained parameters."
)
"""What can make a run look faster than predicted; no mistake that costs time is likely then."""

SHOWN, NEAREST = 5, 5
"""Numbers of reasons and of published runs that are shown."""


def verdict_word(ratio: float, low: float, high: float) -> str:
    """Return one of `WORDS`, by the interval of the run's class."""
    return WORDS[0 if ratio < low else 2 if ratio > high else 1]


def verdict_sentence(
    measured_s: float, predicted_s: float, low_s: float, high_s: float, class_name: str
) -> str:
    """Return a sentence on the measured and the predicted step and the interval of its class."""
    ratio = measured_s / predicted_s
    word = verdict_word(ratio, low_s / predicted_s, high_s / predicted_s)
    within = (
        "few or no published runs are like it, so the interval is wide,"
        if class_name == UNKNOWN
        else f"eight in ten runs of '{class_name}' are within"
    )
    return (
        f"{word}: a step took {shown(measured_s, 's')}, {ratio:.2f} × the predicted "
        f"{shown(predicted_s, 's')}; {within} {span_shown(low_s, high_s)}"
    )


def like_sentence(utilisation: float, like: list[LikeRun]) -> str:
    """Return a sentence that ranks an MFU among those of similar runs."""
    if not like:
        return f"MFU {utilisation:.1%}; there is no similar published run"
    every = [one.row.utilisation for one in like]
    more = len([one for one in every if one > utilisation])
    return (
        f"MFU {utilisation:.1%}; {more} of {len(like)} similar published runs reach more "
        f"({min(every):.1%} to {max(every):.1%}), the nearest:"
    )


def like_words(one: LikeRun) -> str:
    """Describe a published run in a line."""
    return f"{one.row.name}: {one.row.gpus} GPUs, MFU {one.row.utilisation:.1%}, {one.row.source}"


def reason_words(one: Reason) -> str:
    """Describe a reason and what it costs in the measured step."""
    if one.worth_s is None:
        return f"{one.title}: the model can't tell how much it costs"
    least, most = shown(one.worth_s[0], "s"), shown(one.worth_s[1], "s")
    return (
        f"{one.title}: costs {least}" if least == most else f"{one.title}: costs {least} to {most}"
    )


def typed_speed(text: str, usual: str = "tokens_per_s") -> tuple[str, float]:
    """Return the kind and value of a speed: `9.5 s`, `412 TFLOP/s`, `38%`, `11k tok/s/GPU`.

    A bare number is of the kind `usual`: tokens per second per GPU, TFLOP/s (tflops), or a share or
    a percentage (mfu). Raises InputError for anything else.
    """
    plain = re.sub(r"\s*(?:/|per)\s*GPUs?\s*$", "", text.strip())
    seconds = read_time(plain)
    if seconds is not None:
        return "step_time", seconds
    tokens = re.fullmatch(_TOKEN_RATE, plain)
    try:
        found = read_quantity(tokens[1] if tokens else work_rate(plain))
    except InputError as error:
        raise _no_speed(text, error.nearest) from None
    if tokens and found.unit == "1":
        return "tokens_per_s", found.value
    if found.unit == "s":
        return "step_time", found.value
    if found.unit == "FLOP/s":
        return "tflops", found.value
    if plain.endswith("%"):
        return "mfu", found.value
    if found.unit in ("1", ""):
        scaled = {"tflops": 1e12, "mfu": 0.01 if found.value > 1 else 1.0}
        return usual, found.value * scaled.get(usual, 1.0)
    raise _no_speed(text, ())


def _no_speed(text: str, nearest: tuple[str, ...]) -> InputError:
    return InputError(
        "what you measured",
        expected="the time of a step, tokens/s or TFLOP/s per GPU, or MFU in %",
        got=text,
        nearest=nearest,
    )
