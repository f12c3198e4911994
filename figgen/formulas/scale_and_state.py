"""Scale, parameters and the bytes of model state.

A recipe, which is always named, says how many bytes a parameter costs: ZeRO's 2+2+12, Megatron's
2+4+12 (bf16 with fp32 main gradients) and 2+2+16 (fp16), or 4+4+8 (fp32).
"""

from __future__ import annotations

from figgen.equations.ops import Number, ceil, log2, where
from figgen.formulas.notation import formula

KAPLAN = "Kaplan et al. 2020, arXiv:2001.08361, eq. 1.1"
ZERO = "Rajbhandari et al. 2020 (ZeRO), arXiv:1910.02054, fig. 1"


@formula(symbol="L", unit="nat/token", source=KAPLAN)
def power_law_loss(parameters: Number) -> Number:
    """Test loss of a model of N non-embedding parameters, if data does not limit it."""
    return (8.8e13 / parameters) ** 0.076


@formula(symbol=r"N_\text{new}/N_\text{old}", unit="1", source=f"derivation from {KAPLAN}")
def growth_for_loss_ratio(loss_ratio: Number) -> Number:
    """Factor by which a model must grow to divide its loss by r."""
    return loss_ratio ** (1 / 0.076)


@formula(symbol="t_2", unit="month", source="derivation: exponential growth")
def doubling_time(elapsed_months: Number, growth: Number) -> Number:
    """Doubling time of model size, from two models and the time between them."""
    return elapsed_months / log2(growth)


@formula(symbol="G", unit="GPU", source="derivation: the state is divided evenly")
def gpus_to_hold(
    parameters: Number, bytes_per_param: Number, memory_bytes: Number, usable_fraction: Number
) -> Number:
    """Fewest GPUs whose memory holds this many bytes per parameter, not counting activations."""
    return ceil(parameters * bytes_per_param / (usable_fraction * memory_bytes))


@formula(symbol="W", unit="B", source="definition")
def weight_bytes(parameters: Number, weight_bytes_per_param: Number) -> Number:
    """Bytes of the weights alone."""
    return parameters * weight_bytes_per_param


@formula(symbol=r"M_\text{state}", unit="B", source=f"{ZERO}; Megatron-LM docs, dist_optimizer.md")
def model_state_bytes(
    parameters: Number,
    weight_bytes_per_param: Number,
    gradient_bytes_per_param: Number,
    optimizer_bytes_per_param: Number,
) -> Number:
    """Bytes of weights, gradients and optimizer state, replicated."""
    return parameters * (
        weight_bytes_per_param + gradient_bytes_per_param + optimizer_bytes_per_param
    )


@formula(symbol=r"N_\text{max}", unit="param", source="derivation: replicated state fills a GPU")
def largest_replicated_model(
    memory_bytes: Number, usable_fraction: Number, bytes_per_param: Number
) -> Number:
    """Number of parameters whose replicated state fills one GPU, not counting activations."""
    return usable_fraction * memory_bytes / bytes_per_param


@formula(symbol=r"M_\text{state}", unit="B", source=f"{ZERO}; Megatron-LM docs, dist_optimizer.md")
def zero_state_bytes(
    parameters: Number,
    weight_bytes_per_param: Number,
    gradient_bytes_per_param: Number,
    optimizer_bytes_per_param: Number,
    dp: Number,
    zero_stage: Number,
) -> Number:
    """Bytes of model state per rank if ZeRO divides it evenly among D ranks."""
    weight = weight_bytes_per_param
    gradient = gradient_bytes_per_param
    optimizer = optimizer_bytes_per_param
    two_or_three = where(
        zero_stage == 2,
        parameters * (weight + (gradient + optimizer) / dp),
        parameters * ((weight + gradient + optimizer) / dp),
    )
    one_or_more = where(
        zero_stage == 1, parameters * (weight + gradient + optimizer / dp), two_or_three
    )
    return where(zero_stage == 0, parameters * (weight + gradient + optimizer), one_or_more)


@formula(
    symbol=r"N_\text{layer}",
    unit="param",
    source="Narayanan et al. 2021, arXiv:2104.04473, eq. (2), leading term",
)
def layer_parameters(hidden: Number) -> Number:
    """Parameters of one layer with a 4h MLP, not counting biases and norms."""
    return 12 * hidden**2


@formula(
    symbol="N",
    unit="param",
    source="Narayanan et al. 2021, arXiv:2104.04473, eq. (2), multiplied out",
)
def gpt_parameters(
    layers: Number, hidden: Number, vocabulary: Number, sequence_length: Number
) -> Number:
    """Parameters of a GPT: layers with biases and norms, token and position embeddings."""
    return layers * (12 * hidden**2 + 13 * hidden) + (vocabulary + sequence_length) * hidden


@formula(symbol=r"N_\text{attn}", unit="param", source="published model configurations")
def grouped_query_attention_parameters(hidden: Number, kv_width: Number) -> Number:
    """Attention parameters of one layer, no biases; the query heads are as wide as the model."""
    return 2 * hidden**2 + 2 * hidden * kv_width


@formula(symbol=r"N_\text{ffn}", unit="param", source="published model configurations")
def swiglu_parameters(layers: Number, experts: Number, hidden: Number, ffn_width: Number) -> Number:
    """Feed-forward parameters of a SwiGLU model with E experts per layer (E = 1: dense)."""
    return layers * experts * 3 * hidden * ffn_width
