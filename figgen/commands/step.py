"""step: what a training step sends, how long it takes, and where the time goes."""

from __future__ import annotations

import argparse

from figgen import catalog
from figgen.commands import Answer, Verbs, add_verb
from figgen.commands.step_operations import operations_data, operations_lines
from figgen.commands.step_runs import device_step, predicted_runs
from figgen.commands.training import (
    add_options,
    aligned,
    chosen_of,
    described,
    hosts_lines,
    interval_data,
    interval_lines,
    model_notes,
    model_notes_data,
    scenario_of,
    seconds_of,
)
from figgen.errors import InputError
from figgen.models.step.compute import MFU_CONVENTION
from figgen.models.step.level_loads import level_loads
from figgen.models.step.predicted_parts import RECOMPUTED, computing_kinds
from figgen.models.step.step import StepEstimate
from figgen.models.step.step_words import largest_loss, step_sentence
from figgen.scenarios.options.calibrated import (
    calibrated,
    calibration_data,
    calibration_lines,
)
from figgen.scenarios.options.resolve import TrainingStep, resolve
from figgen.scenarios.runs.device_run import WAYS
from figgen.scenarios.tools.answers import buckets_data, muon_data, setup_data, step_data
from figgen.units import format_quantity


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "step",
        _step,
        "predict how long a training step takes and what it sends on each link",
        "--model llama-3-70b --nodes 8 --gpus-per-node 8 --tp 8 --pp 4 --microbatches 32",
        "--model mixtral-8x7b --nodes 4 --gpus-per-node 8 --ep 8 --zero 1 --sequence 4096 --json",
        "--model llama-3-8b --nodes 16 --gpus-per-node 8 --zero 3 --microbatches 2 --nic ib-hdr",
        "--model llama-3-70b --nodes 8 --gpus-per-node 8 --tp 8 --pp 4 --operations",
        "--preset deepseek-v3 --schedule zb1p",
        "--preset map-64 --model llama-3-70b",
        "--model llama-3-1b --nodes 1 --gpus-per-node 1 --sequence 4096 --transformers compiled",
        "--model llama-3-8b --nodes 1 --gpus-per-node 8 --zero 3 --step-time 12.3",
    )
    parser.add_argument(
        "--step-time",
        metavar="s",
        help="a measured step of this job, such as 12.3 s, to which all times are scaled",
    )
    parser.add_argument(
        "--transformers",
        choices=WAYS,
        help="plain transformers on one GPU, predicted from its operations",
    )
    parser.add_argument(
        "--operations",
        action="store_true",
        help="list the operations of a layer and of the update: FLOPs, bytes, time, bound",
    )
    add_options(parser, "step")


def _step(options: argparse.Namespace) -> Answer:
    alone = options.run_name and options.run_name not in catalog.RUNS
    measured_s = seconds_of(options.step_time)
    if options.operations and (alone or options.transformers):
        got = "--run FILE" if alone else "--transformers"
        raise InputError("--operations", expected="a job of a stack with fused kernels", got=got)
    if alone:
        chosen = chosen_of(options)
        measured = str(chosen.get("measured") or "")
        share = chosen.get("compute_efficiency")
        return predicted_runs(options.run_name, share, measured, measured_s)
    if options.transformers:
        return device_step(resolve(scenario_of(options)), options.transformers, measured_s)
    scaled = None
    if measured_s is not None:
        scaled = calibrated(scenario_of(options), measured_s)
    asked = scaled.asked if scaled else resolve(scenario_of(options))
    found, setup = asked.estimate, asked.setup
    data = setup_data(asked.model.name, setup) | {
        "accelerator": asked.accelerator.name,
        "nic": asked.nic.name,
        "compute_efficiency": asked.compute_efficiency,
        "software": asked.software,
        **({"assumed": sorted(asked.assumed)} if asked.run else {}),
        **interval_data(asked),
        **(calibration_data(scaled) if scaled else {}),
        **model_notes_data(asked),
        **step_data(found, asked.cluster, asked.compute_efficiency),
        "gradient_buckets": buckets_data(found, asked.stages),
        **_muon_data(asked),
        **({"operations": operations_data(asked)} if options.operations else {}),
    }
    lines = [
        _answer(asked),
        described(asked.model.name, setup),
        *hosts_lines(asked.hosts_said),
        *model_notes(asked),
        *(calibration_lines(scaled) if scaled else interval_lines(asked)),
        *_table(found),
        *_summary(found, asked),
        *_muon_lines(asked),
        *(operations_lines(asked) if options.operations else []),
    ]
    lines += [f"assumed, not published: {', '.join(sorted(asked.assumed))}"] if asked.run else []
    return Answer(data, "\n".join(lines))


def _answer(asked: TrainingStep) -> str:
    """Return the answer in one sentence, like the modeler's first."""
    found, memory = asked.estimate, asked.memory
    return step_sentence(
        model=asked.model.title,
        gpus=asked.setup.parallel.world_size,
        chip=asked.accelerator.title,
        step_time_s=found.step_time_s,
        interval_s=asked.interval_s if asked.has_interval else (),
        utilisation=found.model_flops_utilisation,
        fit_probability=memory.fit_probability,
        free_bytes=memory.free_bytes,
        loss=largest_loss(found.step_time_s, found.recompute_s, found.bubble_s, found.exposed),
    )


def _muon_data(asked: TrainingStep) -> dict[str, float]:
    """Return what orthogonalizing matrices adds to the step, for JSON; empty without Muon."""
    return muon_data(asked.estimate, asked.wide_flops_per_s)


def _muon_lines(asked: TrainingStep) -> list[str]:
    found = _muon_data(asked)
    if not found:
        return []
    work, added_s, whole_s = found.values()
    return [
        f"Muon's matmuls add to that: {format_quantity(work, 'FLOP')} on the busiest GPU, "
        f"{format_quantity(added_s, 's', 'time')}, {added_s / whole_s:.1%} of "
        f"{format_quantity(whole_s, 's', 'time')} in all"
    ]


def _table(found: StepEstimate) -> list[str]:
    """Return the busiest rank's communication, a line per kind of call, then the step by part."""
    head = ["axis", "what", "collective", "link", "calls", "buffer", "sent", "time", "exposed"]
    rows = [head] + [
        [
            row.axis,
            row.purpose,
            row.collective,
            row.level,
            f"{row.calls:,}",
            format_quantity(row.buffer_bytes, "B", "bytes"),
            format_quantity(row.sent_bytes, "B", "bytes"),
            format_quantity(row.time_s, "s", "time"),
            format_quantity(row.exposed_s, "s", "time"),
        ]
        for row in found.rows
    ]
    parts = [("compute", found.compute_s)]
    parts += [(f"  {name}", seconds) for name, seconds in computing_kinds(found.kinds)]
    parts += [(RECOMPUTED, found.recompute_s), ("pipeline idle", found.bubble_s)]
    parts += [(f"exposed {axis}", seconds) for axis, seconds in found.exposed]
    shown = [(name, seconds) for name, seconds in parts if seconds > 0]
    shown.append(("step", found.step_time_s))
    return [
        f"a GPU of pipeline rank {found.bottleneck}, the busiest:",
        *aligned(rows, left=4),
        *(
            f"{name}: {format_quantity(seconds, 's', 'time')} ({seconds / found.step_time_s:.1%})"
            for name, seconds in shown
        ),
    ]


def _summary(found: StepEstimate, asked: TrainingStep) -> list[str]:
    """Return the least bandwidth that each level of links needs, then the throughput."""
    levels = [
        f"{load.level}: {format_quantity(load.port_bytes, 'B')} to send, can hide at "
        f"{format_quantity(load.needed_bandwidth_bytes_per_s, 'B/s')} or more "
        f"(has {format_quantity(load.bandwidth_bytes_per_s, 'B/s')})"
        for load in level_loads(found, asked.cluster, asked.compute_efficiency)
    ]
    rate = f"{found.tokens_per_s_per_gpu:,.0f} tokens/s per GPU"
    peak = f"of the dense {asked.dtype} peak"
    shares = f"MFU {found.model_flops_utilisation:.1%} {peak} ({MFU_CONVENTION})"
    if found.recompute_s:
        again = f"with recomputation: {found.setup.recompute}"
        shares += f", HFU {found.hardware_flops_utilisation:.1%} ({again})"
    return [*levels, f"{rate}, {shares}"]
