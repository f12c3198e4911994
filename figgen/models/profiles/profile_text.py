"""The report on recorded steps: tables of words and numbers for the command line and the page.

Callers format quantities, so that units look alike everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from figgen.models.profiles.kernel_kinds import short_name
from figgen.models.profiles.profile import PARTS, RankProfile
from figgen.models.profiles.profile_against import SlowRank, TraceCause, causes
from figgen.models.profiles.profile_beside import (
    Beside,
    Common,
    Waiting,
    bus_bandwidth_bytes_per_s,
)
from figgen.models.profiles.profile_findings import remarks_of, savings_of

Written = Callable[[float, str, str], str]
"""Formats a value with its unit, by a spec of `figgen.units`."""
MOST_ROWS = 8
"""Number of operators and modules that are shown; the JSON has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A table with its title and notes; the first row is the header.

    The first `left` columns are words. `name` identifies the section.
    """

    name: str
    title: str
    rows: tuple[tuple[str, ...], ...]
    left: int
    notes: tuple[str, ...]


def _section(
    name: str, title: str, rows: Sequence[Sequence[str]], left: int, notes: Sequence[str]
) -> Section:
    return Section(
        name=name,
        title=title,
        rows=tuple(tuple(row) for row in rows),
        left=left,
        notes=tuple(notes),
    )


def sections(
    ranks: Sequence[RankProfile],
    worst: RankProfile,
    common: Common,
    waits: Sequence[Waiting],
    slow: SlowRank | None,
    write: Written,
) -> list[Section]:
    """Return all non-empty sections about the recorded ranks."""
    found = [
        _parts(ranks, worst, write),
        _calls(worst, common, write),
        _kinds(worst, write),
        _savings(worst, waits, write),
        _gaps(worst, write),
        _modules(worst, write),
        _waits(ranks, waits, slow, write),
    ]
    return [section for section in found if len(section.rows) > 1 or section.notes]


def _time(seconds: float, write: Written) -> str:
    return write(seconds, "s", "time")


def _more(seconds: float, write: Written) -> str:
    return ("-" if seconds < 0 else "+") + _time(abs(seconds), write)


def _change(ratio: float) -> str:
    return ("-" if ratio < 0 else "+") + f"{abs(ratio):.1%}"


def _parts(ranks: Sequence[RankProfile], worst: RankProfile, write: Written) -> Section:
    """Return a row per rank; the parts add up to the step, and hidden time is within computing."""
    rows = [["per step", "step", *PARTS.values(), "hidden"]]
    for rank in ranks:
        parts = [rank.computing_s, rank.exposed_s, rank.copies_s, rank.launch_s, rank.idle_s]
        shares = [f"{part / rank.wall_s:.1%}" for part in [*parts, rank.hidden_s]]
        rows.append([rank.name, _time(rank.wall_s / rank.steps, write), *shares])
    return _section("parts", "", rows, 1, [remark.text for remark in remarks_of(worst)])


def _calls(rank: RankProfile, common: Common, write: Written) -> Section:
    rows = [["group", "collective", "ranks", "calls", "buffer", "time", "exposed", "busbw"]]
    for calls in rank.calls:
        bandwidth = bus_bandwidth_bytes_per_s(calls, common)
        number = len(calls.each_s)
        rows.append(
            [
                calls.group.name,
                calls.group.collective,
                str(calls.group.size) if calls.group.size else "?",
                f"{number / rank.steps:,.4g}",
                write(calls.bytes / number, "B", "bytes") if calls.bytes else "?",
                _time(calls.busy_s / rank.steps, write),
                _time(calls.exposed_s / rank.steps, write),
                write(bandwidth, "B/s", "") if bandwidth else "?",
            ]
        )
    if len(rows) == 1:
        return _section("calls", "", [], 2, [f"{rank.name} communicates nothing"])
    return _section("calls", f"{rank.name}, which computes longest, per step:", rows, 2, [])


def _kinds(rank: RankProfile, write: Written) -> Section:
    """Return the device's time by what its kernels do."""
    rows = [["kernels", "bound by", "time", "share", "runs", "longest"]]
    for one in rank.kinds:
        names = [kernel.name for kernel in rank.kernels if kernel.kind == one.kind]
        rows.append(
            [
                one.kind,
                one.bound,
                _time(one.seconds / rank.steps, write),
                f"{one.share:.1%}",
                f"{one.kernels / rank.steps:,.4g}",
                short_name(names[0]) if names else "",
            ]
        )
    return _section("kinds", f"{rank.name}, kernels per step:" if rank.kinds else "", rows, 2, [])


def _savings(rank: RankProfile, waits: Sequence[Waiting], write: Written) -> Section:
    savings = savings_of(rank, waits)
    rows = [["what would save time", "saves", "of the step"]]
    rows += [[one.change, _time(one.seconds, write), f"{one.share:.1%}"] for one in savings]
    return _section("savings", "", rows, 1, [f"{one.change}: {one.because}" for one in savings])


def _gaps(rank: RankProfile, write: Written) -> Section:
    rows = [["launched late", "per step", "gaps"]]
    for gap in rank.gaps[:MOST_ROWS]:
        number = f"{gap.gaps / rank.steps:,.4g}"
        rows.append([gap.operator, _time(gap.seconds / rank.steps, write), number])
    return _section("gaps", "", rows, 1, [])


def _modules(rank: RankProfile, write: Written) -> Section:
    rows = [["module", "per step", "kernels"]]
    for one in rank.modules[:MOST_ROWS]:
        number = f"{one.runs / rank.steps:,.4g}"
        rows.append([one.module, _time(one.seconds / rank.steps, write), number])
    return _section("modules", "", rows, 1, [])


def _waits(
    ranks: Sequence[RankProfile], waits: Sequence[Waiting], slow: SlowRank | None, write: Written
) -> Section:
    steps = {rank.name: rank.steps for rank in ranks}
    rows = [["waits for others", "per step", "came last"]]
    for row in sorted(waits, key=lambda row: row.waited_s):
        waited = _time(row.waited_s / steps[row.name], write)
        rows.append([row.name, waited, f"{row.last} of {row.calls}"])
    notes = [] if slow is None else [_slow(slow, write)]
    return _section("waits", "", rows, 1, notes)


def _slow(slow: SlowRank, write: Written) -> str:
    """Return a sentence on the rank that the others wait for, with its evidence."""
    said = (
        f"{slow.name} is slow: it came last to {slow.last} of {slow.calls} collectives, and another"
        f" rank waits {_time(slow.cost_s, write)} per step for it"
    )
    longer = [
        f"{cause.cause} {_time(cause.seconds, write)} instead of {_time(cause.base_s, write)}"
        for cause in slow.evidence
    ]
    return f"{said}: {'; '.join(longer)}." if longer else f"{said}."


def against_section(rank: RankProfile, base: RankProfile, write: Written) -> Section:
    """Return what makes the difference between two recordings, largest first."""
    rows = [["cause", "largest change", "here", "there", "difference"]]
    for cause in causes(rank, base):
        rows.append(
            [
                cause.cause,
                _evidence(cause, write),
                _time(cause.seconds, write),
                _time(cause.base_s, write),
                _more(cause.more_s, write),
            ]
        )
    here, there = rank.wall_s / rank.steps, base.wall_s / base.steps
    share = f"{_change(here / there - 1)} of the step"
    rows.append(
        [
            "step",
            share,
            _time(here, write),
            _time(there, write),
            _more(here - there, write),
        ]
    )
    return _section("against", f"{rank.name} against {base.name}:", rows, 2, [])


def _evidence(cause: TraceCause, write: Written) -> str:
    if not cause.evidence:
        return ""
    return (
        f"{short_name(cause.evidence)}: {cause.base_runs:,.4g} to {cause.runs:,.4g} runs,"
        f" {_time(cause.evidence_base_s, write)} to {_time(cause.evidence_s, write)}"
    )


def beside_section(rank: RankProfile, parts: Sequence[Beside], write: Written) -> Section:
    """Return a recorded step next to the modeled one, largest difference first."""
    rows = [["part of the step", "see", "recorded", "modelled", "difference"]]
    for row in parts:
        rows.append(
            [
                row.part,
                row.page,
                _time(row.recorded_s, write),
                _time(row.modelled_s, write),
                _more(row.recorded_s - row.modelled_s, write),
            ]
        )
    recorded, modelled = rank.wall_s / rank.steps, sum(row.modelled_s for row in parts)
    share = _change(recorded / modelled - 1)
    rows.append(["step", "", _time(recorded, write), _time(modelled, write), share])
    return _section("beside", f"{rank.name} compared with the model:", rows, 2, [])
