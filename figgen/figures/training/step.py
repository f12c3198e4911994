"""One training step: its time, messages, memory and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum

from figgen.charts import Axis, Bars, Column, Named, Rule, Scalar, Segment, Table, interval_values
from figgen.errors import check_between
from figgen.models.memory.memory import MemoryEstimate, RankMemory
from figgen.models.memory.memory_lines import PARTS
from figgen.models.step.level_loads import level_bytes
from figgen.models.step.step_links import NETWORK
from figgen.models.step.step_rows import family_of, sent_by_axis
from figgen.plotting.placed import headings
from figgen.plotting.series import segments
from figgen.plotting.words import hue, identifier, label_of
from figgen.quantity_shown import NBSP
from figgen.registry import figure
from figgen.scenarios.evidence.published import computed_mfu, published_step_s
from figgen.scenarios.options.resolve import TrainingStep
from figgen.scenarios.options.written import written_step

LEVELS = {"scale-up": "inside a node", "network": "between nodes"}
"""The page's names for the levels of links."""


def hidden_s(found: TrainingStep) -> dict[str, float]:
    """Return the hidden seconds of communication by axis, on the bottleneck rank."""
    hidden = dict.fromkeys(dict(found.estimate.exposed), 0.0)
    for row in found.estimate.rows:
        apart = row.time_s - row.exposed_s
        # Less than a billionth is what rounding leaves of a message that is exposed whole.
        hidden[family_of(row.axis)] += apart if apart > 1e-9 * row.time_s else 0.0
    return hidden


@figure("step-breakdown", about=written_step, explorable=True, of_reference=True)
def step_breakdown(found: TrainingStep) -> Bars:
    """Seconds of one step: computing, idle, exposed communication by axis; hidden time apart.

    A rule marks the published time if there is one.
    """
    estimate, hidden = found.estimate, hidden_s(found)
    parts = (
        ("computing", "series-2", estimate.compute_s),
        ("recomputation", "series-4", estimate.recompute_s),
        ("pipeline idle", "idle", estimate.bubble_s),
    )
    shown = [Segment(name=name, role=role, lengths=(s, 0.0)) for name, role, s in parts if s > 0]
    shown += [
        Segment(name=label_of(axis), role=hue(axis), lengths=(seconds, hidden[axis]))
        for axis, seconds in estimate.exposed
        if seconds > 0 or hidden[axis] > 0
    ]
    published = published_step_s(found.run) if found.run else None
    rules = () if published is None else (Rule(axis="x", at=published, label="published"),)
    return Bars(
        labels=("a step: the GPU computes or waits", "messages meanwhile, at no cost"),
        segments=tuple(shown),
        axis=Axis(label="time on the GPU that works longest", unit="s", low=0.0, spec="time"),
        rules=rules,
        values=step_values(found),
    )


def step_interval(*steps: TrainingStep) -> dict[str, Named]:
    """Return the interval of predicted steps; empty if a share of the peak was given instead."""
    return interval_values(*(found.predicted.residuals for found in steps if found.has_interval))


def step_values(found: TrainingStep) -> dict[str, Named]:
    """Return the values of a step, by name; `published_s` only if a source prints it."""
    estimate, hidden = found.estimate, hidden_s(found)
    total = estimate.step_time_s
    values = {
        "step_time": Named(total, "s"),
        "compute": Named(estimate.compute_s, "s"),
        "recompute": Named(estimate.recompute_s, "s"),
        "bubble": Named(estimate.bubble_s, "s"),
        "exposed": Named(estimate.exposed_s, "s"),
        "hidden": Named(fsum(hidden.values()), "s"),
        "compute_share": Named((estimate.compute_s + estimate.recompute_s) / total),
        "bubble_share": Named(estimate.bubble_s / total),
        "exposed_share": Named(estimate.exposed_s / total),
        "mfu": Named(computed_mfu(found)),
        "tokens_per_s_per_gpu": Named(estimate.tokens_per_s_per_gpu, "token/s"),
        "compute_efficiency": Named(found.compute_efficiency),
    }
    for axis, seconds in estimate.exposed:
        values[f"exposed_{axis}"] = Named(seconds, "s")
        values[f"hidden_{axis}"] = Named(hidden[axis], "s")
    values |= step_interval(found)
    published = published_step_s(found.run) if found.run else None
    if published is not None:
        values["published"] = Named(published, "s")
        values["difference"] = Named(total / published - 1)
        values["compared"] = Named(in_words(total / published - 1))
    return values


def in_words(difference: float) -> str:
    """Return a relative difference of two times in words: "13% longer"."""
    size = abs(difference)
    told = f"{size:.0%}" if size > 0.005 else f"{size:.1%}" if size > 0.0005 else "less than 0.1%"
    return f"{told} {'longer' if difference > 0 else 'shorter'}"  # "0% shorter" says nothing


SENT = (
    *headings("groups of", "what", "collective"),
    *headings("GPUs each", "calls", spec=","),
    *headings("buffer", "sent per GPU", unit="B", spec="si"),
    Column(label="link"),
    *headings("time", "exposed", unit="s", spec="time"),
)


@figure("step-communication", about=written_step)
def step_communication(found: TrainingStep) -> Table:
    """Every kind of call of the busiest GPU: bytes, link, time, and exposed time."""
    rows: list[tuple[Scalar, ...]] = [
        (
            label_of(row.axis), row.purpose, row.collective, row.size, row.calls,
            row.buffer_bytes, row.sent_bytes, LEVELS[row.level], row.time_s, row.exposed_s,
        )
        for row in found.estimate.rows
    ]  # fmt: skip
    rows.sort(key=lambda row: -float(row[8]))
    sent = sent_by_axis(found.estimate.rows)
    values = {f"{identifier(axis)}_sent": Named(size, "B") for axis, size in sent.items()}
    values["sent"] = Named(sum(sent.values()), "B")
    values["between_nodes"] = Named(level_bytes(found.estimate)[NETWORK], "B")
    values["bottleneck"] = Named(found.estimate.bottleneck)
    return Table(columns=SENT, rows=tuple(rows), values=values)


LABELS = {
    "working": "loss or one layer in progress",
    "communication": "buffers of communication",
}
"""Labels of parts of memory that differ from their names."""


def part_label(part: str) -> str:
    """Return the label of a part of memory."""
    return LABELS.get(part, part)


@figure("memory-by-stage", about=written_step, explorable=True)
def memory_by_stage(step: TrainingStep, *, most: int = 8) -> Bars:
    """Memory that a GPU of each pipeline rank needs, part by part, and its capacity.

    Neighbors that need the same share a bar; of a deep pipeline `most` bars are shown, the
    first, the last and the fullest among them.
    """
    check_between("most", most, 3, 64)
    found = step.memory
    shown = _spread(_alike(found.ranks), most, found.fullest.pipeline_rank)
    capacity = found.capacity_bytes or 0.0
    fullest = found.fullest
    values = {
        "fullest": Named(fullest.total_bytes, "B"),
        "fullest_rank": Named(fullest.pipeline_rank),
        "least": Named(min(rank.total_bytes for rank in found.ranks), "B"),
        "capacity": Named(capacity, "B"),
        "free": Named(capacity - fullest.total_bytes, "B"),
        "share": Named(fullest.total_bytes / capacity),
        "stages": Named(len(found.ranks)),
        "shown": Named(len(shown)),
        "verdict": Named("fits" if found.fits else "does not fit"),
        **{part.name: Named(part.bytes, "B") for part in fullest.parts},
    }
    return Bars(
        labels=tuple(_ranks_words(first, last) for first, last, _ in shown),
        segments=memory_segments([rank for _, _, rank in shown]),
        axis=Axis(label="memory per GPU", unit="B", low=0.0, spec="bytes"),
        rules=(Rule(axis="x", at=capacity, label="capacity"),),
        values=values,
    )


def memory_segments(ranks: Sequence[RankMemory]) -> tuple[Segment, ...]:
    """Return the segments of bars for the memory of ranks."""
    return segments({part_label(name): [rank.bytes_of(name) for rank in ranks] for name in PARTS})


def fullest_bars(found: Mapping[str, MemoryEstimate], keys: tuple[str, ...]) -> Bars:
    """Return the memory of the fullest GPU by part, a bar per estimate; totals by their `keys`."""
    capacity = next(iter(found.values())).capacity_bytes or 0.0
    return Bars(
        labels=tuple(found),
        segments=memory_segments([estimate.fullest for estimate in found.values()]),
        axis=Axis(label="memory of the fullest GPU", unit="B", low=0.0, spec="bytes"),
        rules=(Rule(axis="x", at=capacity, label="capacity"),),
        values={
            **{
                key: Named(estimate.fullest.total_bytes, "B")
                for key, estimate in zip(keys, found.values(), strict=True)
            },
            "capacity": Named(capacity, "B"),
            "fitting": Named(sum(bool(estimate.fits) for estimate in found.values())),
            "tried": Named(len(found)),
        },
    )


Alike = tuple[int, int, RankMemory]


def _alike(ranks: tuple[RankMemory, ...]) -> list[Alike]:
    """Return runs of neighbors with equal parts, as (first, last, one of them)."""
    found: list[Alike] = []
    for rank in ranks:
        if found and found[-1][2].parts == rank.parts:
            found[-1] = (found[-1][0], rank.pipeline_rank, rank)
        else:
            found.append((rank.pipeline_rank, rank.pipeline_rank, rank))
    return found


def _spread(bars: list[Alike], most: int, fullest: int) -> list[Alike]:
    """Return at most `most` bars, evenly over the pipeline, with both ends and the fullest."""
    if len(bars) <= most:
        return bars
    full = next(at for at, bar in enumerate(bars) if bar[0] <= fullest <= bar[1])
    even = [round(at * (len(bars) - 1) / (most - 1)) for at in range(most)]
    if full not in even:
        even[min(range(1, most - 1), key=lambda at: abs(even[at] - full))] = full
    return [bars[at] for at in sorted(set(even))]


def _ranks_words(first: int, last: int) -> str:
    if first == last:
        return f"pipeline rank{NBSP}{first}"
    return f"pipeline ranks{NBSP}{first}–{last}"
