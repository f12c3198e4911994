"""NCCL's tuning constants: latencies per step and bandwidth caps of its selection model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from figgen.catalog.hardware import Link
from figgen.entries.read import read_entries
from figgen.entries.schema import Key, Keys, Value, number, quantity
from figgen.errors import EntryPlace, InputError, unknown
from figgen.models.machine.nccl_tuning import TuningConstants

ALGORITHMS = ("ring", "tree", "nvls", "nvls_tree", "collnet_direct", "collnet_chain", "pat")
PROTOCOLS = ("ll", "ll128", "simple")
TRANSPORTS = ("nvlink", "pci", "net")
ARCHITECTURES = ("volta", "ampere", "hopper", "blackwell")
CAPS = ("ll_max", "ring_ll128", "tree_ll128", "tree", "nvls_tree")
SPANS = ("1node", "2nodes", "4nodes")
LINKS = (
    *(f"{part}_nvlink" for part in ("sm60", "sm70", "sm80", "sm86", "sm90", "sm100")),
    "pci_gen3_x16",
    "net_100gb",
)

_LATENCY = quantity("s", "0 s", "100 µs", required=True)
_BANDWIDTH = quantity("B/s", "0 B/s", "500 GB/s", required=True)
_STEPS = {f"{algorithm}_{protocol}": _LATENCY for algorithm in ALGORITHMS for protocol in PROTOCOLS}

TABLES: dict[str, dict[str, Key]] = {
    "latency-base": _STEPS,
    **{f"latency-{transport}": _STEPS for transport in TRANSPORTS},
    "latency-overhead": dict.fromkeys(("intel_x86", "amd_x86", "other"), _LATENCY),
    **{
        f"bandwidth-{architecture}": {
            **{f"{cap}_{span}": _BANDWIDTH for cap in CAPS for span in SPANS},
            "nvls_efficiency": number(0, 1, required=True),
        }
        for architecture in ARCHITECTURES
    },
    "bandwidth-link": dict.fromkeys(LINKS, _BANDWIDTH),
}


@dataclass(frozen=True, slots=True)
class NcclTuning:
    """The constants by purpose; latencies in s, bandwidths in B/s.

    They let NCCL choose well between its algorithms, and are good published defaults for α and for
    the attained share of a link. They are not measurements of hardware.
    """

    tables: tuple[tuple[str, tuple[tuple[str, Value], ...]], ...]

    @property
    def constants(self) -> TuningConstants:
        """The plain numbers for `figgen.models.machine.nccl_tuning`."""
        numbers = {
            name: {key: value.value for key, value in values} for name, values in self.tables
        }
        return TuningConstants(
            base_latency_s=numbers["latency-base"],
            step_latency_s={name: numbers[f"latency-{name}"] for name in TRANSPORTS},
            network_overhead_s=numbers["latency-overhead"],
            bandwidth_caps={name: numbers[f"bandwidth-{name}"] for name in ARCHITECTURES},
        )

    @property
    def scale_up_latency_s(self) -> float:
        """One step of a ring over NVLink, with the Simple protocol."""
        return self._number("latency-nvlink", "ring_simple")

    @property
    def network_latency_s(self) -> float:
        """One step of a ring over the network, with the Simple protocol."""
        return self._number("latency-net", "ring_simple")

    def latency_in_node_s(self, link: Link) -> float:
        """Return one ring step between accelerators of a node: the link's own, or else NCCL's."""
        return self.scale_up_latency_s if link.step_latency is None else link.step_latency.value

    def _number(self, table: str, key: str) -> float:
        return dict(dict(self.tables)[table])[key].value

    def link_bandwidth(self, link: str) -> Value:
        """Return the bandwidth that NCCL assumes for a link, such as "sm90_nvlink" (one of 18)."""
        values = dict(dict(self.tables)["bandwidth-link"])
        if link not in values:
            raise unknown("NCCL link", link, values)
        return values[link]


def read_nccl(content: str, sources: Mapping[str, str]) -> NcclTuning:
    """Return the constants of `nccl.toml`. Raises InputError for any mistake in it."""
    entries = read_entries("nccl.toml", content, _keys, sources)
    missing = [name for name in TABLES if name not in entries]
    if missing:
        raise InputError("nccl.toml: a table is missing", expected=missing[0])
    return NcclTuning(tuple((name, entry.facts) for name, entry in entries.items()))


def _keys(place: EntryPlace, table: Mapping[str, Any]) -> Keys:
    if place.entry not in TABLES:
        raise unknown("table of nccl.toml", place.entry, TABLES)
    return TABLES[place.entry]
