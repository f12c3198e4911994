"""Named configurations: rank maps, hardware pairings, and the layouts of published runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

from figgen.catalog.hardware import Accelerator, Link
from figgen.catalog.nccl import NcclTuning
from figgen.catalog.runs import Run
from figgen.entries.entry import CatalogEntry
from figgen.entries.read import parse_file, read_entry, referred
from figgen.entries.schema import Key, Keys, choice, count, text
from figgen.errors import EntryPlace

FILE = "presets.toml"
PRESET_KINDS = ("map", "hardware", "training")

_COMMON: dict[str, Key] = {
    "kind": choice(*PRESET_KINDS, required=True),
    "title": text(required=True),
}
_SIZE, _ONE = count(1, 4096, required=True), count(1, 4096)

PRESET_KEYS: dict[str, dict[str, Key]] = {
    "map": {
        **_COMMON,
        "nodes": _SIZE,
        "gpus_per_node": count(1, 72, required=True),
        "tp": _SIZE,
        "cp": _ONE,
        "pp": _SIZE,
        "dp": _SIZE,
        "ep": _ONE,
        "etp": _ONE,
        "edp": _ONE,
    },
    "hardware": {
        **_COMMON,
        "accelerator": text(required=True),
        "nic": text(required=True),
        "gpus_per_node": count(1, 72, required=True),
        "nics_per_node": count(1, 72, required=True),
    },
    "training": {**_COMMON, "run": text(required=True)},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPreset:
    """A cluster and its two rank grids: tp·cp·dp·pp and etp·ep·edp·pp over the same ranks."""

    name: str
    title: str
    nodes: int
    gpus_per_node: int
    tp: int
    cp: int
    pp: int
    dp: int
    ep: int
    etp: int
    edp: int
    source: str
    note: str
    kind: str = "map"

    @property
    def world(self) -> int:
        """Total number of ranks."""
        return self.nodes * self.gpus_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwarePreset:
    """An accelerator, the link inside its node, and the adapters of the node.

    Latencies are those of one step of a ring in s: NCCL's constants for the Simple protocol, unless
    the link has its own.
    """

    name: str
    title: str
    accelerator: Accelerator
    scale_up: Link
    nic: Link
    gpus_per_node: int
    nics_per_node: int
    scale_up_latency_s: float
    network_latency_s: float
    source: str
    note: str
    kind: str = "hardware"

    @property
    def gpu(self) -> str:
        """The accelerator's short title, `H100`."""
        return self.accelerator.short_title

    @property
    def scale_up_bandwidth_bytes_per_s(self) -> float:
        """Bandwidth into the node's own fabric, per GPU, one direction, B/s."""
        return self.accelerator.scale_up_bandwidth_bytes_per_s

    @property
    def node_bandwidth_bytes_per_s(self) -> float:
        """Bandwidth out of a node, all adapters, one direction, B/s."""
        return self.nics_per_node * self.nic.bandwidth.value

    @property
    def network_bandwidth_bytes_per_s(self) -> float:
        """Bandwidth out of a node, per GPU, one direction, B/s."""
        return self.node_bandwidth_bytes_per_s / self.gpus_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPreset:
    """A published run under a short name; all its data is in the run."""

    name: str
    title: str
    run: Run
    source: str
    note: str
    kind: str = "training"


Preset: TypeAlias = MapPreset | HardwarePreset | TrainingPreset


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    accelerators: Mapping[str, Accelerator]
    links: Mapping[str, Link]
    runs: Mapping[str, Run]
    nccl: NcclTuning


def read_presets(
    content: str,
    sources: Mapping[str, str],
    *,
    accelerators: Mapping[str, Accelerator],
    links: Mapping[str, Link],
    runs: Mapping[str, Run],
    nccl: NcclTuning,
) -> dict[str, Preset]:
    """Return the presets of `presets.toml`.

    Raises InputError for any mistake in it, including sizes that do not multiply out.
    """
    known = _Known(accelerators=accelerators, links=links, runs=runs, nccl=nccl)
    presets: dict[str, Preset] = {}
    for name, table in parse_file(FILE, content).items():
        place = EntryPlace(file=FILE, entry=name, content=content)
        keys = _keys(place, table)
        cited = table["kind"] != "training"
        presets[name] = _preset(read_entry(place, table, keys, sources, cited=cited), known)
    return presets


def _keys(place: EntryPlace, table: Mapping[str, Any]) -> Keys:
    kind = table.get("kind")
    if kind not in PRESET_KEYS:
        raise place.at("kind").fault(
            "missing or unknown", expected=" or ".join(PRESET_KINDS), got=kind
        )
    return PRESET_KEYS[kind]


def _preset(entry: CatalogEntry, known: _Known) -> Preset:
    if entry.words["kind"] == "map":
        return _map(entry)
    if entry.words["kind"] == "hardware":
        return _hardware(entry, known)
    run = referred(entry, "run", known.runs, "the runs")
    return entry.fill(TrainingPreset, run=run, source=run.source)


def _map(entry: CatalogEntry) -> MapPreset:
    size = {axis: entry.whole(axis, 1) for axis in ("tp", "cp", "pp", "dp", "ep")}
    nodes, gpus_per_node = entry.whole("nodes"), entry.whole("gpus_per_node")
    world = nodes * gpus_per_node
    etp = entry.whole("etp", size["tp"])
    edp = entry.whole("edp", max(1, world // (etp * size["ep"] * size["pp"])))
    dense = [size["tp"], size["cp"], size["dp"], size["pp"]]
    expert = [etp, size["ep"], edp, size["pp"]]
    for grid, sizes in (("tp·cp·dp·pp", dense), ("etp·ep·edp·pp", expert)):
        if prod(sizes) != world:
            raise entry.place.fault(
                f"{grid} does not multiply out to the cluster",
                expected=f"{world} = {nodes} nodes of {gpus_per_node}",
                got=" · ".join(map(str, sizes)) + f" = {prod(sizes)}",
            )
    return entry.fill(MapPreset, **size, etp=etp, edp=edp)


def _hardware(entry: CatalogEntry, known: _Known) -> HardwarePreset:
    accelerator = referred(entry, "accelerator", known.accelerators, "accelerators.toml")
    gpus_per_node = entry.whole("gpus_per_node")
    if gpus_per_node > accelerator.scale_up_domain:
        raise entry.place.at("gpus_per_node").fault(
            "more than one scale-up domain",
            expected=f"at most {accelerator.scale_up_domain}",
            got=gpus_per_node,
        )
    return entry.fill(
        HardwarePreset,
        accelerator=accelerator,
        scale_up=accelerator.scale_up,
        nic=referred(entry, "nic", known.links, "links.toml"),
        scale_up_latency_s=known.nccl.latency_in_node_s(accelerator.scale_up),
        network_latency_s=known.nccl.network_latency_s,
    )
