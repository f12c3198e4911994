"""The ports of a server: a copy of the weights through each, or one copy through all of them."""

from __future__ import annotations

from figgen.catalog import hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import Box, Diagram, Named
from figgen.figures.parameters import HardwareName, ModelName
from figgen.plotting.placed import box_at
from figgen.registry import figure
from figgen.units import format_quantity

ACROSS, TALLEST = 5.1, 1.5
"""Width of the picture, a phone's, and the height of a port's bytes if it carries a whole copy."""


@figure("shared-ports")
def shared_ports(*, preset: HardwareName = "h100-ndr", model: ModelName = "llama-3-8b") -> Diagram:
    """What each port of a server brings in for one gather of 16-bit weights.

    Above, each GPU gathers for itself; below, all gather together, and NVLink passes parts on.
    Heights are bytes.
    """
    gpus, weights = hardware_preset(preset).gpus_per_node, 2 * catalog_model(model).parameters
    alone = _server("alone", 0.0, gpus, weights, "each GPU gathers a copy by itself")
    below = max(box.y + box.height for box in alone) + 0.25
    said = f"all {gpus} gather one copy together"
    shared = _server("shared", below, gpus, weights / gpus, said, TALLEST / gpus, nvlink=0.38)
    return Diagram(
        boxes=(*alone, *shared),
        links=(),
        width=ACROSS,
        height=max(box.y + box.height for box in shared),
        values={"alone": Named(weights, "B"), "shared": Named(weights / gpus, "B")},
    )


def _server(
    name: str,
    y: float,
    gpus: int,
    sent: float,
    says: str,
    high: float = TALLEST,
    nvlink: float = 0.0,
) -> list[Box]:
    """Return a server at `y`: its GPUs, its NVLink if that is drawn, and the bytes of each port."""
    pitch, top = ACROSS / gpus, y + 1.0 + (nvlink and nvlink + 0.06)
    wide, whole = pitch - 0.08, ACROSS - 0.08
    bytes_ = f"{format_quantity(sent, 'B', 'bytes')} through each port"
    boxes = [
        box_at(name, (says,), (0.0, y), (whole, 0.45), ""),
        box_at(f"{name} bytes", (bytes_,), (0.0, top + high), (whole, 0.4), ""),
    ]
    for gpu in range(gpus):
        x = gpu * pitch
        boxes += [
            box_at(f"{name} {gpu}", (f"{gpu}",), (x, y + 0.5), (wide, 0.45)),
            box_at(f"{name} port {gpu}", (), (x, top), (wide, high), "series-4"),
        ]
    if nvlink:
        passed = ("NVLink passes each part on to the others",)
        boxes.append(box_at("NVLink", passed, (0.0, y + 1.0), (whole, nvlink), "series-3"))
    return boxes
