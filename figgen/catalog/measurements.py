"""Measured bandwidths of collectives, with which the cost models are compared."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from figgen.catalog.hardware import Accelerator
from figgen.entries.read import amount, parse_file, read_entry, referred
from figgen.entries.schema import choice, count, quantity, text
from figgen.errors import EntryPlace

FILE = "measurements.toml"
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")

MEASUREMENT_KEYS = {
    "title": text(required=True),
    "collective": choice(*COLLECTIVES, required=True),
    "algorithm": choice("ring", "tree", "nvls"),
    "tuner": choice("ofi"),
    "accelerator": text(),
    "ranks": count(2, 100_000),
    "nodes": count(1, 10_000, required=True),
    "message": quantity("B", "1 kB", "64 GiB"),
    "over": choice("message", "ranks", required=True),
}
_ABSCISSA = {"message": quantity("B", "1 B", "64 GiB"), "ranks": count(2, 100_000)}
_BUSBW = quantity("B/s", "1 MB/s", "2 TB/s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A measured bus bandwidth (nccl-tests' busbw), over message sizes or over ranks.

    `points` are pairs of message bytes (or ranks) and B/s. `algorithm` is empty if NCCL chose it,
    or its plug-in if `tuner` names one. The message is the largest buffer of a rank.
    """

    name: str
    title: str
    collective: str
    algorithm: str
    tuner: str
    accelerator: Accelerator | None
    ranks: int | None
    nodes: int
    message_bytes: float | None
    over: str
    points: tuple[tuple[float, float], ...]
    source: str
    note: str


def read_measurements(
    content: str, sources: Mapping[str, str], accelerators: Mapping[str, Accelerator]
) -> dict[str, Measurement]:
    """Return the measurements of `measurements.toml`. Raises InputError for any mistake in it."""
    found = {}
    for name, table in parse_file(FILE, content).items():
        place = EntryPlace(file=FILE, entry=name, content=content)
        listed = table.pop("points", None)
        entry = read_entry(place, table, MEASUREMENT_KEYS, sources)
        over = entry.words["over"]
        given, fixed = ("ranks", "message") if over == "message" else ("message", "ranks")
        if given not in entry.values or fixed in entry.values:
            raise place.fault(f"over {over}", expected=f"{given} fixed, {fixed} in the points")
        found[name] = entry.fill(
            Measurement,
            accelerator=(
                referred(entry, "accelerator", accelerators, "accelerators.toml")
                if "accelerator" in entry.words
                else None
            ),
            message_bytes=entry.plain("message"),
            points=_points(place.at("points"), listed, over),
        )
    return found


def _points(place: EntryPlace, listed: object, over: str) -> tuple[tuple[float, float], ...]:
    """Return the pairs of a measurement, whose first elements must increase."""
    if not isinstance(listed, list) or not listed:
        raise place.fault("missing", expected="a list of pairs")
    points = []
    for pair in listed:
        if not isinstance(pair, list) or len(pair) != 2:
            raise place.fault("not a pair", expected=f"[{over}, busbw]", got=pair)
        points.append((amount(place, pair[0], _ABSCISSA[over]), amount(place, pair[1], _BUSBW)))
    if any(left >= right for (left, _), (right, _) in itertools.pairwise(points)):
        raise place.fault(f"not in the order of {over}")
    return tuple(points)
