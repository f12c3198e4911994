"""Context parallelism: ring attention's traffic and buffers, and when computation hides it."""

from __future__ import annotations

from figgen.equations.ops import Number
from figgen.formulas.notation import formula

LIU = "Liu et al. 2023 (ring attention), arXiv:2310.01889"


@formula(symbol="c", unit="token", source="definition", where="sequence_length % cp == 0")
def tokens_per_context_rank(sequence_length: Number, cp: Number) -> Number:
    """Tokens of a sequence that each context-parallel rank holds."""
    return sequence_length // cp


@formula(
    symbol=r"V_\text{CP}", unit="B", source="derivation; Megatron-LM docs, context parallelism"
)
def ring_attention_forward_bytes(
    cp: Number,
    microbatch_size: Number,
    sequence_length: Number,
    kv_width: Number,
    bytes_per_element: Number,
) -> Number:
    """Bytes that a rank sends to pass keys and values around the ring in one layer's forward."""
    return (cp - 1) * 2 * microbatch_size * (sequence_length / cp) * kv_width * bytes_per_element


@formula(symbol="T", unit="s", source="derivation: keys and values over one link")
def kv_transfer_time(
    sequence_length: Number,
    kv_width: Number,
    bytes_per_element: Number,
    bandwidth_bytes_per_s: Number,
) -> Number:
    """Time to send the keys and values of this many tokens of one layer over one link."""
    return 2 * sequence_length * kv_width * bytes_per_element / bandwidth_bytes_per_s


@formula(symbol=r"c_\text{min}", unit="token", source=f"{LIU}, c ≥ F/B, with bytes and KV heads")
def ring_attention_min_tokens(
    peak_flops_per_s: Number,
    bandwidth_bytes_per_s: Number,
    bytes_per_element: Number,
    heads: Number,
    kv_heads: Number,
) -> Number:
    """Fewest tokens per rank for which attention hides the ring; twice as many if causal."""
    return peak_flops_per_s / bandwidth_bytes_per_s * bytes_per_element / 2 * kv_heads / heads


@formula(symbol=r"c_\text{min}", unit="token", source=f"{LIU}, half of the pairs masked")
def causal_ring_attention_min_tokens(
    peak_flops_per_s: Number,
    bandwidth_bytes_per_s: Number,
    bytes_per_element: Number,
    heads: Number,
    kv_heads: Number,
) -> Number:
    """Fewest tokens per rank for which balanced causal attention hides the ring."""
    return peak_flops_per_s / bandwidth_bytes_per_s * bytes_per_element * kv_heads / heads


@formula(symbol=r"M_\text{KV}", unit="B", source="derivation: K and V, each in two buffers")
def kv_ring_buffer_bytes(
    microbatch_size: Number,
    sequence_length: Number,
    cp: Number,
    kv_width: Number,
    bytes_per_element: Number,
) -> Number:
    """Bytes of double-buffered key and value blocks of one layer."""
    return 2 * 2 * microbatch_size * (sequence_length / cp) * kv_width * bytes_per_element
