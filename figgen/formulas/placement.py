"""Combining the axes: the bytes of each axis per GPU per step, and where groups should lie."""

from __future__ import annotations

from figgen.equations.ops import Number, where
from figgen.formulas.notation import formula


@formula(symbol=r"V_\text{DP}", unit="B", source="derivation: a rank reduces its own shard only")
def sharded_data_parallel_bytes(
    dp: Number, parameters: Number, tp: Number, pp: Number, gradient_bytes_per_param: Number
) -> Number:
    """Bytes that a GPU sends per step to all-reduce the gradient of its N/(T·P) parameters."""
    return 2 * (dp - 1) / dp * (parameters / (tp * pp)) * gradient_bytes_per_param


@formula(
    symbol=r"V_\text{PP}",
    unit="B",
    source="derivation: an interior GPU sends one activation and one gradient per chunk",
)
def pipeline_rank_bytes(
    microbatches: Number,
    chunks: Number,
    microbatch_size: Number,
    sequence_length: Number,
    hidden: Number,
    bytes_per_element: Number,
) -> Number:
    """Bytes that a GPU inside the pipeline sends per step."""
    return (
        2 * microbatches * chunks * microbatch_size * sequence_length * hidden * bytes_per_element
    )


@formula(
    symbol=r"V_\text{PP}",
    unit="B",
    source="derivation: of every message tensor-parallel ranks each send their share",
)
def split_pipeline_rank_bytes(
    microbatches: Number,
    chunks: Number,
    microbatch_size: Number,
    sequence_length: Number,
    hidden: Number,
    bytes_per_element: Number,
    tp: Number,
) -> Number:
    """Bytes that a GPU inside the pipeline sends per step if T GPUs share each message."""
    elements = microbatch_size * sequence_length * hidden
    return 2 * microbatches * chunks * elements * bytes_per_element / tp


@formula(symbol=r"\rho", unit="1", source="definition, per GPU per direction")
def bandwidth_ratio(
    intra_bandwidth_bytes_per_s: Number, inter_bandwidth_bytes_per_s: Number
) -> Number:
    """How many times faster the link within the node is than the one between nodes."""
    return intra_bandwidth_bytes_per_s / inter_bandwidth_bytes_per_s


@formula(symbol=r"\text{fits}", unit="1", source="derivation: a group needs its GPUs on one node")
def fits_on_one_node(free_gpus: Number, tp: Number) -> Number:
    """1 if the node with the most free GPUs can hold a tensor-parallel group, else 0."""
    return where(free_gpus >= tp, 1, 0)
