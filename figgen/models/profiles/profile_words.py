"""Recorded steps in two sentences: what filled a step, and the change that would save most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from figgen.models.profiles.kernel_times import KindTime
from figgen.models.profiles.profile import RankProfile
from figgen.models.profiles.profile_against import SlowRank, causes
from figgen.models.profiles.profile_beside import Waiting, idle_page, waited_s
from figgen.models.profiles.profile_findings import OVERLAPPED, TimeSaving, savings_of

LATE = 0.25
"""The share of exposed communication from which on waiting for other ranks comes first."""

LONGEST = 60
"""Number of characters of a rank's name that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileAnswer:
    """The sentences, and the key in `PAGES` of the page about the largest loss, or ""."""

    text: str
    page: str


def against_answer(
    rank: RankProfile, base: RankProfile, write: Callable[[float, str, str], str]
) -> str:
    """By how much a step is longer than one of another recording, and what makes most of that."""
    here, there = rank.wall_s / rank.steps, base.wall_s / base.steps
    more = "longer" if here >= there else "shorter"
    both = (write(here, "s", "time"), write(there, "s", "time"))
    text = (
        f"A step takes as long as the one compared with: {both[0]}"
        if both[0] == both[1]
        else f"A step is {write(abs(here - there), 's', 'time')} {more} than the one compared with:"
        f" {both[0]} against {both[1]}"
    )
    found = causes(rank, base)
    if found and found[0].more_s != 0:
        sign = "+" if found[0].more_s >= 0 else "−"
        text += (
            f". What differs most is {found[0].cause}:"
            f" {sign}{write(abs(found[0].more_s), 's', 'time')} a step"
        )
    return f"{text}."


def profile_answer(
    rank: RankProfile,
    ranks: int,
    waits: Sequence[Waiting],
    write: Callable[[float, str, str], str],
    slow: SlowRank | None = None,
) -> ProfileAnswer:
    """Return the answer about recorded steps of `ranks`, of which `rank` computes longest.

    `slow` is the rank that the others wait for, if there is one.
    """
    part = "step" if rank.marked else "recording"
    step = write(rank.wall_s / rank.steps, "s", "time")
    whose = "A step" if rank.marked else "The recording"
    if ranks > 1:
        whose += f" of {_short(rank.name)}, which computes longest of {ranks} ranks,"
    text = f"{whose} takes {step}: it computes for {rank.computing_s / rank.wall_s:.1%} of it"
    fullest = _fullest(rank.kinds)
    if fullest is not None:
        text += f", most of that in {_kernels(fullest.kind)}"
    if slow is not None:
        cost = write(slow.cost_s, "s", "time")
        text += f". The slow rank is {_short(slow.name)}: another waits {cost} per step for it"
    words, seconds, page = _loss(rank)
    waited = 0.0
    if seconds > 0:
        text += f". The largest loss is {words}: {seconds / rank.wall_s:.1%} of the {part}"
        if "communication" in words:
            waited = min(seconds, waited_s(rank.name, waits))
        if waited > 0:
            text += f", up to {waited / seconds:.0%} of it waiting for other ranks"
    late = waited > LATE * rank.exposed_s
    if late:
        text += ". Find out first why ranks come late"
    savings = savings_of(rank, waits)
    if savings:
        text += _advice(savings[0], late, write)
    return ProfileAnswer(text=f"{text}.", page=page if seconds > 0 else "")


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}…"


def _advice(best: TimeSaving, late: bool, write: Callable[[float, str, str], str]) -> str:
    """Return what saves most, after the advice to find out why ranks come late, if they do."""
    words = f". The change that saves most is {best.change}:"
    if late and best.change == OVERLAPPED:
        words = "; overlapping the rest saves"
    return f"{words} up to {write(best.seconds, 's', 'time')}, {best.share:.1%}"


def _fullest(kinds: tuple[KindTime, ...]) -> KindTime | None:
    """Return the kind that computes longest, or None if no kernel is known."""
    found: KindTime | None = None
    for one in kinds:
        if one.alone_s > (0.0 if found is None else found.alone_s):
            found = one
    return found


def _kernels(kind: str) -> str:
    return "matmuls" if kind == "product" else f"{kind} kernels"


def _loss(rank: RankProfile) -> tuple[str, float, str]:
    """Return the largest loss besides computing: its name, its seconds, and the key of its page."""
    losses: list[tuple[str, float, str]] = []
    for axis, seconds in rank.exposed_by_axis:
        words = f"exposed {axis.upper()} communication"
        if axis == "other":
            words = "exposed communication of unidentified groups"
        losses.append((words, seconds, "pipeline" if axis == "pp" else axis))
    losses.append(("exposed copies", rank.copies_s, "copies"))
    losses.append(("kernels launched late", rank.launch_s - rank.stall_s, "launch"))
    losses.append(("gaps in which the host did something else", rank.stall_s, "launch"))
    losses.append(("idle time", rank.idle_s, idle_page(rank)))
    most = losses[0]
    for loss in losses:
        if loss[1] > most[1]:
            most = loss
    return most
