"""profile: where the time of recorded steps went, by rank and collective, next to the model."""

from __future__ import annotations

import argparse
import contextlib
import gc
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from figgen.commands import Answer, Verbs, add_verb, whole
from figgen.commands.training import add_options, aligned, scenario_of
from figgen.models.profiles.kernel_times import kinds_together
from figgen.models.profiles.profile import RankProfile, profiles
from figgen.models.profiles.profile_against import causes, pairs, slow_rank
from figgen.models.profiles.profile_beside import (
    Common,
    beside,
    bus_bandwidth_bytes_per_s,
    common_calls,
    slowest,
    waiting,
)
from figgen.models.profiles.profile_findings import remarks_of, savings_of
from figgen.models.profiles.profile_text import (
    Section,
    against_section,
    beside_section,
    sections,
)
from figgen.models.profiles.profile_words import against_answer, profile_answer
from figgen.models.profiles.trace_reader import trace_events
from figgen.models.profiles.unpacked import Limits
from figgen.progress import Share
from figgen.scenarios.options.resolve import resolve
from figgen.units import format_quantity

MOST_BYTES = 2**34
"""Limit on the size of an unpacked trace; a step of a rank takes about a thousandth of it."""


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "profile",
        _read,
        "break down the time of steps in a torch.profiler trace, and compare it with the model",
        "rank0.json.gz rank1.json.gz",
        "after.json.gz --against before.json.gz",
        "rank0.json.gz --model llama-3-8b --nodes 2 --gpus-per-node 8 --tp 2 --pp 2",
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="a trace of torch.profiler, plain or compressed"
    )
    parser.add_argument(
        "--against", nargs="+", metavar="FILE", help="traces of other steps to compare with"
    )
    parser.add_argument(
        "--most-bytes",
        type=whole(1, 2**50),
        default=MOST_BYTES,
        metavar="N",
        help=f"largest size in bytes that a file may decompress to; {MOST_BYTES} by default",
    )
    add_options(parser, "step")


def _read(options: argparse.Namespace) -> Answer:
    ranks = _ranks(options.files, options.most_bytes)
    common = common_calls(ranks)
    waits, worst = waiting(common), slowest(ranks)
    slow = slow_rank(ranks, waits)
    data: dict[str, object] = {
        "kernels": {
            one.kind: {"seconds": one.seconds, "share": one.share, "bound": one.bound}
            for one in kinds_together([rank.all_kinds for rank in ranks])
        },
        "savings": [asdict(saving) for saving in savings_of(worst, waits)],
        "remarks": [asdict(remark) for remark in remarks_of(worst)],
        "ranks": [_rank_data(rank, common) for rank in ranks],
        "waiting": [asdict(row) for row in waits],
        "slow_rank": None if slow is None else asdict(slow),
    }
    said = sections(ranks, worst, common, waits, slow, format_quantity)
    told = [profile_answer(worst, len(ranks), waits, format_quantity, slow).text]
    if options.against:
        rank, base = pairs(ranks, _ranks(options.against, options.most_bytes))[0]
        told[0] = f"{against_answer(rank, base, format_quantity)} {told[0]}"
        data["against"] = [asdict(cause) | {"more_s": cause.more_s} for cause in causes(rank, base)]
        said.append(against_section(rank, base, format_quantity))
    if options.preset or options.run_name or options.model:
        rows = beside(worst, resolve(scenario_of(options)).estimate)
        data["model"] = [asdict(row) for row in rows]
        said.append(beside_section(worst, rows, format_quantity))
    told += ["\n".join(_lines(section)) for section in said]
    return Answer(data, "\n\n".join(told))


def _lines(section: Section) -> list[str]:
    """Return a section as text: its title, its table, its notes."""
    title = [section.title] if section.title else []
    table = aligned([list(row) for row in section.rows], left=section.left) if section.rows else []
    return [*title, *table, *section.notes]


def _ranks(files: Sequence[str], most_bytes: int) -> list[RankProfile]:
    # Looking for cycles among millions of small live objects would take a third of the time.
    gc.disable()
    try:
        return [rank for file in files for rank in _profiles(file, most_bytes)]
    finally:
        gc.enable()


def _profiles(file: str, most_bytes: int) -> Sequence[RankProfile]:
    """Return the profiles of a file's ranks, with a progress line if the output is a terminal."""
    with contextlib.suppress(OSError):
        shown = Share(what=f"read of {file}", bytes=Path(file).stat().st_size)
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
