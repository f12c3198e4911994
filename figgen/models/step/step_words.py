"""A predicted step in one sentence: its time, utilization, fit in memory, and largest loss."""

from __future__ import annotations

from collections.abc import Sequence

from figgen.models.memory.fit_probability import fit_words
from figgen.quantity_shown import shown, span_shown

TELLING = 0.02
"""The smallest share of a step that counts as its largest loss."""

EXPOSED = "exposed-"
"""Prefix of the names of exposed communication, followed by the axis."""


def largest_loss(
    step_time_s: float, recompute_s: float, bubble_s: float, exposed: Sequence[tuple[str, float]]
) -> tuple[str, float]:
    """Return the name and the seconds of what costs most besides computing.

    `exposed` holds the exposed seconds of each axis. Returns "compute" and the seconds of `TELLING`
    if nothing takes more.
    """
    losses = [("recompute", recompute_s), ("bubble", bubble_s)]
    losses += [(EXPOSED + axis, seconds) for axis, seconds in exposed]
    found, most = "compute", TELLING * step_time_s
    for name, seconds in losses:
        if seconds > most:
            found, most = name, seconds
    return found, most


def step_sentence(
    *,
    model: str,
    gpus: int,
    chip: str,
    step_time_s: float,
    interval_s: Sequence[float],
    utilisation: float,
    fit_probability: float | None,
    free_bytes: float | None,
    loss: tuple[str, float],
) -> str:
    """Return the answer for a job, such as "Llama 3.1 70B on 96 × H100 takes 2.48 s a step (…), …".

    `interval_s` is empty if there is no interval. `fit_probability` and `free_bytes`, which is
    negative if the job does not fit, are None if the capacity is unknown. `loss` is what
    `largest_loss` returns.
    """
    between = span_shown(interval_s[0], interval_s[1]) if interval_s else ""
    text = f"{model} on {gpus:,} × {chip} takes {shown(step_time_s, 's')} a step"
    text += f" ({between})" if between else ""
    text += f" at an MFU of {utilisation:.1%}"
    if fit_probability is not None and free_bytes is not None:
        size, left = shown(abs(free_bytes), "B"), "free" if free_bytes >= 0 else "missing"
        text += f", and {fit_words(fit_probability)}: {size} {left}"
    name, seconds = loss
    if name == "compute":
        return f"{text}."
    return f"{text}. The largest loss is {_lost(name)}: {seconds / step_time_s:.1%} of the step."


def _lost(name: str) -> str:
    if name == "recompute":
        return "recomputation"
    if name == "bubble":
        return "pipeline idle time"
    return f"exposed {name[len(EXPOSED) :].upper()}"
