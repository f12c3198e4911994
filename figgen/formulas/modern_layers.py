"""Layers since GPT: gated widths, norms, windows, and latent attention."""

from __future__ import annotations

from figgen.equations.ops import Number, ceil
from figgen.formulas.notation import formula

LLAMA = "Touvron et al. 2023, arXiv:2302.13971, section 2.2; its code rounds up to a multiple"
DEEPSEEK = "DeepSeek-V2, arXiv:2405.04434, section 2.1"
MAMBA = "Dao and Gu 2024 (Mamba-2), arXiv:2405.21060"


@formula(symbol=r"f", unit="1", source=LLAMA)
def gated_width(hidden: Number, multiple: Number) -> Number:
    """Width of a gated block with as many parameters as an ungated block of width 4h."""
    return multiple * ceil(8 * hidden / (3 * multiple))


@formula(symbol=r"N_\text{norm}", unit="param", source="definition: two norms a layer and a last")
def normalization_parameters(layers: Number, hidden: Number, vectors: Number) -> Number:
    """Parameters of all norms; LayerNorm has a scale and a shift, RMSNorm a scale."""
    return (2 * layers + 1) * hidden * vectors


@formula(symbol=r"n_\text{pairs}", unit="1", source="counting", where="context >= window")
def windowed_pairs(context: Number, window: Number) -> Number:
    """Pairs of a query and a key that a causal window leaves in one sequence."""
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
    """Parameters of one layer's latent attention: projections down and up, norms, output."""
    down = hidden * (query_width + latent_width + rotary_width) + query_width + latent_width
    queries = query_width * heads * (head_width + rotary_width)
    keys_and_values = latent_width * heads * (head_width + value_width)
    return down + queries + keys_and_values + heads * value_width * hidden


@formula(
    symbol=r"N_\text{ssm}", unit="param", source=f"{MAMBA}, section 7; state-spaces/mamba, Mamba2"
)
def state_space_parameters(
    hidden: Number,
    inner_width: Number,
    state_width: Number,
    state_groups: Number,
    mixer_heads: Number,
    convolution: Number,
) -> Number:
    """Parameters of a Mamba-2 mixer: projections, convolution with bias, gated norm, heads.

    Each head has a decay rate, a step bias and a skip weight.
    """
    convolved = inner_width + 2 * state_groups * state_width
    ways = hidden * (inner_width + convolved + mixer_heads) + inner_width * hidden
    return ways + convolved * (convolution + 1) + inner_width + 3 * mixer_heads


@formula(symbol=r"S_\text{ssm}", unit="B", source=f"{MAMBA}: what the recurrence keeps")
def state_space_cache_bytes(
    layers: Number,
    inner_width: Number,
    state_width: Number,
    state_groups: Number,
    convolution: Number,
    bytes_per_element: Number,
) -> Number:
    """Cache of state-space layers for a sequence of any length: states, last convolved inputs."""
    last = (convolution - 1) * (inner_width + 2 * state_groups * state_width)
    return layers * bytes_per_element * (inner_width * state_width + last)


@formula(symbol=r"W_\text{ssd}", unit="FLOP", source=f"{MAMBA}, section 6: blocks of the matrix")
def state_space_work(
    inner_width: Number, state_width: Number, state_groups: Number, chunk_tokens: Number
) -> Number:
    """Forward work per token in a mixer's core: within its chunk, into the state and out of it.

    The masked half of a chunk is computed too; passing states from chunk to chunk is not counted.
    """
    within = 2 * chunk_tokens * (state_groups * state_width + inner_width)
    return within + 4 * state_width * inner_width


@formula(
    symbol=r"A_\text{ssm}",
    unit="B",
    source="state-spaces/mamba, ssd_combined.py, and Megatron-LM core, ssm/mamba_mixer.py",
)
def state_space_activation_bytes(
    hidden: Number,
    inner_width: Number,
    state_width: Number,
    state_groups: Number,
    mixer_heads: Number,
    bytes_per_element: Number,
) -> Number:
    """Activations that a mixer keeps per token for backward.

    These are its input; the gate, input, projections B and C, and steps; and the scan's output
    before the gate, after it, and normalized. Backward recomputes the convolution and the states.
    """
    projected = 2 * inner_width + 2 * state_groups * state_width + mixer_heads
    return bytes_per_element * (hidden + projected + 3 * inner_width)


@formula(
    symbol=r"N_\text{mtp}",
    unit="param",
    source="DeepSeek-V3, arXiv:2412.19437, section 2.2: embedding and head are shared",
)
def prediction_module_parameters(layer_parameters: Number, hidden: Number) -> Number:
    """Parameters of a module that predicts one more token: a layer, a projection, three norms."""
    return layer_parameters + 2 * hidden * hidden + 3 * hidden


@formula(
    symbol=r"\text{AI}",
    unit="FLOP/B",
    source="NVIDIA, Matrix Multiplication Background, section 2.1: every element moved once",
)
def product_intensity(
    tokens: Number, rows: Number, columns: Number, bytes_per_element: Number
) -> Number:
    """Work per byte of memory traffic when one matrix multiplies `tokens` vectors."""
    moved = tokens * rows + rows * columns + tokens * columns
    return 2 * tokens * rows * columns / (bytes_per_element * moved)
