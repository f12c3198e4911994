"""What a number of the journey opens to: a formula, its substitution, and its parts by kind."""

from __future__ import annotations

from collections.abc import Callable
from math import fsum
from typing import Protocol

from figgen.lookups import Opened, OpenedPart
from figgen.models.step.level_loads import port_bytes
from figgen.models.step.step_links import NETWORK, SCALE_UP, group_link
from figgen.scenarios.options.resolve import TrainingStep
from figgen.scenarios.runs.predicted import PredictedStep
from figgen.units import format_quantity

FITTED = "fitted to published runs"
COUNTED = "counted from shape and layout"

FORMULAS: dict[str, str] = {
    "at_peak_s": "( {products_gflops} + 2 × {attention_gflops} ) × 1e9 × {tokens_per_step} "
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
"""A field as a formula of other fields, whose values are substituted."""

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
    "low_s": "predicted step × what one run of ten of its class was faster than",
    "high_s": "predicted step × what one run of ten of its class was slower than",
    "speed_up": "tokens per second ÷ those of page 1",
    "idle_share": "idle stages ÷ step time",
    "straggling_share": "waiting for the slowest GPU ÷ step time",
}
RATES = ("tokens_per_second",)
SENT = {"near_bytes": SCALE_UP, "far_bytes": NETWORK, "far_s": NETWORK}
HELD = ("total_bytes", "fit_chance", "weights_bytes", "gradients_bytes", "optimizer_bytes",
        "activations_bytes")  # fmt: skip
KINDS: dict[str, str] = {
    "weights_bytes": "weights",
    "gradients_bytes": "gradients",
    "optimizer_bytes": "optimizer",
    "activations_bytes": "activations",
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


class JobNumbers(Protocol):
    """A job whose fields are numbers that pages quote."""

    @property
    def found(self) -> TrainingStep: ...
    @property
    def predicted(self) -> PredictedStep: ...
    @property
    def computing_s(self) -> float: ...
    @property
    def fixed_s(self) -> float: ...
    @property
    def microbatches(self) -> int: ...
    @property
    def gpus(self) -> int: ...


def opened(found: JobNumbers, field: str) -> Opened:
    """What a field opens to; one that is no formula of others opens to its description."""
    if field in FORMULAS:
        timed = any(f"{{{name}}}" in FORMULAS[field] for name in ("step_time_s", *RATES))
        parts = times(found) if timed else ()
        return Opened(formula=WORDS[field], worked=substituted(found, field), parts=parts)
    if field in TIMES:
        return Opened(formula=TIMES[field], worked="", parts=times(found))
    if field in SENT:
        said = "sum over all messages of calls × bytes that one call sends"
        said += ", ÷ bandwidth of the adapter" if field == "far_s" else ""
        return Opened(formula=said, worked="", parts=sent(found, SENT[field]))
    if field in HELD:
        kind = KINDS.get(field, "")
        said = "the sum of what the fullest GPU holds" if not kind else HOW_HELD[kind]
        return Opened(formula=said, worked="", parts=held(found, kind))
    described = getattr(type(found), field).__doc__ or ""
    return Opened(formula=described.split("\n\n")[0], worked="", parts=())


def substituted(
    found: JobNumbers, field: str, write: Callable[[JobNumbers, str], str] | None = None
) -> str:
    """The formula of a field with the values of the others in it."""
    put = write or written
    words = FORMULAS[field].split(" ")
    return " ".join(put(found, w[1:-1]) if w.startswith("{") else w for w in words)


def written(found: JobNumbers, field: str) -> str:
    """The value of a field as a reader sees it."""
    value = float(getattr(found, field))
    if field.endswith("_flops_per_s"):
        return format_quantity(value, "FLOP/s", "si")
    if field.endswith("_bytes_per_s"):
        return format_quantity(value, "B/s", "si")
    if field.endswith("_s"):
        return format_quantity(value, "s", "time")
    if field.endswith("_bytes"):
        return format_quantity(value, "B", "bytes")
    return f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}"


def times(found: JobNumbers) -> tuple[OpenedPart, ...]:
    """The parts of the step by kind, the largest first; they add up to it."""
    parts, estimate = found.predicted.parts, found.found.estimate
    sent_s: dict[str, float] = {}
    for row in estimate.rows:
        axis = row.axis.removesuffix("-cp")
        sent_s[axis] = sent_s.get(axis, 0.0) + row.time_s
    stages = found.found.setup.parallel.pp
    rows = [
        ("forward and backward", found.computing_s, f"{found.microbatches} microbatches × (layers "
         f"+ head), a dense layer {written(found, 'layer_s')}: FLOPs ÷ attained rate + bytes ÷ "
         "memory bandwidth", FITTED),
        ("idle stages", float(parts.idle_s), f"{stages} stages fill and drain", "the schedule"),
        ("update", float(parts.update_s), "bytes of the state ÷ memory bandwidth", FITTED),
        ("slowest GPU", float(parts.straggling_s), f"a share that grows with {found.gpus} GPUs",
         FITTED),
        ("fixed cost", found.fixed_s, "constant per step", FITTED),
    ]  # fmt: skip
    for axis, seconds in estimate.exposed:
        whole = format_quantity(sent_s.get(axis, 0.0), "s", "time")
        said = f"messages of {whole}, latency + bytes ÷ bandwidth, less what work hides"
        rows.append((f"exposed {axis.upper()} messages", float(seconds), said, FITTED))
    return _sorted([OpenedPart(name=n, value=v, unit="s", how=h, source=s) for n, v, h, s in rows])


def sent(found: JobNumbers, level: str) -> tuple[OpenedPart, ...]:
    """What the busiest GPU sends over one kind of link, by axis and purpose."""
    estimate, by = found.found.estimate, dict[tuple[str, str], list[tuple[int, float]]]()
    for row in estimate.rows:
        each = port_bytes(row, group_link(estimate.setup.parallel, row.axis))[level]
        by.setdefault((row.axis.upper(), row.purpose), []).append((row.calls, each))
    return _sorted([
        OpenedPart(
            name=f"{axis}: {purpose}",
            value=fsum(calls * each for calls, each in rows),
            unit="B",
            how=" + ".join(
                f"{calls:,} × {format_quantity(each, 'B', 'bytes')}" for calls, each in rows
            ),
            source=COUNTED,
        )
        for (axis, purpose), rows in by.items()
    ])  # fmt: skip


def held(found: JobNumbers, kind: str = "") -> tuple[OpenedPart, ...]:
    """The lines of the fullest GPU's memory, of one kind or of all."""
    return _sorted([
        OpenedPart(
            name=line.name,
            value=float(line.bytes),
            unit="B",
            how=_how_held(found, line.part, float(line.bytes)),
            source=COUNTED if line.part != "reserve" else FITTED,
        )
        for line in found.found.memory.fullest.lines
        if kind in ("", line.part)
    ])  # fmt: skip


def _how_held(found: JobNumbers, kind: str, held_bytes: float) -> str:
    recipe = found.found.setup.recipe
    each = {
        "weights": recipe.weight_bytes,
        "gradients": recipe.gradient_bytes,
        "optimizer": recipe.optimizer_bytes,
    }
    if kind not in each:
        return HOW_HELD[kind]
    return f"{held_bytes / each[kind] / 1e9:,.3g}B parameters on the GPU × {each[kind]:g} B"


def _sorted(parts: list[OpenedPart]) -> tuple[OpenedPart, ...]:
    return tuple(sorted((p for p in parts if p.value > 0), key=lambda part: -part.value))
