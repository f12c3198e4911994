"""Work, communication-to-computation ratios, rooflines, utilization and cost.

Peaks are dense. Both numbers of a ridge point belong to one endpoint: the FLOP/s of a GPU with the
bandwidth of its link, or the FLOP/s of a node with the bandwidth of all its NICs.
"""

from __future__ import annotations

from figgen.equations.ops import Number, maximum, minimum
from figgen.formulas.notation import formula

RING_VOLUME = "derivation: 6Nτ of work over the ring's bytes sent"


@formula(symbol="C", unit="FLOP", source="Kaplan et al. 2020, arXiv:2001.08361, §2.1")
def training_flops(parameters: Number, tokens: Number) -> Number:
    """Work of forward and backward for these tokens, without the attention core."""
    return 6 * parameters * tokens


@formula(symbol="C", unit="FLOP", source="Narayanan et al. 2021, arXiv:2104.04473, §5.1")
def training_flops_with_recompute(parameters: Number, tokens: Number) -> Number:
    """Work of training on these tokens if the whole forward is recomputed."""
    return 8 * parameters * tokens


@formula(symbol="C", unit="FLOP", source="Chowdhery et al. 2022 (PaLM), arXiv:2204.02311, App. B")
def training_flops_with_attention(
    parameters: Number,
    tokens: Number,
    layers: Number,
    sequence_length: Number,
    attention_width: Number,
) -> Number:
    """Work of forward and backward with the attention core, without discount for causal masks.

    `attention_width` is the number of heads times the width of one head.
    """
    return tokens * (6 * parameters + 12 * layers * sequence_length * attention_width)


@formula(symbol=r"C_\text{layer}", unit="FLOP", source="Narayanan et al. 2021, arXiv:2104.04473")
def layer_forward_flops(microbatch_size: Number, sequence_length: Number, hidden: Number) -> Number:
    """Forward work of one layer with a 4h MLP, without discount for causal masks."""
    return 24 * microbatch_size * sequence_length * hidden**2 * (1 + sequence_length / (6 * hidden))


@formula(symbol=r"C_\text{attn}", unit="FLOP", source="derivation: two products of s × s × h")
def attention_core_flops(
    microbatch_size: Number, sequence_length: Number, hidden: Number
) -> Number:
    """Forward work of the matmuls QKᵀ and PV, unmasked; causal attention needs half."""
    return 4 * microbatch_size * sequence_length**2 * hidden


@formula(symbol=r"\text{CCR}_\text{DDP}", unit="FLOP/B", source=RING_VOLUME, where="dp >= 2")
def data_parallel_ccr(tokens: Number, bytes_per_param: Number, dp: Number) -> Number:
    """Work per byte sent of data parallelism; `tokens` are those of one rank and step.

    Only the backward of the last microbatch hides the messages.
    """
    return 3 * tokens / bytes_per_param * dp / (dp - 1)


@formula(symbol=r"\text{CCR}_\text{FSDP}", unit="FLOP/B", source=RING_VOLUME, where="dp >= 2")
def fsdp_ccr(tokens: Number, bytes_per_param: Number, dp: Number) -> Number:
    """Work per byte sent of FSDP and ZeRO-3; `tokens` are those of one rank and microbatch."""
    return 2 * tokens / bytes_per_param * dp / (dp - 1)


@formula(symbol=r"\text{CCR}^*", unit="FLOP/B", source="Williams et al. 2009 (roofline)")
def ridge_point(peak_flops_per_s: Number, bandwidth_bytes_per_s: Number) -> Number:
    """Work per byte at which computing and sending take equally long."""
    return peak_flops_per_s / bandwidth_bytes_per_s


@formula(symbol=r"F_\text{att}", unit="FLOP/s", source="Williams et al. 2009 (roofline)")
def attainable_flops_over_network(
    peak_flops_per_s: Number, bandwidth_bytes_per_s: Number, ccr: Number
) -> Number:
    """Highest rate of work if communication overlaps perfectly."""
    return minimum(peak_flops_per_s, bandwidth_bytes_per_s * ccr)


@formula(symbol=r"F_\text{att}", unit="FLOP/s", source="Williams et al. 2009 (roofline)")
def attainable_flops(
    peak_flops_per_s: Number, memory_bandwidth_bytes_per_s: Number, intensity: Number
) -> Number:
    """Highest rate of work of a kernel with this arithmetic intensity."""
    return minimum(peak_flops_per_s, memory_bandwidth_bytes_per_s * intensity)


@formula(symbol="R", unit="sample/s", source="derivation: the lower of two ceilings")
def samples_per_second(
    peak_flops_per_s: Number,
    flops_per_sample: Number,
    bandwidth_bytes_per_s: Number,
    step_bytes: Number,
    samples_per_step: Number,
) -> Number:
    """Samples per second that computation and network both allow."""
    return minimum(
        peak_flops_per_s / flops_per_sample, bandwidth_bytes_per_s / step_bytes * samples_per_step
    )


@formula(symbol=r"\eta", unit="1", source="derivation: attainable rate over peak")
def efficiency_with_overlap(ccr: Number, ridge: Number) -> Number:
    """Share of the peak that is reached if communication overlaps perfectly."""
    return minimum(1, ccr / ridge)


@formula(symbol=r"\eta", unit="1", source="derivation: compute time over compute plus send time")
def efficiency_without_overlap(ccr: Number, ridge: Number) -> Number:
    """Share of the peak that is reached if nothing overlaps."""
    return 1 / (1 + ridge / ccr)


@formula(
    symbol=r"\eta",
    unit="1",
    source="derivation: compute time over compute time and what outlasts the part that it overlaps",
)
def efficiency_with_partial_overlap(
    ccr: Number, ridge: Number, overlapped_fraction: Number
) -> Number:
    """Share of the peak that is reached if messages hide behind only this share of the work."""
    return 1 / (1 + maximum(0, ridge / ccr - overlapped_fraction))


BEHIND_ITS_PASS = (
    "Austin et al. 2025, How to Scale Your Model, Training: gradients behind 4Nτ of backward, "
    "gathered weights behind 2Nτ"
)


@formula(symbol=r"\tau^*", unit="token", source=BEHIND_ITS_PASS)
def critical_tokens(
    peak_flops_per_s: Number, bandwidth_bytes_per_s: Number, bytes_per_param: Number
) -> Number:
    """Tokens per rank per microbatch above which DDP and FSDP hide, in a group of any size."""
    return peak_flops_per_s / bandwidth_bytes_per_s * bytes_per_param / 2


@formula(symbol=r"\tau^*_D", unit="token", source=f"{BEHIND_ITS_PASS}; bytes of a ring of D ranks")
def critical_tokens_of_group(
    peak_flops_per_s: Number, bandwidth_bytes_per_s: Number, bytes_per_param: Number, dp: Number
) -> Number:
    """Tokens per rank per microbatch above which DDP and FSDP hide among this many ranks."""
    return peak_flops_per_s / bandwidth_bytes_per_s * bytes_per_param / 2 * ((dp - 1) / dp)


@formula(symbol=r"\text{MFU}", unit="1", source="Chowdhery et al. 2022 (PaLM), App. B, 6N only")
def model_flops_utilization(
    parameters: Number, tokens_per_gpu_s: Number, peak_flops_per_s: Number
) -> Number:
    """Useful work as a share of the peak, from one GPU's throughput, not counting recomputation."""
    return 6 * parameters * tokens_per_gpu_s / peak_flops_per_s


@formula(symbol="t", unit="s", source="definition of the GPU-hour")
def training_time(gpu_hours: Number, gpus: Number) -> Number:
    """Wall time of a run that takes this many GPU-hours."""
    return 3600 * gpu_hours / gpus


@formula(symbol="t", unit="s", source="Narayanan et al. 2021, arXiv:2104.04473, §5.1")
def time_of_work(
    work_flops: Number, gpus: Number, peak_flops_per_s: Number, utilization: Number
) -> Number:
    """Wall time of this much work on GPUs that reach a share of their peak.

    If the share is MFU, the work is the model's; if it is HFU, the work includes recomputation.
    """
    return work_flops / (gpus * peak_flops_per_s * utilization)


@formula(symbol=r"K", unit="USD", source="definition")
def training_cost(gpu_hours: Number, price_per_gpu_hour: Number) -> Number:
    """Cost of this many GPU-hours."""
    return gpu_hours * price_per_gpu_hour


@formula(
    symbol=r"b_\text{c}",
    unit="B",
    source="NVIDIA Transformer Engine, Performance considerations: a copy by rows, one by columns",
)
def cast_bytes_per_element(
    reads: Number,
    bits_from: Number,
    bits_to: Number,
    scale_bits: Number,
    elements_per_scale: Number,
) -> Number:
    """Bytes moved to make two narrow copies of an element, including its part of both scales.

    One read if a block fits a kernel; two if the largest element of a whole tensor is needed first.
    """
    return (reads * bits_from + 2 * (bits_to + scale_bits / elements_per_scale)) / 8


@formula(
    symbol=r"h^*",
    unit="1",
    source="derivation: casts of inputs and of gradients against three matmuls, M·K·N each",
    where="narrow_flops_per_s > peak_flops_per_s",
)
def cast_break_even_width(
    cast_bytes: Number,
    memory_bandwidth_bytes_per_s: Number,
    peak_flops_per_s: Number,
    narrow_flops_per_s: Number,
) -> Number:
    """Width of a square layer above which narrow matmuls save more time than their casts take.

    For other layers, use the harmonic mean of both widths. Casts of weights, which happen once for
    many tokens, are not counted.
    """
    saved = 1 / peak_flops_per_s - 1 / narrow_flops_per_s
    return cast_bytes / (3 * memory_bandwidth_bytes_per_s * saved)
