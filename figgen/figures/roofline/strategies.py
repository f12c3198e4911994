"""Every strategy in one figure: its FLOPs per byte relative to its link's ridge."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.catalog import HardwarePreset, hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import Axis, Curves, Mark, Named, Series
from figgen.figures.parameters import Dtype, HardwareName, ModelName
from figgen.formulas.compute_and_roofline import (
    data_parallel_ccr,
    efficiency_with_partial_overlap,
    fsdp_ccr,
    ridge_point,
)
from figgen.models.algorithms.communication_ratio import (
    BACKWARD_SHARE,
    pipeline_boundary_ccr,
    tensor_parallel_ccr,
)
from figgen.plotting.series import line, logarithmic
from figgen.registry import figure

BYTES = 2  # BF16 weights, gradients and activations
HIDDEN = (("hidden behind all work", 1.0), ("behind backward", BACKWARD_SHARE), ("not hidden", 0.0))
"""Curves and the share of the work that messages hide behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedStrategy:
    """A strategy: its FLOPs per byte, its link's ridge, and the work that hides its messages."""

    key: str
    label: str
    role: str
    ccr: float
    ridge: float
    overlap: float

    @property
    def headroom(self) -> float:
        """FLOPs per byte over the ridge of the link."""
        return self.ccr / self.ridge

    @property
    def share(self) -> float:
        """Share of the peak that the model allows."""
        return float(efficiency_with_partial_overlap(self.ccr, self.ridge, self.overlap))


def placed_strategies(
    node: HardwarePreset,
    peak: float,
    tokens: int,
    nodes: int,
    model: str,
    tensor_parallel: tuple[int, ...],
    stage_layers: int,
) -> tuple[PlacedStrategy, ...]:
    """Return data parallelism and a pipeline on the network, and TP inside the node.

    They are seen from one NIC. If all GPUs of a node are in one data-parallel group, they share one
    copy of the traffic: each NIC carries 1/g of it, so the ratio is g times as high.
    """
    shape, per_node = catalog_model(model).shape, node.gpus_per_node
    nic = float(ridge_point(peak, node.network_bandwidth_bytes_per_s))
    near = float(ridge_point(peak, node.scale_up_bandwidth_bytes_per_s))
    together = per_node * fsdp_ccr(tokens, BYTES, nodes * per_node)
    stage = pipeline_boundary_ccr(shape, stage_layers=stage_layers)
    return (
        PlacedStrategy(
            key="ddp",
            label="DDP",
            role="dp",
            ccr=float(data_parallel_ccr(tokens, BYTES, nodes)),
            ridge=nic,
            overlap=BACKWARD_SHARE,
        ),
        PlacedStrategy(
            key="fsdp",
            label="FSDP",
            role="dp",
            ccr=float(fsdp_ccr(tokens, BYTES, nodes)),
            ridge=nic,
            overlap=1,
        ),
        PlacedStrategy(
            key="fsdp_nodes",
            label="FSDP, whole nodes",
            role="dp",
            ccr=float(together),
            ridge=nic,
            overlap=1,
        ),
        *(
            PlacedStrategy(
                key=f"tp{tp}",
                label=f"TP {tp}",
                role="tp",
                ccr=tensor_parallel_ccr(shape, tp=tp, bytes_per_element=BYTES),
                ridge=near,
                overlap=0,
            )
            for tp in tensor_parallel
        ),
        PlacedStrategy(key="pp", label="PP", role="pp", ccr=stage, ridge=nic, overlap=0),
    )


@figure("strategies-roofline", explorable=True, recomputed=True)
def strategies_roofline(
    *,
    preset: HardwareName,
    dtype: Dtype = "bf16",
    tokens: int = 4096,
    nodes: int = 16,
    model: ModelName = "llama-3-70b",
    tensor_parallel: tuple[int, ...] = (2, 4, 8),
    stage_layers: int = 8,
) -> Curves:
    """Share of the peak over a strategy's FLOPs per byte, as a multiple of its link's ridge.

    There is a curve for messages that hide behind all work, behind backward, and not at all. FSDP
    is on the first, DDP on the second, TP and pipeline messages on the last.
    """
    node = hardware_preset(preset)
    peak = node.accelerator.peak_flops_per_s(dtype)
    placed = placed_strategies(node, peak, tokens, nodes, model, tensor_parallel, stage_layers)
    x = sorted({*logarithmic(0.05, 200.0, 40), 1.0, 1 / BACKWARD_SHARE})
    series: tuple[Series, ...] = tuple(
        line(name, x, [float(efficiency_with_partial_overlap(at, 1.0, hidden)) for at in x], index)
        for index, (name, hidden) in enumerate(HIDDEN)
    )
    return Curves(
        x=Axis(
            label="FLOP per byte over the ridge of the link",
            scale="log10",
            low=0.05,
            high=200.0,
            spec="unit",
        ),
        y=Axis(label="share of the peak", low=0.0, high=1.12, spec=".0%"),
        series=series,
        marks=tuple(Mark(x=p.headroom, y=p.share, label=p.label, role=p.role) for p in placed),
        values={
            "tokens": Named(tokens, "token"),
            "nodes": Named(nodes, "node"),
            "stage_layers": Named(stage_layers),
            **{f"{p.key}_share": Named(p.share) for p in placed},
            **{f"{p.key}_ccr": Named(p.ccr, "FLOP/B") for p in placed},
            **{f"{p.key}_headroom": Named(p.headroom) for p in placed},
        },
    )
