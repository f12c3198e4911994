"""All-reduce in two levels: fast links within a node, slow links between nodes.

Ranks are placed node by node: rank r is place r mod g of node r div g. Phases do not overlap.
"""

from __future__ import annotations

from figgen.errors import InputError, check_size
from figgen.models.collectives.rings import gather_rounds, reduce_rounds, single_chunks
from figgen.models.collectives.traces import CollectiveTrace, assemble, side_by_side
from figgen.models.collectives.trees import chain_rounds


def _node_count(ranks: int, ranks_per_node: int) -> int:
    check_size("ranks", ranks)
    check_size("ranks_per_node", ranks_per_node)
    nodes, rest = divmod(ranks, ranks_per_node)
    if rest:
        whole = [ranks_per_node * n for n in (nodes, nodes + 1) if n]
        raise InputError(
            "ranks",
            expected=f"a multiple of ranks_per_node = {ranks_per_node}",
            got=ranks,
            nearest=map(str, whole),
        )
    return nodes


def leader_all_reduce(ranks: int, *, ranks_per_node: int = 8, segments: int = 1) -> CollectiveTrace:
    """Chain reduce to one leader per node, ring all-reduce of the leaders, chain broadcast.

    The vector is cut into `segments` (≥ 1) for each of the N leaders, so that the chains are
    pipelined N·`segments` deep. Only the leader's link to the network is used. Raises InputError if
    `ranks` is not a multiple of `ranks_per_node`.
    """
    nodes, width = _node_count(ranks, ranks_per_node), ranks_per_node
    check_size("segments", segments)
    chunks = single_chunks(nodes * segments)
    chains = [range(node * width, (node + 1) * width) for node in range(nodes)]
    leaders = range(0, ranks, width)
    blocks = [tuple(range(i * segments, (i + 1) * segments)) for i in range(nodes)]
    up = [chain_rounds(chain[::-1], chunks, reduces=True) for chain in chains]
    down = [chain_rounds(chain, chunks, reduces=False) for chain in chains]
    phases = [
        ("reduce within nodes", side_by_side(up)),
        ("reduce-scatter between leaders", reduce_rounds(leaders, blocks)),
        ("all-gather between leaders", gather_rounds(leaders, blocks)),
        ("broadcast within nodes", side_by_side(down)),
    ]
    variant = f"{nodes} nodes of {width}, {segments} segments"
    return assemble(
        "all-reduce", "hierarchical-leader", ranks, len(chunks), phases, variant=variant
    )


def two_level_all_reduce(ranks: int, *, ranks_per_node: int = 8) -> CollectiveTrace:
    """Reduce-scatter within nodes, all-reduce between equal places of all nodes, all-gather.

    All phases are rings. The g rings between nodes run at the same time, one per rank of a node, so
    every rank's link to the network carries one g-th of the vector. Raises InputError if `ranks` is
    not a multiple of `ranks_per_node`.
    """
    nodes, width = _node_count(ranks, ranks_per_node), ranks_per_node
    parts = [tuple(range(place * nodes, (place + 1) * nodes)) for place in range(width)]
    inner = [range(node * width, (node + 1) * width) for node in range(nodes)]
    outer = [range(place, ranks, width) for place in range(width)]
    pieces = [[(chunk,) for chunk in part] for part in parts]
    phases = [
        ("reduce-scatter within nodes", [reduce_rounds(m, parts) for m in inner]),
        ("reduce-scatter between nodes", list(map(reduce_rounds, outer, pieces))),
        ("all-gather between nodes", list(map(gather_rounds, outer, pieces))),
        ("all-gather within nodes", [gather_rounds(m, parts) for m in inner]),
    ]
    return assemble(
        "all-reduce",
        "hierarchical",
        ranks,
        ranks,
        [(name, side_by_side(groups)) for name, groups in phases],
        variant=f"{nodes} nodes of {width}",
    )
