"""What training keeps beside the weights, and how fast each part of a machine can be reached."""

from __future__ import annotations

from itertools import pairwise

from figgen.catalog import HardwarePreset, accelerator, hardware_preset, link, model
from figgen.charts import (
    Axis,
    Bars,
    Box,
    Column,
    Diagram,
    Link,
    Named,
    Rule,
    Scalar,
    Table,
)
from figgen.errors import check_between
from figgen.figures.series import segments
from figgen.figures.words import identifier
from figgen.formulas.scale_and_state import gpus_to_hold
from figgen.models.recipes import RECIPES
from figgen.models.recipes import recipe as named_recipe
from figgen.registry import figure

PARTS = {
    "weights": "weight_bytes",
    "gradients": "gradient_bytes",
    "optimizer state": "optimizer_bytes",
}


@figure("state-by-recipe")
def state_by_recipe(*, parameters: float = 7e9, memory: str = "h100-sxm-80gb") -> Bars:
    """Bytes of weights, gradients and optimizer state of a model, by recipe."""
    check_between("parameters", parameters, 1, 1e14)
    recipes = tuple(RECIPES.values())
    capacity = accelerator(memory).hbm_bytes
    totals = {entry.name: parameters * entry.total_bytes for entry in recipes}
    most = max(totals.values())
    return Bars(
        labels=tuple(f"{entry.name}: {entry.label}" for entry in recipes),
        segments=segments(
            {
                part: [parameters * getattr(entry, field) for entry in recipes]
                for part, field in PARTS.items()
            }
        ),
        axis=Axis(label="bytes before activations", unit="B", low=0.0),
        # For a few parameters the line would push the bars into the axis.
        rules=(Rule(axis="x", at=capacity, label="one GPU"),) if capacity < 2 * most else (),
        values={
            "parameters": Named(parameters, "param"),
            "capacity": Named(capacity, "B"),
            "least": Named(min(totals.values()), "B"),
            "most": Named(most, "B"),
            "weights": Named(2 * parameters, "B"),
            **{f"{name}_total": Named(total, "B") for name, total in totals.items()},
        },
    )


HELD = ("gpt-2-xl", "llama-2-7b", "llama-1-65b", "llama-3-70b", "gpt-3-175b", "llama-3-405b",
        "palm-540b")  # fmt: skip


@figure("gpus-to-hold")
def gpus_to_hold_table(
    *, recipe: str = "mcore18", memory: str = "h100-sxm-80gb", usable: float = 0.8
) -> Table:
    """Models with their weights and training state, and the GPUs that hold each."""
    per_param = named_recipe(recipe).total_bytes
    capacity = accelerator(memory).hbm_bytes
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"usable": Named(usable), "bytes_per_param": Named(per_param, "B")}
    for name in HELD:
        found = model(name)
        n = found.parameters
        serve, train = (
            int(gpus_to_hold(n, each, capacity, share))
            for each, share in ((2, 1), (per_param, usable))
        )
        rows.append((found.title, n, 2 * n, serve, per_param * n, train))
        key = identifier(name)
        values |= {
            f"{key}_state": Named(per_param * n, "B"),
            f"{key}_gpus": Named(train, "GPU"),
            f"{key}_weight_gpus": Named(serve, "GPU"),
        }
    return Table(
        columns=(
            Column(label="model"),
            Column(label="parameters", unit="param", spec="si"),
            Column(label="16-bit weights", unit="B", spec="si"),
            Column(label="GPUs for the weights alone", spec="d"),
            Column(label="training state", unit="B", spec="si"),
            Column(label=f"GPUs, {usable:.0%} usable", spec="d"),
        ),
        rows=tuple(rows),
        values=values,
    )


GENERATIONS = {
    "a100-hdr": "A100 with HDR",
    "h100-ndr": "H100 with NDR",
    "b200-xdr": "B200 with XDR",
}
PCIE = {"a100-hdr": "pcie4-x16", "h100-ndr": "pcie5-x16", "b200-xdr": "pcie5-x16"}


def reach(preset: str) -> dict[str, float]:
    """Bytes/s per direction and GPU from the GPU to its memory and past it, fastest first."""
    node = hardware_preset(preset)
    return {
        "HBM": node.accelerator.hbm_bandwidth_bytes_per_s,
        "NVLink": node.scale_up_bandwidth_bytes_per_s,
        "PCIe": link(PCIE[preset]).bandwidth.value,
        "InfiniBand": node.network_bandwidth_bytes_per_s,
    }


@figure("bandwidth-ladder")
def bandwidth_ladder() -> Bars:
    """Memory, NVLink, PCIe and network of three generations, per GPU and direction."""
    reached = {name: reach(name) for name in GENERATIONS}
    levels = tuple(next(iter(reached.values())))
    values: dict[str, Named] = {}
    for name, speeds in reached.items():
        key = name.partition("-")[0]
        values[f"{key}_ratio"] = Named(speeds["NVLink"] / speeds["InfiniBand"])
        values[f"{key}_span"] = Named(speeds["HBM"] / speeds["InfiniBand"])
        values |= {f"{key}_{level.lower()}": Named(speeds[level], "B/s") for level in levels}
    return Bars(
        labels=levels,
        segments=segments({GENERATIONS[name]: speeds.values() for name, speeds in reached.items()}),
        axis=Axis(label="bandwidth per GPU and direction", unit="B/s", scale="log10", low=1e10),
        stacked=False,
        values=values,
    )


GPUS_DRAWN = 4


@figure("machine-levels")
def machine_levels(*, preset: str = "h100-ndr", nodes: int = 2) -> Diagram:
    """Nodes of GPUs around their switch, one NIC for each GPU, and the fabric between nodes."""
    check_between("nodes", nodes, 2, 3)
    node = hardware_preset(preset)
    across = nodes * 5.0 - 0.4
    fabric = Box(name="fabric", lines=("network fabric",), x=0.0, y=3.6, width=across, height=0.5)
    links: list[Link] = []
    for n in range(nodes):
        for g in range(GPUS_DRAWN):
            way = (f"switch {n}", f"GPU {n}.{g}", f"NIC {n}.{g}", "fabric")
            links += [Link(source=a, target=b, both_ways=True) for a, b in pairwise(way)]
    return Diagram(
        boxes=(*(box for n in range(nodes) for box in _node(n, node.gpus_per_node)), fabric),
        links=tuple(links),
        width=across,
        height=4.1,
        values=_speeds(node),
    )


def _node(n: int, gpus: int) -> list[Box]:
    """The frame of a node, its switch, and the first GPUs and the last with their NICs."""
    left = n * 5.0
    boxes = [
        Box(name=f"node {n}", lines=(f"node {n}: {gpus} GPUs",), x=left, y=0.0, width=4.6,
            height=3.1, frame=True),
        Box(name=f"switch {n}", lines=("NVSwitch",), x=left + 0.2, y=0.5, width=4.2, height=0.5),
    ]  # fmt: skip
    for g in range(GPUS_DRAWN):
        last = g == GPUS_DRAWN - 1
        gpu, nic = (f"GPU {gpus - 1 if last else g}", "NIC")
        if g == GPUS_DRAWN - 2:
            gpu = nic = "…"
        for name, said, y, height in (("GPU", gpu, 1.45, 0.5), ("NIC", nic, 2.4, 0.45)):
            boxes.append(
                Box(name=f"{name} {n}.{g}", lines=(said,), x=left + 0.2 + 1.07 * g, y=y,
                    width=0.98, height=height)
            )  # fmt: skip
    return boxes


def _speeds(node: HardwarePreset) -> dict[str, Named]:
    return {
        "gpus_per_node": Named(node.gpus_per_node, "GPU"),
        "hbm": Named(node.accelerator.hbm_bandwidth_bytes_per_s, "B/s"),
        "scale_up": Named(node.scale_up_bandwidth_bytes_per_s, "B/s"),
        "network": Named(node.network_bandwidth_bytes_per_s, "B/s"),
        "ratio": Named(node.scale_up_bandwidth_bytes_per_s / node.network_bandwidth_bytes_per_s),
        "peak": Named(node.accelerator.peak_flops_per_s("bf16"), "FLOP/s"),
    }
