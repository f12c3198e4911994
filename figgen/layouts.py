"""The layouts that the live tools offer by name, as data for a browser."""

from __future__ import annotations

import json
from typing import TypedDict

from figgen import catalog
from figgen.errors import InputError
from figgen.models.layout import layout
from figgen.scenarios.layouts import run_sizes

ORDERS = {
    "llama-3-405b-8k-8192": "llama3",
    "llama-3-405b-8k-16384": "llama3",
    "llama-3-405b-131k": "llama3",
    "llama-3-8b-fsdp": "torchtitan",
}
"""Published rank orders; every other layout is shown in Megatron's default order."""


class NamedLayout(TypedDict):
    """Sizes under the names that the tools' addresses use; etp None is the framework's own."""

    name: str
    title: str
    kind: str
    nodes: int
    gpus: int
    tp: int
    cp: int
    ep: int
    etp: int | None
    pp: int
    order: str
    note: str


def layouts() -> tuple[NamedLayout, ...]:
    """Every map preset and every preset of a published run whose layout fills whole nodes."""
    found = (_named(preset) for preset in catalog.PRESETS.values())
    return tuple(named for named in found if named is not None)


def layouts_json() -> str:
    """`layouts` as the file that the tools load."""
    return json.dumps(layouts(), ensure_ascii=False, separators=(",", ":")) + "\n"


def _named(preset: catalog.Preset) -> NamedLayout | None:
    if isinstance(preset, catalog.HardwarePreset):
        return None
    order = ORDERS.get(preset.name, "megatron")
    etp = None
    if isinstance(preset, catalog.MapPreset):
        axes = ("nodes", "gpus_per_node", "tp", "cp", "pp", "ep")
        sizes = {name: getattr(preset, name) for name in axes}
        etp = preset.etp if preset.etp != preset.tp else None
    else:
        try:
            sizes = run_sizes(preset.run)
        except InputError:
            return None
    found = layout(**sizes, etp=etp, order=order)
    return NamedLayout(
        name=preset.name, title=preset.title, kind=preset.kind,
        nodes=found.nodes, gpus=found.gpus_per_node,
        tp=found.tp, cp=found.cp, ep=found.ep, etp=etp, pp=found.pp,
        order=order, note=preset.note,
    )  # fmt: skip
