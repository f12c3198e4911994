"""What a GPU kernel does, by its name: matmul, attention, communication, memory traffic.

It knows the names of cuBLAS and cuDNN, CUTLASS, hipBLASLt's Tensile and Composable Kernel, ATen,
torch.compile's Triton kernels, FlashAttention, Transformer Engine, Apex, NCCL and RCCL, PyTorch's
symmetric memory, vLLM's and AITER's own all-reduces, DeepEP, NVSHMEM and userbuffers.
Source: pytorch/pytorch aten/src/ATen/native/cuda and torch/_inductor/codegen/triton.py (prefixes of
generated kernels); the kernels' names in public traces and profiles.
"""

from __future__ import annotations

import re

PRODUCT, ATTENTION, COMMUNICATION = "product", "attention", "communication"
ELEMENTWISE, FUSED, OPTIMIZER = "elementwise", "fused", "optimizer"
COPY, MEMSET, OTHER = "copy", "memset", "other"

BOUNDS = {
    PRODUCT: "compute",
    ATTENTION: "compute",
    "convolution": "compute",
    FUSED: "memory",
    ELEMENTWISE: "memory",
    "normalization": "memory",
    "softmax": "memory",
    "reduction": "memory",
    "indexing": "memory",
    "quantization": "memory",
    "recurrence": "memory",
    OPTIMIZER: "memory",
    COPY: "memory",
    MEMSET: "memory",
    COMMUNICATION: "network",
    OTHER: "unknown",
}
"""Every kind, and what usually bounds its kernels: compute, memory, or links."""

WHOLE, HEAD = "whole", "head"
"""What a rule matches: the whole name, or the function's name without template arguments."""

RULES = (
    (COMMUNICATION, HEAD,
     r"nccl|rccl|msccl|nvshmem|rocshmem|ishmem|oneccl|hccl|deep_?ep::|userbuffers|hybrid_?ep|pplx"
     r"|multimem_(all|one_shot|reduce)|(one|two)_?shot_?(car_)?all_?reduce|cross_device_reduce"
     r"|quick_?(all_?)?reduce|symm(etric)?_?mem|\biris::|mori::|dlslime|flux::.*(gather|scatter)"
     r"|^(?!triton_).*(all[-_]?reduce|all[-_]?gather|reduce[-_]?scatter|all[-_]?to[-_]?all|collective-permute|a2a_?(dispatch|combine))"
     r"|^(?!triton_).*(send_?recv|ep_(dispatch|combine)|custom_ar_|lamport)"),
    (ELEMENTWISE, HEAD, r"(^|::|vectorized_|unrolled_)elementwise_kernel$|rotary|\brope"
     r"|^(sub|op)tensor"),
    (OPTIMIZER, HEAD, r"^triton_for_fused.*(lerp|addcdiv|addcmul|adam)"),
    (ATTENTION, HEAD, r"^triton_tem_fused.*(attention|flex|sdpa)"),
    (PRODUCT, HEAD, r"^triton_tem_fused|^triton_mm|^convolution( fusion)? |^dot[ .]"),
    (FUSED, HEAD, r"^triton_(poi|red|per|for|spl|mix|unk)_|^triton__?\d|^fused_\d+$"
     r"|^((loop|input|output|custom|wrapped)[_ ].*)?fusion"),
    (COPY, HEAD, r"catarraybatchedcopy|chunk_cat|split_with_sizes|reshape_and_cache|rocclr_copy"
     r"|memcpy|copybuffer|batch_memcpy|pack_kernel|store_kv_?cache"),
    (MEMSET, HEAD, r"memset|rocclr_fill|fillbuffer"),
    (ATTENTION, WHOLE,
     r"flash_?(fwd|bwd|attn|att|mla|prefill|decode)|flash::|fmha|sdpa|flex_attention|attention|attn"
     r"|memeff|compute_dot_do_o|cudnn::fusion::convert_dq|flashinfer.*(prefill|decode)|\bmla_|^sage_(fwd|bwd)"),
    (OPTIMIZER, WHOLE,
     r"multi_tensor|fusedoptimizer|fused_?adam|adamw?_|adam(functor|math)|lpnorm|muon|adagrad"
     r"|distributed_lamb|\blamb_|amp_non_finite|_sgd_|sgdfunctor"),
    ("convolution", WHOLE, r"implicit_?gemm"),
    (PRODUCT, HEAD, r"mat_?mul|(\b|_)gemm"),
    ("quantization", HEAD,
     r"quant|cast_transpose|transpose_cast|fp8_(cast|scale)|mxfp|nvfp|hadamard|compute_amax|to_fp8"),
    ("normalization", HEAD,
     r"(layer|rms|batch|group|instance)_?norm|\bln_(fwd|bwd)|layernorm|rmsnorm|gammabeta"
     r"|rowwisemoments|computegradinput|bn_(fw|bw)|batchnorm|^_?norm_(fwd|bwd)|qk_?norm|l2norm"),
    ("convolution", WHOLE,
     r"convolve|conv(1|2|3)d|depthwise|winograd|miopen|cudnn.*(wgrad|dgrad|fprop)"
     r"|[shi]cudnn|\bigemm_(fwd|bwd|wrw)|nchwtonhwc|nhwctonchw|im2col|conv_"),
    ("indexing", HEAD, r"embedding|fbgemm_gpu::"),
    ("recurrence", HEAD,
     r"selective_?scan|ssd_|chunk_(scan|state|fwd|bwd|gated|delta)|causal_conv|gated_delta|wkv|rwkv"
     r"|kda_|gla_|lstm|gru_"),
    ("softmax", WHOLE, r"soft_?max|cross_?entropy|nll_?loss|logsumexp|log_prob"),
    (PRODUCT, WHOLE,
     r"gemm|nvjet|cijk_|mat_?mul|gemv|split_?k|xmma|cutlass|cublas|hipblas|rocblas|tensile|wgmma"
     r"|\bdot_kernel|reduce_1block|_mm_|bmm_|_mm$|^mm_|marlin|fused_moe|grouped_?(gemm|mm)|ck_tile"
     r"|ck::|dequant.*gemm|gmm_"),
    ("indexing", WHOLE,
     r"embedding|index|indices|gather|scatter|compute_grad_weight|krn_partial|partial_segment|segment"
     r"|topk|top_k|sort|unique|scan|cumsum|permute|routing|router|moe_align|nonzero|compact|argmax"
     r"|searchsorted|flip|roll_cuda|expand_?input|thrust|select|histogram|bincount"),
    ("reduction", HEAD,
     r"(max|avg)_?pool|reduce|sum_|_sum|mean_|lpnorm|l2_norm|_norm_kernel|devicereduce"),
    (ELEMENTWISE, WHOLE,
     r"elementwise|pointwise|copy_kernel|functor|unrolled|vectorized|gelu|silu|swiglu|geglu|relu"
     r"|rotary|rope|bias|activation|act_and_mul|dropout|distribution|philox|masked|where|triu|tril"
     r"|arange|unfold|clamp|transpose|foreach|fill|_add|add_|_mul|mul_|cast|sigmoid|tanh|residual"
     r"|pow_|exp_|linspace|broadcast"),
)  # fmt: skip
"""Kind, what is matched, and the pattern in lower case; the first rule that matches applies."""

OPERATORS = (
    (PRODUCT, r"(^|::)_?(mm|addmm|bmm|baddbmm|matmul|linear|einsum|mv|dot|scaled_mm|grouped_mm)"),
    (ATTENTION, r"attention|attn|flash"),
    ("convolution", r"conv"),
    ("normalization", r"norm"),
    ("softmax", r"softmax|loss|cross_entropy"),
    (OPTIMIZER, r"_foreach|_fused_adam|optimizer"),
    (COMMUNICATION, r"^(nccl|c10d|_c10d_functional|symm_mem)::?"),
    ("indexing", r"embedding|index|gather|scatter|sort|topk|cumsum|unique|nonzero"),
    ("reduction", r"::(sum|mean|max|min|norm|prod|any|all|argmax)"),
    (COPY, r"::(cat|copy_|clone|contiguous|stack)"),
    (ELEMENTWISE, r"^aten::"),
)
"""Kinds by the operator that launched a kernel whose own name is ambiguous."""


LONGEST_NAME = 60


def head_of(name: str) -> str:
    """Return the bare function name in lower case: no return type, arguments or parameters."""
    plain = name.lower().replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    plain = plain.removeprefix("void ")
    if plain.startswith(("std::enable_if", "_z")):
        return plain
    for mark in ("<", "("):
        plain = plain.partition(mark)[0]
    return plain


def short_name(name: str) -> str:
    """Return a kernel's name without its library's common prefix, cut to fit a row."""
    plain = name.replace("(anonymous namespace)::", "").replace("at::native::", "")
    plain = plain.removeprefix("void ")
    return plain if len(plain) <= LONGEST_NAME else f"{plain[: LONGEST_NAME - 1]}…"


def kind_of_kernel(name: str) -> str:
    """Return what a kernel of this name does, or `other` if the name does not tell."""
    texts = {WHOLE: name.lower(), HEAD: head_of(name)}
    for kind, looked_at, pattern in RULES:
        if re.search(pattern, texts[looked_at]):
            return kind
    return OTHER


def kind_of_operator(name: str) -> str:
    """Return what a kernel launched by this operator does."""
    for kind, pattern in OPERATORS:
        if re.search(pattern, name.lower()):
            return kind
    return OTHER
