"""Bytes of activations kept for backward: 16-bit, GELU MLP of width 4h, one-byte dropout masks.

The constants 34, 10, 24 and 5 are bytes (and bytes per head) of the paper's table of tensors.
Embedding, logits and loss are not counted.
"""

from __future__ import annotations

from figgen.equations.ops import Number
from figgen.formulas.notation import formula

KORTHIKANTI = "Korthikanti et al. 2022, arXiv:2205.05198"


@formula(symbol="A", unit="B", source=f"{KORTHIKANTI}, eq. (1)")
def layer_activation_bytes(
    sequence_length: Number, microbatch_size: Number, hidden: Number, heads: Number
) -> Number:
    """Activations of one layer and microbatch, with nothing divided and nothing recomputed."""
    return sequence_length * microbatch_size * hidden * (34 + 5 * heads * sequence_length / hidden)


@formula(symbol=r"A_\text{total}", unit="B", source=KORTHIKANTI)
def model_activation_bytes(
    layers: Number,
    sequence_length: Number,
    microbatch_size: Number,
    hidden: Number,
    heads: Number,
) -> Number:
    """Activations of all layers for one microbatch, with nothing divided and nothing recomputed."""
    return (
        layers
        * sequence_length
        * microbatch_size
        * hidden
        * (34 + 5 * heads * sequence_length / hidden)
    )


@formula(symbol="A", unit="B", source=f"{KORTHIKANTI}, eq. (2)")
def tensor_parallel_layer_activation_bytes(
    sequence_length: Number,
    microbatch_size: Number,
    hidden: Number,
    heads: Number,
    tp: Number,
) -> Number:
    """Activations of one layer per rank under tensor parallelism, with whole norms and dropout."""
    return (
        sequence_length
        * microbatch_size
        * hidden
        * (10 + 24 / tp + 5 * heads * sequence_length / (hidden * tp))
    )


@formula(symbol="A", unit="B", source=f"{KORTHIKANTI}, eq. (4)")
def sequence_parallel_layer_activation_bytes(
    sequence_length: Number,
    microbatch_size: Number,
    hidden: Number,
    heads: Number,
    tp: Number,
) -> Number:
    """Activations of one layer per rank when sequence parallelism divides norms and dropout too."""
    return (
        sequence_length
        * microbatch_size
        * hidden
        / tp
        * (34 + 5 * heads * sequence_length / hidden)
    )


@formula(symbol="A", unit="B", source=f"{KORTHIKANTI}, §5")
def selective_recompute_layer_activation_bytes(
    sequence_length: Number, microbatch_size: Number, hidden: Number, tp: Number
) -> Number:
    """Activations of one layer per rank when the attention core is recomputed or never stored."""
    return 34 * sequence_length * microbatch_size * hidden / tp


@formula(symbol="A", unit="B", source=f"derivation: the tensors of {KORTHIKANTI}, §4, gated")
def gated_layer_activation_bytes(
    sequence_length: Number,
    microbatch_size: Number,
    hidden: Number,
    kv_width: Number,
    ffn_width: Number,
    tp: Number,
) -> Number:
    """Activations of one layer per rank with grouped queries, gated MLP and fused attention.

    Without dropout and with sequence parallelism. Six tensors are as wide as the model (norms,
    queries, attention's output), two as wide as the keys and values, and three as wide as the MLP
    (gate, up, and their elementwise product).
    """
    return 2 * sequence_length * microbatch_size * (6 * hidden + 2 * kv_width + 3 * ffn_width) / tp


@formula(symbol="A", unit="B", source=f"{KORTHIKANTI}, §5")
def full_recompute_layer_activation_bytes(
    sequence_length: Number, microbatch_size: Number, hidden: Number
) -> Number:
    """Activations of one layer when only its 16-bit input is kept."""
    return 2 * sequence_length * microbatch_size * hidden


@formula(
    symbol=r"M_{\text{act},p}",
    unit="B",
    source="derivation: microbatches in flight × layers of the stage",
    where="layers % stages == 0",
)
def stage_activation_bytes(
    in_flight: Number, layers: Number, stages: Number, layer_activation_bytes: Number
) -> Number:
    """Activations that a pipeline stage of L/P layers holds at its peak."""
    return in_flight * layers / stages * layer_activation_bytes
