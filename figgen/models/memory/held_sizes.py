"""Sizes of layers, tables and the ends of a pipeline, from the models of a single layout.

Sizes that grow with the tokens of a microbatch are per token, so that a few layouts on one GPU give
the sizes of all layouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from figgen.equations.ops import Number
from figgen.models.machine.layout import MOST_RANKS
from figgen.models.memory.activations import (
    layer_bytes,
    layer_gradient_bytes,
    layer_input_bytes,
    loss_bytes,
    mixer_bytes,
    recomputed_bytes,
    stage_bytes,
)
from figgen.models.memory.communication_buffers import (
    key_value_width,
    query_width,
    received_copies,
    traded_heads,
)
from figgen.models.memory.rank_parameters import (
    attention_held,
    mixer_held,
    projection_held,
    table_held,
)
from figgen.models.memory.trained_state import Kept, kept_by_layer
from figgen.models.setup.stage_layers import StageShare, virtual_stage_shares
from figgen.models.setup.training_setup import ACTIVATION_BYTES, TrainingSetup
from figgen.models.shape.adapters import PLAIN_BYTES
from figgen.models.shape.model_shape import NORM_VECTORS

_DENSE = StageShare(first_layer=0, layers=1, expert_layers=0, embedding=False, head=False)
_EXPERTS = StageShare(first_layer=0, layers=1, expert_layers=1, embedding=False, head=False)
_BOTH = StageShare(first_layer=0, layers=2, expert_layers=1, embedding=False, head=False)
_INNER = StageShare(first_layer=0, layers=0, expert_layers=0, embedding=False, head=False)
_FIRST = StageShare(first_layer=0, layers=0, expert_layers=0, embedding=True, head=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSizes:
    """The sizes that depend on TP, ETP and recomputation.

    The first ten fields are trained parameters and bytes of frozen weights: of a plain layer, of an
    expert layer without its routed experts, of the routed experts of all expert-parallel ranks, of
    a table, and of what accompanies the head. `mixer` and `kept_mixer` are what a state-space mixer
    holds or keeps beyond attention, often negative. The other bytes are per token: what a layer
    keeps (`kept_…`), what of it is copied to the host (`away_…`), what the backward of each kind of
    stage recomputes (`recomputed_…`), the gradients of a layer (`gradient_…`), and what the
    embedding, the head, the output of a stage and the loss keep. Widths are in elements per token.
    `dispatched` is bytes per element of a token that is sent to experts.
    """

    dense_layer: Number
    expert_layer: Number
    routed_layer: Number
    table: Number
    with_head: Number
    frozen_dense: Number
    frozen_experts: Number
    frozen_routed: Number
    frozen_table: Number
    frozen_head: Number
    mixer: Number
    kept_dense: Number
    kept_experts: Number
    kept_mixer: Number
    away_dense: Number
    away_experts: Number
    recomputed_dense: Number
    recomputed_experts: Number
    recomputed_both: Number
    gradient_dense: Number
    gradient_experts: Number
    kept_embedding: Number
    kept_head: Number
    kept_output: Number
    loss: Number
    key_value_width: Number
    key_value_heads: Number
    query_width: Number
    dispatched: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSizes:
    """The sizes that are the same for all layouts of a job.

    `with_embedding` and `frozen_embedding` accompany the embedding table: trained parameters and
    frozen bytes. `traded_within` is the number of GPUs within which context ranks trade heads: 0
    where none do, more than any group has where all do. `offloaded_activations` is the share of
    activations in the host's memory, and `returned_layers` the number of layers whose activations
    are back. Other bytes are per parameter; the rest are the framework's habits, see
    `figgen.models.setup.framework_memory`.
    """

    with_embedding: Number
    frozen_embedding: Number
    hidden: Number
    sequence_parallel: Number
    key_value_blocks: Number
    traded_within: Number
    prefetched: Number
    weight_bytes: Number
    gradient_bytes: Number
    optimizer_bytes: Number
    update_bytes: Number
    cast_weight_bytes: Number
    table_bytes: Number
    bucket_bytes: Number
    fresh_gradient_bytes: Number
    frees_gradients: Number
    whole_in_pipeline: Number
    casts_alone: Number
    offloaded_activations: Number
    returned_layers: Number
    allocator_share: Number
    contexts: Number


def layer_sizes(setup: TrainingSetup) -> LayerSizes:
    """Return the sizes of a setup's layers."""
    shape, tokens = setup.shape, setup.tokens
    none, trains = Kept(trained=0, trained_routed=0), setup.lora_rank is None
    dense = kept_by_layer(setup, experts=False) if shape.dense_layers else none
    experts = kept_by_layer(setup, experts=True) if shape.expert_layers else none
    table, ep = table_held(setup), setup.parallel.ep
    final = NORM_VECTORS[shape.norm] * shape.hidden if shape.final_norm else 0
    final += setup.mtp_layers * projection_held(setup) if setup.mtp_layers else 0
    output = stage_bytes(setup, _INNER)
    head = StageShare(
        first_layer=0,
        layers=0,
        expert_layers=0,
        embedding=False,
        head=True,
        mtp_layers=setup.mtp_layers,
    )
    attends = shape.attention_layers > 0
    received = received_copies(setup) if shape.experts else 0
    each = setup.activation_format.dispatch_bytes + ACTIVATION_BYTES
    recomputed_dense, recomputed_experts, recomputed_both = recomputed_sizes(setup, _kinds(setup))
    return LayerSizes(
        dense_layer=dense.trained,
        expert_layer=experts.trained,
        routed_layer=experts.trained_routed * ep,
        table=table if trains else 0,
        with_head=final if trains else 0,
        frozen_dense=dense.frozen_bytes,
        frozen_experts=experts.frozen_bytes,
        frozen_routed=experts.frozen_routed_bytes * ep,
        frozen_table=0 if trains else table * PLAIN_BYTES,
        frozen_head=0 if trains else final * PLAIN_BYTES,
        mixer=mixer_held(setup) - attention_held(setup) if shape.state_space else 0,
        kept_dense=layer_bytes(setup) / tokens if shape.dense_layers else 0,
        kept_experts=layer_bytes(setup, experts=True) / tokens if shape.expert_layers else 0,
        kept_mixer=mixer_bytes(setup) / tokens,
        away_dense=_away_bytes(setup, experts=False) / tokens,
        away_experts=_away_bytes(setup, experts=True) / tokens,
        recomputed_dense=recomputed_dense,
        recomputed_experts=recomputed_experts,
        recomputed_both=recomputed_both,
        gradient_dense=layer_gradient_bytes(setup, _DENSE) / tokens if shape.dense_layers else 0,
        gradient_experts=layer_gradient_bytes(setup, _EXPERTS) / tokens
        if shape.expert_layers
        else 0,
        kept_embedding=(stage_bytes(setup, _FIRST) - output) / tokens,
        kept_head=stage_bytes(setup, head) / tokens,
        kept_output=output / tokens,
        loss=loss_bytes(setup) / tokens,
        key_value_width=key_value_width(setup) if attends else 0,
        key_value_heads=traded_heads(setup),
        query_width=query_width(setup) if attends else 0,
        dispatched=received * setup.parallel.etp * each,
    )


def _traded_within(setup: TrainingSetup) -> int:
    if setup.context_exchange == "a2a+p2p":
        return setup.parallel.gpus_per_node
    return MOST_RANKS * MOST_RANKS if setup.trades_heads else 0


def _away_bytes(setup: TrainingSetup, *, experts: bool) -> float:
    """Return the bytes per microbatch that a mean layer of the fullest stage copies to the host."""
    if not setup.offloaded_activations:
        return 0.0
    if not (setup.shape.expert_layers if experts else setup.shape.dense_layers):
        return 0.0
    layers = max(share.layers for share in virtual_stage_shares(setup))
    again, kept = setup.recomputation, layer_bytes(setup, experts=experts)
    inputs = again.kept_inputs(layers) * layer_input_bytes(setup)
    others = (layers - again.whole_layers(layers)) * kept
    return setup.offloaded_activations * (inputs + others) / max(1, layers)


def recomputed_sizes(
    setup: TrainingSetup, held: Sequence[StageShare]
) -> tuple[float, float, float]:
    """Return the bytes per token that backward recomputes at most in a stage among `held`.

    The three numbers are for stages with plain layers only, with expert layers only, and with both.
    """
    most = {(True, False): 0.0, (False, True): 0.0, (True, True): 0.0, (False, False): 0.0}
    for share in held:
        kind = (share.dense_layers > 0, share.expert_layers > 0)
        most[kind] = max(most[kind], recomputed_bytes(setup, share) / setup.tokens)
    return most[True, False], most[False, True], most[True, True]


def _kinds(setup: TrainingSetup) -> list[StageShare]:
    """Return the smallest stage of each kind that a model can have."""
    shape, found = setup.shape, []
    if shape.dense_layers:
        found.append(_DENSE)
    if shape.expert_layers:
        found.append(_EXPERTS)
    if shape.dense_layers and shape.expert_layers:
        found.append(_BOTH)
    return found


def job_sizes(setup: TrainingSetup, allocator_share: float, contexts: float) -> JobSizes:
    """Return the sizes of a job.

    `contexts` are the bytes outside the allocator, and `allocator_share` is the share that the
    allocator holds beyond its tensors.
    """
    shape, framework, recipe = setup.shape, setup.framework_memory, setup.recipe
    blocks = 2 if setup.double_buffering else 1
    positions = shape.sequence * shape.hidden if shape.learned_positions else 0
    trains = setup.lora_rank is None
    stay = framework.caches_casts and trains
    return JobSizes(
        with_embedding=positions + shape.extra if trains else 0,
        frozen_embedding=0 if trains else (positions + shape.extra) * PLAIN_BYTES,
        hidden=shape.hidden,
        sequence_parallel=int(setup.sequence_parallel),
        key_value_blocks=0 if setup.context_exchange == "all-gather" else blocks,
        traded_within=_traded_within(setup),
        prefetched=blocks,
        weight_bytes=recipe.weight_bytes,
        gradient_bytes=recipe.gradient_bytes,
        optimizer_bytes=setup.optimizer_bytes,
        update_bytes=recipe.update_bytes,
        cast_weight_bytes=setup.activation_format.cast_weight_bytes if stay else 0,
        table_bytes=setup.table_bytes,
        bucket_bytes=framework.bucket_bytes,
        fresh_gradient_bytes=framework.fresh_gradient_bytes,
        frees_gradients=int(framework.frees_gradients),
        whole_in_pipeline=int(framework.whole_in_pipeline),
        casts_alone=int(framework.casts_alone),
        offloaded_activations=setup.offloaded_activations,
        returned_layers=2 if setup.offload_overlap else 1,
        allocator_share=allocator_share,
        contexts=contexts,
    )
