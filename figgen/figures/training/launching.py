"""A launcher's variables for each process, and the first minutes of a healthy job."""

from __future__ import annotations

from figgen import catalog
from figgen.charts import Named, Scalar, Table
from figgen.errors import InputError, check_between
from figgen.plotting.placed import headings
from figgen.registry import figure
from figgen.units import format_quantity

MOST_GPUS_PER_NODE = 16
SHOWN = 2
"""Processes shown at the beginning and at the end of each node."""


@figure("process-environment")
def process_environment(
    *, nodes: int = 4, gpus_per_node: int = 8, cores_per_node: int = 96
) -> Table:
    """Show the variables that torchrun sets for the first and last processes of two nodes.

    `cores_per_node` are divided among the node's processes, which is the usual CPU affinity.
    Raises InputError for cores that the GPUs of a node do not divide.
    """
    check_between("nodes", nodes, 2, 100_000)
    check_between("gpus_per_node", gpus_per_node, 2, MOST_GPUS_PER_NODE)
    if cores_per_node % gpus_per_node:
        raise InputError(
            "cores_per_node", expected=f"a multiple of {gpus_per_node}", got=cores_per_node
        )
    share = cores_per_node // gpus_per_node
    rows: list[tuple[Scalar, ...]] = []
    for node in (0, nodes - 1):
        ends = [*range(SHOWN // 2), *range(gpus_per_node - SHOWN // 2, gpus_per_node)]
        rows += [
            (
                node * gpus_per_node + local,
                local,
                node,
                nodes * gpus_per_node,
                gpus_per_node,
                f"cuda:{local}",
                f"{local * share}–{(local + 1) * share - 1}",
            )
            for local in ends
        ]
    return Table(
        columns=headings(
            "RANK",
            "LOCAL_RANK",
            "GROUP_RANK",
            "WORLD_SIZE",
            "LOCAL_WORLD_SIZE",
            "its GPU",
            "its cores",
        ),
        rows=tuple(rows),
        values={
            "world": Named(nodes * gpus_per_node),
            "last": Named(nodes * gpus_per_node - 1),
            "cores": Named(share),
        },
    )


@figure("first-minutes")
def first_minutes(
    *, accelerator: str = "h100-sxm-80gb", network: str = "ib-ndr", gpus_per_node: int = 8
) -> Table:
    """Show what a healthy machine prints in five checks, from the catalog, and what halves it.

    Bus bandwidths are upper bounds, the rate of a ring's narrowest link; matmuls are compared with
    the fastest published for the chip. Raises InputError for a chip without one.
    """
    chip, link = catalog.accelerator(accelerator), catalog.link(network)
    if chip.measured_bf16 is None:
        raise InputError("accelerator", expected="a chip with a measured matmul", got=accelerator)
    matmul = float(chip.measured_bf16.value)
    inside = chip.scale_up_bandwidth_bytes_per_s
    each = link.bandwidth_bytes_per_s / (gpus_per_node if link.per == "node" else 1)
    between = each * gpus_per_node
    checks = (
        ("memory of a GPU", "measure.py", (chip.capacity_bytes, "B"), "another job holds it"),
        ("large matmul in BF16", "measure.py", (matmul, "FLOP/s"), "low clocks: power or heat"),
        ("copy in memory", "measure.py", (chip.hbm_bandwidth_bytes_per_s, "B/s"), "a wrong GPU"),
        ("busbw inside a node", "all_reduce_perf", (inside, "B/s"), "PCIe instead of NVLink"),
        ("busbw between nodes", "all_reduce_perf", (between, "B/s"), "adapters that fell back"),
    )
    rows = tuple(
        (check, tool, format_quantity(value, unit), sign)
        for check, tool, (value, unit), sign in checks
    )
    return Table(
        columns=headings("check", "with", "at most", "half of it means"),
        rows=rows,
        values={
            "matmul": Named(matmul, "FLOP/s"),
            "inside": Named(inside, "B/s"),
            "between": Named(between, "B/s"),
            "one_adapter": Named(each, "B/s"),
        },
    )
