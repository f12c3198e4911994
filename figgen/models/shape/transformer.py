"""A transformer's parameters, counted matrix by matrix, and its FLOPs per token.

Every count is of one whole model, with nothing sharded. The functions take a `ModelShape`, and so
work for published and invented models alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from figgen.errors import InputError
from figgen.formulas.modern_layers import state_space_parameters, state_space_work
from figgen.models.shape.documents import packed_keys
from figgen.models.shape.model_shape import FFN_MATRICES, NORM_VECTORS, ModelShape


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCounts:
    """The parameters of a whole model by location.

    `routed_experts` counts all experts, `active_routed_experts` the experts of one token. `head` is
    zero if the output projection shares the embedding table.
    """

    embedding: int
    positions: int
    attention: int
    ffn: int
    router: int
    shared_experts: int
    routed_experts: int
    active_routed_experts: int
    norms: int
    head: int
    extra: int

    @property
    def total(self) -> int:
        """All parameters."""
        return self.active - self.active_routed_experts + self.routed_experts

    @property
    def active(self) -> int:
        """Parameters that one token uses: everything except the experts that it does not visit.

        The whole embedding table is counted; some reports exclude it from "active".
        """
        return (
            self.embedding
            + self.positions
            + self.attention
            + self.ffn
            + self.router
            + self.shared_experts
            + self.active_routed_experts
            + self.norms
            + self.head
            + self.extra
        )


def attention_weights(shape: ModelShape) -> int:
    """Weights of the projections of one attention block, biases not counted.

    Grouped-query attention: h·a·d for queries and output each, h·a_kv·d for keys and values
    each. Latent attention: down- and up-projections of queries and of keys and values.
    """
    mla = shape.latent
    if mla is None:
        query, key_value = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        return 2 * shape.hidden * query + 2 * shape.hidden * key_value
    down = shape.hidden * (mla.query_rank + mla.kv_rank + mla.rope_head_dim)
    at_once = 0 if mla.query_rank else shape.heads * (mla.nope_head_dim + mla.rope_head_dim)
    out = shape.heads * mla.value_head_dim * shape.hidden
    return down + shape.hidden * at_once + up_projection_weights(shape) + out


def up_projection_weights(shape: ModelShape) -> int:
    """Weights that expand the latents of one latent attention block; 0 for other attention."""
    mla = shape.latent
    if mla is None:
        return 0
    query = mla.query_rank * (mla.nope_head_dim + mla.rope_head_dim)
    return shape.heads * (query + mla.kv_rank * (mla.nope_head_dim + mla.value_head_dim))


def mixer_weights(shape: ModelShape) -> int:
    """Weights of both projections of one state-space mixer; 0 if the model has none."""
    mixers = shape.state_space
    return shape.hidden * (mixers.projected + mixers.inner) if mixers else 0


def mixer_parameters(shape: ModelShape) -> int:
    """All parameters of one state-space mixer: `state_space_parameters` with its sizes."""
    mixers = shape.state_space
    if mixers is None:
        return 0
    return int(
        state_space_parameters(
            shape.hidden,
            mixers.inner,
            mixers.state,
            mixers.groups,
            mixers.mixer_heads,
            mixers.convolution,
        )
    )


def mixer_core_flops(shape: ModelShape) -> float:
    """Forward FLOPs of a token in one mixer's core: `state_space_work` with its sizes."""
    mixers = shape.state_space
    if mixers is None:
        return 0.0
    return float(state_space_work(mixers.inner, mixers.state, mixers.groups, mixers.chunk))


def attention_biases(shape: ModelShape) -> int:
    """Biases of the projections of one attention block; 0 if the model has none."""
    if not shape.bias:
        return 0
    return (shape.heads + 2 * shape.kv_heads) * shape.head_dim + shape.hidden


def ffn_weights(shape: ModelShape, ffn_hidden: int) -> int:
    """Weights of one feed-forward block: 3·h·f with a gate (SwiGLU, GeGLU), else 2·h·f."""
    return FFN_MATRICES[shape.ffn] * shape.hidden * ffn_hidden


def ffn_biases(shape: ModelShape, ffn_hidden: int) -> int:
    """Biases of one feed-forward block; 0 if the model has none."""
    if not shape.bias:
        return 0
    return (FFN_MATRICES[shape.ffn] - 1) * ffn_hidden + shape.hidden


def norm_parameters(shape: ModelShape) -> int:
    """Parameters of every normalization of the model."""
    vectors = NORM_VECTORS[shape.norm]
    per_layer = shape.norms_per_layer * shape.hidden * vectors
    if shape.qk_norm == "per-head":
        per_layer += 2 * shape.head_dim
    elif shape.qk_norm == "full-width":
        per_layer += (shape.heads + shape.kv_heads) * shape.head_dim
    if shape.latent is not None:
        per_layer += shape.latent.query_rank + shape.latent.kv_rank
    return shape.layers * per_layer + (vectors * shape.hidden if shape.final_norm else 0)


def parameter_counts(shape: ModelShape) -> ParameterCounts:
    """Count every parameter of `shape`, by part.

    Source: the shapes of the cited reports; the sums equal the released checkpoints of
    Llama 3.1 and OLMo 2 to the last parameter.
    """
    experts = shape.experts
    dense_ffn = ffn_weights(shape, shape.ffn_hidden) + ffn_biases(shape, shape.ffn_hidden)
    one_expert = router = shared = routed = active = 0
    if experts is not None:
        one_expert = ffn_weights(shape, experts.ffn_hidden) + ffn_biases(shape, experts.ffn_hidden)
        router = shape.hidden * experts.count + (experts.count if shape.bias else 0)
        shared, routed, active = experts.shared, experts.count, experts.top_k
    attention = shape.attention_layers * (attention_weights(shape) + attention_biases(shape))
    return ParameterCounts(
        embedding=shape.vocab * shape.hidden,
        positions=shape.sequence * shape.hidden if shape.learned_positions else 0,
        attention=attention + shape.state_space_layers * mixer_parameters(shape),
        ffn=shape.dense_layers * dense_ffn,
        router=shape.expert_layers * router,
        shared_experts=shape.expert_layers * shared * one_expert,
        routed_experts=shape.expert_layers * routed * one_expert,
        active_routed_experts=shape.expert_layers * active * one_expert,
        norms=norm_parameters(shape),
        head=0 if shape.tied_embeddings else shape.vocab * shape.hidden,
        extra=shape.extra,
    )


def module_parameters(shape: ModelShape) -> tuple[int, int]:
    """Return parameters of a module that predicts one more token, and those of its routed experts.

    It has a layer like the model's last one, a projection of two hidden states to one, and three
    norms; embedding and head are the model's. Source: DeepSeek-V3, arXiv:2412.19437, section 2.2.
    """
    experts = shape.experts
    one = replace(
        shape,
        state_space=None,
        layers=1,
        final_norm=False,
        learned_positions=False,
        extra=0,
        experts=replace(experts, dense_layers=0) if experts else None,
    )
    counts = parameter_counts(one)
    layer = counts.total - counts.routed_experts - counts.embedding - counts.head
    more = 2 * shape.hidden**2 + 3 * NORM_VECTORS[shape.norm] * shape.hidden
    return layer + more, counts.routed_experts


def matmul_parameters(shape: ModelShape) -> int:
    """Weights that one token is multiplied with: no lookup table, norm or bias; with LM head."""
    layers = weights_met(shape, shape.dense_layers, shape.expert_layers)
    layers += shape.state_space_layers * (mixer_weights(shape) - attention_weights(shape))
    return layers + shape.vocab * shape.hidden


def weights_met(shape: ModelShape, dense_layers: int, expert_layers: int) -> int:
    """Return the weights that multiply a token in these layers, with a plain block or experts."""
    parts = part_weights(shape)
    met = (dense_layers + expert_layers) * parts["attention"] + dense_layers * parts["dense"]
    return met + expert_layers * (parts["routed"] + parts["shared"])


def part_weights(shape: ModelShape) -> dict[str, int]:
    """Return the weights that multiply a token in each part of a layer.

    "up_projections" are included in "attention". "routed" is the router plus the `top_k` routed
    experts of the token. "projections" belong to a module that predicts one more token.
    """
    found = {
        "attention": attention_weights(shape),
        "mixers": mixer_weights(shape),
        "up_projections": up_projection_weights(shape),
        "dense": ffn_weights(shape, shape.ffn_hidden),
        "routed": 0,
        "shared": 0,
        "projections": 2 * shape.hidden**2,
    }
    experts = shape.experts
    if experts is not None:
        one = ffn_weights(shape, experts.ffn_hidden)
        found["routed"] = experts.top_k * one + shape.hidden * experts.count
        found["shared"] = experts.shared * one
    return found


def dense_layer_weights(shape: ModelShape) -> int:
    """Return the weights of a layer of a dense model, without biases or norms.

    Raises InputError for a mixture of experts, whose layers differ.
    """
    if shape.experts is not None:
        raise InputError("work of a layer", expected="a dense model", got="a mixture of experts")
    return weights_met(shape, 1, 0)


def keys_met(shape: ModelShape, sequence: int, documents: tuple[int, ...] = ()) -> float:
    """Return the keys that a token attends to, over all layers, including the masked half.

    If a sequence is packed with `documents`, only keys of its own document count.
    """
    windowed = shape.windowed_layers(0, shape.layers)
    whole = (shape.attention_layers - windowed) * packed_keys(sequence, sequence, documents)
    if not windowed:
        return whole
    return whole + windowed * packed_keys(sequence, shape.window, documents)


def flops_per_token(
    shape: ModelShape,
    *,
    sequence: int | None = None,
    causal: bool = False,
    documents: tuple[int, ...] = (),
) -> int:
    """Return the model FLOPs of training on one token (forward and backward) without recomputation.

    It is 6 per weight that the token uses, plus 12·(a·d) in every layer for the attention matmuls
    with each key of `sequence` tokens (by default the shape's own). Windows and packed `documents`
    reduce the keys to `packed_keys`, and `causal` halves them to the unmasked half of the square. A
    state-space mixer's core is counted in full, as it is computed in chunks. Source: PaLM,
    arXiv:2204.02311, appendix B.
    """
    length = shape.sequence if sequence is None else sequence
    attention = int(12 * shape.attention_width * keys_met(shape, length, documents))
    cores = int(3 * shape.state_space_layers * mixer_core_flops(shape))
    products = 6 * matmul_parameters(shape) + cores
    return products + (attention // 2 if causal else attention)
