"""Two steps that PyTorch recorded on an H100: a profile, one layer of it, and memory over time."""

from __future__ import annotations

from math import fsum

from figgen.catalog.recorded import KINDS, Kernel, recorded_memory, recorded_trace
from figgen.charts import Axis, Curves, Mark, Named, Rule, Series, Slot, Timeline
from figgen.registry import figure
from figgen.scenarios.runs.device_run import device_run, measured_steps, predicted_device
from figgen.units import format_quantity

ROLES = {"forward": "forward", "backward": "backward", "update": "series-5"}
LANES = {
    "product": ("matmuls", "series-1"),
    "attention": ("attention", "series-2"),
    "passes": ("passes over memory", "series-3"),
}
MATMULS = ("Q", "K", "V", "O", "gate", "up", "down")
"""The matmuls of one layer of Llama in the order in which a forward pass runs them."""

SNAPSHOT_STEP = "llama1b-amp-eager"


@figure("recorded-step")
def recorded_step() -> Timeline:
    """A recorded step: what the CPU launches, and what the GPU runs."""
    found = recorded_trace()
    slots = [Slot(lane=1, start=0.0, end=found.before_s, role="neutral", label="step before")]
    for name, phase in found.phases.items():
        for lane, (start, end) in enumerate((phase.host_s, phase.gpu_s)):
            slots.append(Slot(lane=lane, start=start, end=end, role=ROLES[name], label=name))
    busy = {kind: fsum(each.busy_s[kind] for each in found.phases.values()) for kind in KINDS}
    span = found.phases["update"].gpu_s[1] - found.before_s
    working = fsum(busy.values())
    return Timeline(
        lanes=("CPU launches", "GPU runs"),
        slots=tuple(slots),
        end=found.phases["update"].gpu_s[1],
        time_label="time since the step began on the CPU",
        time_unit="s",
        values={
            "step": Named(found.step_s, "s"),
            "span": Named(span, "s"),
            "behind": Named(found.before_s, "s"),
            "busy": Named(working / span),
            **{
                f"{name}_busy": Named(
                    fsum(phase.busy_s.values()) / (phase.gpu_s[1] - phase.gpu_s[0])
                )
                for name, phase in found.phases.items()
            },
            "gaps": Named(span - working, "s"),
            **{f"{kind}_s": Named(seconds, "s") for kind, seconds in busy.items()},
            **{f"{kind}_share": Named(seconds / working) for kind, seconds in busy.items()},
        },
    )


@figure("recorded-layer")
def recorded_layer() -> Timeline:
    """The forward pass of one layer in that profile, kernel by kernel."""
    kernels = recorded_trace().layer
    end = max(kernel.end_s for kernel in kernels)
    names = iter(MATMULS)
    rows = tuple(LANES)
    slots = [
        Slot(lane=0, start=start, end=stop, role="neutral", label=name)
        for name, start, stop in _parts(kernels)
    ]
    for kernel in kernels:
        what = f"matmul {next(names)}" if kernel.kind == "product" else LANES[kernel.kind][0]
        lasts = format_quantity(kernel.end_s - kernel.start_s, "s", "time")
        slots.append(
            Slot(
                lane=1 + rows.index(kernel.kind),
                start=kernel.start_s,
                end=kernel.end_s,
                role=LANES[kernel.kind][1],
                label="",
                detail=f"{what}, {lasts}",
            )
        )
    spent = {kind: _seconds(kernels, kind) for kind in rows}
    return Timeline(
        lanes=("part of the layer", *(title for title, _ in LANES.values())),
        slots=tuple(slots),
        end=end,
        time_label="time since the layer began",
        time_unit="s",
        values={
            "layer": Named(end, "s"),
            "kernels": Named(len(kernels)),
            "passes": Named(sum(kernel.kind == "passes" for kernel in kernels)),
            "gaps_share": Named(1 - fsum(spent.values()) / end),
            "longest": Named(max(one.end_s - one.start_s for one in kernels), "s"),
            **{f"{kind}_share": Named(seconds / end) for kind, seconds in spent.items()},
        },
    )


def _seconds(kernels: tuple[Kernel, ...], kind: str) -> float:
    return fsum(one.end_s - one.start_s for one in kernels if one.kind == kind)


def _parts(kernels: tuple[Kernel, ...]) -> list[tuple[str, float, float]]:
    """Return the parts of the layer, between its matmuls and its attention."""
    query, _, value, out, gate, _, down = [one for one in kernels if one.kind == "product"]
    (attention,) = [one for one in kernels if one.kind == "attention"]
    bounds = (
        ("norm", 0.0, query.start_s),
        ("Q, K, V", query.start_s, value.end_s),
        ("rotary", value.end_s, attention.start_s),
        ("attention", attention.start_s, attention.end_s),
        ("output", attention.end_s, out.end_s),
        ("norm", out.end_s, gate.start_s),
        ("MLP", gate.start_s, down.end_s),
        ("residual", down.end_s, kernels[-1].end_s),
    )
    return [each for each in bounds if each[2] > each[1]]


@figure("recorded-memory")
def recorded_memory_over_time() -> Curves:
    """Bytes in use over one recorded step, and the predicted peak."""
    found = recorded_memory()
    peak, peak_s = max(zip(found.bytes, found.times_s, strict=True))
    record = next(one for one in measured_steps() if one["id"] == SNAPSHOT_STEP)
    predicted = predicted_device(device_run(record)).memory.allocated_bytes
    least = found.bytes[0]
    lines = (("all tensors", found.bytes, "series-4"), ("gradients", found.gradients, "series-2"))
    return Curves(
        x=Axis(label="time since the step began on the CPU", unit="s", low=0.0, spec="time"),
        y=Axis(label="GPU memory in use", unit="B", low=0.0, spec="bytes"),
        series=tuple(
            Series(name=name, x=found.times_s, y=tuple(map(float, held)), role=role, style="steps")
            for name, held, role in lines
        ),
        marks=(Mark(x=peak_s, y=float(peak), label="the peak, in the loss", role="ink"),),
        rules=(
            Rule(axis="x", at=found.backward_s, label="backward"),
            Rule(axis="x", at=found.update_s, label="update"),
            Rule(axis="y", at=predicted, label="predicted peak"),
        ),
        values={
            "peak": Named(float(peak), "B"),
            "predicted": Named(predicted, "B"),
            "off": Named(predicted / peak - 1),
            "least": Named(float(least), "B"),
            "gradients": Named(float(max(found.gradients)), "B"),
        },
    )
