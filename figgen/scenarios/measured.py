"""Rates of a reader's machine from what `measure.py` wrote, and as the modeler's own numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from figgen.catalog.hardware import Accelerator
from figgen.catalog.measured_file import MeasuredFile, Row
from figgen.errors import InputError
from figgen.scenarios.runs.names import CHIPS, first_match

LONG_MESSAGE = 2**24
"""Messages from this size on say what a link carries; shorter ones what it waits."""


@dataclass(frozen=True, slots=True)
class Rate:
    """One measured rate, in FLOP/s or B/s, with the datasheet's where there is one."""

    name: str
    value: float
    unit: str
    peak: float | None

    @property
    def share(self) -> float | None:
        """Of the peak."""
        return self.value / self.peak if self.peak else None


@dataclass(frozen=True, slots=True)
class OwnHardware:
    """A machine as the modeler takes it.

    `peak` is the dense peak to which `compute_efficiency` belongs: the datasheet's, or the best
    product. Bandwidths are of a GPU and direction; None where nothing was measured.
    """

    peak_flops_per_s: float
    compute_efficiency: float
    memory_bytes: float | None
    scale_up_bytes_per_s: float | None
    network_bytes_per_s: float | None


def chip_of(file: MeasuredFile) -> str | None:
    """The catalog's name of the device of a file, if it is one of its chips."""
    known = file.kind == "cuda" and "pcie" not in file.device.lower()
    return first_match(CHIPS, file.device) if known else None


def product_rate(row: Row) -> float:
    """FLOP/s of a product."""
    return float(2 * row["m"] * row["n"] * row["k"] / row["seconds"])


def attention_rate(row: Row) -> float:
    """FLOP/s of the causal core: the mask's half of scores and values, 2.5 times as much back."""
    forward = 2.0 * row["batch"] * row["heads"] * row["head_dim"] * row["sequence"] ** 2
    return float(forward * (1.0 if row["pass"] == "forward" else 2.5) / row["seconds"])


def layer_rate(row: Row) -> float:
    """FLOP/s of a layer, forward and backward: three times its forward."""
    weights = 4 * row["hidden"] ** 2 + 3 * row["hidden"] * row["ffn"]
    tokens = row["batch"] * row["sequence"]
    core = 2.0 * row["batch"] * row["hidden"] * row["sequence"] ** 2
    return float(3 * (2.0 * weights * tokens + core) / row["both_s"])


def link_rate(row: Row) -> float:
    """Bus bandwidth of a collective: what nccl-tests says of its links."""
    share = (row["ranks"] - 1) / row["ranks"]
    passes = 2 if row["collective"] == "all_reduce" else 1
    return float(passes * share * row["message_bytes"] / row["seconds"])


def rates(file: MeasuredFile, chip: Accelerator | None) -> list[Rate]:
    """The best rate of every kind in a file, beside the peaks of `chip`."""
    tables = file.tables
    found = []
    for name in dict.fromkeys(row["format"] for row in tables["products"]):
        rows = [product_rate(row) for row in tables["products"] if row["format"] == name]
        found.append(Rate(f"products in {name.upper()}", max(rows), "FLOP/s", _peak(chip, name)))
    for way in ("forward", "backward"):
        rows = [attention_rate(row) for row in tables["attention"] if row["pass"] == way]
        found += _best(f"attention {way}", rows, "FLOP/s", _peak(chip, "bf16"))
    for row in tables["kernels"]:
        peak = chip.hbm_bandwidth_bytes_per_s if chip else None
        found.append(Rate(f"memory, {row['kernel']}", row["bytes"] / row["seconds"], "B/s", peak))
    layers = [layer_rate(row) for row in tables["layers"]]
    found += _best("a layer, forward and backward", layers, "FLOP/s", _peak(chip, "bf16"))
    for name in dict.fromkeys(row["collective"] for row in tables["collectives"]):
        links = _long(row for row in tables["collectives"] if row["collective"] == name)
        peak = chip.scale_up_bandwidth_bytes_per_s if chip and file.nodes == 1 else None
        found += _best(f"{name.replace('_', '-')} over {file.ranks} ranks", links, "B/s", peak)
    return found


def own_hardware(file: MeasuredFile, chip: Accelerator | None) -> OwnHardware:
    """The machine as the modeler's own numbers.

    The efficiency is that of the layer, which holds everything that a layer does; of the best
    product where no layer was measured. Raises InputError for a file without products.
    """
    products = [row for row in file.tables["products"] if row["format"] == "bf16"]
    if not products:
        raise InputError("measured file: products", expected="some in bf16", got="none")
    best = max(map(product_rate, products))
    peak = _peak(chip, "bf16") or best
    reached = max(map(layer_rate, file.tables["layers"]), default=best)
    links = _long(r for r in file.tables["collectives"] if r["collective"] == "all_reduce")
    link = max(links, default=None)
    return OwnHardware(
        peak_flops_per_s=peak,
        compute_efficiency=min(1.0, reached / peak),
        memory_bytes=file.memory_bytes or None,
        scale_up_bytes_per_s=link if file.nodes == 1 else None,
        network_bytes_per_s=link if file.nodes > 1 else None,
    )


def _long(rows: Iterable[Row]) -> list[float]:
    """Bandwidths of long messages; of the longest where none is long."""
    listed = [row for row in rows if row["ranks"] > 1]
    longest = max((row["message_bytes"] for row in listed), default=0)
    least = min(LONG_MESSAGE, longest)
    return [link_rate(row) for row in listed if row["message_bytes"] >= least]


def _best(name: str, values: list[float], unit: str, peak: float | None) -> list[Rate]:
    return [Rate(name, max(values), unit, peak)] if values else []


def _peak(chip: Accelerator | None, name: str) -> float | None:
    found = getattr(chip, name, None) if chip else None
    return float(found.value) if found else None
