"""Fine-tuning and lighter optimizers: adapters, quantized weights, factored states, Muon."""

from __future__ import annotations

from figgen.equations.ops import Number
from figgen.formulas.notation import formula

LORA = "Hu et al. 2021, arXiv:2106.09685, section 4.1"
QLORA = "Dettmers et al. 2023, arXiv:2305.14314, section 3"
ADAFACTOR = "Shazeer and Stern 2018, arXiv:1804.04235, section 3"
MUON = "Jordan et al. 2024, Muon, FLOP overhead"


@formula(symbol=r"N_\text{ad}", unit="param", source=LORA)
def adapter_parameters(rows: Number, columns: Number, low_rank: Number) -> Number:
    """Parameters of the two thin factors that adapt one matrix."""
    return low_rank * (rows + columns)


@formula(symbol=r"S_\text{ft}", unit="B", source=LORA)
def adapted_state_bytes(
    parameters: Number,
    weight_bytes_per_param: Number,
    trained_parameters: Number,
    bytes_per_param: Number,
) -> Number:
    """State of a model with frozen weights, including the state of the trained parameters."""
    return parameters * weight_bytes_per_param + trained_parameters * bytes_per_param


@formula(symbol=r"q_\text{block}", unit="1", source=QLORA)
def block_bits(value_bits: Number, scale_bits: Number, block: Number) -> Number:
    """Bits per value if each block of values shares a scale."""
    return value_bits + scale_bits / block


@formula(symbol=r"q_\text{double}", unit="1", source=f"{QLORA}: double quantization")
def doubly_quantized_bits(
    value_bits: Number,
    scale_bits: Number,
    block: Number,
    outer_scale_bits: Number,
    outer_block: Number,
) -> Number:
    """Bits per value if the scales of blocks are themselves quantized in blocks."""
    return value_bits + scale_bits / block + outer_scale_bits / (block * outer_block)


@formula(symbol=r"n_\text{fac}", unit="1", source=ADAFACTOR)
def factored_moment_numbers(rows: Number, columns: Number) -> Number:
    """Numbers that a factored second moment keeps per matrix: sums of rows and of columns."""
    return rows + columns


@formula(symbol=r"W_\text{NS}", unit="FLOP", source=MUON, where="rows >= columns")
def newton_schulz_flops(rows: Number, columns: Number, iterations: Number) -> Number:
    """Work to orthogonalize one matrix with Muon; `columns` is the shorter side."""
    return iterations * (4 * rows * columns * columns + 2 * columns * columns * columns)


@formula(symbol=r"o_\text{NS}", unit="1", source=MUON)
def newton_schulz_overhead(columns: Number, iterations: Number, batch_tokens: Number) -> Number:
    """Upper bound on Muon's share of a step's matmuls if all replicas repeat its work."""
    return iterations * columns / batch_tokens
