"""Messages of tensor parallelism, and their time relative to computing."""

from __future__ import annotations

from figgen.catalog import HardwarePreset, hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import Axis, Bars, Curves, Named, Rule, Series, Style
from figgen.errors import check_between
from figgen.figures.parameters import HardwareName, ModelName
from figgen.formulas.collectives import ring_all_reduce_time
from figgen.formulas.hierarchical_collectives import nccl_ring_latency
from figgen.formulas.placement import sharded_data_parallel_bytes, split_pipeline_rank_bytes
from figgen.formulas.tensor_parallel import (
    tensor_parallel_layer_bytes,
    tensor_parallel_message_bytes,
    tensor_parallel_step_bytes,
)
from figgen.models.algorithms.communication_ratio import (
    ALL_REDUCES,
    group_bandwidth_bytes_per_s,
    layer_training_flops_per_token,
)
from figgen.models.shape.model_shape import ModelShape
from figgen.plotting.series import doublings, line, segments
from figgen.plotting.words import identifier
from figgen.registry import figure

BYTES = 2
MODELS = ("llama-3-405b", "llama-3-70b", "llama-3-8b", "gpt-3-175b")


@figure("tp-volume", explorable=True, recomputed=True)
def tp_volume(*, models: tuple[ModelName, ...] = MODELS, most: int = 64) -> Curves:
    """Bytes that a GPU sends per layer per sequence of the model's own length, over TP."""
    check_between("most", most, 2, 2**10)
    sizes = doublings(most)
    series: list[Series] = []
    values: dict[str, Named] = {}
    for index, name in enumerate(models):
        found = catalog_model(name)
        y = tuple(
            tensor_parallel_layer_bytes(
                ALL_REDUCES, tp, 1, found.shape.sequence, found.hidden, BYTES
            )
            for tp in sizes
        )
        series.append(line(found.title, map(float, sizes), y, index))
        key = identifier(name)
        values |= {f"{key}_tp{t}": Named(sent, "B") for t, sent in zip(sizes, y, strict=True)}
    return Curves(
        x=Axis(label="tensor-parallel size T", scale="log2", spec=","),
        y=Axis(label="sent per GPU, layer and sequence", unit="B", low=0.0, spec="bytes"),
        series=tuple(series),
        values=values,
    )


@figure("tp-step-bytes", recomputed=True)
def tp_step_bytes(
    *,
    model: ModelName = "gpt-3-175b",
    tp: int = 8,
    pp: int = 8,
    dp: int = 16,
    microbatches: int = 32,
    all_reduces: float = ALL_REDUCES,
) -> Bars:
    """Bytes that a GPU inside the pipeline sends per step, by axis; one sequence a microbatch.

    A layer sends what `all_reduces` would: with sequence parallelism ten halves of one, so five.
    """
    check_between("all_reduces", all_reduces, 1, 10)
    shape = catalog_model(model)
    length, hidden = shape.shape.sequence, shape.hidden
    sent = {
        "tp": tensor_parallel_step_bytes(
            microbatches, shape.layers, pp, all_reduces, tp, 1, length, hidden, BYTES
        ),
        "dp": sharded_data_parallel_bytes(dp, shape.parameters, tp, pp, BYTES),
        "pp": split_pipeline_rank_bytes(microbatches, 1, 1, length, hidden, BYTES, tp),
    }
    sizes = {"tp": tp, "dp": dp, "pp": pp}
    lengths = {f"{axis.upper()} {size}": [float(sent[axis])] for axis, size in sizes.items()}
    values = {f"{axis}_bytes": Named(amount, "B") for axis, amount in sent.items()}
    values["tp_over_dp"] = Named(sent["tp"] / sent["dp"])
    values["microbatches"] = Named(microbatches)
    values["message_bytes"] = Named(tensor_parallel_message_bytes(1, length, hidden, BYTES), "B")
    return Bars(
        labels=(shape.title,),
        segments=segments(lengths, sizes),
        stacked=False,
        axis=Axis(label="sent per GPU per step", unit="B", low=0.0, spec="bytes"),
        values=values,
    )


@figure("tp-link-ratio", explorable=True, of_reference=True, recomputed=True)
def tp_link_ratio(
    *,
    model: ModelName = "llama-3-70b",
    preset: HardwareName = "h100-ndr",
    rack: HardwareName = "gb200-ndr",
    most: int = 64,
    microbatch_size: int = 1,
) -> Curves:
    """All-reduce time over compute time of one layer, by TP and placement of the group.

    `rack` has larger domains; it is drawn where groups leave the nodes of `preset`.
    """
    check_between("most", most, 2, 2**10)
    node, domain = hardware_preset(preset), hardware_preset(rack)
    shape = catalog_model(model).shape
    nvlink, nic = node.scale_up_bandwidth_bytes_per_s, node.network_bandwidth_bytes_per_s
    wide, width, sizes = domain.scale_up_bandwidth_bytes_per_s, node.gpus_per_node, doublings(most)
    lent = group_bandwidth_bytes_per_s(nvlink, nic, width)

    def ratio(tp: int, nodes: int, bandwidth: float, on: HardwarePreset = node) -> float:
        latency = nccl_ring_latency(tp, nodes, 0.0, on.scale_up_latency_s, on.network_latency_s)
        return _over_computing(shape, microbatch_size, tp, on, bandwidth, float(latency))

    inside = {t: ratio(t, 1, nvlink) for t in sizes if t <= width}
    beyond = {t: ratio(t, t // width, lent) for t in sizes if t > width}
    title = f"{node.scale_up.short_title}, one node"
    lines = [(title, "tp", inside)]
    values = {
        "tokens": Named(microbatch_size * shape.sequence, "token"),
        "rack_gpus": Named(domain.gpus_per_node),
        "single_over_nvlink": Named(ratio(width, width, nic) / ratio(width, 1, nvlink)),
    }
    alone = {t: ratio(t, t, nic) for t in sizes}
    groups = {"nvlink": inside, "single": alone}
    if beyond:
        racks = {t: ratio(t, 1, wide, domain) for t in sizes if t <= domain.gpus_per_node}
        groups |= {"rack": racks, "nodes": beyond}
        lines = [
            (f"{node.scale_up.short_title}, whole nodes", "tp", inside | beyond),
            (f"{domain.scale_up.short_title}, {domain.gpus_per_node} GPUs", "series-3", racks),
        ]
        last = _over_computing(shape, microbatch_size, max(racks), domain, wide)
        values["rack_bytes"] = Named(last)
    lines.append(("one rank per node", "series-1", alone))
    for name, points in groups.items():
        values |= {f"{name}_tp{t}": Named(r) for t, r in points.items()}
    return Curves(
        x=Axis(label="tensor-parallel size T", scale="log2", spec=","),
        y=Axis(label="time of messages ÷ time of work: below 1 is good", scale="log10", spec="g"),
        series=tuple(
            _ratios(title, role, points, "dashed" if points is alone else "line")
            for title, role, points in lines
        ),
        rules=(Rule(axis="y", at=1.0, label="as long as the work"),),
        values=values,
    )


def _ratios(title: str, role: str, points: dict[int, float], style: Style) -> Series:
    """Return the line through ratios by tensor-parallel size."""
    return Series(
        name=title, x=tuple(map(float, points)), y=tuple(points.values()), role=role, style=style
    )


def _over_computing(
    shape: ModelShape,
    batch: int,
    tp: int,
    on: HardwarePreset,
    bandwidth: float,
    latency_s: float = 0.0,
) -> float:
    """Return the time of a layer's all-reduces over that of its work on `tp` GPUs."""
    message = tensor_parallel_message_bytes(batch, shape.sequence, shape.hidden, BYTES)
    work = batch * shape.sequence * layer_training_flops_per_token(shape)
    one = ring_all_reduce_time(tp, message, 0.0, bandwidth) + latency_s
    return float(ALL_REDUCES * one / (work / tp / on.accelerator.peak_flops_per_s()))
