"""Whether a framework places ranks as a layout does, and the layouts that programs spell out.

Option names: torch.distributed.device_mesh.init_device_mesh; deepspeedai/DeepSpeed at edaa7221,
deepspeed/runtime/pipe/topology.py (PipeModelDataParallelTopology, axes pipe, data, model) and
deepspeed/moe/layer.py (ep_size, enable_expert_tensor_parallelism).
"""

from __future__ import annotations

from figgen.errors import InputError
from figgen.models.machine.layout import ParallelLayout, layout
from figgen.models.machine.mesh import RankMesh, axis_stride
from figgen.scenarios.writing.written import JobToWrite, Written, refusal


def divides_experts(parallel: ParallelLayout) -> bool:
    """Whether experts lie otherwise than dense layers."""
    return parallel.has_experts and (parallel.ep > 1 or parallel.etp != parallel.tp)


def same_ranks(parallel: ParallelLayout, order: str) -> bool:
    """Whether an order puts every rank where the layout has it; axes of one rank do not count.

    What an order says of experts counts only where they are divided.
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
    """Whether the axes of several ranks have the same size and stride in both."""
    strides = {name: axis_stride(other, name) for name, size in other.axes if size > 1}
    for name, size in one.axes:
        if size > 1 and strides.get(name, 0) != axis_stride(one, name):
            return False
    return True


def cannot_place(who: str, parallel: ParallelLayout) -> Written:
    """The refusal of an order that a framework has no option for."""
    return refusal(f"{who} has no option for the rank order {parallel.order}")


def mesh_call(name: str, mesh: RankMesh) -> str:
    """The call that makes a device mesh, which names its axes slowest first."""
    axes = list(reversed(mesh.axes))
    end = "," if len(axes) == 1 else ""
    sizes = ", ".join([str(size) for _, size in axes])
    words = ", ".join([f'"{axis}"' for axis, _ in axes])
    return f'{name} = init_device_mesh("cuda", ({sizes}{end}), mesh_dim_names=({words}{end}))'


def device_meshes(job: JobToWrite) -> Written:
    """The device meshes of a layout, for a PyTorch program."""
    parallel = job.parallel
    calls = [mesh_call("dense", parallel.dense)]
    if divides_experts(parallel):
        calls.append(mesh_call("expert", parallel.expert))
    first = "from torch.distributed.device_mesh import init_device_mesh"
    return Written(
        text="\n".join([first, "", *calls]), note="A device mesh names its axes slowest first."
    )


def deepspeed_topology(job: JobToWrite) -> Written:
    """The topology of a pipeline under DeepSpeed."""
    parallel = job.parallel
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
