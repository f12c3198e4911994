"""Pictures of one idea each, with the numbers of the journey's job."""

from __future__ import annotations

from figgen.catalog import hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import (
    Axis,
    Box,
    Curves,
    Diagram,
    DiagramLink,
    Mark,
    Named,
    Rule,
    Series,
    interval_values,
)
from figgen.errors import check_between
from figgen.models.shape.transformer import dense_layer_weights
from figgen.plotting.series import line, logarithmic
from figgen.registry import figure
from figgen.scenarios.stories.journey import job, rung
from figgen.scenarios.stories.journey_step import tokens_to_hide
from figgen.units import format_quantity


def _bytes(size: float) -> str:
    return format_quantity(size, "B", "bytes")


@figure("journey-one-step")
def journey_one_step() -> Diagram:
    """One step on one GPU: bytes that forward, backward and update read and write."""
    found = rung(1)
    left, middle, right = 0.0, 1.85, 3.7
    texts = {
        "tokens": (("tokens", f"{found.tokens_per_step:,}"), "neutral", middle, 0.0, 0.85),
        "forward": (("forward",), "forward", middle, 1.25, 0.85),
        "backward": (("backward",), "backward", middle, 2.6, 0.85),
        "update": (("update",), "backward-weight", middle, 3.95, 0.85),
        "weights": (("weights", _bytes(found.weights_bytes)), "dp", left, 1.25, 2.2),
        "new weights": (("new weights", "for next step"), "dp", left, 3.95, 0.85),
        "activations": (("activations", _bytes(found.activations_bytes)), "cp", right, 1.25, 1.65),
        "gradients": (("gradients", _bytes(found.gradients_bytes)), "tp", right, 3.0, 1.25),
        "optimizer": (("optimizer", _bytes(found.optimizer_bytes)), "pp", right, 4.35, 0.85),
    }  # a box beside two others is made by the upper one, or read by both
    boxes = tuple(
        Box(name=name, lines=lines, x=x, y=y, width=1.4, height=height, role=role)
        for name, (lines, role, x, y, height) in texts.items()
    )
    arrows = (
        ("tokens", "forward"), ("weights", "forward"), ("forward", "backward"),
        ("forward", "activations"), ("activations", "backward"), ("backward", "gradients"),
        ("gradients", "update"), ("optimizer", "update"), ("update", "new weights"),
        ("weights", "backward"),
    )  # fmt: skip
    return Diagram(
        boxes=boxes,
        links=tuple(DiagramLink(source=a, target=b) for a, b in arrows),
        width=5.1,
        height=5.2,
        values={
            "weights": Named(found.weights_bytes, "B"),
            "gradients": Named(found.gradients_bytes, "B"),
            "optimizer": Named(found.optimizer_bytes, "B"),
            "activations": Named(found.activations_bytes, "B"),
            "state": Named(found.state_bytes, "B"),
        },
    )


@figure("journey-gather")
def journey_gather(*, model: str = "llama-3-8b", gpus: int = 4) -> Diagram:
    """Weights of one layer on every GPU before, during and after the layer is computed.

    The color shows the GPU that owns a part; every GPU gathers all parts.
    """
    check_between("gpus", gpus, 2, 8)
    layer = dense_layer_weights(catalog_model(model).shape) * 2
    pitch, width = 1.3, 1.2
    cell, across = width / gpus, gpus * pitch - (pitch - width)
    gathered, freed = 3.1, 4.7
    kept = _bytes(layer / gpus)
    boxes = [
        Box(
            name="all-gather",
            x=0.0,
            y=1.7,
            width=across,
            height=0.85,
            role="exposed",
            lines=("all-gather", f"each sends its part to the {gpus - 1} others"),
        ),
    ]
    links = []
    for gpu in range(gpus):
        x, role = gpu * pitch, f"rank-{gpu}"
        boxes.append(_part(f"kept {gpu}", (f"GPU {gpu}", kept), x, 0.0, width, gpu))
        boxes += [
            _part(f"whole {gpu} {owner}", (f"{owner}",), x + owner * cell, gathered, cell, owner)
            for owner in range(gpus)
        ]
        boxes.append(_part(f"freed {gpu}", ("keeps", kept), x, freed, width, gpu))
        links.append(DiagramLink(source=f"kept {gpu}", target="all-gather", role=role))
        links += [
            DiagramLink(source="all-gather", target=f"whole {gpu} {owner}", role=f"rank-{owner}")
            for owner in range(gpus)
        ]
        links.append(DiagramLink(source=f"whole {gpu} {gpu}", target=f"freed {gpu}", role=role))
    return Diagram(
        boxes=tuple(boxes),
        links=tuple(links),
        width=across,
        height=freed + HIGH,
        values={
            "layer": Named(layer, "B"),
            "part": Named(layer / gpus, "B"),
            "gpus": Named(gpus),
            "layers": Named(catalog_model(model).shape.layers),
        },
    )


HIGH = 0.85


def _part(name: str, lines: tuple[str, ...], x: float, y: float, width: float, gpu: int) -> Box:
    return Box(name=name, lines=lines, x=x, y=y, width=width, height=HIGH, role=f"rank-{gpu}")


SHARDED_BYTES = 2.0 * 2 + 4
"""Per parameter and microbatch: a 16-bit weight in forward and in backward, a 32-bit gradient."""


@figure("journey-two-clocks", explorable=True)
def journey_two_clocks(
    *, model: str = "llama-3-8b", preset: str = "h100-ndr", least: int = 256, most: int = 65_536
) -> Curves:
    """Seconds of computing and of sharded messages for one microbatch, over a GPU's tokens in it.

    Computing at the dense peak; 16-bit weights gathered twice and 32-bit gradients scattered once,
    as the journey's job does it.
    """
    node, parameters = hardware_preset(preset), catalog_model(model).parameters
    sequence = catalog_model(model).shape.sequence
    peak = node.accelerator.peak_flops_per_s("bf16")
    links = {
        "one adapter alone": node.network_bandwidth_bytes_per_s,
        "whole nodes": node.node_bandwidth_bytes_per_s,
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
        Mark(x=even[name], y=times[name], label=f"{even[name]:,.0f} tokens", role="ink")
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
            "whole": Named(even["whole nodes"], "token"),
            "sequence": Named(sequence, "token"),
            "alone_s": Named(times["one adapter alone"], "s"),
            "whole_s": Named(times["whole nodes"], "s"),
        },
    )


@figure("journey-tokens-decide", explorable=True)
def journey_tokens_decide(
    *, model: str = "llama-3-8b", nodes: tuple[int, ...] = (1, 8, 64), microbatches: int = 8
) -> Curves:
    """Predicted MFU of full sharding over the tokens of a GPU in a microbatch, by nodes."""
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
