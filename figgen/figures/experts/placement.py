"""Placement of experts: two grids over the same ranks, all-to-alls between nodes, node limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from figgen.catalog import hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import Box, Column, Diagram, Named, Scalar, Table
from figgen.errors import InputError, check_between
from figgen.figures.experts.costs import mixture
from figgen.formulas.experts import expert_all_to_all_bytes, experts_per_rank
from figgen.models.machine.layout import layout
from figgen.models.machine.mesh import coordinates_of
from figgen.models.shape.routing import expected_groups
from figgen.plotting.placed import box_at, headings
from figgen.registry import figure

BYTES, PASSES = 2, 4


def _factors(title: str, y: float, world_size: int, sizes: Mapping[str, int]) -> Iterator[Box]:
    """Yield a row of boxes: a title, the axes with their sizes, and the product of the sizes."""
    hues = {"etp": "tp", "edp": "dp"}
    yield box_at(title, (title,), (0, y), (1.15, 0.7))
    for at, (axis, size) in enumerate(sizes.items()):
        yield box_at(
            f"{title} {axis}",
            (axis.upper(), f"{size}"),
            (1.23 + at * 0.78, y),
            (0.7, 0.7),
            hues.get(axis, axis) if size > 1 else "neutral",
        )
    product = (f"= {world_size:,}",)
    yield box_at(f"{title} world", product, (4.35, y), (0.7, 0.7))


@figure("parallel-stack")
def parallel_stack(
    *, nodes: int = 32, gpus_per_node: int = 8, tp: int = 8, pp: int = 2, ep: int = 8, etp: int = 1
) -> Diagram:
    """The same world as dense factors and as expert factors, and the parts on its first node."""
    check_between("gpus_per_node", gpus_per_node, 2, 8)
    parallel = layout(nodes=nodes, gpus_per_node=gpus_per_node, tp=tp, pp=pp, ep=ep, etp=etp)
    boxes = [
        *_factors(
            "dense layers",
            0.0,
            parallel.world_size,
            {"tp": tp, "cp": parallel.cp, "dp": parallel.dp, "pp": pp},
        ),
        *_factors(
            "experts",
            0.9,
            parallel.world_size,
            {"etp": etp, "ep": ep, "edp": parallel.edp, "pp": pp},
        ),
    ]
    across = min(4, gpus_per_node)
    wide = 5.05 / across
    for rank in range(gpus_per_node):
        dense = coordinates_of(parallel.dense, rank)
        expert = coordinates_of(parallel.expert, rank)
        boxes.append(
            box_at(
                f"gpu {rank}",
                (
                    f"GPU {rank}",
                    f"tp {dense['tp']}",
                    f"dp {dense['dp']}",
                    f"ep {expert['ep']}",
                    f"edp {expert['edp']}",
                ),
                (rank % across * wide, 2.0 + rank // across * 1.55),
                (wide - 0.08, 1.45),
            )
        )
    values = {
        "world_size": Named(parallel.world_size),
        "dp": Named(parallel.dp),
        "edp": Named(parallel.edp),
        "tp": Named(tp),
        "ep": Named(ep),
        "pp": Named(pp),
        "product": Named(tp * ep * parallel.dp * pp),
    }
    return Diagram(
        boxes=tuple(boxes),
        links=(),
        width=5.05,
        height=1.9 + -(-gpus_per_node // across) * 1.55,
        values=values,
    )


@figure("moe-placement")
def moe_placement(
    *,
    model: str = "deepseek-v3",
    preset: str = "h100-ndr",
    sizes: tuple[int, ...] = (8, 16, 32, 64),
    tokens: int = 4096,
) -> Table:
    """All-to-alls of one layer, forward and backward: bytes that leave the node as EP grows.

    Values `ep…_working` are the share of time in which experts compute if nothing overlaps.
    """
    node, found = hardware_preset(preset), catalog_model(model)
    experts = mixture(found)
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"tokens": Named(tokens, "token")}
    for ep in sizes:
        within = min(ep, node.gpus_per_node)
        sent = float(
            expert_all_to_all_bytes(PASSES, experts.top_k, tokens, found.hidden, BYTES, ep)
        )
        share = (ep - within) / (ep - 1)
        inside = sent * (1 - share) / node.scale_up_bandwidth_bytes_per_s
        outside = sent * share / node.network_bandwidth_bytes_per_s
        held = experts_per_rank(experts.count, ep)
        rows.append(
            (ep, -(-ep // node.gpus_per_node), held, sent, share, inside * 1e3, outside * 1e3)
        )
        values |= {
            f"ep{ep}_bytes": Named(sent, "B"),
            f"ep{ep}_share": Named(share),
            f"ep{ep}_inside_s": Named(inside, "s"),
            f"ep{ep}_outside_s": Named(outside, "s"),
        }
    each = 6 * 3 * found.hidden * experts.ffn_hidden * tokens / node.accelerator.peak_flops_per_s()
    work_s = each * (experts.top_k + experts.shared)
    values |= {"work_s": Named(work_s, "s"), "routed_s": Named(each * experts.top_k, "s")}
    for ep in sizes:
        sending_s = max(float(values[f"ep{ep}_{where}_s"].value) for where in ("inside", "outside"))
        values[f"ep{ep}_working"] = Named(work_s / (work_s + sending_s))
    columns = (
        *headings("EP", "nodes", "experts per rank"),
        Column(label="sent per rank", unit="B", spec="si"),
        Column(label="leaves the node", spec=".0%"),
        *headings("NVLink (ms)", "NIC (ms)", spec=".1f"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("moe-node-limit")
def moe_node_limit(
    *,
    model: str = "deepseek-v3",
    nodes: int = 8,
    limits: tuple[int, ...] = (4, 2),
    bytes_per_element: float = 2,
) -> Table:
    """Copies of a token that cross the network in one dispatch, expected with even routing.

    With one copy per node, the ranks of that node forward it among themselves.
    """
    found = catalog_model(model)
    experts = mixture(found)
    if experts.count % nodes:
        raise InputError("nodes", expected=f"a divisor of {experts.count} experts", got=nodes)
    away = (nodes - 1) / nodes
    each = experts.count // nodes
    cases = [
        ("every expert", "every_expert", float(experts.top_k)),
        ("every node", "every_node", expected_groups(experts.count, nodes, experts.top_k)),
    ]
    for limit in limits:
        check_between("limit", limit, 1, nodes)
        reached = expected_groups(limit * each, limit, experts.top_k)
        cases.append((f"every node, at most {limit}", f"limit_{limit}", reached))
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"nodes": Named(nodes, "node"), "top_k": Named(experts.top_k)}
    token = found.hidden * bytes_per_element
    for title, label, reached in cases:
        rows.append(
            (title, reached, experts.top_k / reached, reached * away, reached * away * token)
        )
        values |= {
            f"{label}_copies": Named(reached * away),
            f"{label}_per_node": Named(experts.top_k / reached),
            f"{label}_bytes": Named(reached * away * token, "B"),
        }
    columns = (
        Column(label="one copy for"),
        *headings("places reached", "experts at each", "copies over the network", spec=".2f"),
        Column(label="per token", unit="B", spec="si"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
