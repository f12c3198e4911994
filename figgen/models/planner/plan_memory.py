"""Bytes on the fullest GPU of a pipeline rank in closed form, for one layout or for arrays of them.

The same lines as `figgen.models.memory.memory_lines` counts them, written so that they can be
printed as JavaScript: what a rank holds are counts of layers and tables (`RankLoad`), what each of
them takes are sizes (`HeldSizes`), and the rest is arithmetic. Every field may be an array.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.equations.ops import Number, maximum, where

ACTIVATION_BYTES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLoad:
    """What a pipeline rank holds at one moment of its schedule.

    Layers, plain and with experts; the embedding, the head, and `tables` where a tied head has
    none of its own. `kept_…` count how often each is in flight: `kept_inputs` layers of which the
    input alone is kept, `kept_outputs` stages without the head. Some of the layers have state-space
    `mixers` in the place of attention. Of its virtual stages some may
    have plain layers only, layers with experts only, or both: 1 if so.
    """

    dense_layers: Number
    expert_layers: Number
    embeddings: Number
    heads: Number
    tables: Number
    mixers: Number
    kept_inputs: Number
    kept_dense: Number
    kept_experts: Number
    kept_embeddings: Number
    kept_heads: Number
    kept_outputs: Number
    kept_mixers: Number
    only_dense: Number
    only_experts: Number
    both: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSizes:
    """What each thing takes on a GPU of a layout.

    Parameters of a plain layer, of one with experts (`expert_layer` without those routed), of a
    table, and of what goes with the embedding and the head; what a state-space mixer has, or keeps,
    more than attention, often less. Bytes of one microbatch for each
    token that a context-parallel rank holds: kept of a layer, made anew in its backward, its
    gradients; of embedding and head; of an output that a stage holds, of the loss. Then axes,
    and habits of the framework as `figgen.models.setup.framework_memory` has them.
    """

    dense_layer: Number
    expert_layer: Number
    routed_layer: Number
    table: Number
    mixer: Number
    with_embedding: Number
    with_head: Number
    kept_dense: Number
    kept_experts: Number
    kept_mixer: Number
    anew_dense: Number
    anew_experts: Number
    gradient_dense: Number
    gradient_experts: Number
    kept_embedding: Number
    kept_head: Number
    kept_output: Number
    loss: Number
    hidden: Number
    key_value_width: Number
    key_value_heads: Number
    query_width: Number
    dispatched: Number
    tokens: Number
    split_tokens: Number
    tp: Number
    cp: Number
    pp: Number
    expert_ways: Number
    shards: Number
    expert_shards: Number
    zero_stage: Number
    sequence_parallel: Number
    key_value_blocks: Number
    trades_heads: Number
    prefetched: Number
    weight_bytes: Number
    cast_weight_bytes: Number
    gradient_bytes: Number
    optimizer_bytes: Number
    table_bytes: Number
    bucket_bytes: Number
    fresh_gradient_bytes: Number
    whole_in_pipeline: Number
    allocator_share: Number
    contexts: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class RankBytes:
    """Bytes of a GPU by part, as `figgen.models.memory.memory` names them."""

    weights: Number
    gradients: Number
    optimizer: Number
    activations: Number
    working: Number
    communication: Number
    reserve: Number

    @property
    def total_bytes(self) -> Number:
        """All parts together."""
        return (
            self.weights + self.gradients + self.optimizer + self.activations + self.working
            + self.communication + self.reserve
        )  # fmt: skip


def rank_bytes(load: RankLoad, held: HeldSizes) -> RankBytes:
    """What a GPU of a rank needs at that moment."""
    dense, routed = dense_parameters(load, held), load.expert_layers * held.routed_layer
    weights = _divided(dense, routed, held, 3) * held.weight_bytes
    layers = dense + routed - load.tables * held.table
    weights = weights + layers * where(held.zero_stage == 3, 0, held.cast_weight_bytes)
    accumulated = _divided(dense, routed, held, 2) * held.gradient_bytes
    replicated = where((held.zero_stage == 0) & (held.shards > 1), held.bucket_bytes, 0)
    fresh = (dense + routed) * held.fresh_gradient_bytes
    optimizer = _divided(dense, routed, held, 1) * held.optimizer_bytes
    optimizer = optimizer + _divided(load.tables * held.table, 0, held, 1) * held.table_bytes
    activations = _activations(load, held)
    working = _working(load, held)
    communication = _messages(held) + _gathered(load, held)
    moving = fresh + activations + working + communication
    return RankBytes(
        weights=weights,
        gradients=accumulated + (dense + routed) * replicated + fresh,
        optimizer=optimizer,
        activations=activations,
        working=working,
        communication=communication,
        reserve=held.allocator_share * moving + held.contexts,
    )


def dense_parameters(load: RankLoad, held: HeldSizes) -> Number:
    """Parameters of a rank that are no routed experts."""
    layers = load.dense_layers * held.dense_layer + load.expert_layers * held.expert_layer
    layers = layers + load.mixers * held.mixer
    ends = load.embeddings * held.with_embedding + load.heads * held.with_head
    return layers + load.tables * held.table + ends


def _divided(dense: Number, routed: Number, held: HeldSizes, first_stage: Number) -> Number:
    """Parameters whose state a GPU keeps, where ZeRO divides it from `first_stage` on."""
    divided = held.zero_stage >= first_stage
    return dense / where(divided, held.shards, 1) + routed / where(divided, held.expert_shards, 1)


def _activations(load: RankLoad, held: HeldSizes) -> Number:
    layers = load.kept_dense * held.kept_dense + load.kept_experts * held.kept_experts
    layers = layers + load.kept_mixers * held.kept_mixer
    ends = load.kept_embeddings * held.kept_embedding + load.kept_heads * held.kept_head
    inputs = load.kept_inputs * held.split_tokens * held.hidden * ACTIVATION_BYTES
    return inputs + held.tokens * (layers + ends + load.kept_outputs * held.kept_output)


def _working(load: RankLoad, held: HeldSizes) -> Number:
    """The loss or the backward of one layer, whichever takes more."""
    dense = held.anew_dense + held.gradient_dense
    experts = held.anew_experts + held.gradient_experts
    anew = maximum(held.anew_dense, held.anew_experts)
    both = anew + maximum(held.gradient_dense, held.gradient_experts)
    alone = maximum(load.only_dense * dense, load.only_experts * experts)
    loss = (load.heads > 0) * held.loss
    return held.tokens * maximum(maximum(alone, load.both * both), loss)


def _messages(held: HeldSizes) -> Number:
    """Messages between stages, gathered inputs and gradients, keys and values, routed tokens."""
    split = held.split_tokens * held.hidden
    stages = where(held.pp > 1, 2 * split * ACTIVATION_BYTES, 0)
    gathers = (held.tp > 1) & (held.sequence_parallel > 0)
    gathered = where(gathers, 4 * held.tokens * held.hidden * ACTIVATION_BYTES, 0)
    blocks = where(held.key_value_blocks > 0, held.key_value_blocks, held.cp)
    copies = maximum(1, held.cp / maximum(1, held.key_value_heads))
    traded = held.query_width + copies * 2 * held.key_value_width
    width = where(held.trades_heads > 0, traded, blocks * 2 * held.key_value_width)
    keys = width * held.tokens * ACTIVATION_BYTES
    routed = where(held.expert_ways > 1, split * held.dispatched, 0)
    return stages + gathered + where(held.cp > 1, keys, 0) + routed


def _gathered(load: RankLoad, held: HeldSizes) -> Number:
    """Whole weights and gradients where ZeRO keeps only shards: of a layer, or of a stage."""
    more = maximum(held.mixer, 0)
    dense = (load.dense_layers > 0) * (held.dense_layer + more)
    experts = (load.expert_layers > 0) * (held.expert_layer + held.routed_layer + more)
    table = (load.embeddings + load.heads > 0) * held.table
    largest = maximum(maximum(dense, experts), table)
    stage = dense_parameters(load, held) + load.expert_layers * held.routed_layer
    whole = (held.whole_in_pipeline > 0) & (held.pp > 1)
    gradients = where(whole, stage, largest) * held.gradient_bytes
    weights = where(whole, stage, held.prefetched * largest) * held.weight_bytes
    sharded = (held.zero_stage >= 2) & (held.shards > 1)
    return where(sharded, gradients + where(held.zero_stage == 3, weights, 0), 0)
