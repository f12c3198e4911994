"""ZeRO: what each stage shards, bytes on a rank, bytes sent, and the stage that fits."""

from __future__ import annotations

from typing import Literal

from figgen.catalog import accelerator
from figgen.catalog import model as catalog_model
from figgen.charts import Axis, Bars, Column, Named, Rule, Scalar, Table
from figgen.errors import check_between, check_share
from figgen.figures.parameters import AcceleratorName, RecipeName
from figgen.formulas.scale_and_state import zero_state_bytes
from figgen.models.collectives import bytes_sent_per_rank, trace
from figgen.models.shape.recipes import Recipe, recipe
from figgen.plotting.placed import headings
from figgen.plotting.series import segments
from figgen.plotting.words import identifier
from figgen.registry import figure

STAGES = {0: "DDP", 1: "ZeRO-1", 2: "ZeRO-2", 3: "ZeRO-3, FSDP"}
PARTS = ("weights", "gradients", "optimizer")
FIRST_STAGE = {"weights": 3, "gradients": 2, "optimizer": 1}
"""The first ZeRO stage that divides each part of the state."""


def parts_bytes(parameters: float, found: Recipe, dp: int, stage: int) -> dict[str, float]:
    """Return the bytes of each part of the state on a rank."""
    each = {
        "weights": found.weight_bytes,
        "gradients": found.gradient_bytes,
        "optimizer": found.optimizer_bytes,
    }
    return {
        part: parameters * size / (dp if stage >= FIRST_STAGE[part] else 1)
        for part, size in each.items()
    }


def state(parameters: float, found: Recipe, dp: int, stage: int) -> float:
    """Return the bytes of model state on a rank."""
    return float(
        zero_state_bytes(
            parameters, found.weight_bytes, found.gradient_bytes, found.optimizer_bytes, dp, stage
        )
    )


@figure("state-redundancy", explorable=True, recomputed=True)
def state_redundancy(
    *, parameters: float = 7e9, ranks: int = 3, recipe_name: RecipeName = "zero16"
) -> Bars:
    """State of every GPU, replicated and sharded."""
    check_between("ranks", ranks, 2, 4)
    found = recipe(recipe_name)
    values = {"ranks": Named(ranks), "parameters": Named(parameters, "param")}
    labels: list[str] = []
    rows: dict[str, list[float]] = {part: [] for part in PARTS}
    for stage, title in ((0, "replicated"), (3, "sharded")):
        held = parts_bytes(parameters, found, ranks, stage)
        for rank in range(ranks):
            labels.append(f"{title}, GPU {rank}")
            for part in PARTS:
                rows[part].append(held[part])
        values[f"{title}_each"] = Named(sum(held.values()), "B")
        values[f"{title}_all"] = Named(ranks * sum(held.values()), "B")
    return Bars(
        labels=tuple(labels),
        segments=segments(rows),
        axis=Axis(label="state on a GPU", unit="B", low=0.0, spec="bytes"),
        values=values,
    )


@figure("zero-memory", explorable=True, recomputed=True)
def zero_memory(
    *,
    parameters: float = 10e9,
    dp: int = 8,
    recipe_name: RecipeName = "zero16",
    accelerators: tuple[AcceleratorName, ...] = (
        "a100-sxm-40gb",
        "h100-sxm-80gb",
        "h200-sxm-141gb",
    ),
) -> Bars:
    """Weights, gradients and optimizer state on a rank by stage, with the HBM of GPUs."""
    check_between("dp", dp, 1, 2**20)
    found = recipe(recipe_name)
    held = [parts_bytes(parameters, found, dp, stage) for stage in STAGES]
    values = {"dp": Named(dp), "parameters": Named(parameters, "param")}
    for stage, parts in enumerate(held):
        values[f"stage_{stage}"] = Named(sum(parts.values()), "B")
        for part, size in parts.items():
            values[f"stage_{stage}_{part}"] = Named(size, "B")
    rules = []
    for name in accelerators:
        gpu = accelerator(name)
        short = gpu.short_title
        rules.append(Rule(axis="x", at=gpu.hbm_bytes, label=short))
    return Bars(
        labels=tuple(STAGES.values()),
        segments=segments({part: [parts[part] for parts in held] for part in PARTS}),
        axis=Axis(label="model state per GPU", unit="B", low=0.0, spec="bytes"),
        rules=tuple(rules),
        values=values,
    )


@figure("zero-stages")
def zero_stages(
    *,
    parameters: float = 7e9,
    ranks: tuple[int, ...] = (8, 64),
    recipes: tuple[str, ...] = ("zero16", "mcore18", "mcore20"),
) -> Table:
    """Bytes of state per rank by recipe and stage, and their limit for many ranks."""
    rows: list[tuple[Scalar, ...]] = []
    values = {"parameters": Named(parameters, "param")}
    for name in recipes:
        found = recipe(name)
        said = f"{found.weight_bytes:g} + {found.gradient_bytes:g} + {found.optimizer_bytes:g}"
        for stage, title in STAGES.items():
            sizes = [state(parameters, found, dp, stage) for dp in ranks]
            whole = sum(parts_bytes(1.0, found, 2**40, stage).values())
            rows.append(
                (said, title, _per_parameter(found, stage), *sizes, round(whole) * parameters)
            )
            for dp, size in zip(ranks, sizes, strict=True):
                values[f"{name}_stage_{stage}_dp_{dp}"] = Named(size, "B")
    columns = (
        *headings("bytes per parameter", "stage", "per rank"),
        *(Column(label=f"D = {dp}", unit="B", spec="bytes") for dp in ranks),
        Column(label="D → ∞", unit="B", spec="bytes"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


def _per_parameter(found: Recipe, stage: int) -> str:
    sizes = dict(
        zip(PARTS, (found.weight_bytes, found.gradient_bytes, found.optimizer_bytes), strict=True)
    )
    whole = sum(size for part, size in sizes.items() if stage < FIRST_STAGE[part])
    shared = found.total_bytes - whole
    if not shared:
        return f"{whole:g}"
    return f"{whole:g} + {shared:g}/D" if whole else f"{shared:g}/D"


CALLS = {
    # Per step of M microbatches: (all-reduces, reduce-scatters, all-gathers).
    0: lambda m: (1, 0, 0),
    1: lambda m: (0, 1, 1),
    2: lambda m: (0, m, 1),
    3: lambda m: (0, m, 2 * m),
}


@figure("zero-communication")
def zero_communication(
    *,
    dp: int = 8,
    parameters: float = 7e9,
    accumulation: tuple[int, ...] = (1, 8),
    reduce: Literal["bf16", "fp32"] = "bf16",
) -> Table:
    """Collectives of a step by stage, and the bytes that a rank sends, counted in ring traces.

    Gradients are reduced in `reduce`, weights gathered in 16 bits.
    """
    check_between("dp", dp, 2, 128)
    gradient, weight = parameters * {"bf16": 2, "fp32": 4}[reduce], parameters * 2
    counted = {
        name: max(bytes_sent_per_rank(trace(name, "ring", dp), size))
        for name, size in (
            ("all-reduce", gradient),
            ("reduce-scatter", gradient),
            ("all-gather", weight),
        )
    }
    sent = {
        (stage, m): sum(n * size for n, size in zip(calls(m), counted.values(), strict=True))
        for stage, calls in CALLS.items()
        for m in accumulation
    }
    rows: list[tuple[Scalar, ...]] = []
    values = {"dp": Named(dp), "parameters": Named(parameters, "param")}
    for stage, title in STAGES.items():
        row: list[Scalar] = [title, *_calls(stage)]
        for m in accumulation:
            ratio = sent[stage, m] / sent[0, m]
            row += [sent[stage, m], ratio]
            values[f"stage_{stage}_m{m}"] = Named(sent[stage, m], "B")
            values[f"stage_{stage}_m{m}_ratio"] = Named(ratio)
        rows.append(tuple(row))
    columns = [Column(label="stage"), Column(label="gradients"), Column(label="weights")]
    for m in accumulation:
        columns.append(Column(label=f"sent, M = {m}", unit="B", spec="bytes"))
        columns.append(Column(label="over DDP", spec=".2f"))
    return Table(columns=tuple(columns), rows=tuple(rows), values=values)


def _calls(stage: int) -> tuple[str, str]:
    return (
        ("one all-reduce", "none"),
        ("one reduce-scatter", "one all-gather, after the update"),
        ("a reduce-scatter per microbatch", "one all-gather, after the update"),
        ("a reduce-scatter per microbatch", "two all-gathers per microbatch"),
    )[stage]


@figure("zero-choice")
def zero_choice(
    *,
    models: tuple[str, ...] = (
        "gpt-2-xl",
        "llama-3-8b",
        "llama-2-13b",
        "llama-3-70b",
        "llama-3-405b",
    ),
    ranks: tuple[int, ...] = (8, 64, 512, 4096),
    gpu: str = "h100-sxm-80gb",
    usable_fraction: float = 0.6,
    recipe_name: RecipeName = "mcore18",
) -> Table:
    """The lowest stage whose state fits into the usable part of a GPU, by model and ranks."""
    check_share("usable_fraction", usable_fraction)
    found, room = recipe(recipe_name), usable_fraction * accelerator(gpu).hbm_bytes
    rows: list[tuple[Scalar, ...]] = []
    values = {"room": Named(room, "B"), "usable": Named(usable_fraction)}
    for name in models:
        entry = catalog_model(name)
        row: list[Scalar] = [entry.title, found.total_bytes * entry.parameters]
        for dp in ranks:
            fits = [s for s in STAGES if state(entry.parameters, found, dp, s) <= room]
            if fits:
                held = state(entry.parameters, found, dp, fits[0]) / 1e9
                row.append(f"{STAGES[fits[0]].partition(',')[0]}, {held:.3g} GB")
            else:
                row.append(f"none: {state(entry.parameters, found, dp, 3) / 1e9:.3g} GB")
            values[f"{identifier(name)}_{dp}"] = Named(fits[0] if fits else 4)
        rows.append(tuple(row))
    columns = (
        Column(label="model"),
        Column(label="state", unit="B", spec="bytes"),
        *(Column(label=f"D = {dp}") for dp in ranks),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
