"""What tensor parallelism sends, and how long that takes beside the computation."""

from __future__ import annotations

from figgen.catalog import HardwarePreset, hardware_preset
from figgen.catalog import model as catalog_model
from figgen.charts import Axis, Bars, Curves, Named, Rule, Series, Style
from figgen.errors import check_between
from figgen.formulas.collectives import ring_all_reduce_time
from figgen.formulas.hierarchical_collectives import nccl_ring_latency
from figgen.formulas.placement import sharded_data_parallel_bytes, split_pipeline_rank_bytes
from figgen.formulas.tensor_parallel import (
    tensor_parallel_layer_bytes,
    tensor_parallel_message_bytes,
    tensor_parallel_step_bytes,
)
from figgen.models.communication_ratio import (
    ALL_REDUCES,
    group_bandwidth_bytes_per_s,
    layer_training_flops_per_token,
)
from figgen.plotting.series import doublings, line, segments
from figgen.plotting.words import identifier
from figgen.registry import figure

BYTES = 2
MODELS = ("llama-3-405b", "llama-3-70b", "llama-3-8b", "gpt-3-175b")


@figure("tp-volume", explorable=True)
def tp_volume(*, models: tuple[str, ...] = MODELS, most: int = 64) -> Curves:
    """Bytes that a GPU sends per layer and sequence of the model's own length, over T."""
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


@figure("tp-step-bytes")
def tp_step_bytes(
    *,
    model: str = "gpt-3-175b",
    tp: int = 8,
    pp: int = 8,
    dp: int = 16,
    microbatches: int = 32,
) -> Bars:
    """Bytes that a GPU inside the pipeline sends per step, by axis; one sequence a microbatch."""
    shape = catalog_model(model)
    length, hidden = shape.shape.sequence, shape.hidden
    sent = {
        "tp": tensor_parallel_step_bytes(
            microbatches, shape.layers, pp, ALL_REDUCES, tp, 1, length, hidden, BYTES
        ),
        "dp": sharded_data_parallel_bytes(dp, shape.parameters, tp, pp, BYTES),
        "pp": split_pipeline_rank_bytes(microbatches, 1, 1, length, hidden, BYTES, tp),
    }  # fmt: skip
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
        axis=Axis(label="sent per GPU and step", unit="B", low=0.0, spec="bytes"),
        values=values,
    )


@figure("tp-link-ratio", explorable=True)
def tp_link_ratio(
    *,
    model: str = "llama-3-70b",
    preset: str = "h100-ndr",
    rack: str = "gb200-ndr",
    most: int = 64,
    microbatch_size: int = 1,
) -> Curves:
    """All-reduce time over computing time of one layer, by T and by where the group lies.

    `rack` has larger domains; it is drawn where groups leave the nodes of `preset`.
    """
    check_between("most", most, 2, 2**10)
    node, domain, shape = hardware_preset(preset), hardware_preset(rack), catalog_model(model)
    tokens = microbatch_size * shape.shape.sequence
    message = tensor_parallel_message_bytes(microbatch_size, shape.shape.sequence, shape.hidden, 2)
    work = tokens * layer_training_flops_per_token(shape.shape)
    nvlink, nic = node.scale_up_bandwidth_bytes_per_s, node.network_bandwidth_bytes_per_s
    lent = group_bandwidth_bytes_per_s(nvlink, nic, node.gpus_per_node)

    def by_bytes(tp: int, bandwidth: float, on: HardwarePreset = node, extra: float = 0.0) -> float:
        one = ring_all_reduce_time(tp, message, 0.0, bandwidth) + extra
        return float(ALL_REDUCES * one / (work / tp / on.accelerator.peak_flops_per_s()))

    def ratio(tp: int, nodes: int, bandwidth: float, on: HardwarePreset = node) -> float:
        latency = nccl_ring_latency(tp, nodes, 0.0, on.scale_up_latency_s, on.network_latency_s)
        return by_bytes(tp, bandwidth, on, float(latency))

    width, sizes = node.gpus_per_node, doublings(most)
    inside = [(t, ratio(t, 1, nvlink)) for t in sizes if t <= width]
    beyond = [(t, ratio(t, t // width, lent)) for t in sizes if t > width]
    alone = [(t, ratio(t, t, nic)) for t in sizes]
    places = [("nvlink", f"{node.scale_up.short_title}, one node", "tp", inside)]
    if beyond:
        wider = [
            (t, ratio(t, 1, domain.scale_up_bandwidth_bytes_per_s, domain))
            for t in sizes if t <= domain.gpus_per_node
        ]  # fmt: skip
        places += [
            ("rack", f"{domain.scale_up.short_title}, {domain.gpus_per_node} GPUs",
             "series-3", wider),
            ("nodes", "whole nodes", "series-2", beyond),
        ]  # fmt: skip
    places.append(("single", "one rank per node", "series-1", alone))
    series: list[Series] = []
    values = {"tokens": Named(tokens, "token"), "rack_gpus": Named(domain.gpus_per_node)}
    for name, title, role, points in places:
        x, y = (tuple(map(float, each)) for each in zip(*points, strict=True))
        style: Style = "dashed" if name == "single" else "line"
        series.append(Series(name=title, x=x, y=y, role=role, style=style))
        values |= {f"{name}_tp{t:g}": Named(r) for t, r in zip(x, y, strict=True)}
        if name == "rack":
            last = by_bytes(points[-1][0], domain.scale_up_bandwidth_bytes_per_s, domain)
            values["rack_bytes"] = Named(last)
    slower = ratio(width, width, nic) / ratio(width, 1, nvlink)
    values["single_over_nvlink"] = Named(slower)
    return Curves(
        x=Axis(label="tensor-parallel size T", scale="log2", spec=","),
        y=Axis(label="communication over computation", scale="log10", spec="g"),
        series=tuple(series),
        rules=(Rule(axis="y", at=1.0, label="as long as computing"),),
        values=values,
    )
