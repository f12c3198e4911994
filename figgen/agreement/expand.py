"""Inputs in other words: a kind of node by its peak and bandwidth, a model by its numbers.

So a figure that was asked for a preset is held against a formula that was given the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Protocol

from figgen.catalog import HardwarePreset, accelerator, hardware_preset
from figgen.catalog import model as catalog_model
from figgen.catalog.load import accelerators, models, presets
from figgen.models.shape.recipes import RECIPES

Inputs = dict[str, object]
SPELLED = {"one_f_one_b": "1f1b"}
"""Names that values' names write otherwise, since none of these begins with a digit."""


def plain(value: object) -> object:
    """A value as it is compared: names as values' names write them, lists as tuples."""
    if isinstance(value, str):
        return SPELLED.get(value) or value.replace("-", "_").replace(".", "_")
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    return value


class Expansions(Protocol):
    """The keys of a way that say in which other words its inputs are to be put."""

    @property
    def machine(self) -> str: ...
    @property
    def accelerator(self) -> Mapping[str, str]: ...
    @property
    def shape(self) -> tuple[str, ...]: ...
    @property
    def recipe(self) -> tuple[str, ...]: ...


def expanded(inputs: Inputs, way: Expansions) -> Inputs:
    """What a way's keys `machine`, `accelerator`, `shape` and `recipe` make of its inputs."""
    if way.machine:
        inputs = machine(inputs, way.machine)
    for name, number in way.accelerator.items():
        known = tuple(accelerators())
        inputs = inputs | {name: getattr(accelerator(_original(str(inputs[name]), known)), number)}
    if way.shape:
        inputs = shape(inputs, way.shape)
    if way.recipe:
        inputs = by_recipe(inputs, way.recipe)
    return inputs


LINKS: Mapping[str, Callable[[HardwarePreset], float]] = {
    "hbm": lambda node: node.accelerator.hbm_bandwidth_bytes_per_s,
    "scale_up": lambda node: node.scale_up_bandwidth_bytes_per_s,
    "network": lambda node: node.network_bandwidth_bytes_per_s,
    "node": lambda node: node.node_bandwidth_bytes_per_s,
}


def machine(inputs: Inputs, link: str) -> Inputs:
    """`preset` and `dtype` as the dense peak and the bandwidth of one of the node's links."""
    rest = dict(inputs)
    node = _node(str(rest.pop("preset")))
    peak = node.accelerator.peak_flops_per_s(str(rest.pop("dtype", "bf16")))
    return rest | {"peak_flops_per_s": peak, "bandwidth_bytes_per_s": LINKS[link](node)}


def shape(inputs: Inputs, names: tuple[str, ...]) -> Inputs:
    """`model` as numbers of its shape."""
    rest = dict(inputs)
    found = catalog_model(_original(str(rest.pop("model")), tuple(models())))
    return rest | {name: getattr(found.shape, name, None) or getattr(found, name) for name in names}


def by_recipe(inputs: Inputs, names: tuple[str, ...]) -> Inputs:
    """`recipe` as its bytes per parameter; one that only a figure knows stays a name."""
    rest = dict(inputs)
    if rest["recipe"] not in RECIPES:
        return rest
    found = RECIPES[str(rest.pop("recipe"))]
    return rest | {name: getattr(found, name) for name in names}


def _node(name: str) -> HardwarePreset:
    names = tuple(presets())
    generations = {plain(other.partition("-")[0]): other for other in reversed(names)}
    return hardware_preset(generations.get(name) or _original(name, names))


@cache
def _original(name: str, names: tuple[str, ...]) -> str:
    return {str(plain(other)): other for other in names}[name]
