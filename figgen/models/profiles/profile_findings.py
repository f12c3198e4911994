"""Changes that could shorten recorded steps, and caveats about the recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from figgen.models.profiles.kernel_kinds import (
    ATTENTION,
    ELEMENTWISE,
    FUSED,
    OPTIMIZER,
    short_name,
)
from figgen.models.profiles.profile import RankProfile
from figgen.models.profiles.profile_beside import Waiting, waited_s

TELLING = 0.02
"""Savings and remarks below this share of a step are not worth naming."""
FUSIBLE = (ELEMENTWISE, "normalization", "reduction", "softmax")
"""Kinds that torch.compile fuses with their neighbors."""
FUSED_ADAM_PASSES = 7
"""Tensors that a fused Adam reads (weight, gradient, two moments) and writes (no gradient)."""
FOREACH_ADAM_PASSES = 18
"""Tensors that `foreach=True` moves: lerp 3, mul 2, addcmul 3, sqrt 2, div 2, add 2, addcdiv 4."""
MEASURED = "measured for Llama 1B on one H100, torch 2.11"
COMPILED_LEFT = 0.294
"""Share of elementwise time that remained under torch.compile there: 28.8 of 97.9 ms per step."""
UNMASKED_LEFT = 0.320
"""Time of attention without a mask over that with one there: 20.2 of 63.1 ms per step."""
OVERLAPPED = "overlapped communication"
"""The change that hides messages behind computing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSaving:
    """A change, the seconds per step that it would save, the reason, and the page about it."""

    change: str
    seconds: float
    share: float
    because: str
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A caveat that a reader should know before trusting the numbers."""

    topic: str
    text: str


def savings_of(rank: RankProfile, waits: Sequence[Waiting]) -> tuple[TimeSaving, ...]:
    """Return the savings of at least 2% of a step, largest first.

    `waits` are how long this and other ranks wait for each other, which no overlap shortens.
    """
    found: list[TimeSaving] = []
    step_s = rank.wall_s / rank.steps
    overlapping = _overlapping(rank, waited_s(rank.name, waits))
    others = [rule(rank) for rule in (_fusing, _unmasking, _fusing_the_optimizer, _launching)]
    for saving in [*others, overlapping]:
        if saving is not None and saving.seconds >= TELLING * step_s:
            found.append(saving)
    return tuple(sorted(found, key=lambda saving: -saving.seconds))


def _seconds_of(rank: RankProfile, kinds: Sequence[str]) -> float:
    """Return the seconds per step of some kinds of kernels."""
    return sum(one.seconds for one in rank.kinds if one.kind in kinds) / rank.steps


def _saving(rank: RankProfile, seconds: float, change: str, because: str, page: str) -> TimeSaving:
    share = seconds * rank.steps / rank.wall_s
    return TimeSaving(change=change, seconds=seconds, share=share, because=because, page=page)


def _fusing(rank: RankProfile) -> TimeSaving | None:
    """Return what fusing would save: eager elementwise kernels each read and write GPU memory."""
    if _seconds_of(rank, [FUSED]):
        return None
    seconds = (1 - COMPILED_LEFT) * _seconds_of(rank, FUSIBLE)
    because = f"reduced elementwise time to {COMPILED_LEFT:.0%}, {MEASURED}"
    return _saving(rank, seconds, "torch.compile", because, "guide/efficiency")


def _unmasking(rank: RankProfile) -> TimeSaving | None:
    """Return what attention without a mask would save; a mask forces a slower kernel."""
    slow = [
        kernel
        for kernel in rank.kernels
        if kernel.kind == ATTENTION and _is_masked(kernel.name.lower())
    ]
    seconds = (1 - UNMASKED_LEFT) * sum(kernel.seconds for kernel in slow) / rank.steps
    because = f"flash attention took {UNMASKED_LEFT:.0%} of the time with a mask, {MEASURED}"
    return _saving(rank, seconds, "flash attention without a mask", because, "guide/efficiency")


def _is_masked(name: str) -> bool:
    """Whether an attention kernel is the memory-efficient one, which masks require."""
    return "fmha_cutlass" in name or "attentionkernel" in name or "attentionbackwardkernel" in name


def _fusing_the_optimizer(rank: RankProfile) -> TimeSaving | None:
    """Return what a fused optimizer would save; others move their state once per kernel."""
    names = [kernel.name.lower() for kernel in rank.kernels if kernel.kind == OPTIMIZER]
    if not names or any("fused" in name or "multitensoradam" in name for name in names):
        return None
    if not any("lerp" in name or "addcdiv" in name or "pointwise" in name for name in names):
        return None
    seconds = (1 - FUSED_ADAM_PASSES / FOREACH_ADAM_PASSES) * _seconds_of(rank, [OPTIMIZER])
    because = f"{FUSED_ADAM_PASSES} instead of {FOREACH_ADAM_PASSES} passes over its tensors"
    return _saving(rank, seconds, "a fused optimizer (fused=True)", because, "guide/efficiency")


def _launching(rank: RankProfile) -> TimeSaving | None:
    """Return what CUDA graphs or compiled code would save by launching without Python."""
    seconds = (rank.launch_s - rank.stall_s) / rank.steps
    because = "all time in which the device waited for launches, except in gaps above 2 ms"
    change = "CUDA graphs, or fewer and larger kernels"
    return _saving(rank, seconds, change, because, "guide/reading-a-profile")


def _overlapping(rank: RankProfile, waited: float) -> TimeSaving | None:
    """Return what overlapping all communication would save if the rank waits for `waited` s."""
    seconds = max(0.0, rank.exposed_s - waited) / rank.steps
    because = "all exposed communication"
    if waited > 0:
        because += ", less the waiting for other ranks"
    return _saving(rank, seconds, OVERLAPPED, because, "guide/zero-fsdp")


def remarks_of(rank: RankProfile) -> tuple[Remark, ...]:
    """Return remarks on the profiler's overhead and on kernels that were not identified."""
    found: list[Remark] = []
    if not rank.marked:
        text = (
            "No steps are marked, so the whole recording counts as one step: call prof.step() at"
            " the end of each."
        )
        found.append(Remark(topic="steps", text=text))
    step_s = rank.wall_s / rank.steps
    if rank.stall is not None and rank.stall_s >= TELLING * rank.wall_s:
        many = "1 gap" if rank.stall.gaps == 1 else f"{rank.stall.gaps:,} gaps"
        longest = f"{rank.stall.seconds * 1e3:,.1f} ms"
        text = (
            f"In {many} above 2 ms, the host did something other than launch kernels, such as"
            f" load data, compile or wait: {rank.stall_s / rank.wall_s:.0%} of the time. The"
            f" longest, {longest}, is before {short_name(rank.stall.operator)}."
        )
        found.append(Remark(topic="stalls", text=text))
    late_s = rank.launch_s - rank.stall_s
    least_s = step_s - late_s / rank.steps
    if late_s + rank.overhead_s >= TELLING * rank.wall_s and rank.host_events:
        text = (
            f"Recording slows the host, which wrote {rank.host_events / rank.steps:,.0f}"
            f" events per step; without it, a step takes between {least_s * 1e3:,.1f} and"
            f" {step_s * 1e3:,.1f} ms."
        )
        found.append(Remark(topic="recorder", text=text))
    other = sum(one.share for one in rank.kinds if one.kind == "other")
    if other > 0.05:
        text = f"{other:.0%} of the device's time is spent in kernels of unknown kind."
        found.append(Remark(topic="names", text=text))
    return tuple(found)
