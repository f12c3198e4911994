"""Grades a reader's answer to a page's question: right, or wrong because of a known slip.

A slip is the question's own formula with one input changed, so its result can be computed. The
module is printed as JavaScript.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import cast

from figgen.equations.call_data import CallData, Compute, arguments_of, formula_value
from figgen.errors import InputError
from figgen.quantity_shown import format_number, shown
from figgen.quantity_text import read_quantity
from figgen.quantity_units import AMOUNTS, THINGS

TOLERANCE = 0.02
"""Largest relative error of a right answer; whole numbers must be exact."""
NEAR = 0.012
"""Largest relative distance between an answer and the result of a slip that explains it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slip:
    """An input that readers change by mistake, in the `formulas` named or in all of them.

    The slip applies to the argument of this name, and to any argument whose name ends in `_` and
    this name. It becomes `times` itself, plus `plus` times the argument `other`, plus `constant`.
    """

    argument: str
    why: str
    formulas: tuple[str, ...] = ()
    times: float = 1.0
    other: str = ""
    plus: float = 0.0
    constant: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Slipped:
    """A formula with one changed argument, and what the change means."""

    argument: str
    value: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """The answer that a slip leads to, and what the slip means."""

    value: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldAnswer:
    """The verdict on a reader's answer, with the text to show."""

    right: bool
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """Whether an answer is right, its ratio to the right one, and the slip that explains it."""

    right: bool
    ratio: float
    why: str


def _times(factor: float, argument: str, why: str, formulas: tuple[str, ...] = ()) -> Slip:
    """Return the slip of taking a multiple of an argument."""
    return Slip(argument=argument, times=factor, why=why, formulas=formulas)


def _left_out(argument: str, why: str, formulas: tuple[str, ...] = ()) -> Slip:
    """Return the slip of taking 1 for an argument."""
    return Slip(argument=argument, times=0.0, constant=1.0, why=why, formulas=formulas)


PREFIXED = ("B", "s", "B/s", "FLOP", "FLOP/s")
"""Units that an answer must state."""

_ALL_REDUCES = (
    "all_reduce_bytes_sent",
    "ring_all_reduce_time",
    "data_parallel_bytes",
    "data_parallel_time",
    "all_reduce_bus_bandwidth",
    "two_level_all_reduce_time",
    "leader_all_reduce_time",
)
_GATHERS = ("all_gather_bytes_sent", "ring_all_gather_time")
_OF_RANKS = ("all_reduce_bytes_sent", "all_gather_bytes_sent", "all_reduce_bus_bandwidth")
_HALF = "That is only half of an all-reduce, a reduce-scatter or an all-gather: it does both."
_OWN = "A rank keeps its own share, so only (n − 1)/n of the buffer leaves it."
_BYTES_2 = "You used half as many bytes per value: BF16 has two, FP32 four, and FP8 one."
_BYTES_4 = "You used twice as many bytes per value: BF16 has two, FP32 four, and FP8 one."

SLIPS: tuple[Slip, ...] = (
    _times(
        2.0,
        "bandwidth_bytes_per_s",
        "You counted both directions of the link. A bandwidth is per direction here, "
        "half of what many datasheets print.",
    ),
    _times(
        8.0,
        "bandwidth_bytes_per_s",
        "You used eight times the bandwidth: bits for bytes, or the links of a whole node "
        "for those of one GPU.",
    ),
    _times(
        0.125,
        "bandwidth_bytes_per_s",
        "You used an eighth of the bandwidth: bytes for bits, or the share of one GPU where "
        "it has the link to itself.",
    ),
    _times(0.0, "latency_s", "You left out the latency of the steps."),
    _times(0.5, "message_bytes", _HALF, _ALL_REDUCES),
    _times(0.5, "parameters", _HALF, _ALL_REDUCES),
    _times(
        2.0,
        "message_bytes",
        "That is a whole all-reduce, which sends twice as much as an all-gather.",
        _GATHERS,
    ),
    Slip(argument="ranks", times=0.0, constant=1e12, formulas=_OF_RANKS, why=_OWN),
    Slip(argument="dp", times=0.0, constant=1e12, formulas=("data_parallel_bytes",), why=_OWN),
    Slip(argument="ep", times=0.0, constant=1e12, formulas=("expert_all_to_all_bytes",), why=_OWN),
    _times(1.073741824, "message_bytes", "You took GiB for GB: a GiB is 1.074 GB."),
    _times(0.931322574615478515625, "message_bytes", "You took GB for GiB: a GiB is 1.074 GB."),
    _times(0.5, "bytes_per_element", _BYTES_2),
    _times(2.0, "bytes_per_element", _BYTES_4),
    _times(0.5, "bytes_per_param", _BYTES_2),
    _times(2.0, "bytes_per_param", _BYTES_4),
    Slip(
        argument="optimizer_bytes_per_param",
        constant=-4.0,
        why="You left out the 32-bit copy of the weights that the optimizer keeps.",
    ),
    _left_out(
        "dp",
        "That is the whole state. The ranks share what this stage of ZeRO shards.",
        ("zero_state_bytes",),
    ),
    Slip(
        argument="zero_stage",
        constant=1.0,
        why="That is the next stage of ZeRO, which shards one more part of the state.",
    ),
    Slip(
        argument="zero_stage",
        constant=-1.0,
        why="That is the stage of ZeRO before this one, which shards one part less.",
    ),
    _left_out("tp", "You left tensor parallelism out: its ranks share this."),
    _left_out("top_k", "Each token goes to several experts, and one copy of it to each."),
    _times(
        0.5,
        "passes",
        "Dispatch and combine happen in the forward pass and again in the backward pass.",
    ),
    Slip(
        argument="stages",
        constant=1.0,
        formulas=("bubble_fraction", "bubble_overhead", "interleaved_bubble_fraction"),
        why="The ramps last P − 1 microbatches, not P: no stage waits for itself.",
    ),
    Slip(
        argument="microbatches",
        other="stages",
        plus=-1.0,
        constant=1.0,
        formulas=("bubble_fraction",),
        why="You divided by the work alone. This is a share of the whole step, "
        "M + P − 1 microbatches long.",
    ),
    Slip(
        argument="microbatches",
        other="stages",
        plus=1.0,
        constant=-1.0,
        formulas=("bubble_overhead",),
        why="You divided by the whole step. The overhead is relative to the work alone.",
    ),
    _left_out("chunks", "You left out the interleaving, which divides the ramps by the chunks."),
    _left_out(
        "stages",
        "You left out the time in which the pipeline fills and drains.",
        ("pipeline_step_time",),
    ),
    _left_out(
        "in_flight", "You counted a single microbatch. The stage holds all that are in flight."
    ),
    _times(
        2.0,
        "peak_flops_per_s",
        "You used the peak with 2:4 sparsity, which datasheets like to print. "
        "The dense peak is half of it.",
    ),
    _times(
        1 / 3,
        "parameters",
        "You counted the forward pass alone, two operations per parameter per token; "
        "with the backward pass there are six.",
        ("training_flops", "model_flops_utilization"),
    ),
    _left_out("usable_fraction", "You used all of the memory; a part of it has to stay free."),
)
"""Common slips of readers; if two lead to the same answer, the likelier one comes first."""


def slipped(formula: str, given: dict[str, float]) -> list[Slipped]:
    """Return the arguments of a formula as slips change them, one slip at a time."""
    found: list[Slipped] = []
    for slip in SLIPS:
        if slip.formulas and formula not in slip.formulas:
            continue
        for name in given:
            if name != slip.argument and not name.endswith(f"_{slip.argument}"):
                continue
            other = given.get(slip.other, 0.0)
            value = slip.times * given[name] + slip.plus * other + slip.constant
            if value != given[name]:
                found.append(Slipped(argument=name, value=value, why=slip.why))
    return found


def candidates(asked: CallData, compute: Compute) -> list[Candidate]:
    """Return the answers that slips lead to: the same call with one argument changed.

    Slips after which the formula has no value are omitted.
    """
    found: list[Candidate] = []
    for changed, own, why in _changed(asked, compute):
        value = formula_value(changed, compute)
        if isfinite(own) and isfinite(value):
            found.append(Candidate(value=value, why=why))
    return found


def _changed(asked: CallData, compute: Compute) -> Iterator[tuple[CallData, float, str]]:
    """Yield the call with a changed argument, the changed formula's value, and the meaning."""
    if not isinstance(asked, list):
        return
    name, given = cast("str", asked[0]), cast("dict[str, CallData]", asked[1])
    numbers = arguments_of(asked, compute)
    for slip in slipped(name, numbers):
        changed = {slip.argument: slip.value}
        yield [name, {**given, **changed}], compute(name, {**numbers, **changed}), slip.why
    for argument, inner in given.items():
        for other, own, why in _changed(inner, compute):
            yield [name, {**given, argument: other}], own, why


def verdict(text: str, unit: str, spec: str, asked: CallData, compute: Compute) -> ToldAnswer:
    """Return what to tell a reader who answers `text`; `spec` formats the right answer."""
    answer = formula_value(asked, compute)
    right = shown(answer, unit, spec)
    try:
        grade = graded(text, unit, answer, right, candidates(asked, compute))
    except InputError:
        return ToldAnswer(right=False, words=f"Please answer with {expected_of(unit)}.")
    if grade.right:
        return ToldAnswer(right=True, words=f"Right: {right}.")
    return ToldAnswer(right=False, words=f"Not quite{_off(grade)}")


def _off(grade: Grade) -> str:
    if grade.why:
        return f". {grade.why}"
    if grade.ratio > 1:
        return f": that is {format_number(grade.ratio, 2)} times the right answer."
    return f": the right answer is {format_number(1 / grade.ratio, 2)} times as much."


def graded(text: str, unit: str, answer: float, written: str, slips: Sequence[Candidate]) -> Grade:
    """Grade a reader's `text` against `answer` in `unit`, which the page shows as `written`.

    Raises InputError for a text that is not a quantity in that unit.
    """
    value = read_answer(text, unit)
    ratio = value / answer
    if _is_right(value, answer, unit) or _is_right(value, _read_back(written, unit), unit):
        return Grade(right=True, ratio=ratio, why="")
    for one in slips:
        if one.value != 0 and abs(value / one.value - 1) <= NEAR and _differ(one.value, answer):
            return Grade(right=False, ratio=ratio, why=one.why)
    return Grade(right=False, ratio=ratio, why=_why_by_ratio(ratio, unit))


def _is_right(value: float, answer: float, unit: str) -> bool:
    if unit in THINGS:
        return value == answer or abs(value - round(answer)) < 0.001
    return abs(value - answer) <= TOLERANCE * answer


def _read_back(written: str, unit: str) -> float:
    """Return the rounded answer that the page shows, or 0 if it can't be parsed."""
    try:
        return read_answer(written, unit)
    except InputError:
        return 0.0


def _differ(one: float, other: float) -> bool:
    return abs(one / other - 1) > TOLERANCE


def read_answer(text: str, unit: str) -> float:
    """Return the number that `text` gives in the SI `unit`; units with prefixes are required."""
    short = unit in AMOUNTS and re.search(r"\d\s*[KMBT]\s*$", text)
    found = read_quantity(f"{text.rstrip()} {unit}s" if short else text)
    bare = found.unit == "1" and unit not in PREFIXED
    if found.unit != unit and not bare:
        raise InputError("your answer", expected=expected_of(unit), got=text.strip())
    if not 0 < found.value < 1e30:
        raise InputError("your answer", expected="a number above 0", got=text.strip())
    return found.value


EXAMPLES: dict[str, str] = {
    "B": "bytes, such as 24.5 GB",
    "s": "a time, such as 43 ms",
    "B/s": "bytes per second, such as 367 GB/s",
    "1": "a number or a share, such as 27%",
    "FLOP": "operations, such as 3.2e21 FLOP",
    "FLOP/s": "a rate, such as 400 TFLOP/s",
    "FLOP/B": "operations per byte, such as 2200 FLOP/B",
    "param": "parameters, such as 3.5B params",
    "token": "tokens, such as 2500 tokens",
}


def expected_of(unit: str) -> str:
    """Return in words what an answer in `unit` looks like."""
    return EXAMPLES.get(unit, f"a number of {unit}s")


def _why_by_ratio(ratio: float, unit: str) -> str:
    """Return what a round ratio to the right answer means; empty for any other ratio."""
    for times, why in RATIOS:
        for one in (times, 1 / times):
            if abs(ratio / one - 1) <= 0.005:
                return why
    if unit == "1" and (abs(ratio - 100) <= 2 or abs(ratio - 0.01) <= 0.0002):
        return "That is a hundred times off: look at the percent sign."
    return ""


RATIOS: tuple[tuple[float, str], ...] = (
    (1.073741824, "You took GiB for GB or the other way around: a GiB is 1.074 GB."),
    (1.048576, "You took MiB for MB or the other way around: a MiB is 1.049 MB."),
    (8.0, "Off by eight: bits for bytes, or one GPU for all eight of a node."),
    (2.0, "Off by two: a factor of two is missing, or there is one too many."),
    (3.0, "Off by three: the backward pass takes twice as long as the forward pass."),
    (1e3, "Off by a thousand: look at the prefix of your unit."),
    (1e6, "Off by a million: look at the prefix of your unit."),
    (60.0, "Off by 60: look at minutes and seconds."),
    (3600.0, "Off by 3,600: look at hours and seconds."),
)
