"""A job as options of Megatron-Core, which Megatron-LM and Megatron-Bridge share.

Option names and their meaning: NVIDIA/Megatron-LM at d98e8a64, megatron/training/arguments.py and
megatron/core/transformer/transformer_config.py.
"""

from __future__ import annotations

from figgen.models.setup.stage_layers import StageShare, virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.model_shape import ModelShape
from figgen.models.shape.recomputation import NOT_MEGATRON

Option = tuple[str, str]
"""A name with underscores, and its value, which is "" for a switch."""

FORMATS = ("bf16", "fp16", "fp8", "fp4", "tf32")
"""Number formats of matmuls for which there are options."""


def model_options(setup: TrainingSetup, left_out: dict[str, str]) -> list[Option]:
    """Return the options for the model's layers."""
    shape = setup.shape
    options: list[Option] = [
        ("num_layers", str(shape.layers)),
        ("hidden_size", str(shape.hidden)),
        ("ffn_hidden_size", str(shape.ffn_hidden)),
        ("num_attention_heads", str(shape.heads)),
    ]
    if shape.latent is None:
        options.append(("kv_channels", str(shape.head_dim)))
        if shape.kv_heads != shape.heads:
            options.append(("group_query_attention", ""))
            options.append(("num_query_groups", str(shape.kv_heads)))
    options.append(("normalization", "RMSNorm" if shape.norm == "rmsnorm" else "LayerNorm"))
    if shape.ffn in ("swiglu", "geglu", "squared-relu"):
        words = {"swiglu": "swiglu", "geglu": "quick_geglu", "squared-relu": "squared_relu"}
        options.append((words[shape.ffn], ""))
    elif shape.ffn != "gelu":
        left_out["activation"] = f"there is no option for {shape.ffn}"
    if not shape.bias:
        options.append(("disable_bias_linear", ""))
    if shape.qk_norm != "none":
        options.append(("qk_layernorm", ""))
    if shape.qk_norm == "full-width":
        left_out["qk_norm"] = "norms of queries and keys are per head"
    if not shape.tied_embeddings:
        options.append(("untie_embeddings_and_output_weights", ""))
    positions = "learned_absolute" if shape.learned_positions else "rope"
    options.append(("position_embedding_type", positions))
    if shape.window:
        options.append(("window_size", f"{shape.window - 1},0"))
        if shape.full_every:
            options.append(("window_attn_skip_freq", str(shape.full_every)))
    if shape.extra or shape.norms_per_layer != 2 or not shape.final_norm:
        left_out["model"] = "some norms, biases or other parameters of it have no option"
    return options + _latent(shape) + _experts(shape, setup.dispatcher)


def _latent(shape: ModelShape) -> list[Option]:
    if shape.latent is None:
        return []
    found: list[Option] = [("multi_latent_attention", "")]
    if shape.latent.query_rank:
        found.append(("q_lora_rank", str(shape.latent.query_rank)))
    found.append(("kv_lora_rank", str(shape.latent.kv_rank)))
    found.append(("qk_head_dim", str(shape.latent.nope_head_dim)))
    found.append(("qk_pos_emb_head_dim", str(shape.latent.rope_head_dim)))
    found.append(("v_head_dim", str(shape.latent.value_head_dim)))
    return found


def dispatcher_options(dispatcher: str) -> list[Option]:
    """Return the options for how tokens reach experts, by default an all-to-all.

    An all-to-all needs no further library.
    """
    if dispatcher in ("usual", "all-to-all"):
        return [("moe_token_dispatcher_type", "alltoall")]
    return [
        ("moe_token_dispatcher_type", "flex"),
        ("moe_flex_dispatcher_backend", dispatcher),
    ]


def _experts(shape: ModelShape, dispatcher: str) -> list[Option]:
    experts = shape.experts
    if experts is None:
        return []
    found: list[Option] = [
        ("num_experts", str(experts.count)),
        ("moe_router_topk", str(experts.top_k)),
        ("moe_ffn_hidden_size", str(experts.ffn_hidden)),
        *dispatcher_options(dispatcher),
        ("moe_grouped_gemm", ""),
    ]
    if experts.shared:
        width = experts.shared * experts.ffn_hidden
        found.append(("moe_shared_expert_intermediate_size", str(width)))
    if experts.dense_layers:
        rest = shape.layers - experts.dense_layers
        found.append(("moe_layer_freq", f"([0]*{experts.dense_layers}+[1]*{rest})"))
    return found


def recompute_options(recompute: str, left_out: dict[str, str]) -> list[Option]:
    """Return the options for recomputation."""
    if recompute == "none":
        return []
    if recompute == "full":
        return _whole_layers("uniform", "1")
    if ":" in recompute:
        method, _, number = recompute.partition(":")
        return _whole_layers(method, number)
    modules = ["core_attn"] if recompute == "selective" else recompute.split(",")
    unknown = [module for module in modules if module in NOT_MEGATRON]
    if unknown:
        left_out["recompute"] = f"no option recomputes {', '.join(unknown)}"
        modules = [module for module in modules if module not in NOT_MEGATRON]
    if not modules:
        return []
    return [("recompute_granularity", "selective"), ("recompute_modules", " ".join(modules))]


def _whole_layers(method: str, number: str) -> list[Option]:
    return [
        ("recompute_granularity", "full"),
        ("recompute_method", method),
        ("recompute_num_layers", number),
    ]


def schedule_options(setup: TrainingSetup, left_out: dict[str, str]) -> list[Option]:
    """Return the options for the pipeline: its schedule, its chunks, and uneven stages."""
    if setup.parallel.pp == 1:
        return []
    found: list[Option] = []
    chunks = setup.placement.chunks
    if setup.schedule == "interleaved-1f1b":
        found.append(("num_virtual_stages_per_pipeline_rank", str(chunks)))
    elif setup.schedule != "1f1b":
        left_out["schedule"] = f"there is no option for {setup.schedule}: it runs 1F1B"
    shares = virtual_stage_shares(setup)
    counts = [share.layers - share.mtp_layers for share in shares]
    inner = counts[1:-1]
    if len(set(counts)) == 1:
        return found
    if chunks > 1 and not found:
        left_out["layers_per_stage"] = "1F1B has one stage per rank"
        return found
    if chunks > 1 or len(set(inner)) > 1:
        return [("pipeline_model_parallel_layout", _layout(shares))]
    usual = inner[0] if inner else 0
    if counts[0] != usual or not inner:
        found.append(("decoder_first_pipeline_num_layers", str(counts[0])))
    if counts[-1] != usual and inner:
        found.append(("decoder_last_pipeline_num_layers", str(counts[-1])))
    return found


def _layout(shares: tuple[StageShare, ...]) -> str:
    """Return the contents of every virtual stage, as in "Ett|ttt|ttL".

    E is the embedding, t a layer, m a layer of multi-token prediction, and L the loss
    (megatron/core/transformer/pipeline_parallel_layer_layout.py).
    """
    held = ["t" * (share.layers - share.mtp_layers) + "m" * share.mtp_layers for share in shares]
    return "E" + "|".join(held) + "L"


def state_recipe(dtype: str, left_out: dict[str, str], setup: TrainingSetup) -> list[Option]:
    """Return the options for how weights, gradients and optimizer state are stored."""
    name = setup.recipe.name
    usual = {"fp16": "mcore20", "tf32": "fp32_16"}.get(dtype, "mcore18")
    if name == usual:
        return []
    bf16 = usual == "mcore18"
    if name == "zero16" and bf16:
        return [("grad_reduce_in_bf16", "")]
    if name == "muon14" and bf16 and setup.zero_stage == 0:
        return [("optimizer", "muon")]
    if name == "mcore14" and bf16 and setup.zero_stage == 1:
        return [
            ("use_precision_aware_optimizer", ""),
            ("exp_avg_dtype", "bf16"),
            ("exp_avg_sq_dtype", "bf16"),
        ]
    left_out["recipe"] = f"no options store the state as {name} does; {usual} is used"
    return []
