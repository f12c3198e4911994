"""Figures of the reference pages: nested terms, symbols that multiply, and coverage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from figgen.charts import Axis, Bars, Diagram, DiagramLink, Named
from figgen.errors import InputError
from figgen.formulas import FORMULAS, NOTATION
from figgen.formulas.coverage import coverage
from figgen.plotting.placed import box_at
from figgen.plotting.series import segments
from figgen.registry import figure
from figgen.scenarios.options.resolve import TrainingStep
from figgen.scenarios.options.written import written_step

WIDE, HIGH, STEP = 2.9, 0.75, 1.15
NARROW, LOW = 1.45, 0.5
APART = 0.55
SMALL = str.maketrans("ep", "ₑₚ")


@figure("nested-terms", about=written_step)
def nested_terms(found: TrainingStep) -> Diagram:
    """Three ways to divide a job, with the sizes of a run: its GPUs, its model, its batch."""
    setup, sizes = found.setup, found.setup.parallel
    ladders = {
        "tp": (
            ("world size", f"{sizes.world_size:,} ranks"),
            ("node", f"{sizes.nodes:,} of {sizes.gpus_per_node} GPUs"),
            ("rank", "one process, one GPU"),
        ),
        "pp": (
            ("replica", f"{sizes.dp:,} copies of the model"),
            ("stage", f"{sizes.pp} of each replica"),
            ("shard", f"{sizes.tp} of each stage"),
        ),
        "dp": (
            ("global batch", f"{setup.global_batch:,} sequences a step"),
            ("microbatch", f"{setup.microbatches} per replica"),
            ("sequence", f"{setup.microbatch_size} per microbatch"),
        ),
    }
    boxes, links = [], []
    for column, (role, steps) in enumerate(ladders.items()):
        for row, lines in enumerate(steps):
            boxes.append(
                box_at(lines[0], lines, (column * (WIDE + APART), row * STEP), (WIDE, HIGH), role)
            )
        links += [
            DiagramLink(source=above[0], target=below[0], role=role)
            for above, below in pairwise(steps)
        ]
    return Diagram(
        boxes=tuple(boxes),
        links=tuple(links),
        width=3 * (WIDE + APART) - APART,
        height=2 * STEP + HIGH,
        values={
            "gpus": Named(sizes.world_size, "GPU"),
            "nodes": Named(sizes.nodes),
            "replicas": Named(sizes.dp),
            "stages": Named(sizes.pp),
            "tp": Named(sizes.tp),
            "microbatches": Named(setup.microbatches),
            "sequences": Named(setup.global_batch, "sequence"),
            "tokens": Named(setup.tokens_per_step, "token"),
            "title": Named(found.title),
        },
    )


@figure("symbols-of-a-step", about=written_step)
def symbols_of_a_step(found: TrainingStep) -> Diagram:
    """The symbols whose products are the ranks of a job, on both grids, and its tokens."""
    setup, sizes = found.setup, found.setup.parallel
    world = ("world_size", sizes.world_size, "neutral")
    columns = {
        "dense layers": (
            ("tp", sizes.tp, "tp"), ("cp", sizes.cp, "cp"), ("dp", sizes.dp, "dp"),
            ("pp", sizes.pp, "pp"), world,
        ),
        "experts": (
            ("etp", sizes.etp, "tp"), ("ep", sizes.ep, "ep"), ("edp", sizes.edp, "dp"),
            ("pp", sizes.pp, "pp"), world,
        ),
        "a step": (
            ("microbatch_size", setup.microbatch_size, "neutral"),
            ("sequence_length", setup.sequence, "neutral"),
            ("microbatches", setup.microbatches, "neutral"), ("dp", sizes.dp, "dp"),
            ("tokens", setup.tokens_per_step, "neutral"),
        ),
    }  # fmt: skip
    boxes = []
    for column, (head, factors) in enumerate(columns.items()):
        x = column * (NARROW + 0.3)
        boxes.append(box_at(head, (head,), (x, 0), (NARROW, LOW)))
        for place, (name, value, role) in enumerate(factors, 1):
            symbol = f"{'= ' if place == len(factors) else ''}{_written(name)}"
            boxes.append(
                box_at(
                    f"{head} {name}",
                    (symbol, f"{value:,}"),
                    (x, LOW + 0.1 + (place - 1) * (HIGH + 0.1)),
                    (NARROW, HIGH),
                    role,
                )
            )
    return Diagram(
        boxes=tuple(boxes),
        links=(),
        width=3 * NARROW + 0.6,
        height=LOW + 5 * (HIGH + 0.1),
        values={
            "gpus": Named(sizes.world_size, "GPU"),
            "dp": Named(sizes.dp),
            "ep": Named(sizes.ep),
            "edp": Named(sizes.edp),
            "pp": Named(sizes.pp),
            "tokens": Named(setup.tokens_per_step, "token"),
            "title": Named(found.title),
        },
    )


def _written(name: str) -> str:
    """An argument's symbol as plain text."""
    letter, _, below = NOTATION[name].symbol.partition("_")
    return letter.replace(r"\tau", "τ") + below.translate(SMALL)


@figure("coverage-counts")
def coverage_counts(
    *,
    forms: tuple[str, ...],
    as_planned: tuple[int, ...],
    changed: tuple[int, ...],
    dropped: tuple[int, ...],
) -> Bars:
    """Number of planned figures that exist, by planned form."""
    parts = {"shown": as_planned, "shown with a note": changed, "dropped": dropped}
    if any(len(counts) != len(forms) for counts in parts.values()):
        raise InputError("counts", expected=f"{len(forms)} each, one for a form")
    return _counted(forms, parts)


@figure("formula-topics")
def formula_topics() -> Bars:
    """Number of formulas by topic, from the catalog and beyond it."""
    planned = {entry.name for entry in coverage() if entry.kind == "formula"}
    by_topic = Counter((f.module.rpartition(".")[2], f.name in planned) for f in FORMULAS.values())
    topics = tuple(dict.fromkeys(topic for topic, _ in by_topic))
    return _counted(
        tuple(topic.replace("_", " ") for topic in topics),
        {
            "in the catalogue": [by_topic[topic, True] for topic in topics],
            "beyond it": [by_topic[topic, False] for topic in topics],
        },
    )


def _counted(labels: tuple[str, ...], parts: Mapping[str, Sequence[int]]) -> Bars:
    totals = [sum(counts) for counts in zip(*parts.values(), strict=True)]
    values = {name.replace(" ", "_"): Named(sum(counts)) for name, counts in parts.items()}
    return Bars(
        labels=labels,
        segments=segments({name: map(float, counts) for name, counts in parts.items()}),
        axis=Axis(label="count", low=0.0, spec=".0f"),
        values=values
        | {
            "count": Named(sum(totals)),
            "most": Named(max(totals)),
            "largest": Named(labels[totals.index(max(totals))]),
        },
    )
