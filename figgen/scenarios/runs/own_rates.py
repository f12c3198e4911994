"""Rates of a reader's machine, from what `measure.py` wrote, next to the datasheet of its chip."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from figgen.catalog.hardware import Accelerator
from figgen.catalog.machines import machines
from figgen.catalog.measured_file import MASKS, PASSES, MeasuredFile, Row
from figgen.models.operations.layer_work import layer_work
from figgen.models.operations.tuned_layer import dense_operations
from figgen.models.shape.model_shape import ModelShape
from figgen.models.step.attained import CORE_BACKWARD
from figgen.scenarios.runs.machine_answer import ChipSheet
from figgen.scenarios.runs.machine_rates import MeasuredRates
from figgen.scenarios.runs.measured_rates import head_share, read_line
from figgen.scenarios.runs.names import named_chip

LONG_MESSAGE = 2**24
"""Messages of at least this size measure the bandwidth of a link; shorter ones its latency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """One measured rate, in FLOP/s or B/s, with the datasheet's if there is one."""

    name: str
    value: float
    unit: str
    peak: float | None

    @property
    def share(self) -> float | None:
        """Share of the peak, or None."""
        return self.value / self.peak if self.peak else None


def chip_of(file: MeasuredFile) -> str | None:
    """Return the catalog's name of a file's device, or None if it is not in the catalog."""
    return named_chip(file.device) if file.kind == "cuda" else None


def sheet_of(chip: Accelerator) -> ChipSheet:
    """Return the datasheet of a chip, with the rates of a measured machine of this kind."""
    measured = [row.measured for row in machines().values() if row.accelerator == chip.name]
    return ChipSheet(
        title=chip.title,
        flops=dict(chip.peaks),
        memory_bytes_per_s=chip.hbm_bandwidth_bytes_per_s,
        near_bytes_per_s=chip.scale_up_bandwidth_bytes_per_s,
        other=read_line(measured[0]) if measured else {},
    )


def matmul_rate(row: Row) -> float:
    """Return the FLOP/s of a matmul."""
    return float(2 * row["m"] * row["n"] * row["k"] / row["seconds"])


def attention_rate(row: Row) -> float:
    """Return the FLOP/s of the causal core: half of scores and values, and 2.5 times that back."""
    forward = 2.0 * row["batch"] * row["heads"] * row["head_dim"] * row["sequence"] ** 2
    return float(forward * (1.0 if row["pass"] == "forward" else 2.5) / row["seconds"])


def grouped_rate(row: Row) -> float:
    """Return the FLOP/s of the matmuls of all experts together."""
    return float(2 * row["tokens"] * row["n"] * row["k"] / row["seconds"])


def layer_rate(row: Row) -> float:
    """Return the FLOP/s of a layer, forward and backward: three times its forward FLOPs."""
    weights = 4 * row["hidden"] ** 2 + 3 * row["hidden"] * row["ffn"]
    tokens = row["batch"] * row["sequence"]
    core = 2.0 * row["batch"] * row["hidden"] * row["sequence"] ** 2
    return float(3 * (2.0 * weights * tokens + core) / row["both_s"])


def layer_parts_s(row: Row, taken: MeasuredRates) -> float | None:
    """Return the seconds that a layer's matmuls, core and kernels take at its machine's rates.

    Forward and backward are counted. Returns None if one of the rates was not measured. A measured
    layer takes longer because of launches and unfused kernels.
    """
    if not {row["format"], "attention", "memory"} <= taken.known.keys():
        return None
    hidden, heads, tokens = row["hidden"], row["heads"], row["batch"] * row["sequence"]
    shape = ModelShape(
        layers=1,
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        ffn_hidden=row["ffn"],
        vocab=1,
        sequence=row["sequence"],
    )
    work = layer_work(dense_operations(shape, tokens, 1))
    rate, start_s = taken.known[row["format"]]
    matmuls_s = sum(
        phase.matmul_flops / rate + phase.matmuls * start_s
        for phase in (work.forward, work.backward, work.weight)
    )
    moved = work.forward.pass_bytes + work.backward.pass_bytes
    core = 2 * tokens * row["sequence"] * hidden
    core /= taken.known["attention"][0] * head_share(hidden // heads)
    return float(matmuls_s + moved / taken.known["memory"][0] + (1 + CORE_BACKWARD) * core)


def link_rate(row: Row) -> float:
    """Return the bus bandwidth of a collective, as nccl-tests defines it."""
    share = (row["ranks"] - 1) / row["ranks"]
    passes = 2 if row["collective"] == "all_reduce" else 1
    return float(passes * share * row["message_bytes"] / row["seconds"])


def rates(file: MeasuredFile, chip: Accelerator | None) -> list[Rate]:
    """Return the best rate of every kind in a file, next to the peaks of `chip`."""
    tables = file.tables
    found = []
    for name in dict.fromkeys(row["format"] for row in tables["products"]):
        rows = [matmul_rate(row) for row in tables["products"] if row["format"] == name]
        found.append(
            Rate(
                name=f"matmuls in {name.upper()}",
                value=max(rows),
                unit="FLOP/s",
                peak=_peak(chip, name),
            )
        )
    for way in ("grouped", "loop"):
        rows = [grouped_rate(row) for row in tables["grouped"] if row["way"] == way]
        found += _best(f"matmuls of experts, {way}", rows, "FLOP/s", _peak(chip, "bf16"))
    for mask in MASKS:
        for way in PASSES:
            rows = [
                attention_rate(row)
                for row in tables["attention"]
                if row["pass"] == way and row["mask"] == mask
            ]
            name = f"attention {way}" + (", explicit mask" if mask == "explicit" else "")
            found += _best(name, rows, "FLOP/s", _peak(chip, "bf16"))
    for row in tables["kernels"]:
        peak = chip.hbm_bandwidth_bytes_per_s if chip else None
        found.append(
            Rate(
                name=f"memory, {row['kernel']}",
                value=row["bytes"] / row["seconds"],
                unit="B/s",
                peak=peak,
            )
        )
    layers = [layer_rate(row) for row in tables["layers"]]
    found += _best("a layer, forward and backward", layers, "FLOP/s", _peak(chip, "bf16"))
    for name in dict.fromkeys(row["collective"] for row in tables["collectives"]):
        links = _long(row for row in tables["collectives"] if row["collective"] == name)
        peak = chip.scale_up_bandwidth_bytes_per_s if chip and file.nodes == 1 else None
        found += _best(f"{name.replace('_', '-')} over {file.ranks} ranks", links, "B/s", peak)
    return found


def _long(rows: Iterable[Row]) -> list[float]:
    """Return the bandwidths of long messages, or of the longest if none is long."""
    listed = [row for row in rows if row["ranks"] > 1]
    longest = max((row["message_bytes"] for row in listed), default=0)
    least = min(LONG_MESSAGE, longest)
    return [link_rate(row) for row in listed if row["message_bytes"] >= least]


def _best(name: str, values: list[float], unit: str, peak: float | None) -> list[Rate]:
    return [Rate(name=name, value=max(values), unit=unit, peak=peak)] if values else []


def _peak(chip: Accelerator | None, name: str) -> float | None:
    found = getattr(chip, name, None) if chip else None
    return float(found.value) if found else None
