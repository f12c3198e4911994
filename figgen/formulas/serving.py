"""Serving: the cache of keys and values, decode and prefill, price and energy."""

from __future__ import annotations

from figgen.equations.ops import Number, floor, minimum
from figgen.formulas.notation import formula

INSIGHTS = "Zhao et al. 2025, arXiv:2505.09343, Table 1"
POPE = "Pope et al. 2022, arXiv:2211.05102, section 2"
AUSTIN = "How to Scale Your Model, part 7"


@formula(symbol=r"c_\tau", unit="B/token", source=INSIGHTS)
def cache_bytes_per_token(layers: Number, kv_width: Number, bytes_per_element: Number) -> Number:
    """Bytes of keys and values that one token adds to the cache, over all layers."""
    return 2 * layers * kv_width * bytes_per_element


@formula(symbol=r"c_\tau", unit="B/token", source=INSIGHTS)
def latent_cache_bytes_per_token(
    layers: Number, latent_width: Number, rotary_width: Number, bytes_per_element: Number
) -> Number:
    """Bytes that latent attention caches per token: a small vector for all heads, a rotated key."""
    return layers * (latent_width + rotary_width) * bytes_per_element


@formula(
    symbol=r"S_\text{kv}",
    unit="B",
    where="windowed_layers <= layers",
    source="derivation: a window keeps its last tokens only",
)
def windowed_cache_bytes(
    layers: Number,
    windowed_layers: Number,
    window: Number,
    context: Number,
    kv_width: Number,
    bytes_per_element: Number,
) -> Number:
    """Cache of one sequence if some layers attend to a window and the others to everything."""
    tokens = (layers - windowed_layers) * context + windowed_layers * minimum(context, window)
    return 2 * kv_width * bytes_per_element * tokens


@formula(
    symbol=r"n_\text{seq}", unit="sequence", source="definition", where="memory_bytes >= held_bytes"
)
def sequences_that_fit(memory_bytes: Number, held_bytes: Number, cache_bytes: Number) -> Number:
    """Number of sequences whose caches fit next to the weights."""
    return floor((memory_bytes - held_bytes) / cache_bytes)


@formula(symbol=r"T_\text{dec}", unit="s", source=f"{POPE}; {AUSTIN}")
def decode_reading_time(
    held_bytes: Number,
    cache_bytes: Number,
    sequences: Number,
    memory_bandwidth_bytes_per_s: Number,
) -> Number:
    """Least time of a step that adds a token to each sequence: all weights and caches are read."""
    return (held_bytes + sequences * cache_bytes) / memory_bandwidth_bytes_per_s


@formula(symbol=r"T_\text{pre}", unit="s", source=f"{POPE}: two FLOP per parameter per token")
def prefill_time(active_parameters: Number, context: Number, peak_flops_per_s: Number) -> Number:
    """Least time to process a prompt, without its attention."""
    return 2 * active_parameters * context / peak_flops_per_s


@formula(symbol=r"n^*_\text{seq}", unit="sequence", source=AUSTIN)
def critical_decode_sequences(
    peak_flops_per_s: Number, memory_bandwidth_bytes_per_s: Number, bytes_per_param: Number
) -> Number:
    """Sequences for which the matmuls of a decode step take as long as reading the weights."""
    return peak_flops_per_s * bytes_per_param / (2 * memory_bandwidth_bytes_per_s)


@formula(symbol=r"p_\tau", unit="USD/token", source="definition")
def price_per_token(price_per_gpu_hour: Number, tokens_per_gpu_s: Number) -> Number:
    """Cost of a token, given throughput and the price of a GPU-hour."""
    return price_per_gpu_hour / (3600 * tokens_per_gpu_s)


@formula(symbol=r"E_\tau", unit="J/token", source="definition; Barroso et al. 2018: PUE")
def energy_per_token(
    gpu_power_w: Number, power_overhead: Number, tokens_per_gpu_s: Number
) -> Number:
    """Energy of a token, measured where power enters the building."""
    return gpu_power_w * power_overhead / tokens_per_gpu_s


@formula(symbol=r"E", unit="J", source="Luccioni et al. 2022, arXiv:2211.02001, section 4.2")
def training_energy(gpu_hours: Number, gpu_power_w: Number, power_overhead: Number) -> Number:
    """Energy of a run, measured where power enters the building."""
    return gpu_hours * 3600 * gpu_power_w * power_overhead
