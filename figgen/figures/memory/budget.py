"""Memory: parameters by part, activations by tensor and mode, layouts side by side."""

from __future__ import annotations

import math
from dataclasses import replace

from figgen.catalog import model as catalog_model
from figgen.charts import Axis, Bars, Column, Curves, Named, Rule, Scalar, Table
from figgen.errors import InputError, check_between
from figgen.figures.parameters import ModelName
from figgen.figures.training.step import fullest_bars, part_label
from figgen.models.memory.activations import layer_bytes
from figgen.models.memory.layer_tensors import layer_tensors
from figgen.plotting.series import doublings, line, segments
from figgen.plotting.words import identifier
from figgen.registry import figure
from figgen.scenarios.options.option import Choices
from figgen.scenarios.options.resolve import TrainingStep, resolve, training_step
from figgen.scenarios.options.written import written_scenario, written_step

SHOWN = ("gpt-3-175b", "llama-3-8b", "llama-3-405b", "mixtral-8x7b", "deepseek-v3")
WHERE = {
    "embeddings": ("embedding", "positions", "head", "extra"),
    "attention": ("attention",),
    "feed-forward": ("ffn", "shared_experts"),
    "experts": ("routed_experts", "router"),
    "norms": ("norms",),
}


SUM = (
    ("weights", "weights"),
    ("gradients", "+ gradients"),
    ("optimizer", "+ optimizer state"),
    ("activations", "+ activations"),
    ("working", "+ logits, or one layer in progress"),
    ("communication", "+ buffers of communication"),
    ("reserve", "+ reserve"),
)
"""The parts of a budget in the order in which they are added, with the labels of the bars."""


@figure("memory-budget", about=written_step)
def memory_budget(step: TrainingStep) -> Bars:
    """Memory of the fullest GPU, cumulative: each bar has one part more than the previous one."""
    found = step.memory
    fullest, capacity = found.fullest, found.capacity_bytes or 0.0
    size = {part: fullest.bytes_of(part) for part, _ in SUM}
    return Bars(
        labels=tuple(label for _, label in SUM),
        segments=segments(
            {
                part_label(part): [size[part] if bar >= first else 0.0 for bar in range(len(SUM))]
                for first, (part, _) in enumerate(SUM)
            }
        ),
        axis=Axis(label="memory of the fullest GPU", unit="B", low=0.0, spec="bytes"),
        rules=(Rule(axis="x", at=capacity, label="capacity"),),
        values={
            **{part: Named(length, "B") for part, length in size.items()},
            "total": Named(fullest.total_bytes, "B"),
            "capacity": Named(capacity, "B"),
        },
    )


@figure("parameter-parts", recomputed=True)
def parameter_parts(*, models: tuple[ModelName, ...] = SHOWN) -> Bars:
    """Share of a model's parameters by part of the model."""
    found = {name: catalog_model(name) for name in models}
    share = {
        name: {
            part: sum(getattr(entry.counts, field) for field in fields) / entry.parameters
            for part, fields in WHERE.items()
        }
        for name, entry in found.items()
    }
    values = {
        f"{identifier(name)}_{identifier(part)}": Named(size)
        for name, parts in share.items()
        for part, size in parts.items()
    }
    return Bars(
        labels=tuple(entry.title for entry in found.values()),
        segments=segments({part: [share[name][part] for name in found] for part in WHERE}),
        axis=Axis(label="share of all parameters", low=0.0, high=1.0, spec=".0%"),
        values=values,
    )


MODES: dict[str, Choices] = {
    "everything kept": {"tp": 1, "recompute": "none", "sequence_parallel": False},
    "attention core recomputed": {"tp": 1, "recompute": "selective", "sequence_parallel": False},
    "TP 8": {"tp": 8, "recompute": "none", "sequence_parallel": False},
    "TP 8 with SP": {"tp": 8, "recompute": "none"},
    "TP 8 with SP, core recomputed": {"tp": 8, "recompute": "selective"},
    "TP 8 with SP, everything recomputed": {"tp": 8, "recompute": "full"},
}


@figure("activation-modes")
def activation_modes(*, model: str = "gpt-3-175b") -> Bars:
    """Bytes that one layer keeps for one sequence, with more and more divided or recomputed."""
    kept = {}
    for mode, chosen in MODES.items():
        found = training_step(
            model=model, nodes=1, gpus_per_node=8, flash_attention=False, dropout=True, **chosen
        )
        kept[mode] = layer_bytes(found.setup)
    first, last = (kept[mode] for mode in ("everything kept", "TP 8 with SP, core recomputed"))
    keys = ("whole", "core", "tp", "sp", "sp_core", "full")
    layers = catalog_model(model).layers
    return Bars(
        labels=tuple(kept),
        segments=segments({"one layer": kept.values()}),
        axis=Axis(label="activations of a layer and sequence", unit="B", low=0.0, spec="bytes"),
        values={
            **{key: Named(size, "B") for key, size in zip(keys, kept.values(), strict=True)},
            "factor": Named(first / last),
            "all_layers": Named(first * layers, "B"),
            "layers": Named(layers, "layer"),
        },
    )


@figure("layer-tensors")
def layer_tensors_table(*, model: str = "llama-3-70b", tp: int = 8) -> Table:
    """Tensors that a layer keeps for backward on one GPU, largest first, and what removes each.

    The kernel is FlashAttention, which stores no scores; `scores` are the bytes of the attention
    core in a kernel that stores them.
    """
    setup = training_step(model=model, nodes=1, gpus_per_node=8, tp=tp).setup
    every = sorted(layer_tensors(setup), key=lambda tensor: -tensor.bytes)
    tensors = [tensor for tensor in every if not tensor.core]
    total = sum(tensor.bytes for tensor in tensors)
    scores = sum(tensor.bytes for tensor in every if tensor.core)
    rows: list[tuple[Scalar, ...]] = [
        (tensor.name, tensor.bytes, tensor.bytes / total, ", ".join(tensor.modules))
        for tensor in tensors
    ]
    return Table(
        columns=(
            Column(label="tensor"),
            Column(label="bytes per GPU", unit="B", spec="bytes"),
            Column(label="share", spec=".1%"),
            Column(label="dropped by recomputing"),
        ),
        rows=tuple(rows),
        values={
            "tensors": Named(len(tensors)),
            "total": Named(total, "B"),
            "scores": Named(scores, "B"),
            "scores_factor": Named(scores / total),
            "feed_forward_share": Named(
                sum(tensor.bytes for tensor in tensors if "mlp" in tensor.modules) / total
            ),
        },
    )


LAYOUTS: dict[str, Choices] = {
    "ZeRO-1, nothing split": {"zero_stage": 1},
    "ZeRO-3": {"zero_stage": 3},
    "TP 8, ZeRO-1": {"tp": 8, "zero_stage": 1},
    "TP 8, PP 4, ZeRO-1": {"tp": 8, "pp": 4, "zero_stage": 1},
    "TP 8, PP 4, ZeRO-1, full recompute": {
        "tp": 8, "pp": 4, "zero_stage": 1, "recompute": "full",
    },
    "TP 8, CP 2, PP 4, ZeRO-1": {"tp": 8, "cp": 2, "pp": 4, "zero_stage": 1},
}  # fmt: skip


@figure("memory-choices")
def memory_choices(*, model: str = "llama-3-70b", nodes: int = 8) -> Bars:
    """Memory of the fullest GPU for several layouts of one model on the same nodes.

    A layout that needs more than four times the capacity has a value but no bar, which would leave
    no room for the others.
    """
    check_between("nodes", nodes, 8, 1024)
    found = {
        label: training_step(model=model, nodes=nodes, gpus_per_node=8, **chosen).memory
        for label, chosen in LAYOUTS.items()
    }
    bars = fullest_bars(found, ("replicated", "zero3", "tp", "tp_pp", "tp_pp_full", "tp_cp_pp"))
    drawn = {
        label: estimate
        for label, estimate in found.items()
        if estimate.fullest.total_bytes <= 4 * (estimate.capacity_bytes or math.inf)
    }
    shown = fullest_bars(drawn, tuple(drawn))
    return replace(shown, values={**bars.values, "gpus": Named(8 * nodes, "GPU")})


RECOMPUTED = {"nothing but the attention core": "selective", "everything": "full"}


@figure("memory-by-sequence", explorable=True)
def memory_by_sequence(
    *,
    model: str = "llama-3-70b",
    sizes: str = "nodes=8 gpus_per_node=8 tp=8 pp=4",
    longest: int = 131072,
) -> Curves:
    """Memory of the fullest GPU over the sequence length, by what is recomputed."""
    if longest < 4096 or longest & (longest - 1):
        raise InputError("longest", expected="a power of two, at least 4096", got=longest)
    lengths = doublings(longest, 2048)
    asked = written_scenario(model=model, sizes=sizes)
    lines, capacity = {}, 0.0
    for label, mode in RECOMPUTED.items():
        held = []
        for length in lengths:
            found = resolve(asked.but(sequence=length, recompute=mode)).memory
            held.append(found.fullest.total_bytes)
            capacity = found.capacity_bytes or 0.0
        lines[label] = tuple(held)
    fits = {
        label: max(
            (n for n, size in zip(lengths, held, strict=True) if size <= capacity), default=0
        )
        for label, held in lines.items()
    }
    names = ("selective", "full")
    return Curves(
        x=Axis(label="sequence length in tokens", scale="log2", spec=","),
        y=Axis(label="memory of the fullest GPU", unit="B", scale="log10", low=1e10),
        series=tuple(
            line(f"recompute {label}", map(float, lengths), held, index)
            for index, (label, held) in enumerate(lines.items())
        ),
        rules=(Rule(axis="y", at=capacity, label="capacity"),),
        values={
            "capacity": Named(capacity, "B"),
            "first": Named(lengths[0], "token"),
            **{
                f"{name}_fits": Named(fits[label], "token")
                for name, label in zip(names, lines, strict=True)
            },
            **{
                f"{name}_first": Named(lines[label][0], "B")
                for name, label in zip(names, lines, strict=True)
            },
        },
    )
