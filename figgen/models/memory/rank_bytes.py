"""Bytes on a GPU of a pipeline rank in closed form, for one layout or for arrays of them.

The model of a step and the planner both call this function. A rank holds counts of layers and
tables (`RankLoad`), each of which has a size (`HeldSizes`); the rest is arithmetic, which is
printed as JavaScript too. Every field may be an array.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.equations.ops import Number, floor, maximum, minimum, where
from figgen.models.memory.held_sizes import JobSizes, LayerSizes
from figgen.models.memory.rank_load import RankLoad
from figgen.models.setup.training_setup import ACTIVATION_BYTES

FRAGMENTED = 0.38
"""Reserved memory beyond allocated memory where gradients are freed between steps, as a share of
the smaller of forward and gradients: neither can use all of the blocks that the other frees. From
ten steps of one H100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSizes:
    """The sizes of everything that a GPU holds in a layout, and the sizes of the layout's axes.

    A context-parallel rank has `tokens` of a microbatch; with sequence parallelism each of its
    tensor-parallel ranks has `split_tokens` of these. `expert_ways` ranks exchange tokens for
    routed experts. ZeRO divides state over `shards` ranks, and that of routed experts over
    `expert_shards`.
    """

    layer: LayerSizes
    job: JobSizes
    tokens: Number
    split_tokens: Number
    tp: Number
    cp: Number
    pp: Number
    ep: Number
    expert_ways: Number
    shards: Number
    expert_shards: Number
    zero_stage: Number
    microbatches: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class RankBytes:
    """Bytes of a GPU line by line; `figgen.models.memory.memory_lines` names the lines.

    `allocator` is what the allocator holds beyond the tensors: a share of temporary tensors, and
    blocks freed by the forward that the gradients cannot use, or the other way around.
    """

    weights: Number
    cast_weights: Number
    accumulated: Number
    buckets: Number
    fresh: Number
    optimizer: Number
    activations: Number
    recomputed: Number
    layer_gradients: Number
    logits: Number
    update: Number
    messages: Number
    gathered_inputs: Number
    gathered_gradients: Number
    keys: Number
    routed: Number
    scattered: Number
    gathered_weights: Number
    allocator: Number
    contexts: Number

    @property
    def state(self) -> Number:
        """Weights, gradients and optimizer state."""
        gradients = self.accumulated + self.buckets + self.fresh
        return self.weights + self.cast_weights + gradients + self.optimizer

    @property
    def working(self) -> Number:
        """Bytes for the loss, one layer's backward or the update, and for all communication."""
        within = self.messages + self.gathered_inputs + self.gathered_gradients
        sharded = self.scattered + self.gathered_weights
        computing = self.recomputed + self.layer_gradients + self.logits + self.update
        return within + self.keys + self.routed + sharded + computing

    @property
    def allocated_bytes(self) -> Number:
        """Bytes of tensors."""
        return self.state + self.activations + self.working

    @property
    def reserved_bytes(self) -> Number:
        """Bytes that the allocator holds."""
        return self.allocated_bytes + self.allocator

    @property
    def total_bytes(self) -> Number:
        """All lines together."""
        return self.reserved_bytes + self.contexts


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBytes:
    """Bytes of a rank's weights, gradients and optimizer state.

    The rank keeps `gradients` through a step, and each backward pass allocates `fresh` ones. The
    update needs `copies` in addition to all state.
    """

    weights: Number
    cast_weights: Number
    gradients: Number
    buckets: Number
    fresh: Number
    optimizer: Number
    copies: Number

    @property
    def lasting(self) -> Number:
        """Bytes without fresh gradients."""
        return self.weights + self.cast_weights + (self.gradients + self.buckets) + self.optimizer


def rank_bytes(load: RankLoad, held: HeldSizes) -> RankBytes:
    """Return what a GPU of a rank needs at its peak, with that `load`.

    At the peak, all microbatches are in flight and the loss or the backward of one layer is
    running. Where a framework frees gradients between steps and a step has only one backward, there
    are no gradients at that moment, and the end of the backward may need more: all gradients and
    one layer. The update may need most: it has no activations and no messages, but its own copies
    beside all state.
    """
    job, state = held.job, state_bytes(load, held)
    activations, working = activation_bytes(load, held), _working(load, held)
    messages = _messages(load, held)
    gradients, fresh = state.gradients, state.fresh
    busy = maximum(working.loss, working.backward)
    moving = fresh + activations + busy + messages.total_bytes
    only = (job.frees_gradients > 0) & (held.pp == 1) & (held.microbatches == 1)
    at_end = only & (gradients + working.backward > activations + busy)
    at_work = where(at_end, gradients + working.backward, where(only, 0, gradients) + activations)
    at_work = at_work + where(at_end, 0, busy) + fresh + messages.total_bytes
    # `passing` is 0 if the update needs most; `there` is 0 if no activations are left.
    passing = where(gradients + state.copies > at_work, 0, 1)
    there = where(at_end, 0, passing)
    in_loss = there * working.loss > working.backward
    unfit = FRAGMENTED * minimum(activations + busy, gradients)
    return RankBytes(
        weights=state.weights,
        cast_weights=state.cast_weights,
        accumulated=where(only, 1 - there, 1) * gradients,
        buckets=state.buckets,
        fresh=passing * fresh,
        optimizer=state.optimizer,
        activations=there * activations,
        recomputed=passing * where(in_loss, 0, working.recomputed),
        layer_gradients=passing * where(in_loss, 0, working.backward - working.recomputed),
        logits=where(in_loss, working.loss, 0),
        update=(1 - passing) * state.copies,
        messages=passing * messages.stages,
        gathered_inputs=passing * messages.gathered_inputs,
        gathered_gradients=passing * messages.gathered_inputs,
        keys=passing * messages.keys,
        routed=passing * messages.routed,
        scattered=passing * messages.scattered,
        gathered_weights=passing * messages.gathered_weights,
        allocator=job.allocator_share * moving + where(only, unfit, 0),
        contexts=job.contexts,
    )


def state_bytes(load: RankLoad, held: HeldSizes) -> StateBytes:
    """Return the state of a GPU of a rank with that `load`."""
    job = held.job
    dense, routed = dense_parameters(load, held), _routed_parameters(load, held)
    parameters, tables = dense + routed, load.tables * held.layer.table
    mine = _divided(dense, routed, held, 1)
    bucket_bytes = where((held.zero_stage == 0) & (held.shards > 1), job.bucket_bytes, 0)
    cast_bytes = where(held.zero_stage == 3, 0, job.cast_weight_bytes)
    return StateBytes(
        weights=_weights(load, held, dense, routed),
        cast_weights=(parameters - tables) * cast_bytes,
        gradients=_divided(dense, routed, held, 2) * job.gradient_bytes,
        buckets=parameters * bucket_bytes,
        fresh=parameters * job.fresh_gradient_bytes + _unkept_gradient(load, held),
        optimizer=mine * job.optimizer_bytes + _divided(tables, 0, held, 1) * job.table_bytes,
        copies=mine * job.update_bytes,
    )


def _unkept_gradient(load: RankLoad, held: HeldSizes) -> Number:
    """Return the largest gradient's bytes where backward updates each parameter and keeps none."""
    has_table = (load.embeddings + load.heads > 0) & (held.job.gradient_bytes == 0)
    return where(has_table, held.layer.table * held.job.weight_bytes, 0)


def dense_parameters(load: RankLoad, held: HeldSizes) -> Number:
    """Return the trained parameters of a rank, without routed experts."""
    layer = held.layer
    layers = load.dense_layers * layer.dense_layer + load.expert_layers * layer.expert_layer
    layers = layers + load.mixers * layer.mixer
    ends = load.embeddings * held.job.with_embedding + load.heads * layer.with_head
    return layers + load.tables * layer.table + ends


def activation_bytes(load: RankLoad, held: HeldSizes) -> Number:
    """Return the activations of all microbatches in flight, without those in the host's memory."""
    layer = held.layer
    layers = load.kept_dense * layer.kept_dense + load.kept_experts * layer.kept_experts
    layers = layers + load.kept_mixers * layer.kept_mixer
    ends = load.kept_embeddings * layer.kept_embedding + load.kept_heads * layer.kept_head
    inputs = load.kept_inputs * held.split_tokens * held.job.hidden * ACTIVATION_BYTES
    kept = inputs + held.tokens * (layers + ends + load.kept_outputs * layer.kept_output)
    return kept - _away(load, held, inputs + held.tokens * layers)


def _away(load: RankLoad, held: HeldSizes, kept: Number) -> Number:
    """Return the bytes in the host's memory among the `kept` bytes of layers.

    The layer whose backward runs is back on the GPU, and so is the next one where copies overlap.
    """
    layer, job = held.layer, held.job
    plain, experts = load.kept_dense > 0, load.kept_experts > 0
    largest = held.tokens * maximum(plain * layer.kept_dense, experts * layer.kept_experts)
    inputs = (load.kept_inputs > 0) * held.split_tokens * job.hidden * ACTIVATION_BYTES
    back = job.returned_layers * maximum(largest, inputs)
    return job.offloaded_activations * maximum(0, kept - back)


def _routed_parameters(load: RankLoad, held: HeldSizes) -> Number:
    return load.expert_layers * held.layer.routed_layer / held.ep


def _frozen(load: RankLoad, held: HeldSizes) -> Number:
    """Return the bytes of a rank's frozen weights, without routed experts."""
    layer = held.layer
    layers = load.dense_layers * layer.frozen_dense + load.expert_layers * layer.frozen_experts
    ends = load.embeddings * held.job.frozen_embedding + load.heads * layer.frozen_head
    return layers + load.tables * layer.frozen_table + ends


def _weights(load: RankLoad, held: HeldSizes, dense: Number, routed: Number) -> Number:
    """Return the bytes of weights, trained and frozen, which ZeRO-3 divides."""
    trained = _divided(dense, routed, held, 3)
    frozen_routed = load.expert_layers * held.layer.frozen_routed / held.ep
    return trained * held.job.weight_bytes + _divided(_frozen(load, held), frozen_routed, held, 3)


def _divided(dense: Number, routed: Number, held: HeldSizes, first_stage: Number) -> Number:
    """Return what a GPU keeps of state that ZeRO divides from `first_stage` on."""
    divided = held.zero_stage >= first_stage
    return dense / where(divided, held.shards, 1) + routed / where(divided, held.expert_shards, 1)


@dataclass(frozen=True, slots=True)
class _Working:
    """Bytes of the loss, of the backward of one layer, and of what that backward recomputes."""

    loss: Number
    backward: Number
    recomputed: Number


def _working(load: RankLoad, held: HeldSizes) -> _Working:
    """Return the bytes of the loss, and those of the layer whose backward needs most."""
    layer, tokens = held.layer, held.tokens
    gradient_both = maximum(layer.gradient_dense, layer.gradient_experts)
    dense = load.only_dense * (layer.recomputed_dense + layer.gradient_dense)
    experts = load.only_experts * (layer.recomputed_experts + layer.gradient_experts)
    both = load.both * (layer.recomputed_both + gradient_both)
    backward = maximum(maximum(dense, experts), both)
    # The kind of stage whose backward needs most.
    mixed, plain = load.both * (both >= backward), load.only_dense * (dense >= backward)
    alone = where(plain, layer.recomputed_dense, load.only_experts * layer.recomputed_experts)
    recomputed = where(mixed, layer.recomputed_both, alone)
    return _Working((load.heads > 0) * layer.loss * tokens, backward * tokens, recomputed * tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Messages:
    """Bytes of communication; inputs and gradients of layers each take `gathered_inputs`."""

    stages: Number
    gathered_inputs: Number
    keys: Number
    routed: Number
    scattered: Number
    gathered_weights: Number

    @property
    def total_bytes(self) -> Number:
        """Bytes of all communication."""
        within = self.stages + 2 * self.gathered_inputs + self.keys + self.routed
        return within + (self.scattered + self.gathered_weights)


def _messages(load: RankLoad, held: HeldSizes) -> _Messages:
    split = held.split_tokens * held.job.hidden
    scattered, gathered_weights = _sharded(load, held)
    return _Messages(
        stages=where(held.pp > 1, 2 * split * ACTIVATION_BYTES, 0),
        gathered_inputs=gathered_inputs(held),
        keys=where(held.cp > 1, _exchanged_width(held) * held.tokens * ACTIVATION_BYTES, 0),
        routed=where(held.expert_ways > 1, split * held.layer.dispatched, 0),
        scattered=scattered,
        gathered_weights=gathered_weights,
    )


def gathered_inputs(held: HeldSizes) -> Number:
    """Return the bytes of two gathered inputs: a tensor stays until its stream is done."""
    gathers = (held.tp > 1) & (held.job.sequence_parallel > 0)
    return where(gathers, 2 * held.tokens * held.job.hidden * ACTIVATION_BYTES, 0)


def _exchanged_width(held: HeldSizes) -> Number:
    """Return the elements per token that context ranks exchange.

    A ring needs two blocks of keys and values in turn, and an all-gather needs those of the whole
    sequence. An all-to-all exchanges queries too (`traded_copies`), and its keys and values may
    also go around a ring between nodes.
    """
    layer, blocks = held.layer, held.job.key_value_blocks
    trading = minimum(held.cp, maximum(1, floor(held.job.traded_within / held.tp)))
    copies = maximum(1, trading / maximum(1, layer.key_value_heads))
    once = copies * 2 * layer.key_value_width
    traded = where(trading > 1, layer.query_width + once, 0)
    return traded + where(held.cp > trading, where(blocks > 0, blocks, held.cp) * once, 0)


def _sharded(load: RankLoad, held: HeldSizes) -> tuple[Number, Number]:
    """Return the whole gradients and weights, of a layer or a stage, where ZeRO keeps only shards.

    The projection of a multi-token prediction module is smaller than either and never decides. A
    layer with a state-space mixer instead of attention may hold more than one with attention.
    """
    layer, job = held.layer, held.job
    more = maximum(layer.mixer, 0)
    routed = layer.expert_layer + layer.routed_layer / held.ep + more
    frozen_routed = layer.frozen_experts + layer.frozen_routed / held.ep
    dense, frozen = layer.dense_layer + more, layer.frozen_dense
    has_dense, has_experts = load.dense_layers > 0, load.expert_layers > 0
    has_table = load.embeddings + load.heads > 0
    gradients = maximum(maximum(has_dense * dense, has_experts * routed), has_table * layer.table)
    weights = maximum(
        maximum(
            has_dense * (dense * job.weight_bytes + frozen),
            has_experts * (routed * job.weight_bytes + frozen_routed),
        ),
        has_table * (layer.table * job.weight_bytes + layer.frozen_table),
    )
    stage = dense_parameters(load, held) + _routed_parameters(load, held)
    frozen_stage = _frozen(load, held) + load.expert_layers * layer.frozen_routed / held.ep
    whole = (job.whole_in_pipeline > 0) & (held.pp > 1)
    weights = where(whole, stage * job.weight_bytes + frozen_stage, job.prefetched * weights)
    gradients = where(whole, stage, gradients) * job.gradient_bytes
    sharded = (held.zero_stage >= 2) & (held.shards + job.casts_alone > 1)
    return where(sharded, gradients, 0), where(sharded & (held.zero_stage == 3), weights, 0)
