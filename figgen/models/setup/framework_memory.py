"""Memory that frameworks use beyond what a job needs, according to their sources.

All numbers of an entry but one are facts about a program. The other, `allocator_share`, is the
memory that the allocator holds beyond the tensors, as a share of the temporary ones. It is fitted
on the calibration half of the measured peaks: to the least mean error if there are hundreds of
runs, to the least maximum error if there are few. `tests/models/test_memory_peaks.py` fits it
again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from figgen.errors import unknown

Prints = Literal["fullest", "first", "device"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkMemory:
    """How a framework treats gradients, logits and gathered weights, and what its log prints.

    Bytes per parameter: `fresh_gradient_bytes` are the gradients of one backward before they are
    added to the accumulated ones, and `bucket_bytes` a second copy for messages if nothing is
    sharded. `frees_gradients` says that accumulated gradients are freed after the update, so that
    the first forward of a step has none. `offload_keeps_bytes` of an offloaded optimizer's state
    stay on the GPU.

    Bytes per logit: `kept_logit_bytes` are kept from forward to backward, and `loss_bytes` exist in
    addition while the loss runs.

    Bytes per element: `norm_bytes` are kept of the input of an RMS norm that PyTorch runs operator
    by operator, namely its FP32 copy and its 16-bit result. `gate_bytes` are kept per token and
    expert if gates multiply in FP32.

    Switches: `keeps_gate` if a gate's activation is stored in addition to what it multiplies,
    `repeats_keys` if keys and values are stored once per query head, `gates_first` if gates
    multiply inside experts, so that the experts' output is not kept, `casts_alone` if ZeRO-3 copies
    weights and gradients on a single GPU too, `caches_casts` if 8-bit copies of weights are kept
    between microbatches, `keeps_outputs` if a stage keeps its outputs until their backward,
    `whole_in_pipeline` if ZeRO-3 in a pipeline keeps its stage's weights and gradients whole
    through a step, and `balanced` if stages are cut by cost. `selective` is the meaning of
    recomputing "selective".

    `peak_spread` is the relative standard deviation of the next publisher's peak around its
    prediction, for a peak of `figgen.models.memory.fit_probability.USUAL_PEAK_BYTES`, and
    `waiting_pairs` that of how many pairs of a layer's gathered inputs wait for tensor-parallel
    collectives, because the host runs ahead of them. `figgen.scenarios.evidence.fit_chances`
    computes both from the peaks of publishers; the default is for software without any. `prints` is
    the peak in the log: the allocator's on the "fullest" or the "first" pipeline rank, or that of
    the whole "device" of the fullest, including contexts.
    """

    name: str
    label: str
    allocator_share: float
    recipe: str = "mcore18"
    fresh_gradient_bytes: float = 0
    frees_gradients: bool = False
    bucket_bytes: float = 0
    kept_logit_bytes: float = 4
    loss_bytes: float = 2
    norm_bytes: float = 2
    keeps_gate: bool = False
    repeats_keys: bool = False
    gates_first: bool = False
    gate_bytes: float = 0
    casts_alone: bool = False
    caches_casts: bool = False
    keeps_gathered: bool = False
    keeps_outputs: bool = False
    whole_in_pipeline: bool = False
    offload_keeps_bytes: float = 0
    selective: str = "selective"
    balanced: bool = False
    prints: Prints = "fullest"
    peak_spread: float = 0.163
    waiting_pairs: float = 0


_MEGATRON = FrameworkMemory(
    name="megatron",
    label="Megatron-Core",
    peak_spread=0.146,
    allocator_share=0.05,
    caches_casts=True,
    offload_keeps_bytes=4,
    gates_first=True,
)
_TORCHTITAN = FrameworkMemory(
    name="torchtitan",
    label="torchtitan",
    peak_spread=0.128,
    allocator_share=0.14,
    recipe="fsdp16",
    frees_gradients=True,
    keeps_gathered=True,
    keeps_outputs=True,
    whole_in_pipeline=True,
    selective="every_second_product",
    kept_logit_bytes=2,
    loss_bytes=2,
)
_TORCHTUNE = FrameworkMemory(
    name="torchtune",
    label="torchtune",
    peak_spread=0.11,
    allocator_share=0.14,
    recipe="bf16_8",
    frees_gradients=True,
    kept_logit_bytes=2,
    loss_bytes=4 / 8,
    repeats_keys=True,
)
_TORCHTUNE_LOGITS = replace(
    _TORCHTUNE,
    name="torchtune-logits",
    label="torchtune with whole logits",
    kept_logit_bytes=4,
    loss_bytes=8,
)
# Modules of the transformers library without a compiler.
_DEEPSPEED = FrameworkMemory(
    name="deepspeed",
    label="DeepSpeed",
    peak_spread=0.125,
    allocator_share=0.14,
    recipe="zero16",
    kept_logit_bytes=4,
    loss_bytes=8,
    keeps_gate=True,
    norm_bytes=6,
)
_PRIME_RL = FrameworkMemory(
    name="prime-rl",
    label="prime-rl",
    peak_spread=0.11,
    allocator_share=0.14,
    recipe="fsdp16",
    frees_gradients=True,
    gate_bytes=4,
    casts_alone=True,
    kept_logit_bytes=0,
    loss_bytes=0,
)

_ALL = (
    _MEGATRON,
    replace(
        _MEGATRON,
        name="megatron-2024",
        label="Megatron-Core until 2024",
        gates_first=False,
    ),
    replace(
        _MEGATRON,
        name="megatron-fused-loss",
        label="Megatron-Core with its own fused loss",
        loss_bytes=6,
    ),
    FrameworkMemory(
        name="megatron-deepspeed",
        label="Megatron-DeepSpeed of 2022",
        peak_spread=0.107,
        allocator_share=0.6,
        fresh_gradient_bytes=2,
        prints="device",
    ),
    FrameworkMemory(
        name="nanotron",
        label="nanotron",
        peak_spread=0.118,
        allocator_share=0.17,
        fresh_gradient_bytes=2,
        bucket_bytes=2,
        loss_bytes=4,
        keeps_gate=True,
        balanced=True,
        prints="first",
        waiting_pairs=14,
    ),
    _TORCHTITAN,
    replace(
        _TORCHTITAN,
        name="torchtitan-2024",
        label="torchtitan, loss not compiled",
        kept_logit_bytes=4,
        loss_bytes=8,
    ),
    FrameworkMemory(
        name="fsdp",
        label="PyTorch FSDP",
        allocator_share=0.14,
        recipe="fsdp16",
        frees_gradients=True,
        kept_logit_bytes=2,
        loss_bytes=2,
    ),
    _TORCHTUNE,
    _TORCHTUNE_LOGITS,
    replace(
        _TORCHTUNE_LOGITS,
        name="torchtune-eager",
        label="torchtune with whole logits, not compiled",
        keeps_gate=True,
        norm_bytes=6,
    ),
    FrameworkMemory(
        name="pytorch",
        label="plain PyTorch",
        peak_spread=0.107,
        allocator_share=0.14,
        recipe="bf16_8",
        frees_gradients=True,
        bucket_bytes=2,
        kept_logit_bytes=4,
        loss_bytes=4,
        keeps_gate=True,
        norm_bytes=6,
    ),
    FrameworkMemory(
        name="pytorch-compiled",
        label="plain PyTorch, compiled",
        peak_spread=0.185,
        allocator_share=0.14,
        recipe="bf16_8",
        frees_gradients=True,
        bucket_bytes=2,
        kept_logit_bytes=2,
        loss_bytes=4,
    ),
    FrameworkMemory(
        name="litgpt",
        label="LitGPT",
        peak_spread=0.107,
        allocator_share=0.14,
        recipe="bf16_8",
        bucket_bytes=2,
        kept_logit_bytes=4,
        loss_bytes=4,
        keeps_gate=True,
        repeats_keys=True,
        norm_bytes=8,
    ),
    replace(
        _DEEPSPEED,
        name="hf-trainer",
        label="Hugging Face Trainer",
        peak_spread=0.286,
        recipe="fp32_16",
        frees_gradients=True,
    ),
    _DEEPSPEED,
    replace(
        _DEEPSPEED,
        name="deepspeed-liger",
        label="DeepSpeed with Liger kernels",
        kept_logit_bytes=0,
        loss_bytes=0,
        keeps_gate=False,
        norm_bytes=2,
    ),
    _PRIME_RL,
    replace(
        _PRIME_RL,
        name="prime-rl-logits",
        label="prime-rl with whole logits",
        kept_logit_bytes=8,
        loss_bytes=8,
    ),
    FrameworkMemory(
        name="unknown",
        label="unknown software",
        peak_spread=0.286,
        allocator_share=0.17,
    ),
)

SOURCES = {
    "megatron": (
        "NVIDIA/Megatron-LM@d98e8a64 megatron/core/tensor_parallel/layers.py (weight gradients"
        " are added into the FP32 buffer), cross_entropy.py (softmax in place of FP32 logits),"
        " training/arguments.py (outputs of stages are freed); its functional tests print "
        "peaks, none of which is fitted, and the share is assumed: a third of torchtitan's, "
        "with expandable segments; moe/token_dispatcher.py and experts.py (gates multiply "
        "before the down-projection); core/optimizer/cpu_offloading (moments go to the host, "
        "FP32 weights stay); Transformer Engine, module/base.py (FP8 weights and their "
        "transposes are cached), and Megatron-LM issues 1236 and 1237 (FP8 runs out of memory "
        "where BF16 fits)"
    ),
    "megatron-2024": (
        "as Megatron-Core, but gates multiply what experts return, which is kept for their "
        "gradient: Yan et al. 2026, arXiv:2603.07685, section 4.1, before its first measure"
    ),
    "megatron-fused-loss": (
        "as Megatron-Core, with --cross-entropy-loss-fusion and its implementation native, the "
        "default: NVIDIA/Megatron-LM@d98e8a64 megatron/core/fusions/fused_cross_entropy.py, whose "
        "compiled parts copy the FP32 logits, in the forward pass for their sum and in backward "
        "for the scatter, as the comment of @0cb4a9c8 there says, which avoids it"
    ),
    "megatron-deepspeed": (
        "bigscience-workshop/bigscience@9e64ede, chronicles-prequel.md, the sweep from line "
        "906 on (gradients in BF16 beside FP32); DeepSpeed's flat buffers are in the share"
    ),
    "nanotron": (
        "huggingface/nanotron@67c5ebb6 optim/gradient_accumulator.py (FP32 buffer beside "
        "16-bit gradients), trainer.py (DDP only without ZeRO), models/llama.py (MLP), "
        "models/base.py (stages by cost), parallel/tensor_parallel/functional.py (softmax "
        "beside FP32 logits; async_op=True), helpers.py (max_memory_reserved, written by rank 0)"
    ),
    "torchtitan": (
        "pytorch/torchtitan@b5bcd76c distributed/activation_checkpoint.py, "
        "models/llama3/parallelize.py (FSDP2, no resharding after forward in a pipeline), "
        "components/loss.py (compiled), components/metrics.py (max_reserved_gib)"
    ),
    "torchtitan-2024": (
        "as torchtitan, but a cross entropy of FP32 logits that is not compiled: "
        "pytorch/torchtitan, train.py of December 2024, components/loss.py without compile"
    ),
    "fsdp": (
        "mosaicml/llm-foundry@8c8dd48f llmfoundry/models/mpt (fused cross entropy); the share "
        "is torchtitan's"
    ),
    "torchtune": (
        "pytorch/torchtune@0031bfb0 recipes/configs (dtype bf16 for weights, gradients and "
        "AdamW), modules/attention.py (keys and values are expanded to all heads), "
        "modules/loss/ce_chunked_output_loss.py (one of eight chunks of 16-bit logits "
        "in FP32 at a time); the share is torchtitan's"
    ),
    "torchtune-logits": "as torchtune, but a cross entropy of all logits in FP32",
    "torchtune-eager": (
        "as torchtune with whole logits; modules/rms_norm.py and feed_forward.py without a compiler"
    ),
    "pytorch": (
        "alfredyu24/amd-mi350-benchmarks@f57fa76a transformer_benchmark.py (weights, moments, "
        "logits and their cross entropy in 16 bits: four copies); torch.nn.parallel."
        "DistributedDataParallel (buckets beside the gradients); the share is torchtitan's"
    ),
    "pytorch-compiled": (
        "as plain PyTorch; what a compiled layer and its loss keep is that of the given trace of "
        "one H100: no gate and no copy of a norm, six bytes a logit"
    ),
    "litgpt": (
        "Lightning-AI/litgpt@26857050 litgpt/model.py (RMSNorm in FP32, keys and values repeated "
        "for all heads, LLaMAMLP), litgpt/utils.py (chunked_cross_entropy of 16-bit logits), "
        "extensions/thunder/pretrain.py (bf16-true; gradients are summed over microbatches); the "
        "share is torchtitan's"
    ),
    "hf-trainer": (
        "huggingface/transformers@0114da07 src/transformers, models/llama/modeling_llama.py "
        "(LlamaRMSNorm in FP32, LlamaMLP), loss/loss_utils.py (ForCausalLMLoss: logits.float()), "
        "trainer.py (model.zero_grad() after every update); weights in FP32 under autocast; the "
        "share is torchtitan's"
    ),
    "deepspeed": (
        "deepspeedai/DeepSpeed@ea78ab68 deepspeed/runtime/zero/stage3.py (16-bit weights, a flat "
        "buffer of 16-bit gradients that stays, FP32 weights and moments), with modules of "
        "transformers; the share is torchtitan's"
    ),
    "deepspeed-liger": (
        "as DeepSpeed, with linkedin/Liger-Kernel: backward recomputes norms and gates, and "
        "its fused cross entropy stores no logits"
    ),
    "prime-rl": (
        "PrimeIntellect-ai/prime-rl@559b4477 src/prime_rl/trainer/model.py (FSDP2, FP32 shards, "
        "products in BF16), models/layers/moe.py (gates multiply in FP32), "
        "models/layers/lm_head.py (FusedOutputLinear: log-probabilities by "
        "chunks of 8,192 tokens and words, a gigabyte that is left out), rl/train.py "
        "(max_memory_reserved); the share is torchtitan's"
    ),
    "prime-rl-logits": (
        "as prime-rl, but fused_lm_head_token_chunk_size disabled, as in supervised fine-tuning "
        "until 2026: models/layers/lm_head.py (VanillaOutputLinear, logits in FP32, which its "
        "caller holds), sft/train.py (CrossEntropyLoss): four copies"
    ),
    "unknown": ("nothing: the habits are Megatron-Core's"),
}
"""The sources of each framework's habits."""

FRAMEWORKS: Mapping[str, FrameworkMemory] = MappingProxyType({one.name: one for one in _ALL})
"""Frameworks by name."""


def framework_memory(name: str) -> FrameworkMemory:
    """Return the framework `name`. Raises InputError, with the nearest names, if unknown."""
    if name not in FRAMEWORKS:
        raise unknown("framework", name, FRAMEWORKS)
    return FRAMEWORKS[name]
