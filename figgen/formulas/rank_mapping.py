"""Ranks and coordinates, in the default order of Megatron-LM (tp-cp-ep-dp-pp) and its variant.

Two grids cover the same world: dense TP·CP·DP·PP and expert ETP·EP·EDP·PP. EP is not a factor of
the world size. The groups of an axis are lists of ranks, which the mesh model computes.
"""

from __future__ import annotations

from figgen.equations.ops import Number
from figgen.formulas.notation import formula

MEGATRON = "Megatron-LM core/parallel_state.py"


@formula(
    symbol="r",
    unit="1",
    source=MEGATRON,
    where="tp_index < tp and cp_index < cp and dp_index < dp",
)
def dense_rank(
    tp_index: Number,
    cp_index: Number,
    dp_index: Number,
    pp_index: Number,
    tp: Number,
    cp: Number,
    dp: Number,
) -> Number:
    """Global rank at a position of the dense grid, in which tensor parallelism varies fastest."""
    return tp_index + tp * (cp_index + cp * (dp_index + dp * pp_index))


@formula(
    symbol="r",
    unit="1",
    source=MEGATRON,
    where="etp_index < etp and ep_index < ep and edp_index < edp",
)
def expert_rank(
    etp_index: Number,
    ep_index: Number,
    edp_index: Number,
    pp_index: Number,
    etp: Number,
    ep: Number,
    edp: Number,
) -> Number:
    """Global rank at a position of the expert grid, over the same world as the dense grid."""
    return etp_index + etp * (ep_index + ep * (edp_index + edp * pp_index))


@formula(symbol=r"\text{tp}", unit="1", source=MEGATRON)
def tp_index_of_rank(rank: Number, tp: Number) -> Number:
    """Tensor-parallel index of a rank, in either order."""
    return rank % tp


@formula(symbol=r"\text{cp}", unit="1", source=MEGATRON)
def cp_index_of_rank(rank: Number, tp: Number, cp: Number) -> Number:
    """Context-parallel index of a rank, in either order."""
    return rank // tp % cp


@formula(symbol=r"\text{dp}", unit="1", source=MEGATRON)
def dp_index_of_rank(rank: Number, tp: Number, cp: Number, dp: Number) -> Number:
    """Data-parallel index of a rank in the default order."""
    return rank // (tp * cp) % dp


@formula(symbol=r"\text{pp}", unit="1", source=MEGATRON)
def pp_index_of_rank(rank: Number, tp: Number, cp: Number, dp: Number) -> Number:
    """Pipeline index of a rank in the default order, where it varies slowest."""
    return rank // (tp * cp * dp)


@formula(symbol=r"\text{pp}", unit="1", source=f"{MEGATRON}, --use-tp-pp-dp-mapping")
def pp_index_of_rank_before_dp(rank: Number, tp: Number, cp: Number, pp: Number) -> Number:
    """Pipeline index of a rank in the order tp-cp-pp-dp."""
    return rank // (tp * cp) % pp


@formula(symbol=r"\text{dp}", unit="1", source=f"{MEGATRON}, --use-tp-pp-dp-mapping")
def dp_index_of_rank_after_pp(rank: Number, tp: Number, cp: Number, pp: Number) -> Number:
    """Data-parallel index of a rank in the order tp-cp-pp-dp, where it varies slowest."""
    return rank // (tp * cp * pp)


@formula(symbol="W", unit="rank", source=MEGATRON)
def dense_world_size(tp: Number, cp: Number, dp: Number, pp: Number) -> Number:
    """Ranks of the whole job; expert parallelism reuses them and is not a factor."""
    return tp * cp * dp * pp


@formula(symbol="D", unit="rank", source=MEGATRON, where="world_size % (tp * cp * pp) == 0")
def data_parallel_size(world_size: Number, tp: Number, cp: Number, pp: Number) -> Number:
    """Data-parallel size of the dense layers, which follows from the other sizes."""
    return world_size // (tp * cp * pp)


@formula(symbol="D_e", unit="rank", source=MEGATRON, where="world_size % (etp * ep * pp) == 0")
def expert_data_parallel_size(world_size: Number, etp: Number, ep: Number, pp: Number) -> Number:
    """Data-parallel size of the experts, which follows from the other sizes."""
    return world_size // (etp * ep * pp)


@formula(
    symbol=r"n_\text{groups}",
    unit="group",
    source="definition: groups of an axis partition the world",
    where="world_size % group_size == 0",
)
def group_count(world_size: Number, group_size: Number) -> Number:
    """Number of groups along an axis, each of `group_size` ranks."""
    return world_size // group_size


@formula(symbol=r"\text{node}", unit="1", source="Megatron-LM, ranks placed in order")
def node_of_rank(rank: Number, gpus_per_node: Number) -> Number:
    """Node of a rank if ranks fill one node after the other."""
    return rank // gpus_per_node


@formula(symbol=r"\text{local}", unit="1", source="Megatron-LM, ranks placed in order")
def local_rank(rank: Number, gpus_per_node: Number) -> Number:
    """Index of a rank within its node, which is also its rail."""
    return rank % gpus_per_node


@formula(
    symbol="c",
    unit="1",
    source="Megatron-LM utils: load-balanced causal context parallelism",
    where="cp_index < cp",
)
def zigzag_second_chunk(cp_index: Number, cp: Number) -> Number:
    """Second of the two sequence chunks (of 2C) of a rank; the first is the rank's own index."""
    return 2 * cp - 1 - cp_index
