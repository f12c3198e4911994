"""step --operations: list the operations of a layer of the model and of the update."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from figgen.commands.training import aligned
from figgen.models.step.kept_list import with_kept
from figgen.models.step.layer_list import ListedJob, TimedOperation, layer_list
from figgen.models.step.update_list import update_list
from figgen.scenarios.options.resolve import TrainingStep
from figgen.units import format_quantity

TITLES = {
    "dense": "a layer, one microbatch, operation by operation:",
    "experts": "a layer of experts, one microbatch, operation by operation:",
    "update": "the update, once per step, operation by operation:",
}


def listed_operations(asked: TrainingStep) -> Iterator[tuple[str, tuple[TimedOperation, ...]]]:
    """Return each kind of layer of the model, and the update, with their operations."""
    found, shape = asked.predicted, asked.setup.shape
    listed = ListedJob(
        shape=shape,
        job=found.job,
        attained=found.attained,
        peak_flops_per_s=asked.cluster.peak_flops_per_s,
        peak_bytes_per_s=asked.accelerator.hbm_bandwidth_bytes_per_s,
    )
    if shape.dense_layers:
        dense = layer_list(listed, found.parts.dense, experts=False)
        yield "dense", with_kept(dense, asked.setup, experts=False)
    if shape.expert_layers:
        mixture = layer_list(listed, found.parts.expert, experts=True)
        yield "experts", with_kept(mixture, asked.setup, experts=True)
    yield "update", update_list(listed, found.parts)


def operations_data(asked: TrainingStep) -> dict[str, object]:
    """Return the lists for JSON."""
    return {name: [asdict(one) for one in found] for name, found in listed_operations(asked)}


def operations_lines(asked: TrainingStep) -> list[str]:
    """Return the lists as tables, each with its total."""
    lines = []
    for name, found in listed_operations(asked):
        lines.append(TITLES[name])
        lines += aligned(_rows(found), left=3)
    return lines


def _rows(found: Sequence[TimedOperation]) -> list[list[str]]:
    head = ["operation", "phase", "kind", "FLOPs", "bytes", "time", "bound by", "keeps"]
    rows = [
        [
            one.name,
            one.phase,
            one.kind,
            format_quantity(one.flops, "FLOP") if one.flops else "",
            _size(one.moved_bytes),
            format_quantity(one.time_s, "s", "time"),
            one.bound,
            _size(one.kept_bytes + one.kept_for_weights_bytes),
        ]
        for one in found
    ]
    whole_s = sum(one.time_s for one in found)
    kept = sum(one.kept_bytes + one.kept_for_weights_bytes for one in found)
    return [
        head,
        *rows,
        ["together", "", "", "", "", format_quantity(whole_s, "s", "time"), "", _size(kept)],
    ]


def _size(size: float) -> str:
    return format_quantity(size, "B", "bytes") if size else ""
