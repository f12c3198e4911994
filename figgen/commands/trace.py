"""trace-export: write the modeled step as a trace, to open next to your own in Perfetto."""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterable
from pathlib import Path

from figgen.commands import Answer, Verbs, add_verb
from figgen.commands.training import (
    add_options,
    described,
    interval_data,
    interval_lines,
    scenario_of,
)
from figgen.errors import InputError
from figgen.models.profiles.chrome_trace import Event, trace_events, written
from figgen.models.step.data_traffic import calls_of
from figgen.models.step.kernel_timeline import kernel_timeline
from figgen.models.step.pass_kernels import step_kernels
from figgen.scenarios.options.resolve import resolve
from figgen.units import format_quantity

MOST_CALLS = 1_000_000
"""Limit on the calls in a trace: about 400 MB of JSON."""
AROUND = 2
"""The text of a written trace before and after its events."""


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "trace-export",
        _export,
        "write the predicted step of a configuration as a trace for Perfetto",
        "step.json.gz --model llama-3-8b --nodes 2 --gpus-per-node 8 --tp 2 --pp 2",
        "step.json --preset deepseek-v3 --together",
    )
    parser.add_argument("file", type=Path, help="file to write; compressed if it ends with .gz")
    parser.add_argument(
        "--together", action="store_true", help="draw equal calls of a microbatch as one event"
    )
    add_options(parser, "step")


def _export(options: argparse.Namespace) -> Answer:
    asked = resolve(scenario_of(options))
    setup = asked.setup
    calls = calls_of(setup)
    if calls > MOST_CALLS and not options.together:
        raise InputError(
            "calls of a step", expected=f"at most {MOST_CALLS:,}, or --together", got=f"{calls:,}"
        )
    found = asked.predicted
    timeline = kernel_timeline(
        setup,
        asked.cluster,
        asked.compute_efficiency,
        asked.parts,
        step_kernels(setup.shape, found.job, found.attained, found.parts),
        each_call=not options.together,
    )
    count = _write(options.file, trace_events(setup, timeline), asked.model.name)
    data = {
        "file": str(options.file),
        "events": count,
        "processes": setup.parallel.pp,
        "step_time_s": asked.estimate.step_time_s,
        **interval_data(asked),
    }
    lines = [
        described(asked.model.name, setup),
        f"{options.file}: {count:,} events of a step of "
        f"{format_quantity(timeline.step_time_s, 's', 'time')}, "
        "to open in ui.perfetto.dev next to your own",
        *interval_lines(asked),
    ]
    return Answer(data, "\n".join(lines))


def _write(path: Path, events: Iterable[Event], model: str) -> int:
    """Write `events`, one per line, and return how many. Raises InputError if writing fails."""
    pieces = 0
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "wt", encoding="utf-8") as file:
            for piece in written(events, model):
                file.write(piece)
                pieces += 1
    except OSError as error:
        raise InputError("trace", expected="a file that can be written", got=str(error)) from None
    return pieces - AROUND
