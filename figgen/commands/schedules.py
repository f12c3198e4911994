"""schedule: the order and timing of a pipeline schedule."""

from __future__ import annotations

import argparse
from typing import Any

from figgen.commands import Answer, Verbs, add_verb, number, whole
from figgen.errors import InputError
from figgen.models.pipeline.schedule_words import CarriedOut, held_words, schedules_sentence
from figgen.models.pipeline.schedule_work import (
    carried_out,
    peak_held,
    slots_csv,
    stage_shares,
    torch_listing,
)
from figgen.models.pipeline.schedules import MOST_VISITS, SCHEDULES, Schedule, build, schedule_title
from figgen.models.pipeline.simulate import Durations, Trace, critical_path, simulate
from figgen.models.profiles.chrome_trace import schedule_events, written
from figgen.scenarios.options.typed import typed_amount, typed_measure
from figgen.units import format_quantity


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "schedule",
        _schedule,
        "show the order of a pipeline schedule, and when it ends",
        "1f1b --stages 4 --microbatches 8",
        "interleaved-1f1b --stages 4 --microbatches 8 --chunks 2 --json",
        "zbv --stages 4 --microbatches 12 --forward 1 --backward 1 --weight 1 --p2p 0.1",
        "1f1b --stages 4 --microbatches 6 --layers 9,9,9,5 --memory '1.5 GB'",
        "dualpipev --stages 4 --microbatches 8 --as torch",
        "zb2p --stages 4 --microbatches 8 --as trace",
    )
    count, time = whole(1, MOST_VISITS), number(0, 1e12, _plain_or_ms)
    parser.add_argument("name", help=", ".join(SCHEDULES))
    parser.add_argument("--stages", type=count, required=True, help="pipeline ranks")
    parser.add_argument("--microbatches", type=count, required=True)
    parser.add_argument("--chunks", type=count, help="virtual stages per rank")
    parser.add_argument(
        "--forward", type=time, default=1.0, help="time of a forward pass; 1 by default (or '9 ms')"
    )
    parser.add_argument(
        "--backward",
        type=time,
        help="time of the part of a backward pass that computes the gradient of the input; of the "
        "whole pass if the schedule does not split it and --weight is not given; 1 by default",
    )
    parser.add_argument(
        "--weight",
        type=time,
        help="time of the part that computes the gradients of the weights; 1 by default",
    )
    parser.add_argument("--p2p", type=time, default=0.0, help="delay of a message between ranks")
    parser.add_argument(
        "--pair", type=time, help="time of a forward and a backward pass that overlap"
    )
    parser.add_argument(
        "--per-rank",
        action="store_true",
        help="times are for a rank's whole share of the model, which is divided among its chunks",
    )
    parser.add_argument(
        "--layers",
        help="layers of each rank, or of each virtual stage, as 9,9,9,5; times are then those of "
        "an average rank's whole share",
    )
    parser.add_argument(
        "--memory",
        help="activations that one microbatch keeps on an average rank, such as '1.5 GB'",
    )
    parser.add_argument(
        "--as",
        dest="form",
        choices=("csv", "torch", "trace"),
        help="csv: when each action runs; torch: Python for torch.distributed.pipelining; trace: "
        "for Perfetto, which shows a unit of time as a millisecond",
    )


def _plain_or_ms(text: str) -> float:
    """Parse a plain number, or a time such as "43.5 ms" in ms."""
    return float(f"{typed_amount('time', text, 's', 1e-3):.12g}")


def _durations(options: argparse.Namespace, schedule: Schedule) -> Durations:
    weight = options.weight
    if weight is None:
        splits = any(action.kind in "IW" for action in schedule.orders[0])
        weight = 1.0 if splits or options.backward is None else 0.0
    backward = 1.0 if options.backward is None else options.backward
    return Durations(
        forward=options.forward,
        backward_input=backward,
        backward_weight=weight,
        latency=options.p2p,
        overlapped_pair=options.pair,
    )


def _layers(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise InputError(
            "--layers", expected="numbers with commas between, as 9,9,9,5", got=text[:40]
        ) from None


def _schedule(options: argparse.Namespace) -> Answer:
    schedule = build(
        options.name,
        stages=options.stages,
        microbatches=options.microbatches,
        chunks=options.chunks,
    )
    durations, layers = _durations(options, schedule), _layers(options.layers)
    whole_share = options.per_rank or layers is not None
    run = carried_out(schedule, durations, layers) if whole_share else simulate(schedule, durations)
    data = _found(run)
    if options.memory is not None:
        size, shares = (
            typed_measure("--memory", options.memory, "B"),
            stage_shares(schedule.placement, layers),
        )
        data["peak_bytes"] = peak_held(run.placed, tuple(size * share for share in shares))
    if options.form == "torch":
        return Answer(data, torch_listing(schedule).rstrip("\n"))
    if options.form == "trace":
        return Answer(data, "".join(written(schedule_events(run), schedule.name)).rstrip("\n"))
    if options.form == "csv":
        return Answer(data, slots_csv(run).rstrip("\n"))
    return Answer(data, _summary(run, data))


def _found(trace: Trace) -> dict[str, Any]:
    schedule = trace.schedule
    return {
        "order": [[str(action) for action in order] for order in schedule.orders],
        "makespan": trace.makespan,
        "bubble_fraction": trace.bubble_fraction,
        "bubble_overhead": trace.bubble_overhead,
        "bubble_fraction_by_rank": trace.bubble_fraction_by_rank,
        "bubble_overhead_by_rank": trace.bubble_overhead_by_rank,
        "bubble_fraction_without_flush": trace.bubble_fraction_without_flush,
        "peak_in_flight": trace.peak_in_flight,
        "critical_path": [str(placed.action) for placed in critical_path(trace)],
        "overlapped": sorted(str(action) for action in schedule.overlapped),
    }


def _summary(trace: Trace, data: dict[str, Any]) -> str:
    lines = [_sentence(trace, data)]
    lines += [f"rank {rank}: {' '.join(actions)}" for rank, actions in enumerate(data["order"])]
    lines += [
        f"makespan {trace.makespan:g}",
        f"bubble_fraction {trace.bubble_fraction:.4f}",
        f"bubble_overhead {trace.bubble_overhead:.4f}",
        "peak_in_flight " + " ".join(f"{held:g}" for held in trace.peak_in_flight),
    ]
    if "peak_bytes" in data:
        sizes = (format_quantity(held, "B", "si") for held in data["peak_bytes"])
        lines.append("peak_bytes " + ", ".join(sizes))
    return "\n".join(lines)


def _sentence(trace: Trace, data: dict[str, Any]) -> str:
    """Return the answer in one sentence, like the schedule lab's first; times have no unit here."""
    held = data.get("peak_bytes", trace.peak_in_flight)
    most = max(held)
    amount = f"{most:.4g} microbatches"
    if "peak_bytes" in data:
        amount = f"{format_quantity(most, 'B')} of activations"
    run = CarriedOut(
        title=schedule_title(trace.schedule.name, trace.schedule.placement.chunks),
        trace=trace,
        held=held_words(amount, held.index(most)),
    )
    return schedules_sentence([run], lambda time: f"{time:.4g} units of time")
