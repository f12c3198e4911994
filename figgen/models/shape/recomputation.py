"""Recomputation of modules or whole layers in backward, which saves memory.

The modules are those of Megatron-LM's `--recompute-modules` for transformers, and three more that
the flag does not accept (`NOT_MEGATRON`): `latent_norm`, because DeepSeek-V3 recomputes all of its
norms, `moe_gate`, which Megatron-LM does always (its memory-efficient permutation), and
`every_second_product`, which torchtitan calls selective: it keeps what attention returns and every
second matmul with weights (query, value, gate, down-projection), and recomputes the rest.
Source: Megatron-LM core at d98e8a64, transformer_config.py, transformer_layer.py, recompute.py;
DeepSeek-V3, arXiv:2412.19437, sections 3.2.3 and 3.3.3; pytorch/torchtitan@b5bcd76c,
distributed/activation_checkpoint.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from figgen.errors import InputError, unknown

SECOND = "every_second_product"

MODULES: Mapping[str, str] = MappingProxyType({
    "core_attn": "scores and probabilities, where the kernel would store them",
    "layernorm": "outputs of the norms before attention and feed-forward block",
    "latent_norm": "outputs of the norms of latent attention",
    "mla_up_proj": "queries, keys and values of latent attention, from their latents",
    "mlp": "dense feed-forward blocks",
    "moe": "mixtures of experts, with their all-to-alls",
    "moe_act": "outputs of the activation in routed experts",
    "moe_gate": "outputs of routed experts: gates multiply before the down-projection instead",
    "shared_experts": "shared experts",
    SECOND: "norms, keys and outputs of plain attention, what a gate multiplies and their product",
})  # fmt: skip
"""Tensors that each module drops after forward and recomputes in backward."""

NOT_MEGATRON: Mapping[str, str] = MappingProxyType({
    "latent_norm": "no flag",
    "moe_gate": "always done",
    SECOND: "no flag",
})  # fmt: skip
"""The `MODULES` that `--recompute-modules` refuses, with what Megatron-LM does instead."""


@dataclass(frozen=True, slots=True)
class Recomputation:
    """Modules of every layer, or whole layers of each virtual stage.

    "uniform" recomputes all layers and keeps the input of every `number`th; "block" recomputes
    the first `number` layers of a virtual stage one by one, and the others not at all.
    """

    modules: frozenset[str] = frozenset()
    method: Literal["", "uniform", "block"] = ""
    number: int = 1

    def whole_layers(self, layers: int) -> int:
        """How many of a virtual stage's `layers`, the first ones, are recomputed whole."""
        return {"": 0, "uniform": layers, "block": min(self.number, layers)}[self.method]

    def kept_inputs(self, layers: int) -> int:
        """Inputs that the layers recomputed whole keep."""
        whole = self.whole_layers(layers)
        return -(-whole // self.number) if self.method == "uniform" else whole


NAMED: Mapping[str, Recomputation] = MappingProxyType(
    {
        "none": Recomputation(),
        "selective": Recomputation(frozenset({"core_attn"})),
        "full": Recomputation(method="uniform"),
    }
)
"""The three kinds of recomputation that most texts mean."""


@lru_cache(maxsize=64)
def recomputation(text: str) -> Recomputation:
    """Return a recomputation by name, "uniform:2", "block:3", or modules separated by commas.

    Raises InputError for any other text.
    """
    if text in NAMED:
        return NAMED[text]
    if ":" in text:
        found = re.fullmatch(r"(uniform|block):([1-9][0-9]{0,3})", text)
        if found is None:
            expected = "uniform:N or block:N with N from 1 to 9999 layers"
            raise InputError("recompute", expected=expected, got=text)
        method: Literal["uniform", "block"] = "block" if found[1] == "block" else "uniform"
        return Recomputation(method=method, number=int(found[2]))
    modules = text.split(",")
    for name in modules:
        if name not in MODULES:
            raise unknown("module to recompute", name, [*NAMED, *MODULES])
    return Recomputation(frozenset(modules))
