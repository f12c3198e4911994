"""The rates of a machine, fitted to what `measure.py` wrote there or read from a one-line text.

A matmul, like a message, takes a start-up time and then its size over a rate. Both are fitted to
all sizes of a file by relative error, so that short ones count as much as long ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum
from pathlib import Path

from figgen.catalog.measured_file import (
    FORMATS,
    PLAIN_KERNELS,
    VERSION,
    MeasuredFile,
    Row,
    read_measured,
)
from figgen.errors import InputError
from figgen.models.step.attained import CORE_BACKWARD
from figgen.scenarios.runs.measured_rates import PARTS, Measured, head_share, read_line

ACCESSES = {
    "contiguous": ("copy", "add", "gate"),
    "broadcast": ("broadcast", "mixed"),
    "strided": ("strided",),
}
"""Kernels of a file by the kind of access that they represent."""

LOSSES, OPTIMIZERS = (
    {"loss": "eager", "fusedloss": "compiled"},
    {"adam32": "fp32", "adam16": "bf16"},
)
"""Rows of a file by part: how the loss runs, and the format of Adam's state."""

DIGITS = 6

Point = tuple[float, float, float]
"""Number of starts, size, and seconds of a measurement."""


@dataclass(frozen=True, slots=True)
class MeasuredRates:
    """Rates measured on a machine, in SI units by `PARTS`.

    Parts that were not measured are missing.
    """

    known: Measured

    @property
    def text(self) -> str:
        """The rates as one line, which `read_rates` reads."""
        return "_".join(
            "-".join(
                [name, *(_plain(n / unit) for n, unit in zip(given, PARTS[name], strict=True))]
            )
            for name, given in self.known.items()
        )

    @property
    def capacity_bytes(self) -> float | None:
        """Memory that the device reports, in bytes, or None."""
        return self.known["capacity"][0] if "capacity" in self.known else None


def read_rates(text: str) -> MeasuredRates:
    """Return the rates of a `.json` file of `measure.py`, or of a one-line text.

    Raises InputError for anything else, naming what is wrong.
    """
    if text.endswith(".json"):
        return read_rates(rates_of(read_measured(_content(text))).text)
    return MeasuredRates(read_line(text))


def _content(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"measured {path!r}", expected="a file of measure.py", got=str(error)
        ) from (None)


def _plain(value: float) -> str:
    """Return six digits without an exponent, whose sign would read as the next number's."""
    power = int(f"{value:.{DIGITS - 1}e}".partition("e")[2])
    shown = f"{float(f'{value:.{DIGITS}g}'):.{max(0, DIGITS - 1 - power)}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def rates_of(file: MeasuredFile) -> MeasuredRates:
    """Return the rates of a file. Raises InputError if nothing was measured in it."""
    tables, known = file.tables, dict[str, tuple[float, ...]]()
    for name in FORMATS:
        rows = [
            row for row in tables["products"] if row["format"] == name and row["side"] == "forward"
        ]
        known |= _line(name, [(1.0, _flops(row), row["seconds"]) for row in rows])
    known |= _attention([row for row in tables["attention"] if row["mask"] == "causal"])
    kernels = [row for row in tables["kernels"] if row["kernel"] in PLAIN_KERNELS]
    if kernels:
        known["memory"] = _moved(kernels)
    links = [row for row in tables["collectives"] if row["ranks"] > 1]
    near, far = ([r for r in links if (r["nodes"] > 1) == across] for across in (False, True))
    known |= _line("near", map(_ring, _rings(near)))
    known |= _line("far", map(_ring, _rings(far)))
    known |= _line("nearshuffle", map(_shuffle, _shuffles(near)), rate_only=True)
    known |= _line("farshuffle", map(_shuffle, _shuffles(far)), rate_only=True)
    if file.memory_bytes:
        known["capacity"] = (file.memory_bytes,)
    known |= _by_kind(file)
    if not known:
        raise InputError("measured file", expected="something measured", got="empty tables")
    return MeasuredRates(known)


def _by_kind(file: MeasuredFile) -> dict[str, tuple[float, ...]]:
    """Return the rates of kernels of one kind each, from a file of the second version."""
    tables, known = file.tables, dict[str, tuple[float, ...]]()
    if file.version < VERSION:
        return known
    for part, names in ACCESSES.items():
        kernels = [row for row in tables["kernels"] if row["kernel"] in names]
        if {row["kernel"] for row in kernels} == set(names):
            known[part] = _moved(kernels)
    masked = _attention([row for row in tables["attention"] if row["mask"] == "explicit"])
    if masked:
        known["masked"] = masked["attention"]
    for part, mode in LOSSES.items():
        if rows := [row for row in tables["loss"] if row["mode"] == mode]:
            logits = fsum(row["tokens"] * row["vocab"] for row in rows)
            known[part] = (logits / fsum(row["seconds"] for row in rows),)
    for part, name in OPTIMIZERS.items():
        if rows := [row for row in tables["optimizer"] if row["format"] == name]:
            updated = fsum(row["parameters"] for row in rows)
            known[part] = (updated / fsum(row["update_s"] + row["clip_s"] for row in rows),)
    return known


def _moved(kernels: Iterable[Row]) -> tuple[float]:
    """Return the bytes of some kernels over their seconds."""
    rows = list(kernels)
    return (fsum(row["bytes"] for row in rows) / fsum(row["seconds"] for row in rows),)


def _flops(row: Row) -> float:
    return float(2 * row["m"] * row["n"] * row["k"])


def _attention(rows: Iterable[Row]) -> dict[str, tuple[float, ...]]:
    """Return forward and backward as one rate over heads of 128, from pairs of equal size."""
    sizes: dict[tuple[int, ...], dict[str, Row]] = {}
    for row in rows:
        size = tuple(int(row[key]) for key in ("batch", "heads", "head_dim", "sequence"))
        sizes.setdefault(size, {})[row["pass"]] = row
    work, seconds = [], []
    for (batch, heads, width, sequence), passes in sizes.items():
        if len(passes) == 2:
            forward = 2.0 * batch * heads * width * sequence**2
            work.append((1 + CORE_BACKWARD) * forward / head_share(width))
            seconds += [row["seconds"] for row in passes.values()]
    return {"attention": (fsum(work) / fsum(seconds),)} if work else {}


def _rings(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["collective"] != "all_to_all"]


def _shuffles(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["collective"] == "all_to_all"]


def _ring(row: Row) -> Point:
    """Return the time of one round of a ring; an all-reduce takes two.

    If the ring spans nodes, the ranks of a node combine their adapters, and each carries a part of
    what crosses.
    """
    passes, ranks = 2 if row["collective"] == "all_reduce" else 1, row["ranks"]
    sharing = ranks / row["nodes"] if row["nodes"] > 1 else 1
    size = (ranks - 1) / ranks * row["message_bytes"] / sharing
    return ranks - 1, size, row["seconds"] / passes


def _shuffle(row: Row) -> Point:
    """Return what a rank sends to others, or between nodes, what its own adapter sends."""
    spread = row["nodes"] if row["nodes"] > 1 else row["ranks"]
    return 1.0, (spread - 1) / spread * row["message_bytes"], row["seconds"]


def _line(
    name: str, points: Iterable[Point], rate_only: bool = False
) -> dict[str, tuple[float, ...]]:
    """Return the fitted line of some points under a name, or nothing."""
    found = fitted_line(points)
    return {} if found is None else {name: found[:1] if rate_only else found}


def fitted_line(points: Iterable[Point]) -> tuple[float, float] | None:
    """Return the rate and the start-up time that minimize squared relative errors.

    The start-up time is never negative. Returns None if there are no points, or if all of them are
    too short for the rate to matter.
    """
    given = [(starts / s, size / s) for starts, size, s in points]
    if not given:
        return None
    aa, ab, bb = (fsum(p[i] * p[j] for p in given) for i, j in ((0, 0), (0, 1), (1, 1)))
    a, b = (fsum(p[i] for p in given) for i in (0, 1))
    start, each, divisor = 0.0, b / bb, aa * bb - ab * ab
    if divisor > 1e-9 * aa * bb and a * bb > b * ab:
        start = (a * bb - b * ab) / divisor
        each = (b * aa - a * ab) / divisor
    return (1 / each, start) if each > 0 else None
