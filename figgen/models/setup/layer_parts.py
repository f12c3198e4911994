"""How many layers of a virtual stage run each part of a layer, in forward and in recomputation."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.models.setup.stage_layers import StageShare
from figgen.models.setup.training_setup import TrainingSetup


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerParts:
    """Numbers of layers by what they run: matmuls, and the exchanges that go with them.

    `attention` counts the projections of attention, `up_projections` the projections of latent
    attention from latents; `routed` stands for router, routed experts and their all-to-alls. Of
    the layers with an attention core, `windowed` ones see only a window. `projections` belong to
    modules of multi-token prediction and make one hidden state from a hidden state and an
    embedding; `mixers` run a state-space mixer instead of attention.
    """

    attention: int
    up_projections: int
    core: int
    windowed: int
    dense: int
    routed: int
    shared: int
    projections: int
    mixers: int


def parts_of(share: StageShare) -> LayerParts:
    """Count the parts that the layers run in forward."""
    experts, attention = share.expert_layers, share.layers - share.mixer_layers
    return LayerParts(
        attention=attention,
        up_projections=0,
        core=attention,
        windowed=share.windowed_layers,
        dense=share.dense_layers,
        routed=experts,
        shared=experts,
        projections=share.mtp_layers,
        mixers=share.mixer_layers,
    )


def repeated_parts(setup: TrainingSetup, share: StageShare) -> LayerParts:
    """Count the parts that the layers recompute in backward.

    Norms, activations and gates are left out: they have no matmuls. A kernel that does
    not store scores recomputes them anyway.
    """
    again = setup.recomputation
    whole = again.whole_layers(share.layers)
    dense = min(whole, share.dense_layers)
    experts = whole - dense

    def rest(layers: int, *modules: str) -> int:
        return layers if again.modules.intersection(modules) else 0

    mixtures = share.expert_layers - experts
    own = min(whole, share.layers - share.mtp_layers)
    mixers = setup.shape.mixer_layers(share.first_layer, own)
    attention = whole - mixers
    stored = share.layers - share.mixer_layers - attention
    core = rest(stored, "core_attn") if not setup.flash_attention else 0
    up = rest(share.layers - whole, "mla_up_proj") if setup.shape.latent is not None else 0
    return LayerParts(
        attention=attention,
        up_projections=up,
        core=attention + core,
        windowed=setup.shape.windowed_layers(share.first_layer, own),
        dense=dense + rest(share.dense_layers - dense, "mlp"),
        routed=experts + rest(mixtures, "moe"),
        shared=experts + rest(mixtures, "moe", "shared_experts"),
        projections=max(0, whole + share.mtp_layers - share.layers),
        mixers=mixers,
    )
