"""How often published training jobs and clusters were interrupted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from figgen.catalog import load
from figgen.entries.read import read_entries
from figgen.entries.schema import count, number, quantity, text
from figgen.errors import InputError, unknown
from figgen.lookups import stored
from figgen.models.planner.saving import DAY_S

FILE = "interruptions.toml"

KEYS = {
    "title": text(required=True),
    "gpus": count(1, 10_000_000),
    "observed": quantity("s", "1 day", "3650 days"),
    "failures": count(1, 1_000_000),
    "per_thousand_node_days": number(0.01, 1000),
    "gpus_per_node": count(1, 144),
}
COUNTED = ("gpus", "observed", "failures")
RATED = ("per_thousand_node_days", "gpus_per_node")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruptions:
    """Failures that stopped a job or would have; `gpu_mtbf_s` is their mean time per GPU in s.

    `gpus` and `failures` are 0 if the source only prints a rate.
    """

    name: str
    title: str
    gpus: int
    failures: int
    gpu_mtbf_s: float
    source: str
    note: str


@cache
def interruptions() -> dict[str, Interruptions]:
    """Return all entries by name."""
    return read_interruptions(load.content(FILE), load.sources())


@stored(lambda: interruptions())
def interruption(name: str) -> Interruptions:
    """Return the entry `name`. Raises InputError, with the nearest names, if it is unknown."""
    if name not in interruptions():
        raise unknown("interruptions", name, interruptions())
    return interruptions()[name]


def read_interruptions(content: str, sources: Mapping[str, str]) -> dict[str, Interruptions]:
    """Return the entries of `interruptions.toml`. Raises InputError for any mistake in it."""
    found = {}
    for name, entry in read_entries(FILE, content, KEYS, sources).items():
        values = {key: value.value for key, value in entry.values.items()}
        if values.keys() == set(COUNTED):
            mtbf_s = values["gpus"] * values["observed"] / values["failures"]
        elif values.keys() == set(RATED):
            mtbf_s = values["gpus_per_node"] * DAY_S * 1000 / values["per_thousand_node_days"]
        else:
            raise InputError(
                f"{FILE}: [{name}]",
                expected=f"{', '.join(COUNTED)}, or {' and '.join(RATED)}",
                got=", ".join(values),
            )
        found[name] = Interruptions(
            name=name,
            title=entry.words["title"],
            gpus=int(values.get("gpus", 0)),
            failures=int(values.get("failures", 0)),
            gpu_mtbf_s=float(mtbf_s),
            source=entry.source,
            note=entry.note,
        )
    return found
