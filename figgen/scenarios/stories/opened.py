"""What a page shows when a reader opens a number of the journey: formula, substitution and parts.

The module is printed as JavaScript.
"""

from __future__ import annotations

from collections.abc import Mapping

from figgen.equations.opened_data import Opened, OpenedPart
from figgen.models.step.kind_formulas import KIND_FORMULAS
from figgen.models.step.level_loads import port_bytes
from figgen.models.step.step_links import NETWORK, SCALE_UP, group_link
from figgen.quantity_shown import format_number, shown
from figgen.scenarios.stories.journey_numbers import numbers
from figgen.scenarios.stories.journey_step import JourneyStep

FITTED = "fitted to published runs"
COUNTED = "counted from shape and layout"

FORMULAS: dict[str, str] = {
    "at_peak_s": "( {matmuls_gflops} + 2 × {attention_gflops} ) × 1e9 × {tokens_per_step} "
    "÷ {gpus} ÷ {peak_flops_per_s}",
    "mfu": "{at_peak_s} ÷ {step_time_s}",
    "tokens_per_second": "{tokens_per_step} ÷ {step_time_s}",
    "tokens_per_second_and_gpu": "{tokens_per_second} ÷ {gpus}",
    "trillion_tokens_s": "1e12 ÷ {tokens_per_second}",
    "gradients_share": "{gradients_s} ÷ {step_time_s}",
    "paid_once_share": "( {update_s} + {gradients_s} + {fixed_s} ) ÷ {step_time_s}",
    "backward_s": "{work_s} × 2 ÷ 3",
    "state_bytes": "{weights_bytes} + {gradients_bytes} + {optimizer_bytes}",
    "tokens_to_hide": "{peak_flops_per_s} ÷ {sharded_bandwidth_bytes_per_s} × "
    "{sharded_bytes_per_param} ÷ 6",
    "tokens_to_hide_alone": "{peak_flops_per_s} ÷ {network_bytes_per_s} × "
    "{sharded_bytes_per_param} ÷ 6",
    "tokens_per_step": "{microbatches} × {tokens_per_microbatch} × {replicas}",
    "rest_bytes": "{total_bytes} − {state_bytes} − {activations_bytes}",
}
"""Formulas of fields in terms of other fields, whose values are substituted."""

WORDS: dict[str, str] = {
    "at_peak_s": "counted operations of a token × tokens of a step ÷ GPUs ÷ peak; attention counts "
    "every pair, twice what its mask leaves",
    "tokens_to_hide": "ridge of the link × bytes of a parameter in a microbatch ÷ its 6 operations",
    "tokens_to_hide_alone": "ridge of the adapter × bytes of a parameter in a microbatch ÷ its "
    "6 operations",
    "tokens_per_step": "microbatches × tokens of one × replicas",
    "mfu": "time of the counted operations at the peak ÷ step time",
    "tokens_per_second": "tokens of a step ÷ step time",
    "tokens_per_second_and_gpu": "tokens per second ÷ GPUs",
    "trillion_tokens_s": "a trillion tokens ÷ tokens per second",
    "gradients_share": "exposed gradient messages ÷ step time",
    "paid_once_share": "(update + exposed gradient messages + fixed cost) ÷ step time",
    "backward_s": "forward and backward × 2/3",
    "state_bytes": "weights + gradients + optimizer state",
    "rest_bytes": "all memory − state − activations",
}
"""The same formulas in words."""

TIMES: dict[str, str] = {
    "step_time_s": "the sum of the parts of the step",
    "low_s": "predicted step × the ratio that one run in ten of its class stayed below",
    "high_s": "predicted step × the ratio that one run in ten of its class exceeded",
    "speed_up": "tokens per second ÷ those of page 1",
    "idle_share": "idle stages ÷ step time",
    "straggling_share": "waiting for the slowest GPU ÷ step time",
}
RATES = ("tokens_per_second",)
SENT = {"near_bytes": SCALE_UP, "far_bytes": NETWORK, "far_s": NETWORK}
HELD = ("total_bytes", "fit_chance", "weights_bytes", "gradients_bytes", "optimizer_bytes",
        "activations_bytes", "working_bytes", "buffers_bytes", "reserve_bytes")  # fmt: skip
HELD_KINDS: dict[str, str] = {
    "weights_bytes": "weights",
    "gradients_bytes": "gradients",
    "optimizer_bytes": "optimizer",
    "activations_bytes": "activations",
    "working_bytes": "working",
    "buffers_bytes": "communication",
    "reserve_bytes": "reserve",
}
HOW_HELD: dict[str, str] = {
    "weights": "parameters on the GPU × bytes of a weight",
    "gradients": "parameters on the GPU × bytes of a gradient",
    "optimizer": "parameters on the GPU × bytes of their optimizer state",
    "activations": "microbatches in flight × layers × bytes that a layer keeps",
    "working": "bytes of the largest temporary of the loss or of one layer",
    "communication": "bytes of the buffers of messages under way",
    "reserve": "the allocator's share beyond its tensors, and 2 GB outside of it",
}


def opened(found: JourneyStep, field: str) -> Opened | None:
    """Return what a page shows for an opened field; None if it has neither formula nor parts."""
    if field in FORMULAS:
        timed = any(f"{{{name}}}" in FORMULAS[field] for name in ("step_time_s", *RATES))
        parts = times(found) if timed else ()
        return Opened(formula=WORDS[field], worked=substituted(found, field), parts=parts)
    if field in TIMES:
        return Opened(formula=TIMES[field], worked="", parts=times(found))
    if field in SENT:
        said = "sum over all messages of calls × bytes that one call sends"
        if field == "far_s":
            said += ", ÷ bandwidth of the adapter"
        return Opened(formula=said, worked="", parts=sent(found, SENT[field]))
    if field in HELD:
        kind = HELD_KINDS.get(field, "")
        said = HOW_HELD[kind] if kind else "the sum of what the fullest GPU holds"
        return Opened(formula=said, worked="", parts=held(found, kind))
    return None


def substituted(found: JourneyStep, field: str) -> str:
    """Return the formula of a field with the other fields' values substituted."""
    known = numbers(found)
    words = [
        written(word[1:-1], known[word[1:-1]]) if word.startswith("{") else word
        for word in FORMULAS[field].split(" ")
    ]
    return " ".join(words)


def written(field: str, value: float) -> str:
    """Return a value as readers see it, in the unit at the end of its name."""
    if field.endswith("_flops_per_s"):
        return shown(value, "FLOP/s", "si")
    if field.endswith("_bytes_per_s"):
        return shown(value, "B/s", "si")
    if field.endswith("_s"):
        return shown(value, "s", "time")
    if field.endswith("_bytes"):
        return shown(value, "B", "bytes")
    return format_number(value, 4) if value < 1e4 else f"{value:,.0f}"


def times(found: JourneyStep) -> tuple[OpenedPart, ...]:
    """Return the parts of the step by kind, the largest first; they add up to the step's time."""
    parts, estimate = found.parts, found.estimate
    sent_s: dict[str, float] = {}
    for row in estimate.rows:
        axis = row.axis.removesuffix("-cp")
        sent_s[axis] = sent_s.get(axis, 0.0) + row.time_s
    kinds = [(name, float(seconds)) for name, seconds in estimate.kinds if seconds > 0]
    rows = [_time(name, seconds, KIND_FORMULAS[name], FITTED) for name, seconds in kinds]
    rows.append(
        _time(
            "idle stages",
            float(parts.idle_s),
            f"{found.stages} stages fill and drain",
            "the schedule",
        )
    )
    for axis, seconds in estimate.exposed:
        whole = shown(sent_s.get(axis, 0.0), "s", "time")
        said = f"messages of {whole}, latency + bytes ÷ bandwidth, less what work hides"
        rows.append(_time(f"exposed {axis.upper()} messages", float(seconds), said, FITTED))
    return _sorted(rows)


def _time(name: str, value: float, how: str, source: str) -> OpenedPart:
    return OpenedPart(name=name, value=value, unit="s", how=how, source=source)


def sent(found: JourneyStep, level: str) -> tuple[OpenedPart, ...]:
    """Return the bytes that the busiest GPU sends over one kind of link, by axis and purpose."""
    estimate = found.estimate
    whole: dict[str, float] = {}
    calls: dict[str, list[str]] = {}
    for row in estimate.rows:
        each = port_bytes(row, group_link(estimate.setup.parallel, row.axis))[level]
        name = f"{row.axis.upper()}: {row.purpose}"
        whole[name] = whole.get(name, 0.0) + row.calls * each
        said = f"{row.calls:,} × {shown(each, 'B', 'bytes')}"
        calls[name] = [*calls.get(name, []), said]
    return _sorted([
        OpenedPart(name=name, value=size, unit="B", how=" + ".join(calls[name]), source=COUNTED)
        for name, size in whole.items()
    ])  # fmt: skip


def held(found: JourneyStep, kind: str = "") -> tuple[OpenedPart, ...]:
    """Return the fullest GPU's memory line by line, for one kind or for all kinds."""
    return _sorted([
        OpenedPart(
            name=line.name,
            value=float(line.bytes),
            unit="B",
            how=_how_held(found, line.part, float(line.bytes)),
            source=COUNTED if line.part != "reserve" else FITTED,
        )
        for line in found.memory.fullest.lines
        if kind in ("", line.part)
    ])  # fmt: skip


def _how_held(found: JourneyStep, kind: str, held_bytes: float) -> str:
    recipe = found.setup.recipe
    each: Mapping[str, float] = {
        "weights": recipe.weight_bytes,
        "gradients": recipe.gradient_bytes,
        "optimizer": recipe.optimizer_bytes,
    }
    if kind not in each:
        return HOW_HELD[kind]
    of_one = format_number(each[kind])
    return f"{format_number(held_bytes / each[kind] / 1e9)}B parameters on the GPU × {of_one} B"


def _sorted(parts: list[OpenedPart]) -> tuple[OpenedPart, ...]:
    return tuple(sorted([part for part in parts if part.value > 0], key=lambda one: -one.value))
