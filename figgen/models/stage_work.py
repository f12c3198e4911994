"""Work of one microbatch on one GPU of a virtual stage, in FLOPs, forward and backward apart.

Multiplications with weights and the attention core only, routing uniform. FlashAttention skips
the masked half of the core; what it computes again inside its own backward is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.models.stage_layers import StageShare
from figgen.models.training_setup import TrainingSetup
from figgen.models.transformer import weights_met


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
    shape = setup.shape
    per_token = 2 * weights_met(shape, share.dense_layers, share.expert_layers)
    layers = per_token * setup.tokens / setup.parallel.tp
    head = 2 * shape.vocab * shape.hidden * setup.tokens / setup.parallel.tp if share.head else 0
    core = share.layers * layer_core_flops(setup)
    recomputed = 0.0
    if setup.recompute == "full":
        recomputed = layers + core
    elif setup.recompute == "selective" and not setup.flash_attention:
        recomputed = core
    return StageWork(layers + head, core, recomputed)


def layer_core_flops(setup: TrainingSetup) -> float:
    """Forward FLOPs of the attention core of one layer and microbatch on one GPU."""
    whole = 4 * setup.tokens * setup.sequence * setup.shape.attention_width / setup.parallel.tp
    return whole / 2 if setup.flash_attention else whole
