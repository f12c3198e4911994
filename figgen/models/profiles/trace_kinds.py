"""What an event of a profiler's trace is: computing, a collective, a copy, a launch.

Kineto writes kernels of a GPU with their stream, and since PyTorch 2.2 the collective, its
elements, type and group with those of NCCL. On a CPU, gloo marks its own runs and there are no
kernels: operators that compute stand for them.
Source: pytorch/kineto libkineto/src/output_json.cpp; pytorch torch/csrc/distributed/c10d/
ParamCommsUtils.hpp for the arguments of collectives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from figgen.models.step.step_traffic import PASSES

TYPE_BYTES = {
    "float": 4, "double": 8, "half": 2, "bfloat16": 2, "c10::half": 2, "c10::bfloat16": 2,
    "int": 4, "long": 8, "long int": 8, "short": 2, "byte": 1, "unsigned char": 1, "char": 1,
    "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "float16": 2, "float32": 4, "int64": 8,
}  # fmt: skip
KERNELS = ("kernel",)
COPIES = ("gpu_memcpy", "gpu_memset")
LAUNCHES = ("cuda_runtime", "cuda_driver", "hip_runtime")
OURS = ("computing", "communication")
"""Categories of the events that `figgen trace-export` writes."""
MADE_BY = "figgen trace-export"
STEP = "ProfilerStep#"
"""What the name of PyTorch's annotation of a step begins with; its number follows."""

COLLECTIVES = (
    ("sendrecv", "send and recv"), ("reducescatter", "reduce-scatter"),
    ("allreduce", "all-reduce"), ("allgather", "all-gather"), ("alltoall", "all-to-all"),
    ("broadcast", "broadcast"), ("barrier", "barrier"), ("scatter", "scatter"),
    ("gather", "gather"), ("reduce", "reduce"), ("send", "send"), ("recv", "recv"),
)  # fmt: skip
"""What names contain when everything but letters is left out, and what that is; first of all."""

ONE_SIDED = ("send", "recv", "send and recv")


@dataclass(frozen=True, slots=True)
class Group:
    """Calls that belong together: the communicator as the trace names it, and the collective.

    `size` is 0 and `ranks` empty where the trace does not say.
    """

    name: str
    collective: str
    size: int
    ranks: str

    @property
    def factor(self) -> float:
        """Bus bandwidth over what the buffer divided by the time gives; 0 for unknown sizes."""
        if self.collective not in PASSES:
            return 1.0
        return PASSES[self.collective] * (self.size - 1) / self.size if self.size else 0.0


def collective_of(name: str) -> str:
    """The collective that a name of NCCL, gloo or c10d means; empty where it means none."""
    letters = re.sub("[^a-z]", "", name.lower().removeprefix("nccldevkernel"))
    return next((kind for part, kind in COLLECTIVES if part in letters), "")


def is_call(event: Mapping[str, Any]) -> bool:
    """Whether the event is a collective while it runs, and not what asks for one."""
    category, name = event.get("cat"), str(event.get("name", ""))
    if category in KERNELS:
        return "nccl" in name.lower()
    return category == OURS[1] or (category == "user_annotation" and name.startswith("gloo:"))


def is_work(event: Mapping[str, Any]) -> bool:
    """Whether an operator computes on a CPU, rather than calling those that do."""
    name = str(event.get("name", ""))
    wraps = name.startswith(("c10d::", "autograd::", "torch::autograd::", "record_param_comms"))
    return event.get("cat") == "cpu_op" and "::" in name and not wraps


def group_of(event: Mapping[str, Any], header: Mapping[str, Any]) -> Group:
    """The group of a call: its own arguments, or the job's only process group."""
    given = event.get("args")
    args: Mapping[str, Any] = given if isinstance(given, dict) else {}
    kind = collective_of(str(args.get("Collective name", ""))) or collective_of(
        str(event.get("name", ""))
    )
    groups = _groups(header)
    name = str(args.get("Process Group Name", ""))
    known = next((g for g in groups if name and str(g.get("pg_name")) == name), {})
    if not name and "Collective name" not in args and len(groups) == 1:
        known = groups[0]
    described = str(args.get("Process Group Description") or known.get("pg_desc") or name)
    ranks = str(args.get("Process Group Ranks") or known.get("ranks") or "")
    size = args.get("Group size", known.get("pg_size", 0))
    return Group(described, kind or "other", size if isinstance(size, int) else 0, ranks)


def _groups(header: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    job = header.get("distributedInfo")
    found = job.get("pg_config") if isinstance(job, dict) else None
    return [g for g in found if isinstance(g, dict)] if isinstance(found, list) else []


def bytes_of(event: Mapping[str, Any], group: Group) -> float:
    """Bytes of the largest buffer of a rank in a call; 0 where the trace does not say.

    NCCL's events carry elements in and out; gloo's the shape of what goes in, which for an
    all-gather is one part of the buffer.
    """
    given = event.get("args")
    args: Mapping[str, Any] = given if isinstance(given, dict) else {}
    if "buffer bytes" in args:
        return _number(args["buffer bytes"]) * (_number(args.get("calls")) or 1)
    width = TYPE_BYTES.get(str(args.get("dtype", "")).lower(), 0)
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
"""Words in the names of process groups: of Megatron, of device meshes, ours."""


def axis_of(group: Group) -> str:
    """The axis of a communicator by its name; one-sided calls without a telling one are "pp"."""
    words = set(re.split("[^a-z]+", group.name.lower()))
    for axis, known in AXES.items():
        if words & set(known):
            return axis
    if group.collective in ONE_SIDED:
        return "pp"
    return "dp" if group.name == "default_pg" else "other"
