"""Work of one microbatch on one GPU of a virtual stage, in FLOPs, forward and backward apart.

Multiplications with weights and the attention core only, routing uniform. FlashAttention skips
the masked half of the core and what lies outside of a window; what it computes again inside its
own backward is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from figgen.models.layer_parts import LayerParts, parts_of, repeated_parts
from figgen.models.model_shape import FFN_MATRICES, GATED
from figgen.models.recomputation import SECOND
from figgen.models.stage_layers import StageShare, virtual_stage_shares
from figgen.models.training_setup import TrainingSetup
from figgen.models.transformer import mixer_core_flops, part_weights, windowed_keys


@dataclass(frozen=True, slots=True)
class StageWork:
    """FLOPs of one microbatch on one GPU.

    `weights` and `core` are forward's products with weights, the head's among them, and its
    attention core; `recomputed` is what backward runs forward once more.
    """

    weights: float
    core: float
    recomputed: float

    @property
    def forward(self) -> float:
        """Forward, once."""
        return self.weights + self.core

    @property
    def backward_input(self) -> float:
        """Gradients of inputs; both operands of the core are activations."""
        return self.weights + 2 * self.core

    @property
    def backward_weight(self) -> float:
        """Gradients of weights."""
        return self.weights


def stage_work(setup: TrainingSetup, share: StageShare) -> StageWork:
    """Work of a virtual stage, divided over its tensor- and context-parallel ranks."""
    shape, forward, again = setup.shape, parts_of(share), repeated_parts(setup, share)
    layers = _product_flops(setup, forward)
    head = 2 * shape.vocab * shape.hidden * setup.tokens / setup.parallel.tp if share.head else 0
    heads = head * (1 + share.mtp_layers)
    recomputed = _product_flops(setup, again) + _core_flops(setup, again)
    recomputed += _second_flops(setup, share)
    return StageWork(layers + heads, _core_flops(setup, forward), recomputed)


def repeated_flops_per_token(setup: TrainingSetup) -> float:
    """FLOPs of a token that backward computes again, in all stages, attention not halved.

    What "hfu-full" and "hfu-selective" of `figgen.models.compute` add to "6nd+attention".
    """
    again = 0.0
    for share in virtual_stage_shares(setup)[: setup.placement.depth]:
        again += stage_work(setup, share).recomputed
        if setup.flash_attention:
            again += _core_flops(setup, replace(repeated_parts(setup, share), mixers=0))
    return again * setup.parallel.tp / setup.tokens


def _second_flops(setup: TrainingSetup, share: StageShare) -> float:
    """Products that "every_second_product" runs again: keys and outputs, what a gate multiplies."""
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
    """Forward FLOPs of the attention core of one layer and microbatch on one GPU."""
    keys: float = setup.sequence
    if windowed and setup.flash_attention:
        keys = windowed_keys(setup.sequence, setup.shape.window)
    whole = 4 * setup.tokens * keys * setup.shape.attention_width / setup.parallel.tp
    return whole / 2 if setup.flash_attention else whole


def _core_flops(setup: TrainingSetup, parts: LayerParts) -> float:
    """Forward FLOPs of the cores, of attention and of mixers, of these parts of layers."""
    full = (parts.core - parts.windowed) * layer_core_flops(setup)
    full += parts.mixers * mixer_core_flops(setup.shape) * setup.tokens / setup.parallel.tp
    return full + parts.windowed * layer_core_flops(setup, windowed=True)


def _product_flops(setup: TrainingSetup, parts: LayerParts) -> float:
    """Forward FLOPs of the products with weights of these parts of layers."""
    met = sum(int(getattr(parts, name)) * each for name, each in part_weights(setup.shape).items())
    return 2 * met * setup.tokens / setup.parallel.tp
