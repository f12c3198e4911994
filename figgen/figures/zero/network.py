"""Sharding and the network: hybrid groups' bytes, tokens per NIC, and homes of state."""

from __future__ import annotations

from figgen.catalog import accelerator, hardware_preset, link
from figgen.catalog import model as catalog_model
from figgen.charts import Axis, Column, Curves, Named, Rule, Scalar, Table
from figgen.errors import check_between, check_share
from figgen.figures.parameters import AcceleratorName, LinkName
from figgen.formulas.compute_and_roofline import critical_tokens
from figgen.formulas.data_parallel import (
    data_parallel_bytes,
    hsdp_replica_bytes,
    hsdp_shard_bytes,
    zero_bytes_sent,
)
from figgen.plotting.placed import headings
from figgen.plotting.series import line
from figgen.plotting.words import identifier
from figgen.registry import figure

BYTES, STATE = 2, 16


@figure("hybrid-traffic")
def hybrid_traffic(*, parameters: float = 7e9, preset: str = "h100-ndr", nodes: int = 8) -> Table:
    """State per GPU, and bytes that it sends per step inside its node and over each NIC.

    Flat rings over all ranks leave a node once per ring, with one ring per NIC, so a NIC carries
    1/g of what a rank sends and NVLink the rest. With shards in the node a rank exchanges gradients
    with its replicas over its own NIC.
    """
    check_between("nodes", nodes, 2, 2**16)
    node = hardware_preset(preset)
    each = node.gpus_per_node
    ranks = nodes * each
    inside, nic = node.scale_up_bandwidth_bytes_per_s, node.network_bandwidth_bytes_per_s
    ddp = data_parallel_bytes(parameters, BYTES, ranks)
    flat = zero_bytes_sent(parameters, BYTES, ranks, 3)
    shard = hsdp_shard_bytes(parameters, BYTES, each)
    replica = hsdp_replica_bytes(parameters, BYTES, each, nodes)
    cases = {
        "ddp": ("DDP", STATE * parameters, ddp - ddp / each, ddp / each),
        "flat": (
            f"FSDP over all {ranks}",
            STATE * parameters / ranks,
            flat - flat / each,
            flat / each,
        ),
        "hybrid": (
            f"hybrid: shards of {each}, {nodes} replicas",
            STATE * parameters / each,
            shard,
            replica,
        ),
    }
    rows: list[tuple[Scalar, ...]] = []
    values = {"ranks": Named(ranks), "nodes": Named(nodes), "per_node": Named(each)}
    values["state_per_param"] = Named(STATE, "B")
    for key, (title, held, local, remote) in cases.items():
        rows.append((title, held, local, remote, local / inside, remote / nic))
        values[f"{key}_state"] = Named(held, "B")
        values[f"{key}_inside"] = Named(local, "B")
        values[f"{key}_nic"] = Named(remote, "B")
        values[f"{key}_inside_s"] = Named(local / inside, "s")
        values[f"{key}_nic_s"] = Named(remote / nic, "s")
    values["nic_ratio"] = Named(flat / each / replica)
    columns = (
        Column(label="sharding"),
        *headings("state per GPU", "a rank sends on NVLink", "a NIC sends", unit="B", spec="bytes"),
        *headings("time on NVLink", "time on the NIC", unit="s", spec="time"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("zero3-tokens", explorable=True, recomputed=True)
def zero3_tokens(
    *,
    accelerators: tuple[AcceleratorName, ...] = ("a100-sxm-80gb", "h100-sxm-80gb", "b200-sxm-hgx"),
    utilization: float = 1.0,
    links: tuple[LinkName, ...] = ("roce-100g", "ib-hdr", "ib-ndr", "ib-xdr", "nvlink4"),
    bytes_per_param: float = 2,
) -> Curves:
    """Tokens per GPU per microbatch above which ZeRO-3's traffic can hide, over the bandwidth.

    It is the threshold of every page, at `utilization` of the dense BF16 peak and for many ranks.
    """
    check_share("utilization", utilization)
    grid = tuple(1e9 * 10 ** (k / 4) for k in range(4, 13))
    series, values = [], {"utilization": Named(utilization)}
    for index, name in enumerate(accelerators):
        part = accelerator(name)
        short = part.short_title
        rate = utilization * part.peak_flops_per_s("bf16")
        y = tuple(critical_tokens(rate, b, bytes_per_param) for b in grid)
        series.append(line(short, grid, y, index))
        for each in links:
            port = link(each).bandwidth_bytes_per_s
            tokens = critical_tokens(rate, port, bytes_per_param)
            values[f"{short.lower()}_{identifier(each)}"] = Named(tokens, "token")
            shared = critical_tokens(rate, 8 * port, bytes_per_param)
            values[f"{short.lower()}_8_{identifier(each)}"] = Named(shared, "token")
    rules = [
        Rule(axis="x", at=link(each).bandwidth_bytes_per_s, label=link(each).short_title)
        for each in links
    ]
    return Curves(
        x=Axis(label="bandwidth of a rank, one direction", unit="B/s", scale="log10", spec="si"),
        y=Axis(label="tokens per GPU per microbatch", scale="log10", spec=","),
        series=tuple(series),
        rules=tuple(rules),
        values=values,
    )


@figure("state-homes")
def state_homes(
    *,
    model: str = "llama-2-7b",
    preset: str = "h100-ndr",
    host: str = "pcie5-x16",
    tokens: int = 8192,
    utilization: float = 1.0,
) -> Table:
    """Where weights, gradients and optimizer state can be, and how long fetching them takes.

    The last column is the tokens of a microbatch whose forward takes as long as one pass of all
    16-bit weights over that path: the threshold of `zero3-tokens`.
    """
    check_between("tokens", tokens, 1, 10**9)
    node = hardware_preset(preset)
    parameters = catalog_model(model).parameters
    rate = utilization * node.accelerator.peak_flops_per_s("bf16")
    paths = {
        "hbm": (
            "own HBM",
            "working weights, activations, the rank's own shards",
            node.accelerator.hbm_bandwidth_bytes_per_s,
        ),
        "peers": (
            "HBM of the node's peers, over NVLink",
            "other shards of a node's sharding group",
            node.scale_up_bandwidth_bytes_per_s,
        ),
        "nodes": (
            "HBM of other nodes, over the NIC",
            "other shards of FSDP over all ranks",
            node.network_bandwidth_bytes_per_s,
        ),
        "host": (
            "host memory, over PCIe 5",
            "offloaded optimizer state, gradients on their way",
            link(host).bandwidth_bytes_per_s,
        ),
    }
    rows: list[tuple[Scalar, ...]] = []
    values = {"parameters": Named(parameters, "param")}
    for key, (title, what, bandwidth) in paths.items():
        once = parameters * BYTES / bandwidth
        optimizer = parameters * 12 / bandwidth
        even = critical_tokens(rate, bandwidth, BYTES)
        rows.append((title, what, bandwidth, once, optimizer, even))
        values[f"{key}_s"] = Named(once, "s")
        values[f"{key}_optimizer_s"] = Named(optimizer, "s")
        values[f"{key}_tokens"] = Named(even, "token")
    columns = (
        *headings("place", "what lives there"),
        Column(label="bandwidth per GPU", unit="B/s", spec="si"),
        *headings("16-bit weights once", "12 bytes of Adam once", unit="s", spec="time"),
        Column(label="tokens whose forward hides them", spec=",.0f"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
