"""The counts and widths that determine the size of a transformer, with their checks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from figgen.errors import InputError

# How many weight matrices one feed-forward block holds: a gate doubles the way up.
FFN_MATRICES = {
    "gelu": 2,
    "relu": 2,
    "squared-relu": 2,
    "geglu": 3,
    "swiglu": 3,
}

GATED = 3
"""Number of matrices of a block with a gate."""

# Parameters of one normalization per channel: LayerNorm learns a scale and a shift.
NORM_VECTORS = {"layernorm": 2, "layernorm-no-bias": 1, "rmsnorm": 1}

QK_NORMS = ("none", "per-head", "full-width")


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention: keys and values are rebuilt from one small cached vector.

    `query_rank` and `kv_rank` are the widths of the compressed query and key-value; with rank 0
    queries are projected directly, without compression. A query or key head is `nope_head_dim +
    rope_head_dim` wide, a value head `value_head_dim`. Source: DeepSeek-V2, arXiv:2405.04434,
    section 2.1.
    """

    query_rank: int
    kv_rank: int
    nope_head_dim: int
    rope_head_dim: int
    value_head_dim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertShape:
    """The mixture-of-experts part: `count` routed experts, of which each token uses `top_k`.

    `shared` experts process every token. The first `dense_layers` layers keep a plain feed-forward
    block of the model's own `ffn_hidden`. A token's experts lie in at most `reached` of `groups`
    groups of experts.
    """

    count: int
    top_k: int
    ffn_hidden: int
    shared: int = 0
    dense_layers: int = 0
    groups: int = 1
    reached: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSpace:
    """Mamba-2 mixers instead of attention, in all or most layers.

    A mixer has `mixer_heads` of `mixer_head_dim` channels, each with a state of `state` numbers;
    `groups` of heads share the maps into and out of it. It is computed in chunks of `chunk` tokens
    after a convolution over `convolution` of them. Every `attention_every`-th layer from number
    `attention_first` on, counted from 0, keeps its attention; with 0 none does.
    Source: Dao and Gu 2024, arXiv:2405.21060; NVIDIA/Megatron-LM core, ssm/mamba_mixer.py.
    """

    mixer_heads: int
    mixer_head_dim: int
    state: int
    groups: int = 1
    convolution: int = 4
    chunk: int = 256
    attention_every: int = 0
    attention_first: int = 0

    @property
    def inner(self) -> int:
        """Channels of a mixer."""
        return self.mixer_heads * self.mixer_head_dim

    @property
    def projected(self) -> int:
        """Width of a mixer's projection of a token: gate, input, B, C, and a step size per head."""
        return 2 * self.inner + 2 * self.groups * self.state + self.mixer_heads

    def attention_before(self, layer: int) -> int:
        """Return how many layers before number `layer` have attention."""
        if not self.attention_every:
            return 0
        return max(0, -(-(layer - self.attention_first) // self.attention_every))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """The counts and widths that determine the size of a transformer.

    `sequence` is the main pre-training length in tokens. `extra` counts parameters outside the
    regular blocks (an embedding LayerNorm, a pooler, attention sinks). With a `window`, a token
    sees only itself and the tokens before it within the window. The last of every `full_every`
    layers sees all tokens; 0 means that no layer does.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn_hidden: int
    vocab: int
    sequence: int
    ffn: str = "swiglu"
    norm: str = "rmsnorm"
    norms_per_layer: int = 2
    final_norm: bool = True
    qk_norm: str = "none"
    bias: bool = False
    tied_embeddings: bool = False
    learned_positions: bool = False
    extra: int = 0
    window: int = 0
    full_every: int = 0
    experts: ExpertShape | None = None
    latent: LatentAttention | None = None
    state_space: StateSpace | None = None

    def __post_init__(self) -> None:
        """Check that the shape is a transformer's.

        Raises InputError for a size below 1, key-value heads that do not divide the query heads, an
        unknown block kind, or more active than existing experts.
        """
        for name in ("layers", "hidden", "heads", "kv_heads", "head_dim", "vocab", "sequence"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} of a model", expected=">= 1", got=getattr(self, name))
        if self.heads % self.kv_heads:
            raise InputError(
                "kv_heads of a model",
                expected=f"a divisor of {self.heads} heads",
                got=self.kv_heads,
            )
        _choice("ffn", self.ffn, FFN_MATRICES)
        _choice("norm", self.norm, NORM_VECTORS)
        _choice("qk_norm", self.qk_norm, QK_NORMS)
        for name in ("window", "full_every"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} of a model", expected=">= 0", got=getattr(self, name))
        if self.experts is not None:
            _check_experts(self.experts, self.layers)
        if self.state_space is not None:
            _check_state_space(self)

    @property
    def dense_layers(self) -> int:
        """Layers whose feed-forward block is not a mixture of experts."""
        return self.layers if self.experts is None else self.experts.dense_layers

    @property
    def expert_layers(self) -> int:
        """Layers whose feed-forward block is a mixture of experts."""
        return self.layers - self.dense_layers

    def windowed_layers(self, first: int, layers: int) -> int:
        """Return how many of `layers` layers, from number `first` on, only see a window."""
        if not self.window or not self.full_every:
            return layers if self.window else 0
        return layers - (first + layers) // self.full_every + first // self.full_every

    @property
    def attention_layers(self) -> int:
        """Layers with attention."""
        return self.layers - self.state_space_layers

    @property
    def state_space_layers(self) -> int:
        """Layers with a mixer instead of attention."""
        return self.mixer_layers(0, self.layers)

    def mixer_layers(self, first: int, layers: int) -> int:
        """Return how many of `layers` layers, from number `first` on, have a mixer."""
        if self.state_space is None:
            return 0
        before = self.state_space.attention_before
        return layers - before(first + layers) + before(first)

    @property
    def attention_width(self) -> int:
        """Return the mean width of the score and value matmuls: heads · head_dim.

        Latent attention has wider keys than values; the matmuls then cost what a width of
        heads · (key width + value width) / 2 would.
        """
        if self.latent is None:
            return self.heads * self.head_dim
        key = self.latent.nope_head_dim + self.latent.rope_head_dim
        return self.heads * (key + self.latent.value_head_dim) // 2


def _choice(what: str, got: str, known: Collection[str]) -> None:
    if got not in known:
        raise InputError(f"{what} of a model", expected=" or ".join(known), got=got)


def _check_experts(experts: ExpertShape, layers: int) -> None:
    if experts.ffn_hidden < 1:
        raise InputError("ffn_hidden of an expert", expected=">= 1", got=experts.ffn_hidden)
    if not 1 <= experts.top_k <= experts.count:
        raise InputError("top_k of a model", expected=f"1 to {experts.count}", got=experts.top_k)
    if not 0 <= experts.dense_layers < layers:
        raise InputError(
            "dense_layers of a model", expected=f"0 to {layers - 1}", got=experts.dense_layers
        )


def _check_state_space(shape: ModelShape) -> None:
    mixers = shape.state_space
    if mixers is None:
        return
    if mixers.mixer_heads % mixers.groups:
        expected = f"a divisor of {mixers.mixer_heads} heads"
        raise InputError("groups of a mixer", expected=expected, got=mixers.groups)
    if shape.latent or shape.window or shape.qk_norm != "none":
        raise InputError(
            "attention beside state-space layers",
            expected="plain: no latent vectors, windows or norms of queries and keys",
        )


def check_gpt_layer(shape: ModelShape) -> None:
    """Raise InputError unless a layer's activations are 34·s·b·h + 5·a·s²·b, as GPT's are."""
    plain = shape.ffn == "gelu" and shape.ffn_hidden == 4 * shape.hidden and not shape.state_space
    if not plain or shape.kv_heads != shape.heads or shape.experts or shape.latent:
        raise InputError("model", expected="layers of GPT's kind: full heads and a GELU MLP of 4h")
