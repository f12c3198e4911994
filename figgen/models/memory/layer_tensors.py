"""Tensors that a layer keeps for backward, their sizes, and the recomputation that drops them.

They follow Korthikanti et al. 2022, arXiv:2205.05198, section 4, extended to any attention and
feed-forward block. For experts, Yan et al. 2026, arXiv:2603.07685, print the total of DeepSeek-V3
and the sizes of its larger tensors, which these tensors match. Elements are 16 bits unless
`figgen.models.shape.activation_formats` says otherwise, masks one byte, router logits 32 bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from figgen.models.memory.trained_state import adapted
from figgen.models.setup.layer_matrices import layer_matrices
from figgen.models.setup.training_setup import ACTIVATION_BYTES, TrainingSetup
from figgen.models.shape.model_shape import FFN_MATRICES, GATED
from figgen.models.shape.recomputation import SECOND

MASK_BYTES = 1
LOGIT_BYTES = 4
SHARED = ("moe", "shared_experts")
OF_FEED_FORWARD = (
    "ffn input", "ffn products", "router input", "routed inputs", "routed products",
    "shared products",
)  # fmt: skip
"""Inputs of feed-forward matrices that nothing else reads."""


@dataclass(frozen=True, slots=True)
class KeptTensor:
    """Bytes of one tensor of one layer and microbatch on one GPU.

    Recomputing any of `modules` drops the tensor. Tensors of the attention core grow with the
    square of the sequence length.
    """

    name: str
    bytes: float
    modules: tuple[str, ...] = ()

    @property
    def core(self) -> bool:
        """Whether the tensor belongs to the attention core."""
        return "core_attn" in self.modules


# Kept bytes, recomputed bytes and gradient bytes ask for the same tensors in turn.
@lru_cache(maxsize=16)
def layer_tensors(
    setup: TrainingSetup, *, experts: bool = False, mixer: bool = False
) -> tuple[KeptTensor, ...]:
    """Return every tensor that one layer keeps for one microbatch when nothing is recomputed.

    With `mixer`, a state-space mixer takes the place of attention; with `experts`, experts take the
    place of a plain feed-forward block.
    """
    tensors = [*(_mixer_tensors(setup) if mixer else _attention_tensors(setup))]
    tensors += _expert_tensors(setup) if experts else _dense_tensors(setup)
    tensors += _adapter_tensors(setup, experts)
    norms = setup.shape.norms_per_layer * setup.shape.hidden
    written_out = setup.shape.norm == "rmsnorm"
    size = setup.framework_memory.norm_bytes if written_out else ACTIVATION_BYTES
    tensors.append(_whole(setup, "norm inputs", norms, size=size))
    if setup.dropout:
        masks = 2 * setup.shape.hidden * MASK_BYTES / ACTIVATION_BYTES
        tensors.append(_whole(setup, "dropout masks", masks))
    return tuple(tensor for tensor in tensors if tensor.bytes)


def unread_tensors(setup: TrainingSetup) -> frozenset[str]:
    """Return the names of tensors that autograd drops: only gradients of frozen weights read them.

    A frozen matmul saves only its weights, and an adapter beside it saves its input; a kernel that
    stores no scores reads the output of attention. `tests/models/test_adapters.py` checks this
    against what PyTorch saves.
    """
    if setup.lora_rank is None or setup.frozen_format.keeps_inputs:
        return frozenset()
    experts, found = setup.shape.experts, set[str]()
    if setup.lora_matrices != "all-linear":
        found = set(OF_FEED_FORWARD)
    elif experts is not None and not experts.shared:
        found = {"router input"}
    if setup.lora_matrices == "query-value" and not setup.flash_attention:
        found.add("attention output")
    return frozenset(found)


def _attention_tensors(setup: TrainingSetup) -> Iterator[KeptTensor]:
    shape, mla, kept_as = setup.shape, setup.shape.latent, setup.activation_format
    linear = kept_as.linear_bytes
    heads, kv_heads = shape.heads // setup.parallel.tp, setup.kv_heads_per_rank
    key_dim = value_dim = shape.head_dim
    # In 8 bits each of two down-projections keeps its own copy.
    copies = 2 if mla is not None and kept_as.eight_bit else 1
    yield column_input(
        setup, "attention input", copies * shape.hidden, "layernorm", SECOND, size=linear
    )
    made_by: tuple[str, ...] = ()
    second: tuple[str, ...] = () if mla is not None else (SECOND,)
    if mla is not None:
        ranks, made_by = mla.query_rank + mla.kv_rank, ("mla_up_proj",)
        yield _whole(setup, "latents and rotary keys", ranks + mla.rope_head_dim)
        yield _whole(setup, "normed latents", ranks, "latent_norm", size=linear)
        key_dim, value_dim = mla.nope_head_dim + mla.rope_head_dim, mla.value_head_dim
        kv_heads = heads
    if shape.qk_norm != "none":
        yield _divided(setup, "query and key norm inputs", (heads + kv_heads) * key_dim)
    if setup.framework_memory.repeats_keys:
        kv_heads = heads
    yield _divided(setup, "queries", heads * key_dim, *made_by)
    yield _divided(setup, "keys", kv_heads * key_dim, *made_by, *second)
    yield _divided(setup, "values", kv_heads * value_dim, *made_by)
    scores = setup.tokens * heads * setup.sequence
    core = ("core_attn",)
    yield KeptTensor("attention probabilities", scores * ACTIVATION_BYTES, core)
    if setup.dropout:
        kept = scores * (ACTIVATION_BYTES + MASK_BYTES)
        yield KeptTensor("probabilities after dropout, with mask", kept, core)
    size = kept_as.attention_bytes
    yield _divided(setup, "attention output", heads * value_dim, size=size)


def _mixer_tensors(setup: TrainingSetup) -> Iterator[KeptTensor]:
    """Yield what a state-space mixer keeps; its kernel recomputes the convolution and the states.

    Source: state-spaces/mamba, ops/triton/ssd_combined.py, MambaSplitConv1dScanCombinedFn (saves
    the projection's output and the scan's output before the gate); Megatron-LM core,
    ssm/mamba_mixer.py (a norm after it, which keeps its input, and a projection).
    """
    mixers, tp = setup.shape.state_space, setup.parallel.tp
    if mixers is None:
        return
    linear = setup.activation_format.linear_bytes
    yield column_input(setup, "mixer input", setup.shape.hidden, "layernorm", SECOND, size=linear)
    yield _divided(setup, "gates, inputs, maps and steps", mixers.projected // tp)
    yield _divided(setup, "outputs of the scan", mixers.inner // tp)
    yield _divided(setup, "gated outputs", mixers.inner // tp)
    yield _divided(setup, "normed outputs", mixers.inner // tp, size=linear)


def _dense_tensors(setup: TrainingSetup) -> Iterator[KeptTensor]:
    shape, linear = setup.shape, setup.activation_format.linear_bytes
    yield column_input(setup, "ffn input", shape.hidden, "layernorm", SECOND, size=linear)
    # A gate multiplies two tensors; without a gate, the activation maps one tensor to another.
    width = shape.ffn_hidden // setup.parallel.tp
    yield _divided(setup, "ffn activation inputs", width, "mlp")
    if FFN_MATRICES[shape.ffn] == GATED:
        yield _divided(setup, "ffn inputs of the gate", width, "mlp", SECOND)
        if setup.framework_memory.keeps_gate:
            yield _divided(setup, "ffn gates", width, "mlp", SECOND)
    yield _divided(setup, "ffn products", width, "mlp", SECOND, size=linear)


def _expert_tensors(setup: TrainingSetup) -> Iterator[KeptTensor]:
    shape, mixture, etp = setup.shape, setup.shape.experts, setup.parallel.etp
    if mixture is None:
        return
    kept_as = setup.activation_format
    linear, gated = kept_as.linear_bytes, kept_as.gated_bytes
    choices = mixture.top_k * setup.fullest_experts
    before, routed = FFN_MATRICES[shape.ffn] - 1, choices * mixture.ffn_hidden
    # The router reads 16 bits, whatever the format of the matmuls.
    yield _whole(setup, "router input", shape.hidden, "layernorm")
    logits = mixture.count * LOGIT_BYTES / ACTIVATION_BYTES
    yield _whole(setup, "router logits", logits, "moe")
    # Each of the ETP ranks that share an expert works on the tokens of all of them.
    tokens = choices * etp * shape.hidden
    yield _whole(setup, "routed inputs", tokens, "moe", size=linear)
    yield _whole(setup, "routed activation inputs", before * routed, "moe", size=gated)
    yield _whole(setup, "routed products", routed, "moe", "moe_act", size=linear)
    if gate_bytes := setup.framework_memory.gate_bytes:
        yield _whole(setup, "routed tokens in FP32", tokens, "moe", size=gate_bytes)
    if not setup.framework_memory.gates_first:
        yield _whole(setup, "routed outputs", tokens, "moe", "moe_gate")
    shared, modules = mixture.shared * mixture.ffn_hidden // setup.parallel.tp, SHARED
    if mixture.shared and kept_as.eight_bit:
        inputs = ("layernorm", *modules)
        yield _whole(setup, "shared expert input", shape.hidden, *inputs, size=linear)
    yield _divided(setup, "shared activation inputs", before * shared, *modules, size=gated)
    yield _divided(setup, "shared products", shared, *modules, size=linear)


def _adapter_tensors(setup: TrainingSetup, experts: bool) -> Iterator[KeptTensor]:
    """Yield the tensors between the two thin factors of adapters."""
    if setup.lora_rank is None:
        return
    modules = {"dense": ("mlp",), "shared": SHARED, "routed": ("moe",)}
    for one in layer_matrices(setup.shape, experts=experts):
        if not adapted(setup, one):
            continue
        name, width = f"adapter of {one.part} {one.name}", setup.lora_rank
        if one.part == "routed" and setup.shape.experts is not None:
            ways = setup.shape.experts.top_k * setup.parallel.etp * setup.fullest_experts
            yield _whole(setup, name, ways * width, "moe")
        else:
            yield _divided(setup, name, width, *modules.get(one.part, ()))


def _whole(
    setup: TrainingSetup, name: str, width: float, *modules: str, size: float = ACTIVATION_BYTES
) -> KeptTensor:
    """Return a tensor of `size` bytes per element that only sequence parallelism divides."""
    return KeptTensor(name, setup.split_tokens * width * size, modules)


def column_input(
    setup: TrainingSetup, name: str, width: float, *modules: str, size: float = ACTIVATION_BYTES
) -> KeptTensor:
    """Return the input of a column-parallel matmul, gathered where the framework keeps it so."""
    kept = setup.tokens if setup.framework_memory.keeps_gathered else setup.split_tokens
    return KeptTensor(name, kept * width * size, modules)


def _divided(
    setup: TrainingSetup, name: str, width: float, *modules: str, size: float = ACTIVATION_BYTES
) -> KeptTensor:
    """Return a tensor of `size` bytes per element whose width is already divided by TP."""
    return KeptTensor(name, setup.tokens * width * size, modules)
