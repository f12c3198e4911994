"""Reads the catalog that pages receive from `configurations` back as inputs of the models.

An item is requested by a name of the catalog, or as a mapping of a reader's own numbers in SI
units, which is called "own".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from figgen.errors import unknown
from figgen.json_text import record_of
from figgen.models.machine.hardware import Chip, Network
from figgen.models.step.attained import Attained
from figgen.scenarios.runs.rate_row import RateRow

OWN = "own"

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedCatalog:
    """The parts of `configurations` that a job needs, under the same names."""

    models: Mapping[str, Entry]
    accelerators: Mapping[str, Entry]
    links: Mapping[str, Entry]
    latencies: Mapping[str, float]
    attained: Entry
    software: Mapping[str, str]
    residuals: Mapping[str, tuple[float, float]]
    options: tuple[Entry, ...]


def served(data: Mapping[str, Any]) -> ServedCatalog:
    """Return the catalog from the plain data that pages receive."""
    return record_of(ServedCatalog, data)


def usual_options(catalog: ServedCatalog) -> dict[str, Any]:
    """Return the default of every option; None means that it follows from other options."""
    found: dict[str, Any] = {}
    for option in catalog.options:
        found[option["name"]] = option.get("default")
    return found


Known = TypeVar("Known")


def named(kind: str, wanted: Any, known: Mapping[str, Known]) -> tuple[str, Known]:
    """Return the name and the entry of an item. Raises InputError for an unknown name."""
    if isinstance(wanted, dict):
        own: Any = wanted
        return OWN, own
    if wanted not in known:
        raise unknown(kind, str(wanted), known)
    return str(wanted), known[wanted]


def served_chip(catalog: ServedCatalog, wanted: Any, dtype: str) -> Chip:
    """Return an accelerator; a reader's own chip only has a peak in `dtype`."""
    name, entry = named("accelerator", wanted, catalog.accelerators)
    usual_s: float = catalog.latencies["scale_up_s"]
    peaks: Mapping[str, float] = (
        entry["peaks"] if name != OWN else {dtype: entry["peak_flops_per_s"]}
    )
    return Chip(
        name=name,
        peaks=peaks,
        memory_bytes=entry.get("memory_bytes"),
        memory_bandwidth_bytes_per_s=entry.get("memory_bandwidth_bytes_per_s"),
        scale_up_bandwidth_bytes_per_s=entry["scale_up_bandwidth_bytes_per_s"],
        scale_up_latency_s=entry.get("scale_up_latency_s", usual_s),
        scale_up_domain=entry.get("scale_up_domain"),
        host_gpus=entry.get("host_gpus", 0),
    )


def served_network(catalog: ServedCatalog, wanted: Any) -> Network:
    """Return a network; a reader's own network has its bandwidth per GPU."""
    name, entry = named("link", wanted, catalog.links)
    return Network(
        name=name,
        bandwidth_bytes_per_s=entry["bandwidth_bytes_per_s"],
        per=entry.get("per", "GPU"),
        latency_s=catalog.latencies["network_s"],
    )


def served_row(catalog: ServedCatalog, software: str, chip: Chip, dtype: str) -> RateRow:
    """Return the rates that software attains on a chip, from the columns of `attained_rows`.

    For a reader's own chip, the rates are shares of its numbers. Raises InputError for a format in
    which the software cannot multiply there.
    """
    table, own = catalog.attained, chip.name == OWN
    place = _own_place(catalog, dtype) if own else _rows(catalog).index(f"{chip.name} {dtype}")
    values = _row_of(table["columns"], place)
    if software != table["usual"]:
        others: Mapping[str, Any] = table["others"]
        alike: Any = others[software]
        beside: Mapping[str, Any] = others[alike] if isinstance(alike, str) else alike
        kinds: list[int | None] = beside["rows"]
        columns: Entry = beside["columns"]
        kind = kinds[place]
        if kind is None:
            chip.peak_flops_per_s("fp8")
        else:
            values |= _row_of(columns, kind)
    peak = 1.0 if own else chip.peak_flops_per_s(values["dtype"])
    return record_of(
        RateRow,
        {**values, "rates": record_of(Attained, values), "peak_flops_per_s": peak},
    )


def _row_of(columns: Entry, place: int) -> dict[str, Any]:
    """Return the fields of a row; a column with a single value applies to every row."""
    found: dict[str, Any] = {}
    for name, column in columns.items():
        value: Any = column[place] if isinstance(column, list) else column
        if value is not None:
            found[name] = value
    return found


def _rows(catalog: ServedCatalog) -> list[str]:
    """Return chip and format of every row, without those of a reader's own chip."""
    found = list[str]()
    for name, entry in catalog.accelerators.items():
        peaks: Mapping[str, float] = entry["peaks"]
        found += [f"{name} {dtype}" for dtype in peaks]
    return found


def _own_place(catalog: ServedCatalog, dtype: str) -> int:
    formats: list[str] = catalog.attained["own"]
    return len(_rows(catalog)) + formats.index(dtype)
