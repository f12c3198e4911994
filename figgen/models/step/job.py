"""A training job as the numbers that its step time depends on; every field may be an array."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from figgen.equations.ops import Number, minimum
from figgen.errors import InputError
from figgen.models.memory.held_sizes import layer_sizes
from figgen.models.memory.trained_state import adapted_matrices, kept_by_layer
from figgen.models.operations.layer_work import LayerWork, layer_work
from figgen.models.operations.tuned_layer import (
    dense_operations,
    expert_operations,
    head_operations,
    routed_operations,
)
from figgen.models.pipeline.filling import PipelineIdle
from figgen.models.setup.training_setup import (
    CUDA_GRAPHS,
    DISPATCHERS,
    EXPERT_OVERLAPS,
    TrainingSetup,
)
from figgen.models.shape.documents import packed_keys, windowed_keys
from figgen.models.shape.model_shape import ModelShape
from figgen.models.shape.transformer import (
    attention_weights,
    ffn_weights,
    mixer_core_flops,
    mixer_weights,
    module_parameters,
    parameter_counts,
)

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Sizes of a model, its layout and its batch, as far as they determine the time of a step.

    Widths, weights and work per token are those of the whole model, before any axis divides it.
    Fields that are 0 or 1 are switches.
    """

    # The model, and the work of a token in its layers, in one routed expert, and in the head.
    # Weights and widths of attention are means over attention and state-space mixers.
    layers: Number
    expert_layers: Number
    mtp_layers: Number  # modules of multi-token prediction, not among the layers
    dense_work: LayerWork
    expert_work: LayerWork  # without routed experts
    routed_work: LayerWork
    head_work: LayerWork
    hidden: Number
    vocab: Number
    attention_weights: Number
    dense_weights: Number
    expert_weights: Number
    experts: Number
    top_k: Number
    shared: Number
    attention_width: Number
    window: Number  # tokens
    windowed_share: Number  # of the layers
    mixer_share: Number  # of the layers that have a state-space mixer instead of attention
    mixer_work: Number  # FLOPs per token of a mixer's core
    key_value_width: Number
    key_value_heads: Number
    dense_parameters: Number  # all but routed experts, those of MTP modules included
    routed_parameters: Number
    # The layout. `fullest_layers` is the most layers of a stage without the head.
    tp: Number
    cp: Number
    pp: Number
    ep: Number
    etp: Number
    gpus: Number
    gpus_per_node: Number
    chunks: Number
    idle: PipelineIdle
    fullest_layers: Number
    head_layers: Number  # of the stage with the head
    # The batch. `microbatches` is a fraction if they do not divide the batch.
    microbatch: Number
    microbatches: Number
    sequence: Number
    zero_stage: Number
    repeats_layer: Number  # 1: backward recomputes whole layers
    repeats_core: Number  # 1: backward recomputes the attention core
    quantized: Number  # 1: matmuls in 8 bits or fewer
    gathers: Number  # ZeRO gathers of the weights per microbatch
    scatters: Number  # 1: ZeRO scatters gradients in every microbatch
    gradient_bytes: Number
    overlapped: Number  # 1: ZeRO messages overlap computing
    per_tensor: Number  # 1: shards are sent tensor by tensor
    gathers_alone: Number = 0.0  # 1: weights gathered once per step are exposed
    keys_apart: Number = 0.0  # keys per query that are other documents', mean over layers
    # Offloading: the share of the optimizer's state on the host, and bytes of activations per
    # token that a dense or an expert layer copies to the host and back.
    offloaded: Number = 0.0
    offload_overlapped: Number = 1.0
    away_dense: Number = 0.0
    away_experts: Number = 0.0
    # The exchange of context parallelism, a ring if none is 1; `trades_in_node` trades heads inside
    # a node and forms a ring between nodes.
    gathers_keys: Number = 0.0
    trades_heads: Number = 0.0
    trades_in_node: Number = 0.0
    keys_in_turns: Number = 1.0  # 1: a block of keys arrives while another one is read
    in_order: Number = 0.0  # 1: the last rank has most of the attention
    # Experts. The first three are codes of `DISPATCHERS`, `EXPERT_OVERLAPS` and `CUDA_GRAPHS`,
    # 0 for the release's default.
    dispatcher: Number = 0.0
    expert_overlap: Number = 0.0
    cuda_graphs: Number = 0.0
    expert_groups: Number = 1.0
    reached_groups: Number = 1.0  # groups that hold the experts of a token
    expert_skew: Number = 1.0  # tokens of the fullest expert rank over the mean
    # Adapters, if `lora_rank` is above 0: bytes per frozen weight, parameters that a GPU trains in
    # a dense layer, in an expert layer and in its routed experts over all expert-parallel ranks,
    # and the numbers of adapted matrices.
    lora_rank: Number = 0.0
    frozen_bytes: Number = 2.0
    tuned_dense: Number = 0.0
    tuned_experts: Number = 0.0
    tuned_routed: Number = 0.0
    adapters: Number = 0.0
    expert_adapters: Number = 0.0

    @property
    def dp(self) -> Number:
        """Number of replicas of the dense layers."""
        return self.gpus // (self.tp * self.cp * self.pp)

    @property
    def tokens(self) -> Number:
        """Tokens of a microbatch on one context-parallel rank."""
        return self.microbatch * self.sequence / self.cp

    @property
    def frozen(self) -> Number:
        """1 if only adapters are trained, 0 if all weights are."""
        return minimum(1, self.lora_rank)


# Every layout of a search and every run of a model needs the same numbers.
@lru_cache(maxsize=512)
def shape_numbers(shape: ModelShape, mtp_layers: int) -> dict[str, Any]:
    """Return the fields of a `Job` that depend only on the model and its MTP modules."""
    counts, experts = parameter_counts(shape), shape.experts
    if shape.latent is None:
        key_value = shape.kv_heads * shape.head_dim
    else:
        mla = shape.latent
        key = mla.nope_head_dim + mla.rope_head_dim
        key_value = shape.heads * (key + mla.value_head_dim) // 2
    dense, routed = module_parameters(shape) if mtp_layers else (0, 0)
    mixers = shape.state_space
    share = shape.state_space_layers / shape.layers

    def mean(attention: float, mixer: float) -> float:
        return (1 - share) * attention + share * mixer if mixers else attention

    return {
        "layers": shape.layers,
        "expert_layers": shape.expert_layers,
        "mtp_layers": mtp_layers,
        "dense_work": layer_work(dense_operations(shape, 1, 1)),
        "expert_work": layer_work(expert_operations(shape, 1, 1)),
        "routed_work": layer_work(routed_operations(shape, 1)),
        "head_work": layer_work(head_operations(shape, 1, 1)),
        "hidden": shape.hidden,
        "vocab": shape.vocab,
        "attention_weights": mean(attention_weights(shape), mixer_weights(shape)),
        "dense_weights": ffn_weights(shape, shape.ffn_hidden),
        "expert_weights": ffn_weights(shape, experts.ffn_hidden) if experts else 0,
        "experts": experts.count if experts else 1,
        "top_k": experts.top_k if experts else 0,
        "shared": experts.shared if experts else 0,
        "expert_groups": experts.groups if experts else 1,
        "reached_groups": experts.reached if experts else 1,
        "attention_width": shape.attention_width,
        "window": shape.window,
        "windowed_share": shape.windowed_layers(0, shape.layers) / shape.layers,
        "mixer_share": share,
        "mixer_work": mixer_core_flops(shape),
        "key_value_width": mean(key_value, 0),
        "key_value_heads": shape.kv_heads if shape.latent is None else shape.heads,
        "dense_parameters": counts.total - counts.routed_experts + mtp_layers * dense,
        "routed_parameters": counts.routed_experts + mtp_layers * routed,
    }


def setup_numbers(setup: TrainingSetup) -> dict[str, Any]:
    """Return the fields of a `Job` that are the same for all layouts of a setup."""
    return {
        **shape_numbers(setup.shape, setup.mtp_layers),
        "sequence": setup.sequence,
        "keys_apart": keys_apart(
            setup.shape, setup.sequence, setup.document_tokens if setup.flash_attention else ()
        ),
        "gradient_bytes": setup.recipe.gradient_bytes,
        "gathers_alone": 0.0 if setup.overlap_weights else 1.0,
        "offloaded": setup.offloaded_optimizer,
        "offload_overlapped": 1.0 if setup.offload_overlap else 0.0,
        "gathers_keys": 1.0 if setup.context_exchange == "all-gather" else 0.0,
        "trades_heads": 1.0 if setup.trades_heads else 0.0,
        "trades_in_node": 1.0 if setup.context_exchange == "a2a+p2p" else 0.0,
        "keys_in_turns": 1.0 if setup.double_buffering else 0.0,
        "in_order": 0.0 if setup.zigzag else 1.0,
        "dispatcher": DISPATCHERS[setup.dispatcher],
        "expert_overlap": EXPERT_OVERLAPS[setup.expert_overlap],
        "cuda_graphs": CUDA_GRAPHS[setup.cuda_graphs],
        "expert_skew": setup.expert_skew,
        "lora_rank": setup.lora_rank or 0.0,
        "frozen_bytes": setup.frozen_format.weight_bytes,
        "adapters": adapted_matrices(setup, experts=False),
        "expert_adapters": adapted_matrices(setup, experts=True),
    }


def keys_apart(shape: ModelShape, sequence: int, documents: tuple[int, ...]) -> float:
    """Return the keys of other documents that FlashAttention skips per query, mean over layers."""
    if not documents:
        return 0.0
    windowed = shape.windowed_layers(0, shape.layers)
    whole = sequence - packed_keys(sequence, sequence, documents)
    near = 0.0
    if windowed:
        near = windowed_keys(sequence, shape.window)
        near -= packed_keys(sequence, shape.window, documents)
    apart = (shape.attention_layers - windowed) * whole + windowed * near
    return apart / shape.layers


def tuned_numbers(setup: TrainingSetup) -> dict[str, Any]:
    """Return the fields of a `Job` that count the adapter parameters a GPU trains."""
    shape = setup.shape
    if setup.lora_rank is None:
        return {}
    found: dict[str, Any] = {}
    if shape.dense_layers:
        found["tuned_dense"] = kept_by_layer(setup, experts=False).trained
    if shape.expert_layers:
        experts = kept_by_layer(setup, experts=True)
        found["tuned_experts"] = experts.trained
        found["tuned_routed"] = experts.trained_routed * setup.parallel.ep
    return found


def away_numbers(setup: TrainingSetup) -> dict[str, Any]:
    """Return the fields of a `Job` that count the bytes a layer copies to the host and back."""
    if not setup.offloaded_activations:
        return {}
    sizes = layer_sizes(setup)
    return {"away_dense": sizes.away_dense, "away_experts": sizes.away_experts}


def stacked(records: list[Record]) -> Record:
    """Combine many jobs, or the rates of many, into one record whose fields are arrays.

    Raises InputError if there are none.
    """
    if not records:
        raise InputError("jobs", expected="at least one", got="none")
    found: Record = _stacked(records)
    return found


def _stacked(values: list[Any]) -> Any:
    """Combine numbers into an array, records field by field, and tuples entry by entry.

    Shorter tuples repeat their last entry.
    """
    kind = type(values[0])
    if kind is tuple:
        longest = max(len(one) for one in values)
        return tuple(
            _stacked([one[min(place, len(one) - 1)] for one in values]) for place in range(longest)
        )
    if not is_dataclass(kind):
        return np.array(values, dtype=float)
    names = [field.name for field in fields(kind)]
    return kind(**{name: _stacked([getattr(one, name) for one in values]) for name in names})
