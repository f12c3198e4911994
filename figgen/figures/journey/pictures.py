"""Figures of one idea each, with the numbers of the journey's job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from figgen.catalog import hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import (
    Axis,
    Box,
    Curves,
    Diagram,
    Mark,
    Named,
    Rule,
    Series,
    interval_values,
)
from figgen.errors import check_between
from figgen.figures.parameters import HardwareName, ModelName
from figgen.models.shape.transformer import dense_layer_weights
from figgen.plotting.placed import box_at
from figgen.plotting.series import ROLES, line, logarithmic
from figgen.quantity_shown import shown
from figgen.registry import figure
from figgen.scenarios.stories.journey import job, rung
from figgen.scenarios.stories.journey_charts import kinds_of_memory, parts_of_step
from figgen.scenarios.stories.journey_step import tokens_to_hide


def _bytes(size: float) -> str:
    return shown(size, "B", "bytes")


ACROSS, WORK_HIGH, STACK_TOP, STACK_HIGH = 5.1, 0.5, 0.85, 3.6
"""Grid units of a picture of memory over a step: its width, the row of work, and the memory."""


@figure("journey-one-step", of_reference=True)
def journey_one_step() -> Diagram:
    """Memory over one step on one GPU: what stays, what forward writes and backward frees.

    Widths are shares of the predicted time, with two thirds of computing in backward; heights
    are bytes.
    """
    found = rung(1)
    times = parts_of_step(found)
    forward_s = times["forward and backward"] / 3
    seconds = {"forward": forward_s, "backward": 2 * forward_s, "update": times["update"]}
    roles = ("forward", "backward", "backward-weight")
    across = ACROSS / sum(seconds.values())
    boxes, x = [], 0.0
    for (name, s), role in zip(seconds.items(), roles, strict=True):
        boxes.append(box_at(name, (name,), (x, 0), (s * across, WORK_HIGH), role))
        x += s * across
    kinds = kinds_of_memory(found)
    shown = ("activations", "optimizer", "gradients", "weights")
    down = STACK_HIGH / sum(kinds[kind] for kind in shown)
    bottom = STACK_TOP + kinds["activations"] * down
    boxes += _staircase(found.found.model.shape.layers, seconds, across, (STACK_TOP, bottom))
    y = bottom
    for kind in shown[1:]:
        lines = [f"{'optimizer state' if kind == 'optimizer' else kind}: {_bytes(kinds[kind])}"]
        if kind == "optimizer":
            lines.append("stays for the whole run, as do gradients and weights,")
            lines.append(f"{_bytes(found.state_bytes)} together")
        high, role = kinds[kind] * down, MEMORY_ROLES[kind]
        boxes.append(box_at(kind, tuple(lines), (0, y), (ACROSS, high), role))
        y += high
    return Diagram(
        boxes=tuple(boxes),
        links=(),
        width=ACROSS,
        height=y,
        values={
            "weights": Named(found.weights_bytes, "B"),
            "gradients": Named(found.gradients_bytes, "B"),
            "optimizer": Named(found.optimizer_bytes, "B"),
            "activations": Named(found.activations_bytes, "B"),
            "state": Named(found.state_bytes, "B"),
        },
    )


MEMORY_ROLES = dict(zip(("weights", "gradients", "optimizer", "activations"), ROLES, strict=False))
"""The colors that bars of memory have too."""


def _staircase(
    layers: int, seconds: Mapping[str, float], across: float, span: tuple[float, float]
) -> list[Box]:
    """Return activations that rise with each layer of forward and fall in backward.

    `span` is where the highest step begins and where all end, in grid units.
    """
    top, bottom = span
    turn, over = seconds["forward"] * across, seconds["backward"] * across
    rise, role = (bottom - top) / layers, MEMORY_ROLES["activations"]
    steps = [(turn * at / layers, turn / layers, at + 1) for at in range(layers)]
    steps += [(turn + over * at / layers, over / layers, layers - at) for at in range(layers)]
    boxes = [
        box_at(f"activations {at}", (), (x, bottom - rise * held), (wide, rise * held), role)
        for at, (x, wide, held) in enumerate(steps)
    ]
    written = (f"activations: {_bytes(rung(1).activations_bytes)},", "written by forward")
    freed = ("freed by backward,", "layer by layer")
    places = (("written", written, 0.0, turn), ("freed", freed, turn + 0.45 * over, 0.55 * over))
    return boxes + [
        box_at(name, lines, (x, WORK_HIGH + 0.08), (wide, 0.5), "")
        for name, lines, x, wide in places
    ]


@figure("journey-gather", of_reference=True)
def journey_gather(*, model: str = "llama-3-8b", gpus: int = 4) -> Diagram:
    """Weights of one layer on every GPU before, during and after the layer is computed.

    The color shows the GPU that owns a part; every GPU gathers all parts.  Widths are bytes.
    """
    check_between("gpus", gpus, 2, 8)
    layer = dense_layer_weights(catalog_model(model).shape) * 2
    part, others = _bytes(layer / gpus), gpus - 1
    rows = {
        "before": (0.0, f"between steps each GPU keeps 1/{gpus} of the layer, {part}"),
        "during": (
            1.75,
            f"all-gather: each sends its part to the {others} others; now all have the whole "
            f"layer, {_bytes(layer)}, and compute with it",
        ),
        "after": (3.5, "then each frees what it does not own"),
    }
    boxes = []
    for row, (y, says) in rows.items():
        boxes.append(box_at(row, (says,), (0, y), (ACROSS - 0.12, 0.5), ""))
        for gpu in range(gpus):
            boxes += _layer_on(gpu, range(gpus) if row == "during" else (gpu,), row, y, gpus)
    return Diagram(
        boxes=tuple(boxes),
        links=(),
        width=ACROSS - 0.12,
        height=4.95,
        values={
            "layer": Named(layer, "B"),
            "part": Named(layer / gpus, "B"),
            "gpus": Named(gpus),
            "layers": Named(catalog_model(model).shape.layers),
        },
    )


def _layer_on(gpu: int, owners: Iterable[int], row: str, y: float, gpus: int) -> list[Box]:
    """Return the box of a GPU in a row at `y` with the parts of the layer that it has."""
    pitch = ACROSS / gpus
    width, x, whole = pitch - 0.12, gpu * pitch, f"GPU {gpu} {row}"
    cell = width / gpus
    frame = box_at(whole, (f"GPU {gpu}",), (x, y + 0.5), (width, 0.95), frame=True)
    return [
        frame,
        *(
            box_at(
                f"part {owner} {row} on GPU {gpu}",
                (f"{owner}",),
                (x + owner * cell, y + 0.8),
                (cell, 0.65),
                f"rank-{owner}",
            )
            for owner in owners
        ),
    ]


SHARDED_BYTES = 2.0 * 2 + 4
"""Per parameter per microbatch: a 16-bit weight in forward and in backward, a 32-bit gradient."""


@figure("journey-two-clocks", explorable=True, of_reference=True, recomputed=True)
def journey_two_clocks(
    *,
    model: ModelName = "llama-3-8b",
    preset: HardwareName = "h100-ndr",
    least: int = 256,
    most: int = 65_536,
) -> Curves:
    """Seconds of computing and of sharded messages for one microbatch, over its tokens per GPU.

    Computing runs at the dense peak; 16-bit weights are gathered twice and 32-bit gradients
    scattered once, as in the journey's job.
    """
    node, parameters = hardware_preset(preset), catalog_model(model).parameters
    sequence = catalog_model(model).shape.sequence
    peak = node.accelerator.peak_flops_per_s("bf16")
    links = {
        "one adapter alone": node.network_bandwidth_bytes_per_s,
        "shared link": node.node_bandwidth_bytes_per_s,
    }
    tokens = logarithmic(float(least), float(most))
    work = Series(
        name="computing",
        x=tokens,
        y=tuple(6 * parameters * t / peak for t in tokens),
        role="forward",
    )
    times = {name: SHARDED_BYTES * parameters / bandwidth for name, bandwidth in links.items()}
    roles = ("exposed", "dp")
    lines = tuple(
        Series(name=name, x=(float(least), float(most)), y=(time, time), role=role)
        for (name, time), role in zip(times.items(), roles, strict=True)
    )
    even = {name: tokens_to_hide(peak, links[name], SHARDED_BYTES) for name in links}
    marks = tuple(
        Mark(
            x=even[name], y=times[name], label=f"hides from {even[name]:,.0f} tokens on", role="ink"
        )
        for name in links
    )
    return Curves(
        x=Axis(
            label="tokens of one GPU in a microbatch",
            scale="log10",
            low=float(least),
            high=float(most),
            spec="si",
        ),
        y=Axis(label="time of a microbatch", unit="s", scale="log10", spec="time"),
        series=(work, *lines),
        marks=marks,
        rules=(Rule(axis="x", at=float(sequence), label="one sequence"),),
        values={
            "alone": Named(even["one adapter alone"], "token"),
            "whole": Named(even["shared link"], "token"),
            "sequence": Named(sequence, "token"),
            "alone_s": Named(times["one adapter alone"], "s"),
            "whole_s": Named(times["shared link"], "s"),
        },
    )


@figure("journey-tokens-decide", explorable=True, of_reference=True)
def journey_tokens_decide(
    *, model: str = "llama-3-8b", nodes: tuple[int, ...] = (1, 8, 64), microbatches: int = 8
) -> Curves:
    """Predicted MFU of full sharding over the tokens per GPU per microbatch, by nodes."""
    lengths = tuple(512 * 2**power for power in range(6))
    options = f"microbatches={microbatches} zero_stage=3"
    steps = {
        count: [
            job(model, f"nodes={count} gpus_per_node=8", f"sequence={length} {options}").predicted
            for length in lengths
        ]
        for count in nodes
    }
    found = {
        count: [step.model_flops_utilisation for step in each] for count, each in steps.items()
    }
    values = {
        f"mfu_{count}_{length}": Named(mfu)
        for count, each in found.items()
        for length, mfu in zip(lengths, each, strict=True)
    } | interval_values(*(step.residuals for each in steps.values() for step in each))
    return Curves(
        x=Axis(label="tokens of one GPU in a microbatch", scale="log2", spec=",.0f"),
        y=Axis(label="predicted MFU", low=0.0, spec=".0%"),
        series=tuple(
            line(f"{8 * count} GPUs", lengths, each, at)
            for at, (count, each) in enumerate(found.items())
        ),
        values=values,
    )
