"""profile: where the time of recorded steps went, by rank and collective, beside the model."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from figgen.commands import Answer, add_verb, whole
from figgen.commands.training import add_options, aligned, scenario_of
from figgen.models.profiles.profile import PARTS, RankProfile, profiles
from figgen.models.profiles.profile_beside import (
    Beside,
    Common,
    Waiting,
    beside,
    bus_bandwidth_bytes_per_s,
    common_calls,
    slowest,
    waiting,
)
from figgen.models.profiles.trace_reader import trace_events
from figgen.models.profiles.unpacked import Limits
from figgen.progress import Share
from figgen.scenarios.options.resolve import resolve
from figgen.units import format_quantity

if TYPE_CHECKING:
    from figgen.commands import Verbs


MOST_BYTES = 2**34
"""Of a trace, unpacked; a step of a rank is a thousandth of it."""


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "profile",
        _read,
        "where the time of steps that torch.profiler recorded went, beside the model",
        "rank0.json.gz rank1.json.gz",
        "rank0.json.gz --model llama-3-8b --nodes 2 --gpus-per-node 8 --tp 2 --pp 2",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a trace, packed or not")
    parser.add_argument(
        "--most-bytes", type=whole(1, 2**50), default=MOST_BYTES, metavar="N",
        help=f"bytes that a file may unpack to; {MOST_BYTES} if left out",
    )  # fmt: skip
    add_options(parser, "step")


def _read(options: argparse.Namespace) -> Answer:
    ranks = [rank for file in options.files for rank in _profiles(file, options.most_bytes)]
    common = common_calls(ranks)
    waits, worst = waiting(common), slowest(ranks)
    data: dict[str, object] = {
        "ranks": [_rank_data(rank, common) for rank in ranks],
        "waiting": [asdict(row) for row in waits],
    }
    lines = [*_parts(ranks), "", *_calls(worst, common)]
    if waits:
        lines += ["", *_waits(waits)]
    if options.preset or options.run_name or options.model:
        rows = beside(worst, resolve(scenario_of(options)).estimate)
        data["model"] = [asdict(row) for row in rows]
        lines += ["", *_beside(worst, rows)]
    return Answer(data, "\n".join(lines))


def _profiles(file: str, most_bytes: int) -> Sequence[RankProfile]:
    """The ranks of a file, with a line on a terminal while it is read."""
    with contextlib.suppress(OSError):
        shown = Share(f"read of {file}", Path(file).stat().st_size)
        limits = Limits(most_bytes=most_bytes, tell=shown.reached)
        try:
            return profiles(trace_events(file, limits), file)
        finally:
            shown.end()
    return profiles(trace_events(file), file)


def _rank_data(rank: RankProfile, common: Common) -> dict[str, object]:
    found = asdict(rank)
    found["calls"] = [
        {
            "group": calls.group.name,
            "collective": calls.group.collective,
            "ranks": calls.group.size,
            "calls": len(calls.each_s),
            "buffer_bytes": calls.bytes,
            "busy_s": calls.busy_s,
            "exposed_s": calls.exposed_s,
            "bus_bandwidth_bytes_per_s": bus_bandwidth_bytes_per_s(calls, common),
        }
        for calls in rank.calls
    ]
    return found


def _time(seconds: float) -> str:
    return format_quantity(seconds, "s", "time")


def _parts(ranks: Sequence[RankProfile]) -> list[str]:
    """One line a rank; the parts add up to the step, what is hidden is within computing."""
    rows = [["per step", "step", *PARTS.values(), "hidden"]]
    for rank in ranks:
        step_s = rank.wall_s / rank.steps
        shares = [f"{getattr(rank, part) / rank.wall_s:.1%}" for part in PARTS]
        rows.append([rank.name, _time(step_s), *shares, f"{rank.hidden_s / rank.wall_s:.1%}"])
    return aligned(rows, left=1)


def _calls(rank: RankProfile, common: Common) -> list[str]:
    rows = [["group", "collective", "ranks", "calls", "buffer", "time", "exposed", "busbw"]]
    for calls in rank.calls:
        bandwidth = bus_bandwidth_bytes_per_s(calls, common)
        number = len(calls.each_s)
        rows.append([
            calls.group.name,
            calls.group.collective,
            str(calls.group.size or "?"),
            f"{number / rank.steps:,.4g}",
            format_quantity(calls.bytes / number, "B", "bytes") if calls.bytes else "?",
            _time(calls.busy_s / rank.steps),
            _time(calls.exposed_s / rank.steps),
            format_quantity(bandwidth, "B/s") if bandwidth else "?",
        ])  # fmt: skip
    if len(rows) == 1:
        return [f"{rank.name} communicates nothing"]
    return [f"{rank.name}, which computes longest, per step:", *aligned(rows, left=2)]


def _waits(waits: Sequence[Waiting]) -> list[str]:
    rows = [["waits for others", "in all", "came last"]]
    rows += [
        [row.name, _time(row.waited_s), f"{row.last} of {row.calls}"]
        for row in sorted(waits, key=lambda row: row.waited_s)
    ]
    return aligned(rows, left=1)


def _beside(rank: RankProfile, rows: Sequence[Beside]) -> list[str]:
    """What differs most first."""
    table = [["part of the step", "see", "recorded", "modelled", "more"]]
    for row in rows:
        more = row.recorded_s - row.modelled_s
        sign = "-" if more < 0 else "+"
        table.append([
            row.part, row.page, _time(row.recorded_s), _time(row.modelled_s),
            sign + _time(abs(more)),
        ])  # fmt: skip
    recorded, modelled = rank.wall_s / rank.steps, sum(row.modelled_s for row in rows)
    table.append(["step", "", _time(recorded), _time(modelled), f"{recorded / modelled - 1:+.1%}"])
    return [f"{rank.name} compared with the model:", *aligned(table, left=2)]
