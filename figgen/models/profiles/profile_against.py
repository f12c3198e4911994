"""Compares two recordings of steps: what makes the difference, with evidence.

The causes add up to the difference of the step times. Computing is divided by what its kernels do;
moments in which several kernels run count once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from figgen.models.profiles.profile import RankProfile
from figgen.models.profiles.profile_beside import Waiting

FAIR = 1.5
"""A rank is slow if it comes last this many times as often as the average rank."""
SLOWER = 0.01
"""Share of a step by which a part of a slow rank must exceed the others' to be evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceCause:
    """A part of the step in this recording and in the base recording, s.

    `evidence` names what changed most within the part: a kernel, a group or an operator. It had
    `runs` per step here and `base_runs` there, and took `evidence_s` and `evidence_base_s`.
    """

    cause: str
    seconds: float
    base_s: float
    evidence: str
    runs: float
    base_runs: float
    evidence_s: float
    evidence_base_s: float

    @property
    def more_s(self) -> float:
        """Seconds by which the part is longer here."""
        return self.seconds - self.base_s


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowRank:
    """The rank that the others wait for, and the parts in which it takes longer than they do.

    `cost_s` is the median time per step that another rank waits for it.
    """

    name: str
    last: int
    calls: int
    cost_s: float
    evidence: tuple[TraceCause, ...]


def median(values: Sequence[float]) -> float:
    """Return the middle value, or the mean of the two middle values."""
    ranked = sorted(values)
    half = len(ranked) // 2
    return ranked[half] if len(ranked) % 2 else (ranked[half - 1] + ranked[half]) / 2


def pairs(
    ranks: Sequence[RankProfile], bases: Sequence[RankProfile]
) -> list[tuple[RankProfile, RankProfile]]:
    """Return the ranks that two recordings share, or else the longest computing rank of each."""
    by_name = {rank.name: rank for rank in bases}
    found = [(rank, by_name[rank.name]) for rank in ranks if rank.name in by_name]
    return found or [(_longest(ranks), _longest(bases))]


def _longest(ranks: Sequence[RankProfile]) -> RankProfile:
    return max(ranks, key=lambda rank: rank.computing_s / rank.steps)


def causes(rank: RankProfile, base: RankProfile) -> tuple[TraceCause, ...]:
    """Return what makes one step longer or shorter than the other, largest difference first."""
    found = [
        *_computing(rank, base),
        _cause("exposed communication", "exposed_s", _groups, rank, base),
        _cause("copies alone", "copies_s", _nothing, rank, base),
        _cause("kernels launched late", "launch_s", _operators, rank, base),
        _cause("idle", "idle_s", _nothing, rank, base),
    ]
    wall = max(rank.wall_s / rank.steps, base.wall_s / base.steps)
    shown = [cause for cause in found if max(abs(cause.seconds), abs(cause.base_s)) > 1e-6 * wall]
    return tuple(sorted(shown, key=lambda cause: -abs(cause.more_s)))


Detail = dict[str, tuple[float, float]]
"""Seconds and runs per step, by name."""
Details = Callable[[RankProfile], Detail]


def _computing(rank: RankProfile, base: RankProfile) -> list[TraceCause]:
    """Return computing by kind, plus what no kernel accounts for; on a CPU, that is all of it."""
    here, there = _alone(rank), _alone(base)
    found: list[TraceCause] = []
    for kind in [*here, *(kind for kind in there if kind not in here)]:
        mine, other = _kernels(rank, kind), _kernels(base, kind)
        found.append(_with_evidence(kind, here.get(kind, 0.0), there.get(kind, 0.0), mine, other))
    rest = rank.computing_s / rank.steps - sum(here.values())
    base_rest = base.computing_s / base.steps - sum(there.values())
    found.append(
        _with_evidence("other computing" if here or there else "computing", rest, base_rest, {}, {})
    )
    return found


def _alone(rank: RankProfile) -> dict[str, float]:
    return {one.kind: one.alone_s / rank.steps for one in rank.kinds if one.alone_s}


def _kernels(rank: RankProfile, kind: str) -> Detail:
    return {
        kernel.name: (kernel.seconds / rank.steps, kernel.runs / rank.steps)
        for kernel in rank.kernels
        if kernel.kind == kind
    }


def _groups(rank: RankProfile) -> Detail:
    return {
        f"{calls.group.name} {calls.group.collective}".strip(): (
            calls.exposed_s / rank.steps,
            len(calls.each_s) / rank.steps,
        )
        for calls in rank.calls
    }


def _operators(rank: RankProfile) -> Detail:
    return {gap.operator: (gap.seconds / rank.steps, gap.gaps / rank.steps) for gap in rank.gaps}


def _nothing(rank: RankProfile) -> Detail:
    return {}


def _cause(
    name: str, part: str, detail: Details, rank: RankProfile, base: RankProfile
) -> TraceCause:
    mine, other = _part(rank, part), _part(base, part)
    return _with_evidence(name, mine, other, detail(rank), detail(base))


def _part(rank: RankProfile, part: str) -> float:
    """Return the seconds per step of one part of a rank."""
    parts = {
        "exposed_s": rank.exposed_s,
        "copies_s": rank.copies_s,
        "launch_s": rank.launch_s,
        "idle_s": rank.idle_s,
        "computing_s": rank.computing_s,
    }
    return parts[part] / rank.steps


def _with_evidence(
    name: str, seconds: float, base_s: float, mine: Detail, other: Detail
) -> TraceCause:
    """Return a cause with what changed most within it in the same direction."""
    sign = 1.0 if seconds >= base_s else -1.0
    changed, most = "", 0.0
    for key in [*mine, *(key for key in other if key not in mine)]:
        more = sign * (mine.get(key, (0.0, 0.0))[0] - other.get(key, (0.0, 0.0))[0])
        if more > most:
            changed, most = key, more
    here, there = mine.get(changed, (0.0, 0.0)), other.get(changed, (0.0, 0.0))
    return TraceCause(
        cause=name,
        seconds=seconds,
        base_s=base_s,
        evidence=changed,
        runs=here[1],
        base_runs=there[1],
        evidence_s=here[0],
        evidence_base_s=there[0],
    )


def slow_rank(ranks: Sequence[RankProfile], waits: Sequence[Waiting]) -> SlowRank | None:
    """Return the rank that the others wait for, or None if no rank comes last much more often."""
    if len(ranks) < 2 or len(waits) < 2:
        return None
    slow = min(waits, key=lambda row: row.waited_s)
    if slow.last * len(waits) < FAIR * slow.calls:
        return None
    mine = next(rank for rank in ranks if rank.name == slow.name)
    others = [rank for rank in ranks if rank.name != slow.name]
    step_s = mine.wall_s / mine.steps
    found: list[TraceCause] = []
    for name, part in (("computing", "computing_s"), ("kernels launched late", "launch_s"),
                       ("copies alone", "copies_s"), ("idle", "idle_s")):  # fmt: skip
        usual = median([_part(rank, part) for rank in others])
        found.append(_with_evidence(name, _part(mine, part), usual, {}, {}))
    kinds = _alone(mine)
    for kind in kinds:
        usual = median([_alone(rank).get(kind, 0.0) for rank in others])
        found.append(_with_evidence(kind, kinds[kind], usual, {}, {}))
    telling = [cause for cause in found if cause.more_s > SLOWER * step_s]
    waited = [row.waited_s for row in waits if row.name != slow.name]
    return SlowRank(
        name=slow.name,
        last=slow.last,
        calls=slow.calls,
        cost_s=(median(waited) - slow.waited_s) / mine.steps,
        evidence=tuple(sorted(telling, key=lambda cause: -cause.more_s)),
    )
