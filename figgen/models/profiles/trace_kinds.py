"""What an event of a profiler's trace is: computing, a collective, a copy, a launch.

Kineto records GPU kernels with their stream. Since PyTorch 2.2, NCCL kernels carry the collective,
its element count, type and group; before that the host's annotation (`nccl:all_to_all`) with the
same "External id" names the collective. On a CPU gloo marks its own runs; there are no kernels, so
the operators that compute count instead.
Source: pytorch/kineto libkineto/src/output_json.cpp; pytorch torch/csrc/distributed/c10d/
ParamCommsUtils.hpp for the arguments of collectives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from figgen.models.profiles.kernel_kinds import COMMUNICATION, head_of, kind_of_kernel
from figgen.models.step.step_traffic import PASSES

TYPE_BYTES = {
    "float": 4, "double": 8, "half": 2, "bfloat16": 2, "c10::half": 2, "c10::bfloat16": 2,
    "int": 4, "long": 8, "long int": 8, "short": 2, "byte": 1, "unsigned char": 1, "char": 1,
    "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "float16": 2, "float32": 4, "int64": 8,
}  # fmt: skip
KERNELS = ("kernel",)
COPIES = ("gpu_memcpy", "gpu_memset")
LAUNCHES = ("cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "xpu_runtime")
OPERATORS = ("cpu_op",)
ANNOTATIONS = ("user_annotation", "gpu_user_annotation")
STACKS = ("python_function",)
OVERHEAD = ("overhead",)
MODULE = "nn.Module: "
"""Prefix of the name of a module's call, if Python's stacks were recorded."""
BACKWARD = "autograd::engine::evaluate_function: "
PEER = "Memcpy PtoP"
"""Prefix of the name of a copy between two GPUs."""
RUNS = ("oneccl_bindings_for_pytorch::", "torch_ccl::")
"""Prefixes of operators that are collectives themselves."""
LAUNCH_ENDINGS = ("_runtime", "_driver")
"""Ends of the categories of host calls, for devices of other makers too."""
STARTS = ("launch", "graphlaunch", "runfunction")
"""Parts of the names of host calls that launch kernels."""
OURS = ("computing", "communication")
OPERATION = "operation"
"""Categories of the events that `figgen trace-export` writes; operations are parts of computing."""
OLD = {
    "Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset", "Runtime": "cuda_runtime",
    "Operator": "cpu_op",
}  # fmt: skip
"""Categories as old releases of Kineto wrote them, and what they have been called since."""
MADE_BY = "figgen trace-export"
STEP = "ProfilerStep#"
"""Prefix of PyTorch's annotation of a step, followed by its number."""

COLLECTIVES = (
    ("sendrecv", "send and recv"), ("reducescatter", "reduce-scatter"),
    ("allreduce", "all-reduce"), ("allgather", "all-gather"), ("alltoall", "all-to-all"),
    ("broadcast", "broadcast"), ("barrier", "barrier"), ("scatter", "scatter"),
    ("gather", "gather"), ("reduce", "reduce"), ("send", "send"), ("recv", "recv"),
)  # fmt: skip
"""Parts of names, reduced to their letters, and their collectives; the first match applies."""

ONE_SIDED = ("send", "recv", "send and recv", "copy between GPUs")

OTHER_COLLECTIVES = (
    ("cross_device_reduce", "all-reduce"), ("quickreduce", "all-reduce"), ("lamport", "all-reduce"),
    ("multimem_reduce", "all-reduce"), ("_rs_", "reduce-scatter"), ("_ag_", "all-gather"),
    ("dispatch", "all-to-all"), ("combine", "all-to-all"), ("a2a", "all-to-all"),
    ("ptop", "copy between GPUs"), ("collective-permute", "send and recv"),
)  # fmt: skip
"""Parts of names of libraries other than NCCL that do not spell out the collective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Calls that belong together: the communicator as the trace names it, and the collective.

    `size` is 0 and `ranks` empty if the trace does not give them.
    """

    name: str
    collective: str
    size: int
    ranks: str

    @property
    def key(self) -> str:
        """Key that identifies the group."""
        return f"{self.name}|{self.collective}|{self.size}|{self.ranks}"

    @property
    def factor(self) -> float:
        """Bus bandwidth over buffer bytes per second; 0 if the size is unknown."""
        if self.collective not in PASSES:
            return 1.0
        return PASSES[self.collective] * (self.size - 1) / self.size if self.size else 0.0


def collective_of(name: str) -> str:
    """Return the collective that a name of NCCL, gloo or c10d means, or ""."""
    letters = re.sub("[^a-z]", "", name.lower().removeprefix("nccldevkernel"))
    return next((kind for part, kind in COLLECTIVES if part in letters), "")


def collective_of_kernel(name: str) -> str:
    """Return the collective that a kernel of any library runs, or "" if its name does not tell."""
    head = head_of(name)
    if "nccl" in head:
        return collective_of(head)
    spelled = next((kind for part, kind in OTHER_COLLECTIVES if part in head), "")
    return collective_of(head) if not spelled or "all_reduce" in head else spelled


def is_communication(category: object, name: str) -> bool:
    """Whether an event of a device is communication rather than computing or a copy within it."""
    if category in KERNELS:
        return kind_of_kernel(name) == COMMUNICATION
    return category in COPIES and name.startswith(PEER)


def is_launch(category: object) -> bool:
    """Whether an event is a call of the host into a device's runtime."""
    return category in LAUNCHES or str(category).endswith(LAUNCH_ENDINGS)


def is_run(category: object, name: str) -> bool:
    """Whether an event of a host or a modeled step is a running collective."""
    if category == OURS[1]:
        return True
    return (category == "user_annotation" and name.startswith("gloo:")) or (
        category in OPERATORS and name.startswith(RUNS)
    )


def is_work(name: str) -> bool:
    """Whether a CPU operator computes itself rather than calling other operators."""
    wraps = (
        "c10d::",
        "autograd::",
        "torch::autograd::",
        "record_param_comms",
        "oneccl",
        "torch_ccl",
    )
    return "::" in name and not name.startswith(wraps)


def group_of(event: Mapping[str, Any], header: Mapping[str, Any]) -> Group:
    """Return the group of a call, from its own arguments or the job's only process group."""
    given = event.get("args")
    args: Mapping[str, Any] = given if isinstance(given, dict) else {}
    kind = collective_of(str(args.get("Collective name") or ""))
    kind = kind or collective_of_kernel(str(event.get("name") or ""))
    groups = _groups(header)
    name = str(args.get("Process Group Name") or "")
    known = next((g for g in groups if name and str(g.get("pg_name")) == name), {})
    if not name and "Collective name" not in args and len(groups) == 1:
        known = groups[0]
    described = str(args.get("Process Group Description") or known.get("pg_desc") or name)
    ranks = str(args.get("Process Group Ranks") or known.get("ranks") or "")
    size = args.get("Group size") or known.get("pg_size") or 0
    if not size and not name and len(groups) < 2:
        size = world_size(header)
    return Group(
        name=described,
        collective=kind or "other",
        size=size if isinstance(size, int) else 0,
        ranks=ranks,
    )


def world_size(header: Mapping[str, Any]) -> int:
    """Return the number of ranks of the job, or 0 if the trace does not give it."""
    job = header.get("distributedInfo")
    found = job.get("world_size") if isinstance(job, dict) else 0
    return found if isinstance(found, int) and found > 0 else 0


def device_name(header: Mapping[str, Any]) -> str:
    """Return the name of a trace's GPU, or "" if the trace does not give it."""
    given = header.get("deviceProperties")
    devices: list[Any] = given if isinstance(given, list) else []
    for device in devices:
        if isinstance(device, dict):
            return str(device.get("name") or "")
    return ""


def _groups(header: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    job = header.get("distributedInfo")
    found = job.get("pg_config") if isinstance(job, dict) else None
    return [g for g in found if isinstance(g, dict)] if isinstance(found, list) else []


def bytes_of(event: Mapping[str, Any], group: Group) -> float:
    """Return the bytes of a rank's largest buffer in a call, or 0 if the trace does not give them.

    NCCL's events carry the element counts of input and output; gloo's carry the input's shape,
    which for an all-gather is one part of the buffer.
    """
    given = event.get("args")
    args: Mapping[str, Any] = given if isinstance(given, dict) else {}
    if "buffer bytes" in args:
        return _number(args["buffer bytes"]) * (_number(args.get("calls")) or 1)
    width = TYPE_BYTES.get(str(args.get("dtype") or "").lower(), 0)
    if width:
        return width * max(_number(args.get("In msg nelems")), _number(args.get("Out msg nelems")))
    shapes, types = args.get("Input Dims"), args.get("Input type")
    if not (isinstance(shapes, list) and isinstance(types, list)):
        return 0.0
    total = sum(
        TYPE_BYTES.get(str(kind).lower(), 0) * prod(shape)
        for shape, kind in zip(shapes, types, strict=False)
        if isinstance(shape, list) and shape and all(isinstance(n, int) for n in shape)
    )
    return float(total * (group.size if group.collective == "all-gather" else 1))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and value == value else 0.0


AXES: Mapping[str, tuple[str, ...]] = {
    "dp": ("dp", "edp", "embedding", "data", "fsdp", "shard", "replicate"),
    "etp": ("etp",),
    "tp": ("tp", "tensor"),
    "cp": ("cp", "context"),
    "ep": ("ep", "expert"),
    "pp": ("pp", "pipeline"),
}
"""Words in the names of process groups: Megatron's, those of device meshes, and ours."""


def axis_of(group: Group) -> str:
    """Return the axis of a communicator by its name; unnamed one-sided calls are "pp"."""
    words = set(re.split("[^a-z]+", group.name.lower()))
    for axis, known in AXES.items():
        if words & set(known):
            return axis
    if group.collective in ONE_SIDED:
        return "pp"
    return "dp" if group.name == "default_pg" else "other"
