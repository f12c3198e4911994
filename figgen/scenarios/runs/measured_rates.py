"""Rates that a reader measured, which replace the datasheet rates of the time model.

Addresses and the command line write them in one line: `bf16-701000-2.1_memory-2800_near-360-3.6`.
`figgen.scenarios.runs.machine_rates` fits them to the file of a machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from figgen.catalog.measured_file import FORMATS
from figgen.errors import InputError, closest

GIGA, MICRO = 1e9, 1e-6
_RATE, _LINE = (GIGA,), (GIGA, MICRO)
PARTS: Mapping[str, tuple[float, ...]] = {
    **dict.fromkeys(FORMATS, _LINE), "attention": _RATE, "memory": _RATE, "near": _LINE,
    "far": _LINE, "nearshuffle": _RATE, "farshuffle": _RATE, "capacity": _RATE,
    "contiguous": _RATE, "broadcast": _RATE, "strided": _RATE, "masked": _RATE, "loss": _RATE,
    "fusedloss": _RATE, "adam32": _RATE, "adam16": _RATE,
}  # fmt: skip
"""Parts of a machine with the units of their numbers: a rate (GFLOP/s, GB/s; GB of memory) and, for
fitted lines, the start-up time of a matmul or of a ring's step (µs). Links are those inside a node
and between nodes, per GPU per direction. `memory` is the rate of all plain kernels together. Those
from `contiguous` on are of one kind each: passes by access, attention with a mask, the loss eager
and compiled (10⁹ logits/s, forward and backward), and Adam with clipping (10⁹ parameters/s)."""

NARROW_HEADS = 1 / 3
"""The rate of attention over heads narrower than 128 scales with this power of their width."""

LONGEST = 600
"""Most characters of a text."""

Measured = Mapping[str, tuple[float, ...]]
"""Rates of a machine in SI units, by `PARTS`."""


def links_of(known: Measured) -> dict[str, float]:
    """Return the fields of a cluster that were measured."""
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


def read_line(text: str) -> Measured:
    """Return the rates in a line such as `bf16-701000-2.1_memory-2800`.

    Raises InputError for any other text.
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


def _numbers(name: str, written: list[str]) -> tuple[float, ...]:
    """Return a positive rate and, if there is one, a non-negative start-up time."""
    units, found = PARTS[name], tuple[float, ...]()
    if len(written) == len(units):
        try:
            found = tuple(float(word) * unit for word, unit in zip(written, units, strict=True))
        except ValueError:
            found = ()
    if not found or not all(map(isfinite, found)) or found[0] <= 0 or min(found) < 0:
        expected = " and ".join(("a positive rate", "a non-negative start")[: len(units)])
        raise InputError(f"measured {name}", expected=expected, got="-".join(written)[:40])
    return found


def head_share(width: int) -> float:
    """Return the rate of attention over heads of a width, relative to heads of 128."""
    return float((min(width, 128) / 128) ** NARROW_HEADS)
