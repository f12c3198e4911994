"""A recorded step of DDP on two GPUs, as a whole and close enough to see its gaps."""

from __future__ import annotations

from math import fsum

from figgen.catalog.recorded_ddp import BYTES_PER_ELEMENT, RecordedCall, Span, recorded_ddp
from figgen.charts import Named, Slot, Timeline
from figgen.errors import check_between
from figgen.formulas.alpha_beta import all_reduce_bus_bandwidth
from figgen.models.profiles.intervals import length, union, within
from figgen.registry import figure
from figgen.units import format_quantity

RANKS = 2
LANES = ("CPU launches", "GPU computes", "GPU sends")
ROLES = {"forward": "forward", "backward": "backward", "update": "series-5"}


def _all_reduces() -> list[RecordedCall]:
    return [call for call in recorded_ddp().calls if call.collective == "allreduce"]


def _busy_s(span: Span) -> float:
    """Return the seconds of a span in which the GPU computes."""
    starts, ends = zip(*recorded_ddp().kernels_s, strict=True)
    return length(within(union(starts, ends), *span))


def _values() -> dict[str, Named]:
    found, calls = recorded_ddp(), _all_reduces()
    busy = fsum(end - start for start, end in found.kernels_s)
    sending = fsum(call.span_s[1] - call.span_s[0] for call in calls)
    hidden = fsum(_busy_s(call.span_s) for call in calls)
    largest = max(calls, key=lambda call: call.message_bytes)
    lasts = largest.span_s[1] - largest.span_s[0]
    rate = all_reduce_bus_bandwidth(ranks=RANKS, message_bytes=largest.message_bytes, time_s=lasts)
    return {
        "step": Named(found.step_s, "s"),
        "kernels": Named(len(found.kernels_s)),
        "busy": Named(busy, "s"),
        "busy_share": Named(busy / found.step_s),
        "mean_kernel": Named(busy / len(found.kernels_s), "s"),
        "calls": Named(len(calls)),
        "sending": Named(sending, "s"),
        "hidden": Named(hidden, "s"),
        "exposed": Named(sending - hidden, "s"),
        "exposed_share": Named((sending - hidden) / found.step_s),
        "gradient_bytes": Named(sum(call.message_bytes for call in calls), "B"),
        "elements": Named(sum(call.message_bytes for call in calls) // BYTES_PER_ELEMENT),
        "largest_bytes": Named(largest.message_bytes, "B"),
        "largest_time": Named(lasts, "s"),
        "largest_rate": Named(float(rate), "B/s"),
    }


@figure("recorded-ddp")
def recorded_ddp_step(*, start: float = 0.0, end: float = 0.0) -> Timeline:
    """A recorded step of DDP, or what runs in it from `start` to `end` seconds, kernel by kernel.

    The whole step shows the span of each phase on the GPU instead of its kernels.
    """
    found = recorded_ddp()
    check_between("start", start, 0.0, found.step_s)
    whole = end == 0.0
    last = found.step_s if whole else end
    check_between("end", last, start, found.step_s)
    spans = [
        *((0, phase, ROLES[phase], span) for phase, span in found.host_s.items()),
        *((1, *each) for each in (_phases() if whole else _kernels())),
        *((2, _call(call), "series-2", call.span_s) for call in _all_reduces()),
    ]
    slots = [
        Slot(
            lane=lane,
            start=max(span[0], start) - start,
            end=min(span[1], last) - start,
            role=role,
            label=label if lane < (2 if whole else 1) else "",
            detail=f"{label}, {format_quantity(span[1] - span[0], 's', 'time')}",
        )
        for lane, label, role, span in spans
        if span[0] < last and span[1] > start
    ]
    return Timeline(
        lanes=LANES,
        slots=tuple(slots),
        end=last - start,
        time_label="time since the step began on the CPU" if whole else "time",
        time_unit="s",
        values=_values() | _shares(start, last),
    )


def _call(call: RecordedCall) -> str:
    return f"all-reduce of {format_quantity(call.message_bytes, 'B', 'bytes')}"


def _phase_of(at: float) -> str:
    """Return the phase that the CPU is in; kernels wait so little that they are in it too."""
    spans = recorded_ddp().host_s
    return next((phase for phase, (_, end) in spans.items() if at < end), "update")


def _phases() -> list[tuple[str, str, Span]]:
    kernels = [(_phase_of(start), start, end) for start, end in recorded_ddp().kernels_s]
    spans = []
    for phase, role in ROLES.items():
        own = [(start, end) for name, start, end in kernels if name == phase]
        spans.append((phase, role, (own[0][0], max(end for _, end in own))))
    return spans


def _kernels() -> list[tuple[str, str, Span]]:
    return [
        ("kernel", ROLES[_phase_of(start)], (start, end)) for start, end in recorded_ddp().kernels_s
    ]


def _shares(start: float, end: float) -> dict[str, Named]:
    """Return the share of time that the GPU computes between two moments, by kind."""
    shown = [span for span in recorded_ddp().kernels_s if span[0] < end and span[1] > start]
    return {
        "shown": Named(len(shown)),
        "shown_busy": Named(_busy_s((start, end)) / (end - start)),
        "window": Named(end - start, "s"),
    }
