"""Tensor and sequence parallelism: shard sizes and bytes sent.

A layer has two all-reduces in forward and two in backward (Megatron's f and g); full recomputation
repeats the two in forward. The number is an argument because texts count differently.
"""

from __future__ import annotations

from figgen.equations.ops import Number
from figgen.formulas.notation import formula

NARAYANAN = "Narayanan et al. 2021, arXiv:2104.04473, §3.2"
KORTHIKANTI = "Korthikanti et al. 2022, arXiv:2205.05198, §4.2"


@formula(
    symbol=r"d_\text{rank}",
    unit="1",
    source="Shoeybi et al. 2019 (Megatron-LM), arXiv:1909.08053, §3",
    where="width % tp == 0",
)
def sharded_width(width: Number, tp: Number) -> Number:
    """Outputs per rank of a column-parallel layer, or inputs per rank of a row-parallel one."""
    return width // tp


@formula(
    symbol=r"a_\text{rank}",
    unit="head",
    source="Shoeybi et al. 2019 (Megatron-LM), arXiv:1909.08053, §3",
    where="heads % tp == 0",
)
def heads_per_rank(heads: Number, tp: Number) -> Number:
    """Attention heads per rank; KV heads must divide in the same way."""
    return heads // tp


@formula(symbol="S", unit="B", source="derivation: one activation of the layer")
def tensor_parallel_message_bytes(
    microbatch_size: Number, sequence_length: Number, hidden: Number, bytes_per_element: Number
) -> Number:
    """Buffer of each tensor-parallel all-reduce."""
    return microbatch_size * sequence_length * hidden * bytes_per_element


@formula(symbol=r"V_\text{TP}", unit="B", source=NARAYANAN)
def tensor_parallel_layer_bytes(
    all_reduces: Number,
    tp: Number,
    microbatch_size: Number,
    sequence_length: Number,
    hidden: Number,
    bytes_per_element: Number,
) -> Number:
    """Bytes that a rank sends for one layer and microbatch, in ring all-reduces."""
    return (
        all_reduces
        * (2 * (tp - 1) / tp)
        * microbatch_size
        * sequence_length
        * hidden
        * bytes_per_element
    )


@formula(
    symbol=r"V_\text{TP}",
    unit="B",
    source=f"derivation from {NARAYANAN}",
    where="layers % stages == 0",
)
def tensor_parallel_step_bytes(
    microbatches: Number,
    layers: Number,
    stages: Number,
    all_reduces: Number,
    tp: Number,
    microbatch_size: Number,
    sequence_length: Number,
    hidden: Number,
    bytes_per_element: Number,
) -> Number:
    """Bytes that a rank sends per step for tensor parallelism, over its own L/P layers."""
    layer = (
        all_reduces
        * (2 * (tp - 1) / tp)
        * microbatch_size
        * sequence_length
        * hidden
        * bytes_per_element
    )
    return microbatches * (layers / stages) * layer


@formula(symbol=r"V_\text{SP}", unit="B", source=KORTHIKANTI)
def sequence_parallel_layer_bytes(
    all_reduces: Number,
    tp: Number,
    microbatch_size: Number,
    sequence_length: Number,
    hidden: Number,
    bytes_per_element: Number,
) -> Number:
    """Bytes that a rank sends for one layer and microbatch, in all-gathers and reduce-scatters."""
    return (
        all_reduces
        * ((tp - 1) / tp + (tp - 1) / tp)
        * microbatch_size
        * sequence_length
        * hidden
        * bytes_per_element
    )


@formula(
    symbol=r"\text{CCR}_\text{TP}",
    unit="FLOP/B",
    source=f"derivation from {NARAYANAN}",
    where="tp >= 2",
)
def tensor_parallel_layer_ccr(
    hidden: Number, sequence_length: Number, bytes_per_element: Number, tp: Number
) -> Number:
    """Work per byte sent of tensor parallelism, with a 4h MLP and full attention."""
    return 9 * hidden / ((tp - 1) * bytes_per_element) * (1 + sequence_length / (6 * hidden))
