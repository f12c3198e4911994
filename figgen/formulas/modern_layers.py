"""Layers since GPT: gated widths, norms, windows, and latent attention."""

from __future__ import annotations

from figgen.formulas.definition import formula
from figgen.formulas.ops import Number, ceil

LLAMA = "Touvron et al. 2023, arXiv:2302.13971, section 2.2; its code rounds up to a multiple"
DEEPSEEK = "DeepSeek-V2, arXiv:2405.04434, section 2.1"


@formula(symbol=r"f", unit="1", source=LLAMA)
def gated_width(hidden: Number, multiple: Number) -> Number:
    """Width of a gated block that has the parameters of an ungated one of four times the width."""
    return multiple * ceil(8 * hidden / (3 * multiple))


@formula(symbol=r"N_\text{norm}", unit="param", source="definition: two norms a layer and a last")
def normalization_parameters(layers: Number, hidden: Number, vectors: Number) -> Number:
    """Parameters of all norms; LayerNorm has a scale and a shift, RMSNorm a scale."""
    return (2 * layers + 1) * hidden * vectors


@formula(symbol=r"n_\text{pairs}", unit="1", source="counting", where="context >= window")
def windowed_pairs(context: Number, window: Number) -> Number:
    """Pairs of a query and a key that a causal window of one sequence leaves."""
    return window * context - window * (window - 1) / 2


@formula(symbol=r"N_\text{MLA}", unit="param", source=DEEPSEEK)
def latent_attention_parameters(
    hidden: Number,
    heads: Number,
    query_width: Number,
    latent_width: Number,
    head_width: Number,
    rotary_width: Number,
    value_width: Number,
) -> Number:
    """Parameters of one layer's latent attention: ways down, norms, ways up, and the way out."""
    down = hidden * (query_width + latent_width + rotary_width) + query_width + latent_width
    queries = query_width * heads * (head_width + rotary_width)
    keys_and_values = latent_width * heads * (head_width + value_width)
    return down + queries + keys_and_values + heads * value_width * hidden


@formula(
    symbol=r"\text{AI}", unit="FLOP/B",
    source="NVIDIA, Matrix Multiplication Background, section 2.1: every element moved once",
)  # fmt: skip
def product_intensity(
    tokens: Number, rows: Number, columns: Number, bytes_per_element: Number
) -> Number:
    """Work per byte of memory of a product of `tokens` vectors with one matrix."""
    moved = tokens * rows + rows * columns + tokens * columns
    return 2 * tokens * rows * columns / (bytes_per_element * moved)
