"""Failures and goodput: how often jobs fail, how often to save, and the useful time."""

from __future__ import annotations

from figgen.catalog import model
from figgen.catalog.interruptions import interruption, interruptions
from figgen.charts import Axis, Bars, Column, Curves, Mark, Named, Rule, Table
from figgen.errors import check_between
from figgen.figures.parameters import InterruptionsName, ModelName, WayName
from figgen.formulas.reliability import (
    checkpoint_size,
    daly_interval,
    goodput,
    job_mtbf,
    lost_share,
    nodes_in_repair,
    young_interval,
)
from figgen.models.planner.reliability import best_interval_s, spare_nodes
from figgen.models.planner.saving import (
    CONFIDENCE,
    LARGEST_JOB,
    REPAIR_S,
    SIZES,
    WAYS,
    Saving,
    saving,
)
from figgen.models.shape.recipes import recipe as named_recipe
from figgen.plotting.placed import headings
from figgen.plotting.series import line, logarithmic, segments
from figgen.registry import figure

DASH = "–"


@figure("interruptions-published")
def interruptions_published(*, gpus: int = 16384) -> Table:
    """How often published jobs were interrupted, scaled to a different size."""
    check_between("gpus", gpus, 1, LARGEST_JOB)
    found = list(interruptions().values())
    return Table(
        columns=(
            Column(label="where"),
            *headings("GPUs", "failures", spec=",d"),
            *headings("per GPU", f"a job of {gpus:,} GPUs", unit="s", spec="time"),
            Column(label="source"),
        ),
        rows=tuple(
            (
                entry.title,
                entry.gpus or DASH,
                entry.failures or DASH,
                entry.gpu_mtbf_s,
                float(job_mtbf(gpus, entry.gpu_mtbf_s)),
                entry.source,
            )
            for entry in found
        ),
        values={
            "count": Named(len(found)),
            "sources": Named(len({entry.source for entry in found})),
            "shortest": Named(min(job_mtbf(gpus, e.gpu_mtbf_s) for e in found), "s"),
            "longest": Named(max(job_mtbf(gpus, e.gpu_mtbf_s) for e in found), "s"),
            "spread": Named(max(e.gpu_mtbf_s for e in found) / min(e.gpu_mtbf_s for e in found)),
        },
    )


@figure("goodput-by-interval", explorable=True, recomputed=True)
def goodput_by_interval(
    *,
    model_name: ModelName = "llama-3-405b",
    failures: InterruptionsName = "llama-3-405b",
    way: WayName = "storage",
) -> Curves:
    """Goodput over the time between checkpoints, for jobs of several sizes, best ones marked."""
    sizes = (4096, 16384, 65536, 131072)
    lines, marks = [], []
    values: dict[str, Named] = {}
    for index, gpus in enumerate(sizes):
        saved, mtbf_s = _job(model_name, failures, gpus, way)
        shortest = max(20.0, saved.lag_s - saved.stall_s)
        x = logarithmic(shortest, 5 * 3600.0, 12)
        name = f"{gpus:,} GPUs"
        lines.append(line(name, x, (_goodput(saved, each, mtbf_s) for each in x), index))
        best = best_interval_s(saved.stall_s, mtbf_s, saved.lag_s)
        share = _goodput(saved, best, mtbf_s)
        if index:  # the first two tops lie too close for two labels
            marks.append(Mark(x=best, y=share, label=f"{share:.0%}", role=f"series-{index + 1}"))
        values |= {f"best_{gpus}": Named(best, "s"), f"goodput_{gpus}": Named(share)}
    return Curves(
        x=Axis(label="training between checkpoints", unit="s", scale="log10", spec="time"),
        y=Axis(label="goodput", low=0.0, high=1.0, spec=".0%"),
        series=tuple(lines),
        marks=tuple(marks),
        values=values,
    )


@figure("goodput-by-size", explorable=True, recomputed=True)
def goodput_by_size(
    *, model_name: ModelName = "llama-3-405b", failures: InterruptionsName = "llama-3-405b"
) -> Curves:
    """Goodput at the best interval over the number of GPUs, for three ways to save."""
    lines = []
    values: dict[str, Named] = {}
    for index, (way, words) in enumerate(WAYS.items()):
        shares = [best_goodput(model_name, failures, gpus, way) for gpus in SIZES]
        lines.append(line(words, map(float, SIZES), shares, index))
        values |= {
            f"{way}_16384": Named(shares[SIZES.index(16384)]),
            f"{way}_131072": Named(shares[SIZES.index(131072)]),
        }
    return Curves(
        x=Axis(label="GPUs", scale="log2", spec=",.0f"),
        y=Axis(label="goodput", low=0.0, high=1.0, spec=".0%"),
        series=tuple(lines),
        rules=(Rule(axis="y", at=0.9, label="Llama 3: more than 90%"),),
        values=values | {"mtbf_131072": Named(_mtbf_s(failures, 131072), "s")},
    )


@figure("goodput-lost", recomputed=True)
def goodput_lost(
    *,
    model_name: ModelName = "llama-3-405b",
    failures: InterruptionsName = "llama-3-405b",
    way: WayName = "memory",
) -> Bars:
    """Where time is lost at the best interval: saving, repeating and restarting, by size."""
    sizes = [gpus for gpus in SIZES if gpus >= 2048]
    parts: dict[str, list[float]] = {"saving": [], "repeating": [], "restarting": []}
    for gpus in sizes:
        saved, mtbf_s = _job(model_name, failures, gpus, way)
        best = best_interval_s(saved.stall_s, mtbf_s, saved.lag_s)
        lost = 1 - _goodput(saved, best, mtbf_s)
        saving_part = saved.stall_s / (best + saved.stall_s)
        restarting = saved.restart_s / mtbf_s
        whole = lost_share(best, saved.stall_s, saved.lag_s, saved.restart_s, mtbf_s)
        # First-order parts, scaled to the exact sum: failures during restarts fall on all of them.
        for name, part in (
            ("saving", saving_part),
            ("repeating", whole - saving_part - restarting),
            ("restarting", restarting),
        ):
            parts[name].append(float(part / whole * lost))
    return Bars(
        labels=tuple(f"{gpus:,}" for gpus in sizes),
        segments=segments(parts),
        axis=Axis(label="share of the time lost", spec=".0%"),
        values={
            "first": Named(sum(each[0] for each in parts.values())),
            "last": Named(sum(each[-1] for each in parts.values())),
            "gpus": Named(sizes[-1], "GPU"),
            "restarting_share": Named(parts["restarting"][-1] / sum(p[-1] for p in parts.values())),
        },
    )


@figure("checkpoint-intervals")
def checkpoint_intervals(
    *,
    model_name: str = "llama-3-405b",
    failures: InterruptionsName = "llama-3-405b",
    way: WayName = "storage",
) -> Table:
    """The best interval by Young, by Daly and exactly, with the nodes that should be spare."""
    rows = []
    values: dict[str, Named] = {}
    for gpus in (1024, 4096, 16384, 65536, 131072):
        saved, mtbf_s = _job(model_name, failures, gpus, way)
        best = best_interval_s(saved.stall_s, mtbf_s, saved.lag_s)
        out = float(nodes_in_repair(gpus, interruption(failures).gpu_mtbf_s, REPAIR_S))
        spares = spare_nodes(out, CONFIDENCE)
        rows.append(
            (
                gpus,
                mtbf_s,
                saved.stall_s,
                float(young_interval(saved.stall_s, mtbf_s)),
                float(daly_interval(saved.stall_s, mtbf_s)),
                best,
                _goodput(saved, best, mtbf_s),
                out,
                spares,
            )
        )
        values |= {f"spares_{gpus}": Named(spares, "node"), f"out_{gpus}": Named(out, "node")}
    return Table(
        columns=(
            Column(label="GPUs", spec=",d"),
            *headings("between failures", "stall", "Young", "Daly", "exact", unit="s", spec="time"),
            Column(label="goodput", spec=".1%"),
            Column(label="nodes in repair", spec=".1f"),
            Column(label=f"spares for {CONFIDENCE:.0%}", spec=",d"),
        ),
        rows=tuple(rows),
        values=values | {"repair": Named(REPAIR_S, "s"), "enough": Named(CONFIDENCE)},
    )


def _mtbf_s(failures: str, gpus: int) -> float:
    return float(job_mtbf(gpus, interruption(failures).gpu_mtbf_s))


def _job(model_name: str, failures: str, gpus: int, way: str) -> tuple[Saving, float]:
    recipe = named_recipe("mcore18")
    size = checkpoint_size(
        model(model_name).parameters, recipe.weight_bytes, recipe.optimizer_bytes
    )
    return saving(way, float(size), gpus), _mtbf_s(failures, gpus)


def _goodput(saved: Saving, interval_s: float, mtbf_s: float) -> float:
    return float(goodput(interval_s, saved.stall_s, saved.lag_s, saved.restart_s, mtbf_s))


def best_goodput(model_name: str, failures: str, gpus: int, way: str) -> float:
    """Return the share of time spent training with the best interval."""
    saved, mtbf_s = _job(model_name, failures, gpus, way)
    return _goodput(saved, best_interval_s(saved.stall_s, mtbf_s, saved.lag_s), mtbf_s)
