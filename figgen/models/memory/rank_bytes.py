"""Bytes on a GPU of a pipeline rank in closed form, for one layout or for arrays of them.

The step and the planner ask this one function. What a rank holds are counts of layers and tables
(`RankLoad`), what each of them takes are sizes (`HeldSizes`), and the rest is arithmetic, which is
printed as JavaScript too. Every field may be an array.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.equations.ops import Number, floor, maximum, minimum, where
from figgen.models.memory.held_sizes import JobSizes, LayerSizes
from figgen.models.memory.rank_load import RankLoad
from figgen.models.setup.training_setup import ACTIVATION_BYTES

FRAGMENTED = 0.38
"""Reserved memory beyond allocated, as a share of the smaller of forward and gradients where those
are freed between steps: blocks of one that the other cannot use. From ten steps of one H100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSizes:
    """What each thing takes on a GPU of a layout, and the layout's axes.

    `tokens` are those of a microbatch that a context-parallel rank holds, `split_tokens` those of
    them that sequence parallelism leaves; `expert_ways` are the ranks that exchange tokens for
    routed experts, `shards` and `expert_shards` those over which ZeRO divides state.
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

    `allocator` is what the allocator holds beyond the tensors: a share of those that come and go,
    and of blocks of the forward that do not serve gradients, or the other way around.
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
        """What the loss, the backward of one layer or the update needs, and all communication."""
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


def rank_bytes(load: RankLoad, held: HeldSizes) -> RankBytes:
    """What a GPU of a rank needs at the peak, while it holds that load.

    The peak is when all microbatches are in flight and the loss or the backward of one layer is at
    work. Where a framework frees gradients between steps and no backward came before, there are
    none then, and the end of the only backward may need more: all gradients, with one layer. The
    update may need most: no activations and no messages, but copies of its own beside all state.
    """
    job = held.job
    dense, routed = dense_parameters(load, held), _routed_parameters(load, held)
    parameters, tables = dense + routed, load.tables * held.layer.table
    bucket_bytes = where((held.zero_stage == 0) & (held.shards > 1), job.bucket_bytes, 0)
    cast_bytes = where(held.zero_stage == 3, 0, job.cast_weight_bytes)
    activations, working = activation_bytes(load, held), _working(load, held)
    messages = _messages(load, held)
    mine = _divided(dense, routed, held, 1)
    gradients = _divided(dense, routed, held, 2) * job.gradient_bytes
    fresh = parameters * job.fresh_gradient_bytes + _unkept_gradient(load, held)
    busy = maximum(working.loss, working.backward)
    moving = fresh + activations + busy + messages.total_bytes
    only = (job.frees_gradients > 0) & (held.pp == 1) & (held.microbatches == 1)
    at_end = only & (gradients + working.backward > activations + busy)
    at_work = where(at_end, gradients + working.backward, where(only, 0, gradients) + activations)
    at_work = at_work + where(at_end, 0, busy) + fresh + messages.total_bytes
    # 1 until the update takes more, and 1 until activations are gone.
    passing = where(gradients + mine * job.update_bytes > at_work, 0, 1)
    there = where(at_end, 0, passing)
    in_loss = there * working.loss > working.backward
    unfit = FRAGMENTED * minimum(activations + busy, gradients)
    return RankBytes(
        weights=_weights(load, held),
        cast_weights=(parameters - tables) * cast_bytes,
        accumulated=where(only, 1 - there, 1) * gradients,
        buckets=parameters * bucket_bytes,
        fresh=passing * fresh,
        optimizer=mine * job.optimizer_bytes + _divided(tables, 0, held, 1) * job.table_bytes,
        activations=there * activations,
        recomputed=passing * where(in_loss, 0, working.recomputed),
        layer_gradients=passing * where(in_loss, 0, working.backward - working.recomputed),
        logits=where(in_loss, working.loss, 0),
        update=(1 - passing) * mine * job.update_bytes,
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


def _unkept_gradient(load: RankLoad, held: HeldSizes) -> Number:
    """The largest gradient where backward updates each parameter, so that none are kept."""
    has_table = (load.embeddings + load.heads > 0) & (held.job.gradient_bytes == 0)
    return where(has_table, held.layer.table * held.job.weight_bytes, 0)


def dense_parameters(load: RankLoad, held: HeldSizes) -> Number:
    """Trained parameters of a rank that are no routed experts."""
    layer = held.layer
    layers = load.dense_layers * layer.dense_layer + load.expert_layers * layer.expert_layer
    layers = layers + load.mixers * layer.mixer
    ends = load.embeddings * held.job.with_embedding + load.heads * layer.with_head
    return layers + load.tables * layer.table + ends


def activation_bytes(load: RankLoad, held: HeldSizes) -> Number:
    """Activations of all microbatches in flight, without those in the host's memory."""
    layer = held.layer
    layers = load.kept_dense * layer.kept_dense + load.kept_experts * layer.kept_experts
    layers = layers + load.kept_mixers * layer.kept_mixer
    ends = load.kept_embeddings * layer.kept_embedding + load.kept_heads * layer.kept_head
    inputs = load.kept_inputs * held.split_tokens * held.job.hidden * ACTIVATION_BYTES
    kept = inputs + held.tokens * (layers + ends + load.kept_outputs * layer.kept_output)
    return kept - _away(load, held, inputs + held.tokens * layers)


def _away(load: RankLoad, held: HeldSizes, kept: Number) -> Number:
    """What is in the host's memory of the bytes that layers have `kept`.

    The layer whose backward runs is back, and the next one where copies overlap.
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
    """Bytes of frozen weights of a rank that are no routed experts."""
    layer = held.layer
    layers = load.dense_layers * layer.frozen_dense + load.expert_layers * layer.frozen_experts
    ends = load.embeddings * held.job.frozen_embedding + load.heads * layer.frozen_head
    return layers + load.tables * layer.frozen_table + ends


def _weights(load: RankLoad, held: HeldSizes) -> Number:
    """Bytes of weights, trained and frozen, which ZeRO-3 divides."""
    trained = _divided(dense_parameters(load, held), _routed_parameters(load, held), held, 3)
    frozen_routed = load.expert_layers * held.layer.frozen_routed / held.ep
    return trained * held.job.weight_bytes + _divided(_frozen(load, held), frozen_routed, held, 3)


def _divided(dense: Number, routed: Number, held: HeldSizes, first_stage: Number) -> Number:
    """What a GPU keeps of state that ZeRO divides from `first_stage` on."""
    divided = held.zero_stage >= first_stage
    return dense / where(divided, held.shards, 1) + routed / where(divided, held.expert_shards, 1)


@dataclass(frozen=True, slots=True)
class _Working:
    """Bytes of the loss, of the backward of one layer, and of what that backward recomputes."""

    loss: Number
    backward: Number
    recomputed: Number


def _working(load: RankLoad, held: HeldSizes) -> _Working:
    """What the loss needs, and the backward of the layer that needs most."""
    layer, tokens = held.layer, held.tokens
    gradient_both = maximum(layer.gradient_dense, layer.gradient_experts)
    dense = load.only_dense * (layer.anew_dense + layer.gradient_dense)
    experts = load.only_experts * (layer.anew_experts + layer.gradient_experts)
    both = load.both * (layer.anew_both + gradient_both)
    backward = maximum(maximum(dense, experts), both)
    # In a stage of which kind backward takes most.
    mixed, plain = load.both * (both >= backward), load.only_dense * (dense >= backward)
    alone = where(plain, layer.anew_dense, load.only_experts * layer.anew_experts)
    anew = where(mixed, layer.anew_both, alone)
    return _Working((load.heads > 0) * layer.loss * tokens, backward * tokens, anew * tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Messages:
    """Bytes that communication takes: `gathered_inputs` once for inputs, once for gradients."""

    stages: Number
    gathered_inputs: Number
    keys: Number
    routed: Number
    scattered: Number
    gathered_weights: Number

    @property
    def total_bytes(self) -> Number:
        """All together."""
        within = self.stages + 2 * self.gathered_inputs + self.keys + self.routed
        return within + (self.scattered + self.gathered_weights)


def _messages(load: RankLoad, held: HeldSizes) -> _Messages:
    split = held.split_tokens * held.job.hidden
    scattered, gathered_weights = _sharded(load, held)
    return _Messages(
        stages=where(held.pp > 1, 2 * split * ACTIVATION_BYTES, 0),
        gathered_inputs=_gathered_inputs(held),
        keys=where(held.cp > 1, _exchanged_width(held) * held.tokens * ACTIVATION_BYTES, 0),
        routed=where(held.expert_ways > 1, split * held.layer.dispatched, 0),
        scattered=scattered,
        gathered_weights=gathered_weights,
    )


def _gathered_inputs(held: HeldSizes) -> Number:
    """Two gathered inputs, since a tensor of a collective stays until its stream is done."""
    gathers = (held.tp > 1) & (held.job.sequence_parallel > 0)
    return where(gathers, 2 * held.tokens * held.job.hidden * ACTIVATION_BYTES, 0)


def _exchanged_width(held: HeldSizes) -> Number:
    """Elements for each token of what context ranks exchange.

    A ring needs two blocks of keys and values in turn, an all-gather holds those of the whole
    sequence, and an all-to-all hands out queries too (`traded_copies`), whose keys and values may
    go around a ring between nodes.
    """
    layer, blocks = held.layer, held.job.key_value_blocks
    trading = minimum(held.cp, maximum(1, floor(held.job.traded_within / held.tp)))
    copies = maximum(1, trading / maximum(1, layer.key_value_heads))
    once = copies * 2 * layer.key_value_width
    traded = where(trading > 1, layer.query_width + once, 0)
    return traded + where(held.cp > trading, where(blocks > 0, blocks, held.cp) * once, 0)


def _sharded(load: RankLoad, held: HeldSizes) -> tuple[Number, Number]:
    """Whole gradients and weights where ZeRO keeps only shards: of a layer, or of a stage.

    A projection of multi-token prediction stands beside both, and is smaller. A layer with a
    state-space mixer instead of attention may hold more than one with attention.
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
