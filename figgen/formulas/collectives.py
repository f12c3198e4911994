"""Collectives in the α–β model: time of each algorithm, bytes sent, chunks of the ring.

S is always the largest per-rank buffer (all-reduce: the vector; all-gather: the gathered output;
reduce-scatter: the whole input; all-to-all: a rank's send buffer; scatter and gather: the root's
buffer). Each step of an algorithm costs α, B is per direction, and links are full duplex.
"""

from __future__ import annotations

from figgen.equations.ops import Number, ceil, log2
from figgen.formulas.notation import formula

NCCL_TESTS = "nccl-tests doc/PERFORMANCE.md"
MPICH = "MPICH, cost comments in the source; Thakur et al. 2005"


@formula(symbol=r"T_\text{naive}", unit="s", source="derivation: the root serves ranks in turn")
def naive_all_reduce_time(
    ranks: Number, message_bytes: Number, latency_s: Number, bandwidth_bytes_per_s: Number
) -> Number:
    """Time to reduce to one rank and send the result back, one peer after the other."""
    return 2 * (ranks - 1) * (latency_s + message_bytes / bandwidth_bytes_per_s)


@formula(symbol=r"T_\text{tree}", unit="s", source=MPICH)
def tree_all_reduce_time(
    ranks: Number, message_bytes: Number, latency_s: Number, bandwidth_bytes_per_s: Number
) -> Number:
    """Time of an all-reduce up and down a binomial tree, without pipelining."""
    return 2 * ceil(log2(ranks)) * (latency_s + message_bytes / bandwidth_bytes_per_s)


@formula(
    symbol=r"T_\text{2tree}",
    unit="s",
    source="NVIDIA, NCCL 2.4 (2019); factor 1/2 of tree bandwidth in NCCL tuning.cc",
    where="ranks >= 2",
)
def double_binary_tree_all_reduce_time(
    ranks: Number, message_bytes: Number, latency_s: Number, bandwidth_bytes_per_s: Number
) -> Number:
    """Time of NCCL's double binary tree for large messages, with perfect pipelining."""
    return 2 * ceil(log2(ranks)) * latency_s + 2 * message_bytes / bandwidth_bytes_per_s


@formula(symbol=r"T_\text{RS}", unit="s", source=NCCL_TESTS)
def ring_reduce_scatter_time(
    ranks: Number, message_bytes: Number, latency_s: Number, bandwidth_bytes_per_s: Number
) -> Number:
    """Time to reduce-scatter `message_bytes` of input per rank around a ring."""
    return (ranks - 1) * latency_s + (ranks - 1) / ranks * message_bytes / bandwidth_bytes_per_s


@formula(symbol=r"T_\text{AG}", unit="s", source=NCCL_TESTS)
def ring_all_gather_time(
    ranks: Number, message_bytes: Number, latency_s: Number, bandwidth_bytes_per_s: Number
) -> Number:
    """Time to all-gather an output of `message_bytes` (n times the shard) around a ring."""
    return (ranks - 1) * latency_s + (ranks - 1) / ranks * message_bytes / bandwidth_bytes_per_s


@formula(symbol=r"T_\text{ring}", unit="s", source=f"{NCCL_TESTS}; α–β per step")
def ring_all_reduce_time(
    ranks: Number, message_bytes: Number, latency_s: Number, bandwidth_bytes_per_s: Number
) -> Number:
    """Time to all-reduce `message_bytes` per rank around a ring."""
    return (
        2 * (ranks - 1) * latency_s
        + 2 * (ranks - 1) / ranks * message_bytes / bandwidth_bytes_per_s
    )


@formula(
    symbol=r"V_\text{AR}", unit="B", source=f"{NCCL_TESTS}; lower bound without in-switch sums"
)
def all_reduce_bytes_sent(ranks: Number, message_bytes: Number) -> Number:
    """Bytes that each rank must send to all-reduce `message_bytes`."""
    return 2 * (ranks - 1) / ranks * message_bytes


@formula(symbol=r"V_\text{AG}", unit="B", source=f"{NCCL_TESTS}; what a rank lacks or gives away")
def all_gather_bytes_sent(ranks: Number, message_bytes: Number) -> Number:
    """Fewest bytes that each rank can send in an all-gather, reduce-scatter or all-to-all."""
    return (ranks - 1) / ranks * message_bytes


@formula(
    symbol=r"V_\text{switch}",
    unit="B",
    source="derivation: S summed in the switch and S/n stored to all; NCCL issue 1506",
    where="ranks >= 2",
)
def switch_all_reduce_bytes_sent(ranks: Number, message_bytes: Number) -> Number:
    """Bytes that each rank sends (and receives) if the switch adds and multicasts (NVLS)."""
    return (ranks + 1) / ranks * message_bytes


RING = "NCCL all_reduce.h (offset −1); the same schedule shifted (offset 0)"
RING_DOMAIN = "rank < ranks and step < ranks - 1 and offset >= -1 and offset <= 0"


@formula(symbol=r"c_\text{send}", unit="1", source=RING, where=RING_DOMAIN)
def ring_chunk_sent(rank: Number, step: Number, ranks: Number, offset: Number) -> Number:
    """Chunk that rank r sends at a step of the reduce-scatter half of a ring all-reduce."""
    return (rank - step + offset) % ranks


@formula(symbol=r"c_\text{recv}", unit="1", source=RING, where=RING_DOMAIN)
def ring_chunk_received(rank: Number, step: Number, ranks: Number, offset: Number) -> Number:
    """Chunk that rank r receives and adds at a step of the reduce-scatter half."""
    return (rank - step - 1 + offset) % ranks


@formula(
    symbol=r"c_\text{own}",
    unit="1",
    source=RING,
    where="rank < ranks and offset >= -1 and offset <= 0",
)
def ring_chunk_owned(rank: Number, ranks: Number, offset: Number) -> Number:
    """Chunk that rank r holds fully reduced after the reduce-scatter half."""
    return (rank + 1 + offset) % ranks


POWER_OF_TWO = "2 ** ceil(log2(ranks)) == ranks"


@formula(symbol=r"T_\text{RHD}", unit="s", source=MPICH, where=POWER_OF_TWO)
def halving_doubling_all_reduce_time(
    ranks: Number, message_bytes: Number, latency_s: Number, bandwidth_bytes_per_s: Number
) -> Number:
    """Time of recursive halving and doubling (Rabenseifner) for a power-of-two number of ranks."""
    return (
        2 * log2(ranks) * latency_s
        + 2 * (ranks - 1) / ranks * message_bytes / bandwidth_bytes_per_s
    )


# No group has so many steps; without the bound a step of 1e9 asks for a power of as many digits.
@formula(symbol="S_i", unit="B", source=MPICH, where="step < 64")
def halving_step_bytes(message_bytes: Number, step: Number) -> Number:
    """Bytes that a rank sends at step i of recursive halving (doubling runs it backwards)."""
    return message_bytes / 2 ** (step + 1)


@formula(symbol=r"T_\text{RD}", unit="s", source=MPICH, where=POWER_OF_TWO)
def recursive_doubling_all_reduce_time(
    ranks: Number, message_bytes: Number, latency_s: Number, bandwidth_bytes_per_s: Number
) -> Number:
    """Time of recursive doubling, which exchanges whole buffers and suits short messages."""
    return log2(ranks) * (latency_s + message_bytes / bandwidth_bytes_per_s)


@formula(symbol=r"T_\text{bcast}", unit="s", source=MPICH)
def binomial_broadcast_time(
    ranks: Number, message_bytes: Number, latency_s: Number, bandwidth_bytes_per_s: Number
) -> Number:
    """Time of a broadcast down a binomial tree; a reduce up the same tree takes as long."""
    return ceil(log2(ranks)) * (latency_s + message_bytes / bandwidth_bytes_per_s)


@formula(
    symbol=r"T_\text{bcast}",
    unit="s",
    source="derivation: the last of k segments leaves after k − 1 steps and takes n − 1 hops",
    where="ranks >= 2",
)
def chain_broadcast_time(
    ranks: Number,
    segments: Number,
    message_bytes: Number,
    latency_s: Number,
    bandwidth_bytes_per_s: Number,
) -> Number:
    """Time of a broadcast along a chain in k pipelined segments."""
    return (ranks - 2 + segments) * (latency_s + message_bytes / (segments * bandwidth_bytes_per_s))


@formula(symbol=r"T_\text{bcast}", unit="s", source=MPICH)
def scatter_all_gather_broadcast_time(
    ranks: Number, message_bytes: Number, latency_s: Number, bandwidth_bytes_per_s: Number
) -> Number:
    """Time of a broadcast as binomial scatter and ring all-gather, which suits long messages."""
    return (ceil(log2(ranks)) + ranks - 1) * latency_s + 2 * (
        ranks - 1
    ) / ranks * message_bytes / bandwidth_bytes_per_s


@formula(symbol=r"T_\text{scatter}", unit="s", source=MPICH)
def binomial_scatter_time(
    ranks: Number, message_bytes: Number, latency_s: Number, bandwidth_bytes_per_s: Number
) -> Number:
    """Time to scatter the root's `message_bytes` down a binomial tree; a gather takes as long."""
    return (
        ceil(log2(ranks)) * latency_s + (ranks - 1) / ranks * message_bytes / bandwidth_bytes_per_s
    )


@formula(symbol=r"T_\text{AG}", unit="s", source=MPICH, where=POWER_OF_TWO)
def recursive_doubling_all_gather_time(
    ranks: Number, message_bytes: Number, latency_s: Number, bandwidth_bytes_per_s: Number
) -> Number:
    """Time of an all-gather by recursive doubling, or of a reduce-scatter by recursive halving."""
    return log2(ranks) * latency_s + (ranks - 1) / ranks * message_bytes / bandwidth_bytes_per_s


@formula(symbol=r"T_\text{A2A}", unit="s", source=NCCL_TESTS)
def pairwise_all_to_all_time(
    ranks: Number, message_bytes: Number, latency_s: Number, bandwidth_bytes_per_s: Number
) -> Number:
    """Time of an all-to-all in n − 1 pairwise exchanges; `message_bytes` is each send buffer."""
    return (ranks - 1) * latency_s + (ranks - 1) / ranks * message_bytes / bandwidth_bytes_per_s


@formula(symbol=r"T_\text{Bruck}", unit="s", source="Bruck et al. 1997, cost as commonly stated")
def bruck_all_to_all_time(
    ranks: Number, message_bytes: Number, latency_s: Number, bandwidth_bytes_per_s: Number
) -> Number:
    """Time of Bruck's all-to-all, which takes few steps and moves half the buffer in each."""
    return ceil(log2(ranks)) * (latency_s + message_bytes / (2 * bandwidth_bytes_per_s))
