"""The interval around a prediction: how publishers' runs of its class were measured.

Every class that somebody has timed has an interval, which publishers who were left out hold
(`figgen.scenarios.evidence.class_intervals`). Other jobs have that of all wider groups.
"""

from __future__ import annotations

from collections.abc import Mapping

UNKNOWN = "jobs with few or no published runs"
"""The name of classes that nobody has timed."""

MOST_GPUS = 16_384
"""The most GPUs of any run of the fit."""


def class_name(stack: str, chips: str, experts: bool) -> str:
    """Return the name of a class, such as `Megatron on Hopper, experts`."""
    return f"{stack} on {chips}, {'experts' if experts else 'dense'}"


def wider_names(stack: str, chips: str, experts: bool) -> tuple[str, str, str]:
    """Return the names of ever wider groups around a class: by stack, by chips, and all."""
    kind = "mixtures of experts" if experts else "dense models"
    return f"{kind} on {stack}", f"{kind} on {chips}", f"all {kind}"


def named_ends(
    ends: Mapping[str, tuple[float, float]], stack: str, chips: str, experts: bool, unlike: bool
) -> tuple[str, float, float]:
    """Return the name of a job's class, with low and high of measured over predicted time.

    `ends` holds them by name. Jobs `unlike` all timed ones have the widest interval.
    """
    own = class_name(stack, chips, experts)
    if own in ends and not unlike:
        return own, ends[own][0], ends[own][1]
    around = wider_names(stack, chips, experts)
    wide = [pair for one, pair in ends.items() if unlike or one in around]
    return UNKNOWN, min(low for low, _ in wide), max(high for _, high in wide)
