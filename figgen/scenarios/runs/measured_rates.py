"""Rates that a reader measured, in the place of what the model of time takes from datasheets.

A product, like a message, takes a start and then its size over a rate; both are fitted to all sizes
of a file, each by its relative error, so that short ones count as much as long ones. A text of a
line has them for addresses and the command line: `bf16-701000-2.1_memory-2800_near-360-3.6`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum, isfinite
from pathlib import Path

from figgen.catalog.measured_file import (
    FORMATS,
    PLAIN_KERNELS,
    VERSION,
    MeasuredFile,
    Row,
    read_measured,
)
from figgen.errors import InputError, closest
from figgen.models.step.layer_time import CORE_BACKWARD

GIGA, MICRO = 1e9, 1e-6
_RATE, _LINE = (GIGA,), (GIGA, MICRO)
PARTS: Mapping[str, tuple[float, ...]] = {
    **dict.fromkeys(FORMATS, _LINE), "attention": _RATE, "memory": _RATE, "near": _LINE,
    "far": _LINE, "nearshuffle": _RATE, "farshuffle": _RATE, "capacity": _RATE,
    "contiguous": _RATE, "broadcast": _RATE, "strided": _RATE, "masked": _RATE, "loss": _RATE,
    "fusedloss": _RATE, "adam32": _RATE, "adam16": _RATE,
}  # fmt: skip
"""Parts of a machine with the units of their numbers: a rate (GFLOP/s, GB/s; GB of memory), and of
lines the start of each matmul or step of a ring (µs). Links: inside a node and between nodes, of
a GPU and direction. `memory` is the rate of all plain kernels together; those from `contiguous` on
are of one kind each: passes by access, attention with a mask, the loss eager and compiled
(10⁹ logits/s, forward and backward), and Adam with clipping (10⁹ parameters/s)."""

ACCESSES = {
    "contiguous": ("copy", "add", "gate"),
    "broadcast": ("broadcast", "mixed"),
    "strided": ("strided",),
}
"""Kernels of a file by the access that they stand for."""

LOSSES, OPTIMIZERS = (
    {"loss": "eager", "fusedloss": "compiled"},
    {"adam32": "fp32", "adam16": "bf16"},
)
"""Rows of a file by part: how the loss runs, and in what format Adam's state is."""

NARROW_HEADS = 1 / 3
"""Attention over heads of less than 128 loses this power of their width."""

DIGITS = 6
LONGEST = 600
"""Characters of a text."""

Measured = Mapping[str, tuple[float, ...]]
"""Rates of a machine in SI by `PARTS`."""

Point = tuple[float, float, float]
"""Starts, size and seconds of something measured."""


@dataclass(frozen=True, slots=True)
class MeasuredRates:
    """What was measured of a machine: in SI by `PARTS`, with those left out that were not."""

    known: Measured

    @property
    def text(self) -> str:
        """The same in one line, which `read_rates` reads."""
        return "_".join(
            "-".join(
                [name, *(_plain(n / unit) for n, unit in zip(given, PARTS[name], strict=True))]
            )
            for name, given in self.known.items()
        )

    @property
    def capacity_bytes(self) -> float | None:
        """Memory that the device reports."""
        return self.known["capacity"][0] if "capacity" in self.known else None


def links_of(known: Measured) -> dict[str, float]:
    """The fields of a cluster that were measured."""
    names = {"near": "scale_up", "far": "network"}
    found: dict[str, float] = {}
    for part, link in names.items():
        if part in known:
            rate, start_s = known[part]
            found[f"{link}_bandwidth_bytes_per_s"] = rate
            found[f"{link}_latency_s"] = start_s
    if "memory" in known:
        found["memory_bandwidth_bytes_per_s"] = known["memory"][0]
    return found


def read_rates(text: str) -> MeasuredRates:
    """The rates of a file of measure.py, whose name ends in `.json`, or of their text.

    Raises InputError for what is neither, with what is wrong in it.
    """
    if text.endswith(".json"):
        return read_rates(rates_of(read_measured(_content(text))).text)
    return MeasuredRates(read_line(text))


def read_line(text: str) -> Measured:
    """The rates that a line says, such as `bf16-701000-2.1_memory-2800`.

    Raises InputError for a line that says something else.
    """
    if len(text) > LONGEST:
        raise InputError("measured", expected=f"at most {LONGEST} characters", got=len(text))
    known: dict[str, tuple[float, ...]] = {}
    for part in text.split("_"):
        name, *written = part.split("-")
        if name not in PARTS or name in known:
            raise InputError(
                "measured", expected="FILE.json, or parts such as bf16-700000-2_memory-2800",
                got=part[:40], nearest=closest(name, PARTS),
            )  # fmt: skip
        known[name] = _numbers(name, written)
    return known


def _content(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"measured {path!r}", expected="a file of measure.py", got=str(error)
        ) from (None)


def _numbers(name: str, written: list[str]) -> tuple[float, ...]:
    """A rate above 0, and a start of 0 or more where there is one."""
    units, found = PARTS[name], tuple[float, ...]()
    if len(written) == len(units):
        try:
            found = tuple(float(word) * unit for word, unit in zip(written, units, strict=True))
        except ValueError:
            found = ()
    if not found or not all(map(isfinite, found)) or found[0] <= 0 or min(found) < 0:
        expected = " and ".join(("a rate above 0", "a start from 0 on")[: len(units)])
        raise InputError(f"measured {name}", expected=expected, got="-".join(written)[:40])
    return found


def _plain(value: float) -> str:
    """Six digits without an exponent, whose sign would be read as the next number's."""
    power = int(f"{value:.{DIGITS - 1}e}".partition("e")[2])
    shown = f"{float(f'{value:.{DIGITS}g}'):.{max(0, DIGITS - 1 - power)}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def head_share(width: int) -> float:
    """The rate of attention over heads of a width, as a share of that over heads of 128."""
    return float((min(width, 128) / 128) ** NARROW_HEADS)


def as_measured(
    measured: Measured, shares: Mapping[str, float], *, dtype: str, head_dim: int
) -> dict[str, float]:
    """The fields of `Attained` that measurements replace.

    Matmuls keep the share of a measured rate that software sustains over a step, `shares` by field;
    everything else is measured as it is used.
    """
    found: dict[str, float] = {}
    plain = "bf16" if "bf16" in measured else "fp16"
    for field, name in (
        ("product_flops_per_s", dtype),
        ("expert_flops_per_s", dtype),
        ("plain_flops_per_s", plain),
    ):
        if name in measured:
            found[field] = measured[name][0] * shares[field]
    if dtype in measured:
        found["product_start_s"] = measured[dtype][1]
    if "attention" in measured:
        found["attention_flops_per_s"] = measured["attention"][0] * head_share(head_dim)
    if "memory" in measured:
        found["memory_bytes_per_s"] = measured["memory"][0]
    for part, rate, start in (
        ("near", "scale_up_bytes_per_s", "near_latency_s"),
        ("far", "network_bytes_per_s", "latency_s"),
    ):
        if part in measured:
            found[rate] = measured[part][0]
            found[start] = measured[part][1]
    # All-to-alls that nobody measured are taken for as fast as rings.
    for part, ring, rate in (
        ("nearshuffle", "near", "near_shuffle_bytes_per_s"),
        ("farshuffle", "far", "shuffle_bytes_per_s"),
    ):
        for name in (ring, part):
            if name in measured:
                found[rate] = measured[name][0]
    return found


def rates_of(file: MeasuredFile) -> MeasuredRates:
    """The rates of a file. Raises InputError for one in which nothing was measured."""
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
    """The rates of kernels of one kind each, of a file of the second version."""
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
    """Bytes of some kernels over their seconds."""
    rows = list(kernels)
    return (fsum(row["bytes"] for row in rows) / fsum(row["seconds"] for row in rows),)


def _flops(row: Row) -> float:
    return float(2 * row["m"] * row["n"] * row["k"])


def _attention(rows: Iterable[Row]) -> dict[str, tuple[float, ...]]:
    """Forward and backward as one rate, that of heads of 128; of pairs of the same size."""
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
    """One time around a ring, of which an all-reduce takes two. Where it crosses nodes, the ranks
    of a node lend each other their adapters, and each carries a part of what crosses."""
    passes, ranks = 2 if row["collective"] == "all_reduce" else 1, row["ranks"]
    sharing = ranks / row["nodes"] if row["nodes"] > 1 else 1
    size = (ranks - 1) / ranks * row["message_bytes"] / sharing
    return ranks - 1, size, row["seconds"] / passes


def _shuffle(row: Row) -> Point:
    """What a rank sends to others; between nodes, to other nodes by its own adapter."""
    spread = row["nodes"] if row["nodes"] > 1 else row["ranks"]
    return 1.0, (spread - 1) / spread * row["message_bytes"], row["seconds"]


def _line(
    name: str, points: Iterable[Point], rate_only: bool = False
) -> dict[str, tuple[float, ...]]:
    """The line of some points under a name, or nothing."""
    found = fitted_line(points)
    return {} if found is None else {name: found[:1] if rate_only else found}


def fitted_line(points: Iterable[Point]) -> tuple[float, float] | None:
    """The rate and the start with the least squares of relative errors; no start below 0.

    None without points, and where all is waiting: too short to say what a link carries.
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
