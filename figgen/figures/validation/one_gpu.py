"""Steps of plain transformers that this project timed on one GPU, next to predictions."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from figgen.catalog import load
from figgen.catalog.measured_file import read_measured
from figgen.charts import Axis, Bars, Column, Named, Scalar, Segment, Table
from figgen.plotting.placed import headings
from figgen.registry import figure
from figgen.scenarios.runs.device_run import (
    PREDICTED_BEFORE,
    adapter_steps,
    device_run,
    measured_steps,
    predicted_device,
)
from figgen.scenarios.runs.machine_rates import rates_of
from figgen.scenarios.runs.measured_rates import Measured

PARTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "product": ("matmuls", "series-1", ("product",)),
    "attention": ("attention", "series-2", ("attention",)),
    "elementwise": ("passes over memory", "series-3", ("other", "triton")),
    "optimizer": ("optimizer", "series-4", ("optimizer",)),
    "rest": ("copies, gaps and waits", "idle", ()),
}
"""Parts of a step: title, role, and the kinds of kernels of a record that belong to them."""


def _card(record: Any) -> str:
    return str(record["hardware"]).split()[0]


def _measured_on(card: str) -> Measured:
    return rates_of(read_measured(load.content(f"measured-{card.lower()}.json"))).known


@figure("one-gpu-steps")
def one_gpu_steps() -> Table:
    """Every step with its measured and predicted time, by the datasheet and by measured rates."""
    rows: list[tuple[Scalar, ...]] = []
    errors: dict[str, list[float]] = {}
    for record in measured_steps():
        card, measured_s = _card(record), record.get("step_time_s")
        if measured_s is None:
            continue
        run = device_run(record)
        found = predicted_device(run)
        error = found.step_time_s / measured_s - 1
        own = predicted_device(run, _measured_on(card)).step_time_s / measured_s - 1
        allocated = found.memory.allocated_bytes / record["peak_allocated_bytes"] - 1
        before = record[PREDICTED_BEFORE] / measured_s - 1 if PREDICTED_BEFORE in record else None
        kind = "unseen" if before is not None else "seen"
        for name, each in ((kind, error), ("own", own), ("allocated", allocated)):
            errors.setdefault(f"{card.lower()}_{name}", []).append(abs(each))
        if before is not None:
            errors.setdefault(f"{card.lower()}_before", []).append(abs(before))
        name = str(record["id"]).removeprefix(f"{card.lower()}-")
        rows.append(
            (name, card, measured_s, found.step_time_s, error, own, _signed(before), allocated)
        )
    columns = (
        *headings("step", "GPU"),
        *headings("measured", "predicted", unit="s", spec="time"),
        *headings("error", "with measured rates", "before it was timed", spec="+.1%"),
        Column(label="allocated memory", spec="+.2%"),
    )
    values = {name: Named(fmean(each)) for name, each in errors.items()}
    values |= {f"{name}_worst": Named(max(each)) for name, each in errors.items()}
    return Table(columns=columns, rows=tuple(rows), values=values | {"steps": Named(len(rows))})


def _signed(error: float | None) -> Scalar:
    return "–" if error is None else error


@figure("step-measured")
def step_measured(*, step: str = "llama1b-amp") -> Bars:
    """One model's step eager and compiled on an H100, measured and predicted, by kind of kernel."""
    records = {str(record["id"]): record for record in measured_steps()}
    labels: list[str] = []
    lengths: dict[str, list[float]] = {name: [] for name in PARTS}
    values: dict[str, Named] = {}
    for way in ("eager", "compile"):
        record = records[f"{step}-{way}"]
        found, seconds = predicted_device(device_run(record)), record["kernel_seconds"]
        measured = {
            name: sum(seconds.get(kind, 0.0) for kind in kinds)
            for name, (_, _, kinds) in PARTS.items()
        }
        measured["rest"] = record["step_time_s"] - sum(measured.values())
        predicted = {name: found.parts_s[name] for name in PARTS if name in found.parts_s}
        predicted["rest"] = found.step_time_s - sum(predicted.values())
        said = "compiled" if way == "compile" else way
        for title, parts in (("measured", measured), ("predicted", predicted)):
            labels.append(f"{said}, {title}")
            for name in PARTS:
                lengths[name].append(parts[name])
            values[f"{said}_{title}"] = Named(sum(parts.values()), "s")
        values["sequence"] = Named(record["seq_length"])
        values[f"{said}_error"] = Named(found.step_time_s / record["step_time_s"] - 1)
        values[f"{said}_memory_share"] = Named(measured["elementwise"] / record["step_time_s"])
        values[f"{said}_allocated"] = Named(record["peak_allocated_bytes"], "B")
        values[f"{said}_allocated_predicted"] = Named(found.memory.allocated_bytes, "B")
    return Bars(
        labels=tuple(labels),
        segments=tuple(
            Segment(name=title, role=role, lengths=tuple(lengths[name]))
            for name, (title, role, _) in PARTS.items()
        ),
        axis=Axis(label="Time of a step", unit="s"),
        values=values,
    )


ADAPTED, WHOLE = "h200-llama8b-bf16-lora", "h200-llama8b-bf16-eager"


@figure("adapters-measured")
def adapters_measured() -> Table:
    """The step of LoRA that was timed on an H200, and the same with all weights trained."""
    records = {str(record["id"]): record for record in (*measured_steps(), *adapter_steps())}
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for title, key, name in (
        ("all parameters", "whole", WHOLE),
        ("LoRA of every matrix, rank 16", "lora", ADAPTED),
    ):
        record = records[name]
        seconds, found = record["kernel_seconds"], predicted_device(device_run(record))
        rows.append(
            (
                title,
                record["step_time_s"],
                found.step_time_s,
                seconds["product"],
                seconds["other"],
                seconds["optimizer"],
                record["peak_allocated_bytes"],
                found.memory.allocated_bytes,
            )
        )
        values |= {
            key: Named(record["step_time_s"], "s"),
            "sequence": Named(record["seq_length"]),
            f"{key}_predicted": Named(found.step_time_s, "s"),
            f"{key}_product": Named(seconds["product"], "s"),
            f"{key}_passes": Named(seconds["other"], "s"),
            f"{key}_allocated": Named(record["peak_allocated_bytes"], "B"),
        }
    return Table(
        columns=(
            Column(label="trained"),
            *headings(
                "step, measured",
                "step, predicted",
                "matmuls",
                "passes over memory",
                "optimizer",
                unit="s",
                spec="time",
            ),
            *headings("allocated, measured", "allocated, predicted", unit="B", spec="bytes"),
        ),
        rows=tuple(rows),
        values=values,
    )
