"""How each kind of model (`model_type`) differs from Llama.

Read from the modeling files of huggingface/transformers 5.24.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How a kind of model differs from Llama.

    `full_every` is the interval of layers that see all tokens if the file has no list: 0 for none,
    -1 for a kind without windows. `qkv_bias` and `out_bias` are biases of attention that are always
    present. `bias_field` is the file's switch for them, with the default `bias_usual`;
    `bias_of_output` extends it to the output projection. `linear` is the kind of linear attention,
    `mixers` that of state-space layers. `usual` holds the defaults of transformers for published
    files.
    """

    ffn: str = "swiglu"
    norm: str = "rmsnorm"
    norms_per_layer: int = 2
    qk_norm: str = "none"
    qk_norm_field: str = ""
    bias: bool = False
    all_bias_field: str = ""
    qkv_bias: bool = False
    bias_field: str = "attention_bias"
    bias_usual: bool = False
    bias_of_output: bool = True
    tied: bool = False
    learned_positions: bool = False
    full_every: int = -1
    router_offsets: bool = False
    shared_gate: bool = False
    biased_experts: bool = False
    sinks: bool = False
    output_gate: bool = False
    head_bias: bool = False
    linear: str = ""
    mixers: str = ""
    indexer: bool = False
    special: str = ""
    usual: dict[str, str] = field(default_factory=dict)


_GEMMA_3 = {
    "num_attention_heads": "8", "num_key_value_heads": "4", "head_dim": "256",
    "vocab_size": "262208", "max_position_embeddings": "131072", "sliding_window": "4096",
}  # fmt: skip
_GEMMA_3N = {
    "hidden_size": "2048", "num_hidden_layers": "35", "intermediate_size": "16384",
    "num_attention_heads": "8", "num_key_value_heads": "2", "head_dim": "256",
    "vocab_size": "262400", "max_position_embeddings": "32768", "sliding_window": "512",
    "hidden_size_per_layer_input": "256", "vocab_size_per_layer_input": "262144",
    "num_kv_shared_layers": "15", "altup_num_inputs": "4", "laurel_rank": "64",
}  # fmt: skip
_GEMMA_4 = {
    "num_attention_heads": "8", "num_key_value_heads": "4", "head_dim": "256",
    "vocab_size": "262144", "max_position_embeddings": "131072", "sliding_window": "512",
    "hidden_size_per_layer_input": "256", "vocab_size_per_layer_input": "262144",
    "global_head_dim": "512",
}  # fmt: skip
_GATED_DELTA = {
    "linear_conv_kernel_dim": "4", "linear_key_head_dim": "128", "linear_value_head_dim": "128",
    "linear_num_key_heads": "16", "linear_num_value_heads": "32", "full_attention_interval": "4",
    "head_dim": "256",
}  # fmt: skip

_LLAMA = Kind()
_QWEN_2 = Kind(qkv_bias=True, bias_field="", full_every=0)
_HALVED = Kind(qkv_bias=True, bias_field="", special="halved")
"""Marks files that give the width of gate and projection together."""

_QWEN_3 = Kind(qk_norm="per-head", full_every=0)
_DEEPSEEK = Kind(bias_field="")
_DEEPSEEK_3 = Kind(bias_field="", router_offsets=True)

KINDS: dict[str, Kind] = {
    "llama": _LLAMA,
    "granite": _LLAMA,
    "granite_swa": Kind(full_every=0, sinks=True),
    "granitemoe_swa": Kind(full_every=0, sinks=True),
    "bitnet": Kind(special="bitnet"),
    "hyperclovax": Kind(norms_per_layer=4),
    "granitemoe": _LLAMA,
    "granitemoeshared": _LLAMA,
    "code_llama": _LLAMA,
    "helium": _LLAMA,
    "solar_open": _LLAMA,
    "ernie4_5": Kind(
        bias_field="use_bias",
        tied=True,
    ),
    "ernie4_5_moe": Kind(bias_field="use_bias", tied=True, router_offsets=True, special="ernie"),
    "mistral": Kind(full_every=0, bias_field=""),
    "mixtral": Kind(full_every=0, bias_field=""),
    "ministral": Kind(full_every=0, bias_field=""),
    "phi": Kind(
        ffn="gelu", norm="layernorm", norms_per_layer=1, bias=True, head_bias=True, special="phi"
    ),
    "phi3": Kind(full_every=0, bias_field=""),
    "phimoe": Kind(norm="layernorm", full_every=0, special="head_bias"),
    "qwen2": _QWEN_2,
    "mimo": Kind(qkv_bias=True, bias_field=""),
    "qwen": _HALVED,
    "molmo": _HALVED,
    "qwen2_audio": Kind(
        qkv_bias=True,
        bias_field="",
        full_every=0,
        usual={
            "hidden_size": "4096",
            "num_hidden_layers": "32",
            "num_attention_heads": "32",
            "intermediate_size": "22016",
        },
    ),
    "hf_olmo": Kind(norm="none", special="halved"),
    "minicpm": Kind(tied=True),
    "minicpm3": Kind(bias_field="", tied=True, special="minicpm3"),
    "longcat_flash": Kind(bias_field="", special="longcat"),
    "afmoe": Kind(
        qk_norm="per-head",
        norms_per_layer=4,
        output_gate=True,
        router_offsets=True,
        full_every=4,
    ),
    "bailing_moe": Kind(
        qk_norm="per-head",
        qk_norm_field="use_qk_norm",
        bias_field="use_qkv_bias",
        bias_of_output=False,
    ),
    "bailing_hybrid": Kind(bias_field="", linear="kda-groups"),
    "qwen2_moe": Kind(qkv_bias=True, bias_field="", full_every=0, shared_gate=True),
    "qwen3": _QWEN_3,
    "qwen3_moe": _QWEN_3,
    "qwen3_next": Kind(
        qk_norm="per-head",
        output_gate=True,
        shared_gate=True,
        linear="gated-delta",
        usual=_GATED_DELTA,
    ),
    "qwen3_5": Kind(qk_norm="per-head", output_gate=True, linear="gated-delta", usual=_GATED_DELTA),
    "qwen3_5_moe": Kind(
        qk_norm="per-head",
        output_gate=True,
        shared_gate=True,
        linear="gated-delta",
        usual=_GATED_DELTA,
    ),
    "olmo": Kind(norm="none"),
    "olmo2": Kind(qk_norm="full-width"),
    "olmo3": Kind(qk_norm="full-width", full_every=4),
    "olmoe": Kind(qk_norm="full-width"),
    "flex_olmo": Kind(qk_norm="full-width"),
    "gemma": Kind(ffn="geglu", tied=True, usual={"head_dim": "256"}),
    "gemma2": Kind(
        ffn="geglu",
        tied=True,
        norms_per_layer=4,
        full_every=2,
        usual={"head_dim": "256", "sliding_window": "4096"},
    ),
    "gemma3": Kind(
        ffn="geglu", tied=True, norms_per_layer=4, full_every=6, qk_norm="per-head", usual=_GEMMA_3
    ),
    "gemma3n": Kind(
        ffn="geglu",
        tied=True,
        norms_per_layer=4,
        full_every=5,
        qk_norm="per-head",
        special="gemma3n",
        usual=_GEMMA_3N,
    ),
    "gemma4": Kind(
        ffn="geglu",
        tied=True,
        norms_per_layer=4,
        full_every=6,
        qk_norm="per-head",
        special="gemma4",
        usual=_GEMMA_4,
    ),
    "gemma4_unified": Kind(
        ffn="geglu",
        tied=True,
        norms_per_layer=4,
        full_every=6,
        qk_norm="per-head",
        special="gemma4",
        usual=_GEMMA_4 | {"hidden_size_per_layer_input": "0"},
    ),
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK_3,
    "kimi_k2": _DEEPSEEK_3,
    "deepseek_v32": Kind(
        bias_field="", indexer=True, usual={"index_n_heads": "64", "index_head_dim": "128"}
    ),
    "glm_moe_dsa": Kind(
        bias_field="", indexer=True, usual={"index_n_heads": "32", "index_head_dim": "128"}
    ),
    "deepseek_v4": Kind(bias_field="", special="deepseek_v4"),
    "glm4_moe_lite": _DEEPSEEK,
    "glm": Kind(bias_field="attention_bias", bias_of_output=False),
    "glm4": Kind(bias_of_output=False, norms_per_layer=4),
    "glm4_moe": Kind(bias_of_output=False, qk_norm="per-head", qk_norm_field="use_qk_norm"),
    "kimi_linear": Kind(bias_field="", linear="kda"),
    "llama4": Kind(
        full_every=4,
        special="llama4",
        usual={"attention_chunk_size": "8192", "interleave_moe_layer_step": "1"},
    ),
    "gpt_oss": Kind(
        bias_usual=True,
        full_every=2,
        biased_experts=True,
        sinks=True,
        usual={"sliding_window": "128"},
    ),
    "minimax": Kind(linear="lightning", full_every=-1),
    "minimax_m2": Kind(qk_norm="full-width"),
    "nemotron": Kind(ffn="squared-relu", norm="layernorm"),
    "nemotron_h": Kind(ffn="squared-relu", mixers="nemotron", norms_per_layer=1),
    "smollm3": Kind(tied=True, full_every=0),
    "starcoder2": Kind(
        ffn="gelu",
        norm="layernorm",
        all_bias_field="use_bias",
        bias=True,
        tied=True,
        full_every=0,
    ),
    "cohere": Kind(norm="layernorm-no-bias", norms_per_layer=1, tied=True, special="cohere"),
    "cohere2": Kind(norm="layernorm-no-bias", norms_per_layer=1, tied=True, full_every=4),
    "falcon_h1": Kind(mixers="beside"),
    "jamba": Kind(
        mixers="mamba-1",
        usual={
            "attn_layer_period": "8",
            "attn_layer_offset": "4",
            "expert_layer_period": "2",
            "expert_layer_offset": "1",
            "mamba_d_state": "16",
            "mamba_d_conv": "4",
            "mamba_expand": "2",
        },
    ),
    "zamba2": Kind(ffn="geglu", mixers="zamba2", norms_per_layer=1),
    "gpt_neox": Kind(ffn="gelu", norm="layernorm", bias=True),
    "gpt2": Kind(ffn="gelu", norm="layernorm", bias=True, tied=True, learned_positions=True),
    "bloom": Kind(ffn="gelu", norm="layernorm", bias=True, tied=True, special="embedding_norm"),
    "opt": Kind(
        ffn="relu",
        norm="layernorm",
        bias=True,
        tied=True,
        learned_positions=True,
        special="opt",
    ),
    "biogpt": Kind(
        ffn="gelu", norm="layernorm", bias=True, tied=True, learned_positions=True, special="opt"
    ),
    "gptj": Kind(
        ffn="gelu",
        norm="layernorm",
        norms_per_layer=1,
        bias_field="",
        head_bias=True,
        usual={"mlp_bias": "true"},
    ),
    "gpt_bigcode": Kind(
        ffn="gelu",
        norm="layernorm",
        bias=True,
        tied=True,
        learned_positions=True,
        usual={"multi_query": "true"},
    ),
    "falcon": Kind(
        ffn="gelu",
        norm="layernorm",
        all_bias_field="bias",
        tied=True,
        special="falcon",
        usual={"multi_query": "true", "parallel_attn": "true"},
    ),
    "mpt": Kind(ffn="gelu", norm="layernorm-no-bias", bias_field="", tied=True),
    "dbrx": Kind(norm="layernorm-no-bias", bias_field=""),
    "stablelm": Kind(norm="layernorm", bias_field="use_qkv_bias", bias_of_output=False),
    "chatglm": Kind(bias_field="add_qkv_bias", bias_of_output=False),
    "dots1": Kind(qk_norm="per-head", router_offsets=True),
    "lfm2": Kind(qk_norm="per-head", bias_field="", tied=True, linear="conv"),
    "granitemoehybrid": Kind(mixers="mamba-2", linear=""),
    "bamba": Kind(mixers="mamba-2"),
    "hunyuan_v1_dense": Kind(qk_norm="per-head", qk_norm_field="use_qk_norm"),
    "hunyuan_v1_moe": Kind(qk_norm="per-head", qk_norm_field="use_qk_norm"),
    "hy_v3": Kind(qk_norm="per-head"),
    "mimo_v2_flash": Kind(
        bias_of_output=False,
        special="mimo_v2",
        usual={
            "head_dim": "192",
            "v_head_dim": "128",
            "sliding_window": "128",
        },
    ),
    "seed_oss": Kind(bias_usual=True, bias_of_output=False),
    "exaone4": Kind(qk_norm="per-head", full_every=4, bias_field=""),
    "arcee": Kind(ffn="squared-relu"),
    "cwm": Kind(full_every=0, bias_field=""),
    "vaultgemma": Kind(ffn="geglu", tied=True, full_every=2),
    "exaone_moe": Kind(qk_norm="per-head", full_every=4, bias_field=""),
    "flint": Kind(qk_norm="per-head", full_every=0, sinks=True),
    "jais2": Kind(ffn="squared-relu", norm="layernorm"),
    "nanochat": Kind(ffn="squared-relu", norm="none"),
    "apertus": Kind(ffn="squared-relu", qk_norm="per-head", special="xielu"),
    "minimax_m3_vl": Kind(qk_norm="per-head"),
}
"""Kinds by their `model_type`."""

SAME_AS = {
    "qwen2_vl": "qwen2", "qwen2_5_vl": "qwen2", "qwen2_vl_text": "qwen2", "qwen2_5": "qwen2",
    "qwen2_5_vl_text": "qwen2", "qwen2_5_omni_text": "qwen2", "qwen2_5_omni": "qwen2",
    "qwen2_audio": "qwen2", "qwen3_vl": "qwen3", "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe": "qwen3_moe", "qwen3_vl_moe_text": "qwen3_moe", "qwen3_omni_moe": "qwen3_moe",
    "qwen3_omni_moe_text": "qwen3_moe", "qwen3_5_text": "qwen3_5",
    "qwen3_5_moe_text": "qwen3_5_moe", "qwen3_6": "qwen3_5", "qwen3_6_moe": "qwen3_5_moe",
    "qwen3_6_text": "qwen3_5", "qwen3_6_moe_text": "qwen3_5_moe", "gemma3_text": "gemma3",
    "gemma4_text": "gemma4", "gemma4_unified_text": "gemma4_unified",
    "apertus1p5": "apertus",
    "apertus1p5_text": "apertus", "codegen": "gptj", "cohere2_moe": "cohere2", "gpt-sw3": "gpt2",
    "gemma3n_text": "gemma3n", "qwen3_asr": "qwen3", "qwen3_asr_text": "qwen3",
    "minicpmv4_6": "qwen3_5", "mellum": "qwen3_moe", "sarvam_moe": "hy_v3",
    "llama4_text": "llama4", "mistral3": "mistral", "ministral3": "mistral",
    "pixtral": "mistral", "kimi_k25": "deepseek_v3", "glm4v": "glm4", "glm4v_text": "glm4",
    "glm4v_moe": "glm4_moe", "glm4v_moe_text": "glm4_moe", "glm46v": "glm4_moe",
    "ernie4_5_vl_moe": "ernie4_5_moe", "ernie4_5_moe_vl": "ernie4_5_moe",
    "minimax_text_01": "minimax", "minimax_m1": "minimax", "deepseek_v32_exp": "deepseek_v32",
    "mllama_text_model": "llama", "stablelm_epoch": "stablelm", "hunyuan": "hunyuan_v1_moe",
    "minimax_m3_vl_text": "minimax_m3_vl", "glm5": "glm_moe_dsa", "phimoe_text": "phimoe",
    "internlm2": "llama", "internlm3": "llama", "yi": "llama", "kimi_vl": "deepseek_v3",
    "exaone4_5": "exaone4", "exaone": "llama", "baichuan": "llama",
    "aria_text": "llama", "bailing_moe_v2": "bailing_moe",
    "aria": "llama", "iquestcoder": "llama", "sarvam_mla": "deepseek_v2", "youtu": "deepseek_v2",
    "RefinedWeb": "falcon", "RefinedWebModel": "falcon",
}  # fmt: skip
"""Other names of kinds, and the language models of multimodal kinds."""
