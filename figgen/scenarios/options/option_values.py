"""The possible values of a training job's options, and their defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace

from figgen import catalog
from figgen.catalog.hardware import DTYPES
from figgen.models.machine.layout import layout
from figgen.models.pipeline.schedules import SCHEDULES
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.recipes import RECIPES
from figgen.scenarios.options.option import Option, Value

SMALL = "layernorm,moe_act"
"""Recomputation in experts that repeats no matmul."""

_WORDS: Mapping[str, Mapping[str, str]] = {
    "schedule": {
        "naive": "one microbatch at a time",
        "gpipe": "GPipe",
        "looped-bfs": "looped breadth-first",
        "1f1b": "1F1B",
        "interleaved-1f1b": "interleaved 1F1B",
        "zb1p": "ZB1P",
        "zb2p": "ZB2P",
        "zbv": "ZB-V",
        "v-half": "V-Half",
        "v-min": "V-Min",
        "dualpipe": "DualPipe",
        "dualpipev": "DualPipeV",
    },
    "zero_stage": {
        "0": "0: nothing sharded",
        "1": "1: optimizer state sharded",
        "2": "2: gradients too",
        "3": "3: weights too (FSDP)",
    },
    "recompute": {
        "none": "none",
        "selective": "selective: attention core",
        SMALL: "outputs of norms and of experts",
        f"{SMALL},mla_up_proj": "outputs of norms, of experts and of latent projections",
        "mlp,moe": "feed-forward blocks",
        "full": "full: every layer",
    },
    "context_exchange": {
        "p2p": "ring (point-to-point)",
        "all-gather": "all-gather of keys and values",
        "all-to-all": "all-to-all, tokens for heads (Ulysses)",
        "a2a+p2p": "all-to-all in a node, ring between nodes (USP)",
    },
    "dispatcher": {
        "usual": "the default of the software's release",
        "all-to-all": "all-to-all: every copy of a token",
        "deepep": "DeepEP: once to each rank and node",
        "hybridep": "HybridEP: once, sorted as it arrives",
    },
    "expert_overlap": {
        "usual": "the default of the software's release",
        "off": "none: ranks wait for their tokens",
        "on": "behind another microbatch's computation",
    },
    "cuda_graphs": {
        "usual": "the defaults of the software's release",
        "none": "none",
        "layers": "of attention and router",
        "step": "of the whole step",
    },
    "dtype": {name: name.upper() for name in DTYPES},
}

_USUAL: dict[str, Value] = {
    **{f.name: f.default for f in fields(TrainingSetup) if f.default is not MISSING},
    **{
        name: parameter.default
        for name, parameter in inspect.signature(layout).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    },
    "recipe": "mcore18",
}


def schedules() -> Mapping[str, str]:
    """Return the schedules with their titles, or with their own name where they have none."""
    return {name: _WORDS["schedule"].get(name, name) for name in SCHEDULES}


def titles(of: Callable[[], Mapping[str, object]]) -> Callable[[], Mapping[str, str]]:
    """Return a function that returns the names of entries with their titles."""
    return lambda: {name: str(getattr(entry, "title")) for name, entry in of().items()}  # noqa: B009


def recipe_titles() -> Mapping[str, str]:
    """Return the recipes with their bytes per parameter."""
    return {
        name: f"{name}: {r.weight_bytes:g} + {r.gradient_bytes:g} + {r.optimizer_bytes:.3g} B per "
        "parameter"
        for name, r in RECIPES.items()
    }


def networks() -> Mapping[str, catalog.Link]:
    """Return the links between nodes with their titles."""
    return {name: link for name, link in catalog.LINKS.items() if link.kind == "scale-out"}


def with_usual(option: Option) -> Option:
    """Return an option with what it leaves out: the models' own default, and titled choices."""
    found = option
    if option.default is None and option.name in _USUAL:
        found = replace(found, default=_USUAL[option.name])
    if option.choices is None and option.name in _WORDS:
        found = replace(found, choices=lambda: _WORDS[option.name])
    return found
