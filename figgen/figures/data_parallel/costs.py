"""Costs of data parallelism: the all-reduce, compression, a replica's memory, the batch."""

from __future__ import annotations

import math

from figgen.catalog import accelerator, hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import Axis, Column, Curves, Mark, Named, Rule, Scalar, Table
from figgen.errors import InputError, check_between
from figgen.figures.parameters import AcceleratorName
from figgen.formulas.data_parallel import (
    data_parallel_bytes,
    data_parallel_time,
    power_sgd_ratio,
    quantization_ratio,
    top_k_all_gather_bytes,
    top_k_compression_ratio,
)
from figgen.formulas.scale_and_state import largest_replicated_model
from figgen.models.algorithms.communication_ratio import group_bandwidth_bytes_per_s
from figgen.models.algorithms.gradient_overlap import gradient_tensors
from figgen.models.shape.recipes import recipe
from figgen.models.shape.resnet import resnet_50_parameters
from figgen.plotting.placed import headings
from figgen.plotting.series import line
from figgen.plotting.words import identifier
from figgen.registry import figure

RESNET = "resnet-50"
VOLUME_MODELS = (
    RESNET, "bert-large", "gpt-2-xl", "llama-2-7b", "llama-3-8b", "llama-3-70b", "llama-3-405b",
)  # fmt: skip


def _sized(name: str) -> tuple[str, int]:
    """Return title and parameters of a model in the catalog, or of ResNet-50, a CNN."""
    if name == RESNET:
        return "ResNet-50", resnet_50_parameters()
    entry = catalog_model(name)
    return entry.title, entry.parameters


@figure("gradient-all-reduce")
def gradient_all_reduce(
    *, models: tuple[str, ...] = VOLUME_MODELS, preset: str = "h100-ndr", nodes: int = 8
) -> Table:
    """Bytes and time per rank per step to all-reduce whole gradients, by link.

    As many ranks as a node has GPUs use the scale-up link inside one node, or one port each between
    nodes. The last time is for more ranks, which send more: whole nodes that combine their ports.
    Latency is not counted.
    """
    check_between("nodes", nodes, 2, 2**16)
    node = hardware_preset(preset)
    each = node.gpus_per_node
    inside, port = node.scale_up_bandwidth_bytes_per_s, node.network_bandwidth_bytes_per_s
    shared = group_bandwidth_bytes_per_s(inside, port, each)
    rows: list[tuple[Scalar, ...]] = []
    values = {"nodes": Named(nodes), "gpus": Named(nodes * each), "per_node": Named(each)}
    for name in models:
        title, size = _sized(name)
        many = nodes * each
        times = (
            data_parallel_time(size, 2, each, 0, inside),
            data_parallel_time(size, 2, each, 0, port),
            data_parallel_time(size, 2, many, 0, shared),
        )
        few_sent, sent = (data_parallel_bytes(size, 2, ranks) for ranks in (each, many))
        rows.append((title, size, 4 * size, 2 * size, few_sent, *times[:2], sent, times[2]))
        key = identifier(name)
        values[f"{key}_sent"] = Named(sent, "B")
        values[f"{key}_few_sent"] = Named(few_sent, "B")
        values[f"{key}_port_s"] = Named(times[1], "s")
        values[f"{key}_nvlink_s"] = Named(times[0], "s")
        values[f"{key}_whole_s"] = Named(times[2], "s")
    columns = (
        Column(label="model"),
        Column(label="parameters", unit="param", spec="si"),
        *headings(
            "gradient, FP32",
            "BF16",
            f"each of {each} GPUs sends",
            unit="B",
            spec="bytes",
        ),
        *headings("in one node", "one GPU per node", unit="s", spec="time"),
        *headings(f"each of {nodes * each} GPUs sends", unit="B", spec="bytes"),
        *headings(f"{nodes} whole nodes", unit="s", spec="time"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


FP32 = 4


def power_sgd_payload(model: str, rank: int) -> float:
    """Return the elements that PowerSGD sends: two factors per matrix, and whole vectors."""
    shape = catalog_model(model).shape
    query, key = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    sides = {
        "query": (shape.hidden, query),
        "key": (shape.hidden, key),
        "value": (shape.hidden, key),
        "output": (query, shape.hidden),
        "gate": (shape.hidden, shape.ffn_hidden),
        "up": (shape.hidden, shape.ffn_hidden),
        "down": (shape.ffn_hidden, shape.hidden),
        "head": (shape.vocab, shape.hidden),
        "embedding": (shape.vocab, shape.hidden),
    }
    sent = 0.0
    for tensor in gradient_tensors(shape):
        rows, columns = sides.get(tensor.name, (0, 0))
        rest = tensor.elements - rows * columns
        sent += rest + (rows * columns / power_sgd_ratio(rows, columns, rank) if rows else 0)
    return sent


SPARSE = {
    "long": ("FP32 and 64-bit index", 4, 8),
    "int": ("FP32 and 32-bit index", 4, 4),
    "half": ("BF16 and 32-bit index", 2, 4),
}
"""What a kept element sends: words, bytes of its value, bytes of its index."""

CALLS = dict.fromkeys(("int8", "int4", "one_bit"), "all-to-all, local sum, all-gather")
"""Calls of messages that can't be added up on the way; each rank sends as much as in a ring."""


@figure("gradient-compression")
def gradient_compression(
    *,
    model: str = "llama-2-7b",
    ranks: tuple[int, ...] = (8, 64, 256),
    kept_fraction: float = 0.01,
    low_rank: int = 4,
) -> Table:
    """The compression of each method, and the bytes that a rank sends, over the ranks.

    Traffic is relative to a ring all-reduce in BF16; sparse gradients are all-gathered.
    """
    if not 0 < kept_fraction < 1:
        raise InputError("kept_fraction", expected="between 0 and 1", got=kept_fraction)
    size = catalog_model(model).parameters
    dense = {
        "fp32": ("FP32", quantization_ratio(32, 32)),
        "bf16": ("BF16 or FP16", quantization_ratio(32, 16)),
        # A scale of 32 bits for every 256 elements.
        "int8": ("INT8, a scale per 256", quantization_ratio(32, 8 + 32 / 256)),
        "int4": ("INT4, a scale per 256", quantization_ratio(32, 4 + 32 / 256)),
        "one_bit": ("one bit, a scale per tensor", quantization_ratio(32, 1)),
        "power_sgd": (
            f"PowerSGD, rank {low_rank}, FP32 factors",
            size / power_sgd_payload(model, low_rank),
        ),
    }
    base = {dp: data_parallel_bytes(size, 2, dp) for dp in ranks}
    rows: list[tuple[Scalar, ...]] = []
    values = {"parameters": Named(size, "param"), "low_rank": Named(low_rank)}
    for key, (name, ratio) in dense.items():
        traffic = [data_parallel_bytes(size, FP32 / ratio, dp) / base[dp] for dp in ranks]
        rows.append((name, ratio, CALLS.get(key, "all-reduce"), *traffic))
        values[f"{key}_ratio"] = Named(ratio)
    for key, (name, value_bytes, index_bytes) in SPARSE.items():
        ratio = top_k_compression_ratio(FP32, kept_fraction, value_bytes, index_bytes)
        traffic = [
            top_k_all_gather_bytes(dp, kept_fraction, size, value_bytes, index_bytes) / base[dp]
            for dp in ranks
        ]
        rows.append((f"top {kept_fraction:.0%}: {name}", ratio, "all-gather", *traffic))
        values[f"{key}_ratio"] = Named(ratio)
        values[f"{key}_last"] = Named(traffic[-1])
        # (D − 1)·k·b equals 2·2·(D − 1)/D at this D.
        even = 4 / (kept_fraction * (value_bytes + index_bytes))
        values[f"{key}_even"] = Named(math.floor(even), "rank")
    columns = (
        Column(label="method"),
        Column(label="message shrinks from FP32 by", spec=".3g"),
        Column(label="collective"),
        *(Column(label=f"sent by a rank, D = {dp}, over BF16", spec=".1%") for dp in ranks),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("ddp-memory-wall", explorable=True, recomputed=True)
def ddp_memory_wall(
    *,
    recipes: tuple[str, ...] = ("zero16", "mcore18", "mcore20"),
    accelerators: tuple[AcceleratorName, ...] = (
        "a100-sxm-40gb",
        "h100-sxm-80gb",
        "h200-sxm-141gb",
        "b200-sxm-hgx",
        "b300-sxm-hgx",
    ),
    most_parameters: float = 16e9,
) -> Curves:
    """Bytes of replicated model state over the parameters, with the HBM of GPUs as lines.

    Activations, buffers and the framework's own memory come on top.
    """
    check_between("most_parameters", most_parameters, 1e6, 1e13)
    series, marks, rules, values = [], [], [], {}
    for index, name in enumerate(recipes):
        total = recipe(name).total_bytes
        ends = (0.0, total * most_parameters)
        series.append(line(f"{total:.0f} bytes", (0.0, most_parameters), ends, index))
    for name in accelerators:
        part = accelerator(name)
        short = part.short_title
        rules.append(
            Rule(axis="y", at=part.hbm_bytes, label=f"{short}, {part.hbm_bytes / 1e9:.0f} GB")
        )
        for each in recipes:
            size = largest_replicated_model(part.hbm_bytes, 1, recipe(each).total_bytes)
            values[f"{short.lower()}_{part.hbm_bytes / 1e9:.0f}_{each}"] = Named(size, "param")
            if each == recipes[0] and size <= most_parameters:
                label = f"{size / 1e9:.3g}B"
                marks.append(Mark(x=size, y=part.hbm_bytes, label=label, role="ink"))
    return Curves(
        x=Axis(label="parameters", unit="param", low=0.0, high=most_parameters, spec="si"),
        y=Axis(
            label="model state per GPU",
            unit="B",
            low=0.0,
            high=recipe(recipes[0]).total_bytes * most_parameters * 1.25,
            spec="bytes",
        ),
        series=tuple(series),
        marks=tuple(marks),
        rules=tuple(rules),
        values=values,
    )


@figure("critical-batch", explorable=True, recomputed=True)
def critical_batch(*, octaves: int = 4, per_octave: int = 4) -> Curves:
    """Steps and samples needed to reach a loss, over the batch, relative to the least of each.

    McCandlish et al. 2018: steps/least = 1 + B*/B and samples/least = 1 + B/B*.
    """
    check_between("octaves", octaves, 1, 20)
    check_between("per_octave", per_octave, 1, 50)
    span = range(-octaves * per_octave, octaves * per_octave + 1)
    x = tuple(2 ** (k / per_octave) for k in span)
    return Curves(
        x=Axis(label="batch over the critical batch", scale="log2", spec="g"),
        y=Axis(label="over the least possible", low=0.0, high=2.0**octaves / 2 + 2, spec="g"),
        series=(
            line("steps", x, (1 + 1 / each for each in x)),
            line("samples", x, (1 + each for each in x), 1, "dashed"),
        ),
        marks=(Mark(x=1.0, y=2.0, label="twice the least of both", role="ink"),),
        values={
            "steps_at_one": Named(1 + 1 / 1),
            "samples_at_one": Named(1 + 1),
            "steps_at_four": Named(1 + 1 / 4),
            "samples_at_four": Named(1 + 4),
            "steps_at_quarter": Named(1 + 4),
            "samples_at_quarter": Named(1 + 1 / 4),
        },
    )
