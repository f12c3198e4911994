"""Training state by recipe, and the bandwidth to each part of a machine."""

from __future__ import annotations

from itertools import product

from figgen.catalog import (
    HardwarePreset,
    accelerator,
    hardware_preset,
    link,
    model,
)
from figgen.charts import (
    Axis,
    Bars,
    Box,
    Column,
    Diagram,
    DiagramLink,
    Named,
    Rule,
    Scalar,
    Table,
)
from figgen.errors import check_between
from figgen.figures.parameters import AcceleratorName
from figgen.formulas.scale_and_state import gpus_to_hold
from figgen.models.shape.recipes import RECIPES
from figgen.models.shape.recipes import recipe as named_recipe
from figgen.plotting.placed import box_at
from figgen.plotting.series import segments
from figgen.plotting.words import identifier
from figgen.registry import figure
from figgen.units import format_quantity

PARTS = {
    "weights": "weight_bytes",
    "gradients": "gradient_bytes",
    "optimizer state": "optimizer_bytes",
}


@figure("state-by-recipe", recomputed=True)
def state_by_recipe(*, parameters: float = 7e9, memory: AcceleratorName = "h100-sxm-80gb") -> Bars:
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
            "recipes": Named(len(recipes)),
            "beyond": Named(sum(total > capacity for total in totals.values())),
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
    """Models with their weights and training state, and the GPUs that each needs.

    The same share `usable` of the memory is available for either.
    """
    per_param = named_recipe(recipe).total_bytes
    capacity = accelerator(memory).hbm_bytes
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {"usable": Named(usable), "bytes_per_param": Named(per_param, "B")}
    for name in HELD:
        found = model(name)
        n = found.parameters
        serve, train = (int(gpus_to_hold(n, each, capacity, usable)) for each in (2, per_param))
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
            Column(label="GPUs for the weights", spec="d"),
            Column(label="training state", unit="B", spec="si"),
            Column(label="GPUs for the state", spec="d"),
        ),
        rows=tuple(rows),
        values=values,
    )


GENERATIONS = {
    "a100-hdr": "A100 with HDR",
    "h100-ndr": "H100 with NDR",
    "b200-ndr": "B200 with NDR",
}
PCIE = {"a100-hdr": "pcie4-x16", "h100-ndr": "pcie5-x16", "b200-ndr": "pcie5-x16"}


def reach(preset: str) -> dict[str, float]:
    """Return B/s per direction and GPU to memory, neighbors and the network, fastest first."""
    node = hardware_preset(preset)
    return {
        "HBM": node.accelerator.hbm_bandwidth_bytes_per_s,
        "NVLink": node.scale_up_bandwidth_bytes_per_s,
        "PCIe": link(PCIE[preset]).bandwidth.value,
        "InfiniBand": node.network_bandwidth_bytes_per_s,
    }


@figure("bandwidth-ladder")
def bandwidth_ladder() -> Bars:
    """Memory, NVLink, PCIe and network of three generations, per GPU per direction."""
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
        axis=Axis(label="bandwidth per GPU per direction", unit="B/s", scale="log10", low=1e10),
        stacked=False,
        values=values,
    )


GPUS_DRAWN, WIDE, TALL = 4, 5.1, 8.0
"""Columns of GPUs in the picture of a machine, and its size, as wide as a phone."""


@figure("machine-levels", of_reference=True)
def machine_levels(*, preset: str = "h100-ndr") -> Diagram:
    """Two nodes of GPUs around their switch, one NIC for each GPU, and the fabric between them.

    Links are as wide as their bandwidth.
    """
    node = hardware_preset(preset)
    links = tuple(
        DiagramLink(source=f"GPU {n}.{g}", target=f"NIC {n}.{g}", both_ways=True)
        for n in range(2)
        for g in range(GPUS_DRAWN)
    )
    fabric = box_at("fabric", ("network fabric",), (0.0, TALL / 2 - 0.25), (WIDE, 0.5))
    return Diagram(
        boxes=(*_node(0, node.gpus_per_node), fabric, *_node(1, node.gpus_per_node), *_pipes(node)),
        links=links,
        width=WIDE,
        height=TALL,
        values=_speeds(node),
    )


def _pipes(node: HardwarePreset) -> list[Box]:
    """Return links to the switch and the fabric, as wide as their bandwidth.

    The first of each kind is labeled.
    """
    inside, outside = node.scale_up_bandwidth_bytes_per_s, node.network_bandwidth_bytes_per_s
    widest = max(inside, outside)
    boxes = []
    for n, g, (name, speed, y, high, role) in product(
        range(2),
        range(GPUS_DRAWN),
        (
            ("NVLink", inside, 0.7, 0.55, "series-3"),
            ("port", outside, 2.7, TALL / 2 - 2.95, "series-4"),
        ),
    ):
        wide = 0.9 * speed / widest
        x, top = 0.2 + 1.2 * g + (1.1 - wide) / 2, TALL - y - high if n else y
        said = format_quantity(speed, "B/s", "si") if g == 0 else ""
        within = wide >= 0.9
        boxes.append(
            box_at(
                f"{name} {n}.{g}", (said,) if said and within else (), (x, top), (wide, high), role
            )
        )
        if said and not within:
            boxes.append(
                box_at(
                    f"{name} {n}.{g} speed",
                    (said,),
                    (x + wide + 0.08, top + high / 2 - 0.12),
                    (0.9, 0.3),
                    "",
                )
            )
    return boxes


def _node(n: int, gpus: int) -> list[Box]:
    """Return the frame of a node, its switch, and the first and last GPUs with their NICs.

    The second node is the mirror image of the first, below the fabric.
    """

    def box(
        name: str,
        said: tuple[str, ...],
        x: float,
        y: float,
        width: float,
        height: float,
        frame: bool = False,
    ) -> Box:
        top = TALL - y - height if n else y
        return box_at(name, said, (x, top), (width, height), frame=frame)

    switch = (f"NVSwitch of node {n}, {gpus} GPUs",)
    boxes = [
        box(f"node {n}", (), 0.0, 0.0, WIDE, 2.95, frame=True),
        box(f"switch {n}", switch, 0.2, 0.2, WIDE - 0.4, 0.5),
    ]
    for g in range(GPUS_DRAWN):
        gpu, nic = (f"GPU {gpus - 1 if g == GPUS_DRAWN - 1 else g}", "NIC")
        if g == GPUS_DRAWN - 2:
            gpu = nic = "…"
        for name, said, y, height in (("GPU", gpu, 1.25, 0.5), ("NIC", nic, 2.2, 0.5)):
            boxes.append(box(f"{name} {n}.{g}", (said,), 0.2 + 1.2 * g, y, 1.1, height))
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
