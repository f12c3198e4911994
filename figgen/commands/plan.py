"""plan: rank the layouts of a job that fit by step time, with the term that slows each one down."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from figgen.catalog.interruptions import interruption, interruptions
from figgen.commands import Answer, Verbs, add_verb, number, whole
from figgen.commands.plan_goodput import goodput_data, goodput_text, tokens_of
from figgen.commands.plan_nodes import add_questions, asks_for_nodes, nodes_answer
from figgen.commands.plan_published import published_answer
from figgen.commands.training import (
    add_options,
    aligned,
    hosts_lines,
    planned_scenario_of,
)
from figgen.models.memory.fit_probability import (
    LEAST_PERCENT,
    MOST_PERCENT,
    SAFE,
    chance_shown,
    fit_words,
)
from figgen.models.step.compute import MFU_CONVENTION
from figgen.quantity_shown import span_shown
from figgen.scenarios.planning.goodput_plan import USUAL_FAILURES
from figgen.scenarios.planning.plan_question import NOT_PLANNED, SEARCHED, plan_question
from figgen.scenarios.planning.plan_rows import TERMS, PlanRow, label, plan_rows
from figgen.scenarios.planning.planner import Plan, plan
from figgen.units import format_quantity

SHOWN = 10
MOST_SHOWN = 10_000
OTHER = "intervals are for layouts other than the measured one"
REASONS = {
    "state": "weights, gradients and optimizer state alone don't fit",
    "activations": "too large with activations",
    "buffers": "too large with the temporary buffers of layers, gathers and messages",
    "allocator": "too large with the allocator's overhead",
}


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "plan",
        _plan,
        "find the fastest layouts of a job, and say why others are slower",
        "--model llama-3-70b --accelerator h100-sxm-80gb --nodes 8",
        "--model deepseek-v3 --nodes 16 --accelerator h200-sxm-141gb --global-batch 1024 --pp 8",
        "--model config.json --nodes 4 --sequence 8192 --zero 3 --json",
        "--preset llama-3-405b-8k-16384 --top 20",
        "--model llama-3-8b --nodes 2 --accelerator mine.toml --measured measured.json",
        "--model llama-3-405b --nodes 2048 --global-batch 2048 --tokens 15e12",
        "--model llama-3-70b --accelerator h200-sxm-141gb --tokens 1T --within 30",
        "--model llama-3-8b --tokens 1T --budget 250e3 --gpu-hour-price 2.5",
        "--model deepseek-v3 --accelerator h200-sxm-141gb --fewest-nodes",
        "--published",
    )
    add_options(parser, "step")
    _add_search(parser)
    _add_training(parser)
    add_questions(parser)
    chosen = ", ".join(SEARCHED)
    parser.epilog = f"{parser.epilog or ''}\nSearched unless given: {chosen}.\n" + (
        f"Not used by the planner: {', '.join(NOT_PLANNED)}."
    )


def _add_search(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which layouts are searched, and which of them are shown."""
    parser.add_argument(
        "--top",
        metavar="N",
        type=whole(1, MOST_SHOWN),
        default=SHOWN,
        help=f"number of layouts to show, the fastest of each mesh; {SHOWN} by default",
    )
    parser.add_argument(
        "--variants",
        action="store_true",
        help="show every layout of a mesh, including slower schedules, batches and options",
    )
    parser.add_argument(
        "--every-schedule",
        action="store_true",
        help="also search schedules that the software does not provide",
    )
    parser.add_argument(
        "--fit-chance",
        metavar="PERCENT",
        type=number(LEAST_PERCENT, MOST_PERCENT),
        default=100 * SAFE,
        help=f"how likely a layout must be to fit in memory; {100 * SAFE:.0f} by default",
    )
    parser.add_argument(
        "--published",
        action="store_true",
        help="compare every published layout with the fastest one for its job",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="with --published: repeat the search and write the result to the catalog",
    )


def _add_training(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe the whole training."""
    parser.add_argument(
        "--tokens",
        metavar="N",
        type=tokens_of,
        help="tokens of the whole training, such as 1T or 15e12; adds goodput and days of the "
        "fastest layout",
    )
    parser.add_argument(
        "--failures",
        metavar="NAME",
        default=USUAL_FAILURES,
        help=f"published job or cluster whose failure rate to assume: {', '.join(interruptions())}",
    )


def _plan(options: argparse.Namespace) -> Answer:
    if options.published or options.write:
        return published_answer(options.write)
    if asks_for_nodes(options):
        return nodes_answer(options)
    asked = planned_scenario_of(options)
    found = plan(plan_question(asked, options.every_schedule, options.fit_chance / 100))
    places = range(found.fitting) if options.variants else list(found.meshes)
    rows = plan_rows(found, places[: options.top]) if found.fitting else []
    front = plan_rows(found, found.front) if found.fitting else []
    data, lines = plan_data(found, rows, front), _text(found, rows)
    if options.tokens and rows:
        training = (found.question, rows[0], options.tokens, interruption(options.failures))
        data |= goodput_data(*training)
        lines += goodput_text(*training)
    return Answer(data, "\n".join(lines))


def plan_data(found: Plan, rows: list[PlanRow], front: list[PlanRow]) -> dict[str, Any]:
    """Return a plan for JSON: question, counts, best layouts, and the front of time and memory."""
    question, setup = found.question, found.question.job.setup
    return {
        "model": question.model.name,
        "accelerator": question.accelerator.name,
        "nic": question.nic.name,
        "software": question.values["software"],
        "measured": question.measured.text if question.measured else None,
        "gpus": question.job.world_size,
        "nodes": setup.parallel.nodes,
        "gpus_per_node": setup.parallel.gpus_per_node,
        "global_batch": question.job.global_batch,
        "global_batch_assumed": question.batch_assumed,
        "sequence": setup.sequence,
        "said": dict(question.fixed),
        "schedules": list(question.job.schedules),
        "recomputations": list(question.job.recompute),
        "capacity_bytes": question.job.capacity_bytes,
        "fit_chance": question.job.fit_chance,
        "most_predicted_bytes": question.job.most_bytes,
        "layouts": found.layouts,
        "fitting": found.fitting,
        "refused": dict(found.found.refused),
        "least_bytes": found.found.least_bytes,
        "interval_of": question.residuals.name,
        "not_told_apart": found.same,
        "meshes": len(found.meshes),
        "best": [_row(found, row) for row in rows],
        "front": [_row(found, row) for row in front],
    }


def _row(found: Plan, row: PlanRow) -> dict[str, Any]:
    data = asdict(row) | {"variants": found.meshes.get(row.place)}
    choices = data.pop("choices")
    seconds = {"step_time_s": data.pop("step_s")}
    interval = {"step_time_interval_s": [data.pop("low_s"), data.pop("high_s")]}
    data["fit_probability"] = found.chance(row.place)
    return {"place": data.pop("place"), **choices, **seconds, **interval, **data}


def _text(found: Plan, rows: list[PlanRow]) -> list[str]:
    question, job = found.question, found.question.job
    said = " ".join(f"{name}={value}" for name, value in question.fixed.items())
    assumed = " (assumed)" if question.batch_assumed else ""
    factor = question.values["time_factor"]
    lines = [
        f"{question.model.name} on {job.world_size:,} × {question.accelerator.name}, "
        f"{question.nic.name}; {job.global_batch:,} sequences{assumed} of "
        f"{job.setup.sequence:,} tokens per step{'; ' if said else ''}{said}",
        *hosts_lines(question.hosts_said()),
        *([f"with measured rates: {question.measured.text}"] if question.measured else []),
        *([f"all times are {factor} × the prediction, as you asked; {OTHER}"] if factor else []),
        f"{found.layouts:,} layouts, {found.fitting:,} fit in "
        f"{format_quantity(job.capacity_bytes, 'B', 'bytes')} with a chance of "
        f"{100 * job.fit_chance:.4g}%: predicted to need {_bytes(job.most_bytes)} at most",
        *(f"  {count:,}: {REASONS[name]}" for name, count in found.found.refused.items() if count),
    ]
    if not found.fitting:
        least = _bytes(found.found.least_bytes)
        return [
            *lines,
            f"no layout fits; the smallest needs {least}: use more nodes, ZeRO or recomputation",
        ]
    told = found.same
    known = question.residuals
    lines.append(
        f"{told:,} are too close to the best to call: their 80% intervals ({known.name}: "
        f"{known.low:.2f} to {known.high:.2f} times the predicted time) overlap"
    )
    dtype = question.values["dtype"]
    peak = f"MFU is of the dense {dtype} peak, attention whole ({MFU_CONVENTION})"
    untimed = "° nobody has published a time for that kind of layout on this accelerator"
    more = (
        [] if all(row.timed for row in rows) else [f"{untimed}: its axes, with or without ZeRO-3"]
    )
    return [*lines, *_table(found, rows), peak, *more, _fastest(found)]


def _fastest(found: Plan) -> str:
    [row] = plan_rows(found, [0])
    time = format_quantity(row.step_s, "s", "time")
    within = span_shown(row.low_s, row.high_s)
    return f"the fastest takes {time} ({within}) and {fit_words(found.chance(0))}"


def _bytes(count: float) -> str:
    return format_quantity(count, "B", "bytes")


def _table(found: Plan, rows: list[PlanRow]) -> list[str]:
    head = ["", "layout", "of", "step", "MFU", "memory", "fits", "loses", "by"]
    body = [
        [
            f"{row.place + 1}{'' if row.apart else ' ≈'}",
            f"{label(row)}{'' if row.timed else ' °'}",
            f"{found.meshes[row.place]:,}" if row.place in found.meshes else "",
            format_quantity(row.step_s, "s", "time"),
            f"{row.model_flops_utilisation:.1%}",
            format_quantity(row.memory_bytes, "B", "bytes"),
            chance_shown(found.chance(row.place)),
            f"{row.loses_s / (row.step_s - row.loses_s):.1%}" if row.loses_by else "",
            TERMS.get(row.loses_by, ""),
        ]
        for row in rows
    ]
    return aligned([head, *body], left=2)
