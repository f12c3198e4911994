"""The origin of the bytes and the seconds of a page's step."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

from figgen.charts import Axis, Bars, Named, Segment, interval_values
from figgen.figures.journey.board import written
from figgen.models.step.level_loads import port_bytes
from figgen.models.step.step import StepEstimate
from figgen.models.step.step_links import NETWORK, SCALE_UP, group_link
from figgen.models.step.step_rows import MICROBATCH, family_of
from figgen.plotting.step_bars import step_bars, step_parts
from figgen.plotting.words import label_of
from figgen.quantity_shown import NBSP
from figgen.registry import figure
from figgen.scenarios.stories.journey import JourneyJob, rung
from figgen.scenarios.stories.journey_step import SLOWED
from figgen.units import format_quantity

WORDS = {
    ("tp", "layers"): "partial sums of layers, forward and backward",
    ("tp", "inputs gathered again"): "inputs of layers, gathered again in backward",
    ("tp", "embedding and head"): "ends of the model",
    ("tp", "input of the head gathered again"): "ends of the model",
    ("dp", "weights"): "weights",
    ("dp", "gradients"): "gradients",
    ("edp", "weights"): "weights of experts",
    ("edp", "gradients"): "gradients of experts",
    ("pp", "activations and gradients"): "activations and their gradients",
    ("cp", "keys and values"): "keys, values and their gradients",
    ("ep", "routed tokens"): "tokens to experts and back",
}
"""The journey's names of messages, by communicator and purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """Calls of one purpose in a step of the busiest GPU."""

    axis: str
    what: str
    calls: int
    per_microbatch: bool
    near_bytes: float
    far_bytes: float

    @property
    def sent_bytes(self) -> float:
        """Bytes of all calls."""
        return self.near_bytes + self.far_bytes

    @property
    def each_bytes(self) -> float:
        """Mean bytes per call."""
        return self.sent_bytes / self.calls


def entries(found: JourneyJob) -> list[LedgerEntry]:
    """Return the step's calls by purpose, busiest axis first; they add up to all its bytes."""
    estimate = found.found.estimate
    by: dict[tuple[str, str], list[LedgerEntry]] = {}
    for row in estimate.rows:
        sent = port_bytes(row, group_link(estimate.setup.parallel, row.axis))
        axis = row.axis.removesuffix("-cp")
        what = WORDS[axis, row.purpose]
        by.setdefault((axis, what), []).append(LedgerEntry(
            axis=axis, what=what, calls=row.calls, per_microbatch=row.when == MICROBATCH,
            near_bytes=row.calls * sent[SCALE_UP], far_bytes=row.calls * sent[NETWORK],
        ))  # fmt: skip
    merged = [
        LedgerEntry(
            axis=axis,
            what=what,
            calls=sum(one.calls for one in each),
            per_microbatch=each[0].per_microbatch,
            near_bytes=fsum(one.near_bytes for one in each),
            far_bytes=fsum(one.far_bytes for one in each),
        )
        for (axis, what), each in by.items()
    ]
    of_axis = {one.axis: 0.0 for one in merged}
    for one in merged:
        of_axis[one.axis] += one.sent_bytes
    return sorted(merged, key=lambda one: (-of_axis[one.axis], -one.sent_bytes))


def _product(entry: LedgerEntry, microbatches: int, layers: int) -> str:
    """Return the number of calls as microbatches × layers × calls, as far as it divides."""
    rest, factors = entry.calls, []
    if entry.per_microbatch:
        for factor in (microbatches, layers):
            if factor > 1 and rest % factor == 0:
                factors.append(factor)
                rest //= factor
    if rest > 1 or not factors:
        factors.append(rest)
    return f"{NBSP}×{NBSP}".join(map(str, factors))


def rank_layers(found: JourneyJob) -> int:
    """Return the number of layers on the busiest GPU."""
    rank = found.found.estimate.bottleneck
    return next(one.layers for one in found.found.memory.ranks if one.pipeline_rank == rank)


@figure("journey-ledger", of_reference=True)
def journey_ledger(*, page: int, job: str = "") -> Bars:
    """Bytes that a GPU sends in the step of a page, by purpose and link, with their calls.

    `job` is one that the page works through instead, written as for `journey-layouts`.
    """
    found = written(job)[1] if job else rung(page)
    layers = rank_layers(found)
    listed = entries(found)
    near, far = (tuple(getattr(one, f"{at}_bytes") for one in listed) for at in ("near", "far"))
    values = {
        "near": Named(fsum(near), "B"),
        "far": Named(fsum(far), "B"),
        "microbatches": Named(found.microbatches),
        "layers": Named(layers),
    }
    for at, one in enumerate(listed, 1):
        values |= {
            f"calls_{at}": Named(one.calls),
            f"each_{at}": Named(one.each_bytes, "B"),
            f"sent_{at}": Named(one.sent_bytes, "B"),
        }
    labels = (
        f"{label_of(one.axis)}: {one.what}, {_product(one, found.microbatches, layers)} calls of "
        f"{format_quantity(one.each_bytes, 'B', 'bytes')}"
        for one in listed
    )
    return Bars(
        labels=tuple(labels),
        segments=(
            Segment(name="over NVLink", role="series-3", lengths=near),
            Segment(name="over the network", role="series-4", lengths=far),
        ),
        axis=Axis(label="one GPU sends in a step", unit="B", low=0.0, spec="bytes"),
        values=values,
    )


def link_bandwidth(estimate: StepEstimate, axis: str) -> float:
    """Return the busbw of an axis, B/s: bytes sent by a GPU over the time of its calls."""
    rows = [row for row in estimate.rows if family_of(row.axis) == axis]
    return fsum(row.sent_bytes for row in rows) / fsum(row.time_s for row in rows)


@figure("journey-subtract", of_reference=True)
def journey_subtract(*, page: int = 10) -> Bars:
    """A step as predicted, and as a profile shows it when one GPU's NVLink has lost bandwidth."""
    found = rung(page)
    good, bad = found.found.estimate, found.slowed
    computed, measured = step_parts(good), step_parts(bad)
    total, slow = good.step_time_s, bad.step_time_s
    values = {
        "computed": Named(total, "s"),
        "measured": Named(slow, "s"),
        "missing": Named(slow - total, "s"),
        "tp_computed": Named(computed["tp"], "s"),
        "tp_measured": Named(measured["tp"], "s"),
        "tp_missing": Named(measured["tp"] - computed["tp"], "s"),
        "bandwidth": Named(link_bandwidth(good, "tp"), "B/s"),
        "slow_bandwidth": Named(link_bandwidth(bad, "tp"), "B/s"),
        "factor": Named(SLOWED),
        **interval_values(found.predicted.residuals),
    }
    return step_bars(("predicted", "in the profile"), (computed, measured), values)
