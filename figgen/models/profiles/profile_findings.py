"""What recorded steps could save, and what has to be known before they are believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from figgen.models.profiles.kernel_kinds import ATTENTION, ELEMENTWISE, FUSED, OPTIMIZER
from figgen.models.profiles.profile import RankProfile

TELLING = 0.02
"""The least share of a step that a saving or a remark is worth naming for."""
FUSIBLE = (ELEMENTWISE, "normalization", "reduction", "softmax")
"""Kinds that torch.compile fuses with their neighbours."""
FUSED_ADAM_PASSES = 7
"""Tensors that a fused Adam reads and writes: weight, gradient and two moments, less a gradient."""
FOREACH_ADAM_PASSES = 18
"""The same of `foreach=True`: lerp 3, mul 2, addcmul 3, sqrt 2, div 2, add 2, addcdiv 4."""
MEASURED = "measured for Llama 1B on one H100, torch 2.11"
COMPILED_LEFT = 0.294
"""What torch.compile left of elementwise time there: 28.8 of 97.9 ms a step."""
UNMASKED_LEFT = 0.320
"""What attention took there without a mask, of its time with one: 20.2 of 63.1 ms a step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSaving:
    """A change, what it would save of a step, s, why as much, and the page about it."""

    change: str
    seconds: float
    share: float
    because: str
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Something that a reader has to know before the numbers are believed."""

    topic: str
    text: str


def savings_of(rank: RankProfile) -> tuple[TimeSaving, ...]:
    """What would be saved of a step, the most first; nothing below 2 % of it."""
    found: list[TimeSaving] = []
    step_s = rank.wall_s / rank.steps
    for rule in (_fusing, _unmasking, _fusing_the_optimizer, _launching, _overlapping):
        saving = rule(rank)
        if saving is not None and saving.seconds >= TELLING * step_s:
            found.append(saving)
    return tuple(sorted(found, key=lambda saving: -saving.seconds))


def _seconds_of(rank: RankProfile, kinds: Sequence[str]) -> float:
    """Seconds a step of some kinds of kernels."""
    return sum(one.seconds for one in rank.kinds if one.kind in kinds) / rank.steps


def _saving(rank: RankProfile, seconds: float, change: str, because: str, page: str) -> TimeSaving:
    share = seconds * rank.steps / rank.wall_s
    return TimeSaving(change=change, seconds=seconds, share=share, because=because, page=page)


def _fusing(rank: RankProfile) -> TimeSaving | None:
    """Elementwise kernels of eager PyTorch read and write GPU memory one after the other."""
    if _seconds_of(rank, [FUSED]):
        return None
    seconds = (1 - COMPILED_LEFT) * _seconds_of(rank, FUSIBLE)
    because = f"it left {COMPILED_LEFT:.0%} of the elementwise time, {MEASURED}"
    return _saving(rank, seconds, "torch.compile", because, "guide/efficiency")


def _unmasking(rank: RankProfile) -> TimeSaving | None:
    """Attention with a mask falls back to a kernel that does more than flash attention."""
    slow = [
        kernel
        for kernel in rank.kernels
        if kernel.kind == ATTENTION and _is_masked(kernel.name.lower())
    ]
    seconds = (1 - UNMASKED_LEFT) * sum(kernel.seconds for kernel in slow) / rank.steps
    because = f"flash attention took {UNMASKED_LEFT:.0%} of the time with a mask, {MEASURED}"
    return _saving(rank, seconds, "flash attention without a mask", because, "guide/efficiency")


def _is_masked(name: str) -> bool:
    """Whether a kernel of attention is the memory-efficient one, which is taken for masks."""
    return "fmha_cutlass" in name or "attentionkernel" in name or "attentionbackwardkernel" in name


def _fusing_the_optimizer(rank: RankProfile) -> TimeSaving | None:
    """An optimizer of many kernels reads and writes its states once for each of them."""
    names = [kernel.name.lower() for kernel in rank.kernels if kernel.kind == OPTIMIZER]
    if not names or any("fused" in name or "multitensoradam" in name for name in names):
        return None
    if not any("lerp" in name or "addcdiv" in name or "pointwise" in name for name in names):
        return None
    seconds = (1 - FUSED_ADAM_PASSES / FOREACH_ADAM_PASSES) * _seconds_of(rank, [OPTIMIZER])
    because = f"{FUSED_ADAM_PASSES} instead of {FOREACH_ADAM_PASSES} passes over its tensors"
    return _saving(rank, seconds, "a fused optimizer (fused=True)", because, "guide/efficiency")


def _launching(rank: RankProfile) -> TimeSaving | None:
    """CUDA graphs and compiled code launch without Python in between."""
    seconds = rank.launch_s / rank.steps
    because = "all of the time in which the device waited for launches"
    change = "CUDA graphs, or fewer and larger kernels"
    return _saving(rank, seconds, change, because, "guide/reading-a-profile")


def _overlapping(rank: RankProfile) -> TimeSaving | None:
    """Communication that something hides costs nothing."""
    seconds = rank.exposed_s / rank.steps
    because = "all of the communication that nothing hides"
    return _saving(rank, seconds, "overlapped communication", because, "guide/zero-fsdp")


def remarks_of(rank: RankProfile) -> tuple[Remark, ...]:
    """What the recorder slowed, and what was taken for granted."""
    found: list[Remark] = []
    step_s = rank.wall_s / rank.steps
    least_s = step_s - rank.launch_s / rank.steps
    if rank.launch_s + rank.overhead_s >= TELLING * rank.wall_s and rank.host_events:
        text = (
            f"The recorder itself slows the host, which made {rank.host_events / rank.steps:,.0f}"
            f" records a step: without it, a step takes between {least_s * 1e3:,.1f} and"
            f" {step_s * 1e3:,.1f} ms."
        )
        found.append(Remark(topic="recorder", text=text))
    other = sum(one.share for one in rank.kinds if one.kind == "other")
    if other > 0.05:
        text = f"{other:.0%} of the device's time is in kernels whose names say nothing."
        found.append(Remark(topic="names", text=text))
    return tuple(found)
