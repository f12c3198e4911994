"""Writes only a layout, and says whether a framework places ranks as the layout does.

Option names: NVIDIA/Megatron-LM at d98e8a64, megatron/training/arguments.py; torchtitan 0.2.2,
torchtitan/config/job_config.py; torch.distributed.device_mesh.init_device_mesh;
deepspeedai/DeepSpeed at edaa7221, deepspeed/runtime/pipe/topology.py
(PipeModelDataParallelTopology, axes pipe, data, model) and deepspeed/moe/layer.py (ep_size,
enable_expert_tensor_parallelism).
"""

from __future__ import annotations

from collections.abc import Callable

from figgen.errors import InputError, unknown
from figgen.models.machine.layout import ParallelLayout, layout
from figgen.models.machine.mesh import RankMesh, axis_stride
from figgen.scenarios.writing.written import Written, command, refusal, torchrun

ORDERS = ("megatron", "megatron-tp-pp-dp")
"""The orders for which Megatron-LM has an option."""


def divides_experts(parallel: ParallelLayout) -> bool:
    """Return whether experts are placed differently from dense layers."""
    return parallel.has_experts and (parallel.ep > 1 or parallel.etp != parallel.tp)


def same_ranks(parallel: ParallelLayout, order: str) -> bool:
    """Return whether an order places every rank as the layout does.

    Axes of one rank are ignored, and so are axes of experts unless experts are divided.
    """
    divided = divides_experts(parallel)
    try:
        other = layout(
            nodes=parallel.nodes,
            gpus_per_node=parallel.gpus_per_node,
            tp=parallel.tp,
            cp=parallel.cp,
            pp=parallel.pp,
            ep=parallel.ep if divided else 1,
            etp=parallel.etp if divided else None,
            order=order,
        )
    except InputError:
        return False
    if not same_mesh(parallel.dense, other.dense):
        return False
    return not divided or (other.has_experts and same_mesh(parallel.expert, other.expert))


def same_mesh(one: RankMesh, other: RankMesh) -> bool:
    """Return whether all axes of several ranks have the same size and stride in both meshes."""
    strides = {name: axis_stride(other, name) for name, size in other.axes if size > 1}
    for name, size in one.axes:
        if size > 1 and strides.get(name, 0) != axis_stride(one, name):
            return False
    return True


def no_order(who: str, parallel: ParallelLayout) -> str:
    """Return the message for a rank order for which a framework has no option."""
    return f"{who} has no option for the rank order {parallel.order}"


def cannot_place(who: str, parallel: ParallelLayout) -> Written:
    """Return the refusal of a rank order for which a framework has no option."""
    return refusal(no_order(who, parallel))


def mesh_call(name: str, mesh: RankMesh) -> str:
    """Return the call that creates a device mesh, whose slowest axis comes first."""
    axes = list(reversed(mesh.axes))
    end = "," if len(axes) == 1 else ""
    sizes = ", ".join([str(size) for _, size in axes])
    words = ", ".join([f'"{axis}"' for axis, _ in axes])
    return f'{name} = init_device_mesh("cuda", ({sizes}{end}), mesh_dim_names=({words}{end}))'


def device_meshes(parallel: ParallelLayout) -> Written:
    """Return the device meshes of a layout, for a PyTorch program."""
    calls = [mesh_call("dense", parallel.dense)]
    if divides_experts(parallel):
        calls.append(mesh_call("expert", parallel.expert))
    first = "from torch.distributed.device_mesh import init_device_mesh"
    return Written(
        text="\n".join([first, "", *calls]), note="The first axis of a device mesh varies slowest."
    )


def deepspeed_topology(parallel: ParallelLayout) -> Written:
    """Return the topology of a pipeline under DeepSpeed."""
    if parallel.cp > 1:
        return refusal("DeepSpeed's pipeline topology has no context axis")
    if parallel.ep > 1 and parallel.etp not in (1, parallel.tp):
        return refusal(
            "experts under DeepSpeed have the tensor parallelism of the other layers, or none"
        )
    if not same_ranks(parallel, "deepspeed"):
        return cannot_place("DeepSpeed's pipeline topology", parallel)
    split = ", enable_expert_tensor_parallelism=True" if parallel.etp > 1 else ""
    sizes = f"num_pp={parallel.pp}, num_mp={parallel.tp}, num_dp={parallel.dp}"
    lines = [
        f"# deepspeed --num_nodes {parallel.nodes} --num_gpus {parallel.gpus_per_node} train.py",
        "from deepspeed.runtime.pipe.topology import PipeModelDataParallelTopology",
        "",
        f"topology = PipeModelDataParallelTopology({sizes})",
    ]
    if parallel.ep > 1:
        experts = f"deepspeed.moe.layer.MoE(..., ep_size={parallel.ep}{split})"
        lines.append(f"# in the model: {experts}")
    note = "Give the topology to PipelineModule; its axes are pipe, data and model, slowest first."
    return Written(text="\n".join(lines), note=note)


def megatron_order(parallel: ParallelLayout) -> str:
    """Return Megatron-Core's order that places ranks as the layout does, or "" if there is none."""
    for order in ORDERS:
        if same_ranks(parallel, order):
            return order
    return ""


def megatron_degrees(parallel: ParallelLayout, order: str) -> list[tuple[str, str]]:
    """Return the options for the sizes of the axes, without axes of one rank.

    Data parallelism takes the remaining ranks. With expert parallelism, the tensor-parallel size of
    experts is always given, because its default differs between releases.
    """
    found: list[tuple[str, str]] = [
        ("tensor_model_parallel_size", str(parallel.tp)),
        ("pipeline_model_parallel_size", str(parallel.pp)),
    ]
    if parallel.cp > 1:
        found.append(("context_parallel_size", str(parallel.cp)))
    if parallel.ep > 1:
        found.append(("expert_model_parallel_size", str(parallel.ep)))
    if parallel.ep > 1 or parallel.etp != parallel.tp:
        found.append(("expert_tensor_parallel_size", str(parallel.etp)))
    if order == "megatron-tp-pp-dp":
        found.append(("use_tp_pp_dp_mapping", ""))
    return found


def flags(options: list[tuple[str, str]]) -> list[str]:
    """Return options as written on a command line, with quotes where a shell needs them."""
    found: list[str] = []
    for name, value in options:
        quoted = f"'{value}'" if "(" in value or "|" in value else value
        found.append(f"--{name.replace('_', '-')} {quoted}".strip())
    return found


def _layout_note(parallel: ParallelLayout) -> str:
    note = f"Data parallelism takes the remaining ranks: {parallel.dp}."
    if parallel.ep > 1 and parallel.tp > 1:
        note += " With experts and TP it also requires --sequence-parallel."
    if parallel.ep > 1:
        note += (
            " Its default gathers all tokens for the experts; "
            "--moe-token-dispatcher-type alltoall sends copies."
        )
    return note


def megatron_layout(parallel: ParallelLayout) -> Written:
    """Write Megatron-LM's command with the options of a layout."""
    order = megatron_order(parallel)
    if not order:
        return cannot_place("Megatron-LM", parallel)
    options = flags(megatron_degrees(parallel, order))
    text = command(torchrun(parallel), "pretrain_gpt.py", options)
    return Written(text=text, note=_layout_note(parallel))


def torchtitan_refused(parallel: ParallelLayout) -> str:
    """Return why torchtitan cannot run a layout, or "" if it can."""
    if parallel.ep > 1 and parallel.etp not in (1, parallel.tp):
        return "experts under torchtitan have the tensor parallelism of the other layers, or none"
    if parallel.ep > 1 and parallel.etp == 1 and parallel.ep < parallel.tp:
        return "torchtitan requires EP to be at least TP"
    return "" if same_ranks(parallel, "torchtitan") else no_order("torchtitan", parallel)


def torchtitan_degrees(parallel: ParallelLayout, zero_stage: int) -> list[tuple[str, int]]:
    """Return the sizes of the axes; without sharding, weights are replicated."""
    whole = zero_stage == 0
    found = [
        ("data_parallel_replicate_degree", parallel.dp if whole else 1),
        ("data_parallel_shard_degree", 1 if whole else parallel.dp),
        ("context_parallel_degree", parallel.cp),
        ("tensor_parallel_degree", parallel.tp),
        ("pipeline_parallel_degree", parallel.pp),
        ("expert_parallel_degree", parallel.ep),
    ]
    if parallel.ep > 1 and parallel.etp > 1:
        found.append(("expert_tensor_parallel_degree", parallel.etp))
    return found


def torchtitan_layout(parallel: ParallelLayout) -> Written:
    """Write torchtitan's command with the options of a layout."""
    why = torchtitan_refused(parallel)
    if why:
        return refusal(why)
    options = [f"--parallelism.{name} {size}" for name, size in torchtitan_degrees(parallel, 3)]
    program = "-m torchtitan.train --job.config_file $CONFIG_FILE"
    note = "All of data parallelism is sharded here; a part of it may be replicated instead."
    return Written(text=command(torchrun(parallel), program, options), note=note)


LAYOUT_WRITERS: dict[str, Callable[[ParallelLayout], Written]] = {
    "megatron": megatron_layout,
    "pytorch": device_meshes,
    "deepspeed": deepspeed_topology,
    "torchtitan": torchtitan_layout,
}
"""Writers of a layout by the rank map's names for them."""


def write_layout(launcher: str, parallel: ParallelLayout) -> Written:
    """Write a layout for a launcher. Raises InputError for an unknown launcher."""
    if launcher not in LAYOUT_WRITERS:
        raise unknown("launcher", launcher, LAYOUT_WRITERS)
    return LAYOUT_WRITERS[launcher](parallel)
