"""A training job as the numbers that its time depends on; every field may be an array."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Counts and widths of a model, its layout and its batch.

    Widths are of the whole model, and so is the work of a token in a dense layer, in a layer of
    experts without routed ones, in a routed expert, and in the head. `fullest_layers` are those of
    the stage with most layers among those without the head, `head_layers` those of the stage with
    it. `idle` is what a stage idles by its schedule. `microbatches` need not be whole where a
    batch does not divide. A `windowed_share` of the layers sees `window` tokens only; a
    `mixer_share` has a state-space mixer with a core of `mixer_work` FLOP a token instead of
    attention, and weights and widths of attention are means of both. `keys_apart` of the keys that
    a mean layer has, masked half included, are of other documents and skipped. `repeats_layer` and
    `repeats_core` are 1 where backward computes a whole layer or the attention core again,
    `quantized` where products are of 8 bits or fewer. ZeRO `gathers` weights so often in every
    microbatch and `scatters` gradients; `overlapped` is 1 where it does so behind computing.
    Gradients travel in `gradient_bytes`, `per_tensor` where shards are sent tensor by tensor.
    `mtp_layers` modules of multi-token prediction stand beside the head, not among the layers; the
    parameters are with theirs. The share `offloaded` of the optimizer's state is updated by the
    host, and a layer copies `away_dense` or `away_experts` bytes a token of its activations to the
    host and back; both run beside computing where `offload_overlapped` is 1. Context ranks
    `gathers_keys`, `trades_heads`, `trades_in_node` with a ring between nodes, or pass keys around
    a ring, `keys_in_turns` where one block comes while another one is read; where the sequence is
    cut `in_order` the last one has most of the attention. `dispatcher`, `expert_overlap` and
    `cuda_graphs` are numbers of `DISPATCHERS`, `EXPERT_OVERLAPS` and `CUDA_GRAPHS`, 0 for what the
    release does; a token's experts lie in `reached_groups` of `expert_groups`. The fullest rank of
    experts gets `expert_skew` times the mean number of tokens. With a `lora_rank` above 0, matrices
    of layers are frozen in `frozen_bytes` a weight, and a GPU trains the parameters `tuned_dense`
    of a plain layer, `tuned_experts` of one with experts, and `tuned_routed` of its routed experts
    on all expert-parallel ranks, in adapters beside so many matrices, `adapters` or
    `expert_adapters`.
    """

    layers: Number
    expert_layers: Number
    mtp_layers: Number
    dense_work: LayerWork
    expert_work: LayerWork
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
    window: Number
    windowed_share: Number
    mixer_share: Number
    mixer_work: Number
    key_value_width: Number
    key_value_heads: Number
    dense_parameters: Number
    routed_parameters: Number
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
    head_layers: Number
    microbatch: Number
    microbatches: Number
    sequence: Number
    zero_stage: Number
    repeats_layer: Number
    repeats_core: Number
    quantized: Number
    gathers: Number
    scatters: Number
    gradient_bytes: Number
    overlapped: Number
    per_tensor: Number
    keys_apart: Number = 0.0
    offloaded: Number = 0.0
    offload_overlapped: Number = 1.0
    away_dense: Number = 0.0
    away_experts: Number = 0.0
    gathers_keys: Number = 0.0
    trades_heads: Number = 0.0
    trades_in_node: Number = 0.0
    keys_in_turns: Number = 1.0
    in_order: Number = 0.0
    dispatcher: Number = 0.0
    expert_overlap: Number = 0.0
    cuda_graphs: Number = 0.0
    expert_groups: Number = 1.0
    reached_groups: Number = 1.0
    expert_skew: Number = 1.0
    lora_rank: Number = 0.0
    frozen_bytes: Number = 2.0
    tuned_dense: Number = 0.0
    tuned_experts: Number = 0.0
    tuned_routed: Number = 0.0
    adapters: Number = 0.0
    expert_adapters: Number = 0.0

    @property
    def dp(self) -> Number:
        """Replicas of the dense layers."""
        return self.gpus // (self.tp * self.cp * self.pp)

    @property
    def tokens(self) -> Number:
        """Tokens of a microbatch that one context-parallel rank holds."""
        return self.microbatch * self.sequence / self.cp

    @property
    def frozen(self) -> Number:
        """1 where adapters are trained and nothing else, 0 where everything is."""
        return minimum(1, self.lora_rank)


# Every layout of a search and every run of a model asks for the same.
@lru_cache(maxsize=512)
def shape_numbers(shape: ModelShape, mtp_layers: int) -> dict[str, Any]:
    """The fields of a `Job` that the model alone decides, and modules that predict more tokens."""
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
    """The fields of a `Job` that are the same for all layouts of a setup."""
    return {
        **shape_numbers(setup.shape, setup.mtp_layers),
        "sequence": setup.sequence,
        "keys_apart": keys_apart(
            setup.shape, setup.sequence, setup.document_tokens if setup.flash_attention else ()
        ),
        "gradient_bytes": setup.recipe.gradient_bytes,
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
    """Keys of other documents in a mean layer, which FlashAttention skips."""
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
    """The fields of a `Job` that say what a GPU of one layout trains in adapters."""
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
    """The fields of a `Job` that say what a layer of one layout copies to the host and back."""
    if not setup.offloaded_activations:
        return {}
    sizes = layer_sizes(setup)
    return {"away_dense": sizes.away_dense, "away_experts": sizes.away_experts}


def stacked(jobs: list[Job]) -> Job:
    """Many jobs as one whose fields are arrays. Raises InputError for none."""
    if not jobs:
        raise InputError("jobs", expected="at least one", got="none")
    found: Job = _stacked(jobs)
    return found


def _stacked(values: list[Any]) -> Any:
    """Numbers as an array, records as one with arrays in its fields, lists as one of such.

    Shorter lists repeat their last record.
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
