"""FLOPs of one microbatch on one GPU of a virtual stage, forward and backward separately.

Only matmuls with weights and the attention core count, and routing is uniform. FlashAttention skips
the masked half of the core and pairs outside a window or a packed document; what it recomputes in
its own backward is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from figgen.models.machine.layout import layout
from figgen.models.memory.trained_state import adapter_weights, adapters_met, first_inputs
from figgen.models.setup.layer_parts import LayerParts, parts_of, repeated_parts
from figgen.models.setup.stage_layers import StageShare, virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.documents import packed_keys
from figgen.models.shape.model_shape import FFN_MATRICES, GATED
from figgen.models.shape.recomputation import SECOND
from figgen.models.shape.transformer import (
    matmul_parameters,
    mixer_core_flops,
    part_weights,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageWork:
    """FLOPs of one microbatch on one GPU.

    `weights` are forward's matmuls with weights, including the head's, and `core` its attention
    core. `recomputed` is the forward work that backward repeats. If weights are `frozen`,
    `adapters` are forward's matmuls of adapters, and `spared` are the input gradients that nothing
    trained needs.
    """

    weights: float
    core: float
    recomputed: float
    adapters: float
    spared: float
    frozen: bool

    @property
    def forward(self) -> float:
        """FLOPs of one forward."""
        return self.weights + self.adapters + self.core

    @property
    def backward_input(self) -> float:
        """FLOPs of input gradients; both operands of the core need one."""
        return self.weights + self.adapters - self.spared + 2 * self.core

    @property
    def backward_weight(self) -> float:
        """FLOPs of weight gradients, of adapters only if the other weights are frozen."""
        return self.adapters if self.frozen else self.weights


def stage_work(setup: TrainingSetup, share: StageShare) -> StageWork:
    """Return the work of a virtual stage, divided over its tensor- and context-parallel ranks."""
    shape, forward, again = setup.shape, parts_of(share), repeated_parts(setup, share)
    weights, beside = part_weights(shape), adapter_weights(setup)
    head = _matmul_flops(setup, shape.vocab * shape.hidden) if share.head else 0
    heads = head * (1 + share.mtp_layers)
    layers, repeated = (_matmul_flops(setup, _met(parts, weights)) for parts in (forward, again))
    recomputed = repeated + _core_flops(setup, again) + _second_flops(setup, share)
    first = share.embedding and share.layers > 0
    return StageWork(
        weights=layers + heads,
        core=_core_flops(setup, forward),
        recomputed=recomputed + _matmul_flops(setup, _met(again, beside)),
        adapters=_matmul_flops(setup, _met(forward, beside)),
        spared=_matmul_flops(setup, first_inputs(setup, setup.parallel.tp)) if first else 0.0,
        frozen=setup.lora_rank is not None,
    )


REPEATED: Mapping[str, tuple[float, float]] = MappingProxyType({
    "none": (0.0, 0.0), "full": (1.0, 0.0), "selective": (0.0, 1.0),
})  # fmt: skip
"""Shares of a layer, and additionally of its attention core, that backward recomputes."""


def repeated(
    setup: TrainingSetup, shares: Sequence[StageShare], recompute: str, cp: int
) -> tuple[float, float]:
    """Return the shares of a layer's forward and of its attention core that `recompute` repeats.

    For named modules, the share is their work over that of all layers in the fullest stage, on the
    busiest of `cp` context ranks. A framework that checkpoints the attention core reruns it
    whatever its kernel stores.
    """
    if recompute in REPEATED:
        return REPEATED[recompute]
    work = _inner_work(setup, recompute, _fullest(shares), cp)
    return (work.recomputed / work.forward if work.forward else 0.0), 0.0


def _fullest(shares: Sequence[StageShare]) -> StageShare:
    """Return the layers of the fullest stage, without embedding and head."""
    fullest = max(shares, key=lambda share: share.layers)
    return replace(fullest, embedding=False, head=False)


@lru_cache(maxsize=4096)
def _inner_work(setup: TrainingSetup, recompute: str, share: StageShare, cp: int) -> StageWork:
    """Return the work of layers; of the layout, only the context ranks affect its shares."""
    alone = layout(nodes=1, gpus_per_node=cp, cp=cp, order=setup.parallel.order)
    # A ring between nodes is cut in zigzag, whatever the size of a node.
    exchange = "p2p" if setup.context_exchange == "a2a+p2p" else setup.context_exchange
    one = replace(
        setup, parallel=alone, microbatches=1, schedule="1f1b", chunks=None, layers_per_stage=(),
        recompute=recompute, context_exchange=exchange,
    )  # fmt: skip
    return stage_work(one, share)


def repeated_flops_per_token(setup: TrainingSetup) -> float:
    """Return the FLOPs per token that backward recomputes in all stages, attention not halved.

    "hfu-full" and "hfu-selective" of `figgen.models.step.compute` add this to "6nd+attention".
    """
    again, setup = 0.0, replace(setup, zigzag=True)
    for share in virtual_stage_shares(setup)[: setup.placement.depth]:
        again += stage_work(setup, share).recomputed
        if setup.flash_attention:
            again += _core_flops(setup, replace(repeated_parts(setup, share), mixers=0))
    return again * setup.parallel.tp / setup.tokens


def unneeded_flops_per_token(setup: TrainingSetup) -> float:
    """Return the FLOPs per token that full training takes and training adapters does not.

    These are the gradients of frozen weights and of the first inputs, less the FLOPs of adapters.
    """
    if setup.lora_rank is None:
        return 0.0
    unneeded = matmul_parameters(setup.shape) + first_inputs(setup)
    return 2 * unneeded - 6 * adapters_met(setup)


def _second_flops(setup: TrainingSetup, share: StageShare) -> float:
    """Return the FLOPs that "every_second_product" recomputes.

    They are those of keys, outputs, and the branch that a gate multiplies.
    """
    modules, shape = setup.recomputation.modules, setup.shape
    if SECOND not in modules:
        return 0.0
    weights, met = part_weights(shape), 0.0
    if shape.latent is None:
        met += (share.layers - share.mixer_layers) * weights["attention"] / 2
    if FFN_MATRICES[shape.ffn] == GATED and "mlp" not in modules:
        met += share.dense_layers * weights["dense"] / 3
    return 2 * met * setup.tokens / setup.parallel.tp


def layer_core_flops(setup: TrainingSetup, *, windowed: bool = False) -> float:
    """Return the forward FLOPs of one layer's attention core per microbatch per GPU.

    The GPU is one of the context rank with the most work.
    """
    keys: float = setup.sequence
    if setup.flash_attention:
        window = setup.shape.window if windowed else setup.sequence
        keys = packed_keys(setup.sequence, window, setup.document_tokens)
    whole = 4 * setup.tokens * keys * setup.shape.attention_width / setup.parallel.tp
    uneven = 1.0 if windowed else setup.core_imbalance
    return whole / 2 * uneven if setup.flash_attention else whole


def _core_flops(setup: TrainingSetup, parts: LayerParts) -> float:
    """Return the forward FLOPs of the attention and mixer cores in these parts of layers."""
    full = (parts.core - parts.windowed) * layer_core_flops(setup)
    full += parts.mixers * mixer_core_flops(setup.shape) * setup.tokens / setup.parallel.tp
    return full + parts.windowed * layer_core_flops(setup, windowed=True)


def _matmul_flops(setup: TrainingSetup, met: int) -> float:
    """Return the forward FLOPs on one GPU of multiplying each token with `met` weights."""
    return 2 * met * setup.tokens / setup.parallel.tp


def _met(parts: LayerParts, weights: Mapping[str, int]) -> int:
    """Return the number of weights that one token is multiplied with in these parts of layers."""
    return sum(int(getattr(parts, name)) * each for name, each in weights.items())
