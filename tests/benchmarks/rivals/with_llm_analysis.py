"""llm-analysis: FLOPs of a microbatch over a share of the peak, times microbatches.

https://github.com/cli99/llm-analysis. Sizes, chips and layout are the run's; the constant is its
`flops_efficiency`, which its source says is "~0.5" for Megatron-LM.
"""

from __future__ import annotations

import logging

from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis
from llm_analysis.config import DtypeConfig, GPUConfig, ModelConfig, ParallelismConfig

from figgen.scenarios.runs.described import DescribedRun
from tests.benchmarks.rivals.refusal import refuse

RECOMPUTED = {
    "full": ActivationRecomputation.FULL,
    "selective": ActivationRecomputation.SELECTIVE,
}
BITS = {"fp8": 8, "fp4": 4}
UNLIMITED_GB = 1e6
"""Every run did fit, so none is refused for lack of memory."""

logging.disable(logging.CRITICAL)


def seconds(run: DescribedRun, constant: float) -> float:
    """Return the seconds of a step for this `flops_efficiency`."""
    shape, chip = run.shape, run.accelerator
    refuse(shape.experts is not None, "FLOPs of experts")
    refuse(run.cp > 1, "context parallelism")
    refuse(run.tp > 8, "TP over nodes")
    uneven = run.global_batch % (run.dp * run.microbatch)
    refuse(bool(uneven), "a last microbatch that is not full")
    bits = BITS.get(run.dtype, 16)
    peak = chip.peak_flops_per_s(run.dtype) / 1e12
    plain = (chip.bf16 or chip.fp16).value / 1e12
    model = ModelConfig(
        name=run.name,
        num_layers=shape.layers,
        n_head=shape.heads,
        hidden_dim=shape.hidden,
        vocab_size=shape.vocab,
        max_seq_len=run.sequence,
        num_key_value_heads=shape.kv_heads,
        ffn_embed_dim=shape.ffn_hidden,
        expansion_ratio=shape.ffn_hidden / shape.hidden,
    )
    gpu = GPUConfig(
        name=chip.name,
        mem_per_GPU_in_GB=UNLIMITED_GB,
        hbm_bandwidth_in_GB_per_sec=chip.hbm_bandwidth_bytes_per_s / 1e9,
        intra_node_bandwidth_in_GB_per_sec=chip.scale_up_bandwidth_bytes_per_s / 1e9,
        intra_node_min_message_latency=8e-6,
        inter_node_bandwidth_in_GB_per_sec=run.network.bandwidth_bytes_per_s / 1e9,
        peak_fp16_TFLOPS=plain if bits == 16 else peak,
        peak_i8_TFLOPS=peak,
        peak_i4_TFLOPS=peak,
    )
    found = LLMAnalysis(
        model,
        gpu,
        DtypeConfig(weight_bits=bits, activation_bits=bits),
        ParallelismConfig(tp_size=run.tp, pp_size=run.pp, dp_size=run.dp),
        flops_efficiency=constant,
    ).training(
        batch_size_per_gpu=run.microbatch,
        global_batch_size=run.global_batch,
        seq_len=run.sequence,
        activation_recomputation=RECOMPUTED.get(run.recompute, ActivationRecomputation.NONE),
        ds_zero=DSZeRO(run.zero_stage),
        mlp_gated_linear_units=shape.ffn in ("swiglu", "geglu"),
    )
    return float(found["latency_per_iter"])
