"""Rewrites inputs: a kind of node by its peak and bandwidth, a model by its numbers.

A figure with a preset is therefore compared with a formula that was given the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeAlias

from figgen.agreement.inputs import Inputs, plain
from figgen.catalog import HardwarePreset, accelerator, hardware_preset
from figgen.catalog import model as catalog_model
from figgen.catalog.load import accelerators, models, presets
from figgen.guide.asked import by_layout, by_step
from figgen.models.shape.recipes import RECIPES
from figgen.subject import Expand

Written: TypeAlias = Mapping[str, object]
"""Inputs in the form in which a page writes them."""

LINKS: Mapping[str, Callable[[HardwarePreset], float]] = {
    "hbm": lambda node: node.accelerator.hbm_bandwidth_bytes_per_s,
    "scale_up": lambda node: node.scale_up_bandwidth_bytes_per_s,
    "network": lambda node: node.network_bandwidth_bytes_per_s,
    "node": lambda node: node.node_bandwidth_bytes_per_s,
}


def machine(inputs: Inputs, _: Written, link: str) -> Inputs:
    """Return `preset` and `dtype` as dense peak and bandwidth of one of the node's links."""
    rest = dict(inputs)
    node = _node(str(rest.pop("preset")))
    peak = node.accelerator.peak_flops_per_s(str(rest.pop("dtype", "bf16")))
    return rest | {"peak_flops_per_s": peak, "bandwidth_bytes_per_s": LINKS[link](node)}


def by_accelerator(inputs: Inputs, _: Written, numbers: Mapping[str, str]) -> Inputs:
    """Return accelerator names as one of their numbers: {input: number}."""
    known = tuple(accelerators())
    return inputs | {
        name: getattr(accelerator(_original(str(inputs[name]), known)), number)
        for name, number in numbers.items()
    }


def shape(inputs: Inputs, _: Written, names: tuple[str, ...]) -> Inputs:
    """Return `model` as numbers of its shape."""
    rest = dict(inputs)
    found = catalog_model(_original(str(rest.pop("model")), tuple(models())))
    return rest | {name: getattr(found.shape, name, None) or getattr(found, name) for name in names}


def by_recipe(inputs: Inputs, _: Written, names: tuple[str, ...]) -> Inputs:
    """Return `recipe` as bytes per parameter; a recipe that only a figure knows stays a name."""
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


EXPANSIONS: Mapping[str, Expand] = {
    "step": by_step,
    "layout": by_layout,
    "machine": machine,
    "accelerator": by_accelerator,
    "shape": shape,
    "recipe": by_recipe,
}
"""The keys that rewrite inputs, in the order of their use."""
