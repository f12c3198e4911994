"""Where the bytes and the seconds of a page's step come from, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

from figgen.charts import Column, Named, Scalar, Table, interval_values
from figgen.models.step.level_loads import port_bytes
from figgen.models.step.step import StepEstimate
from figgen.models.step.step_links import NETWORK, SCALE_UP, group_link
from figgen.models.step.step_rows import MICROBATCH, family_of
from figgen.plotting.words import label_of
from figgen.registry import figure
from figgen.scenarios.stories.journey import JourneyJob, rung
from figgen.scenarios.stories.journey_step import SLOWED
from figgen.units import NBSP

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
"""Communicator and purpose → the journey's name for it."""


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
    """The step's calls by purpose, the busiest axis first; together they send all its bytes."""
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
    """The number of calls as microbatches × layers × calls of each, as far as it divides."""
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
    """Layers of the busiest GPU."""
    rank = found.found.estimate.bottleneck
    return next(one.layers for one in found.found.memory.ranks if one.pipeline_rank == rank)


@figure("journey-ledger")
def journey_ledger(*, page: int) -> Table:
    """Messages of a GPU in the step of a page: calls, bytes per call, link."""
    found = rung(page)
    layers = rank_layers(found)
    listed = entries(found)
    rows: list[tuple[Scalar, ...]] = [
        (f"{label_of(one.axis)}: {one.what}", _product(one, found.microbatches, layers),
         one.each_bytes, one.near_bytes, one.far_bytes)
        for one in listed
    ]  # fmt: skip
    near, far = (fsum(getattr(one, f"{at}_bytes") for one in listed) for at in ("near", "far"))
    rows.append(("together", "", "", near, far))
    values = {
        "near": Named(near, "B"),
        "far": Named(far, "B"),
        "microbatches": Named(found.microbatches),
        "layers": Named(layers),
    }
    for at, one in enumerate(listed, 1):
        values |= {
            f"calls_{at}": Named(one.calls),
            f"each_{at}": Named(one.each_bytes, "B"),
            f"sent_{at}": Named(one.sent_bytes, "B"),
        }
    return Table(
        columns=(
            Column(label="what travels"),
            Column(label="calls"),
            Column(label="one sends", unit="B", spec="bytes"),
            Column(label="NVLink", unit="B", spec="bytes"),
            Column(label="network", unit="B", spec="bytes"),
        ),
        rows=tuple(rows),
        values=values,
    )


def _parts(estimate: StepEstimate) -> dict[str, float]:
    """Seconds of a step by part; the parts add up to the step."""
    return {
        "computing": estimate.compute_s + estimate.recompute_s,
        "idle stages": estimate.bubble_s,
        **{f"messages of {label_of(axis)}": s for axis, s in estimate.exposed if s > 0},
    }


def link_bandwidth(estimate: StepEstimate, axis: str) -> float:
    """Bytes that a GPU sends on an axis over the time that its calls take: their busbw, B/s."""
    rows = [row for row in estimate.rows if family_of(row.axis) == axis]
    return fsum(row.sent_bytes for row in rows) / fsum(row.time_s for row in rows)


@figure("journey-subtract")
def journey_subtract(*, page: int = 10) -> Table:
    """A step as computed and as a profile shows it when one GPU's NVLink has lost bandwidth."""
    found = rung(page)
    good, bad = found.found.estimate, found.slowed
    computed, measured = _parts(good), _parts(bad)
    rows: list[tuple[Scalar, ...]] = [
        (part, s, measured[part], measured[part] - s) for part, s in computed.items()
    ]
    total, slow = good.step_time_s, bad.step_time_s
    rows.append(("the step", total, slow, slow - total))
    tensor = "messages of TP"
    return Table(
        columns=(
            Column(label="part"),
            Column(label="computed", unit="s", spec=".2f"),
            Column(label="in the profile", unit="s", spec=".2f"),
            Column(label="longer by", unit="s", spec="+.2f"),
        ),
        rows=tuple(rows),
        values={
            "computed": Named(total, "s"),
            "measured": Named(slow, "s"),
            "missing": Named(slow - total, "s"),
            "tp_computed": Named(computed[tensor], "s"),
            "tp_measured": Named(measured[tensor], "s"),
            "tp_missing": Named(measured[tensor] - computed[tensor], "s"),
            "bandwidth": Named(link_bandwidth(good, "tp"), "B/s"),
            "slow_bandwidth": Named(link_bandwidth(bad, "tp"), "B/s"),
            "factor": Named(SLOWED),
            **interval_values(found.predicted.residuals),
        },
    )
