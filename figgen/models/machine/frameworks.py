"""Rank orders by the name of the framework that uses them.

An order lists the axes fastest first. It is read twice: without "ep" it orders the dense mesh
(TP, CP, DP, PP), without "cp" the expert mesh (ETP, EP, EDP, PP), both over the same ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from figgen.errors import InputError, unknown

AXES = ("tp", "cp", "ep", "dp", "pp")
"""The axes that an order may name, in Megatron's default order."""

EXPERT_NAMES = {"tp": "etp", "ep": "ep", "dp": "edp", "pp": "pp"}
"""Names of an order's axes on the expert mesh."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """How a framework orders ranks.

    `order` is fastest axis first; an axis that is left out must have size 1, and an order without
    "ep" has no expert mesh. `etp` is the framework's expert tensor-parallel size if none is given:
    "tp" (the same) or 1. With `etp_fixed` it accepts no other.
    """

    name: str
    label: str
    order: tuple[str, ...]
    etp: Literal["tp", 1]
    etp_fixed: bool
    source: str


_ALL = (
    Convention(
        name="megatron",
        label="Megatron-Core",
        order=("tp", "cp", "ep", "dp", "pp"),
        etp="tp",
        etp_fixed=False,
        source="NVIDIA/Megatron-LM@d98e8a64 megatron/core/parallel_state.py",
    ),
    Convention(
        name="megatron-tp-pp-dp",
        label="Megatron-Core with --use-tp-pp-dp-mapping",
        order=("tp", "cp", "ep", "pp", "dp"),
        etp="tp",
        etp_fixed=False,
        source="NVIDIA/Megatron-LM@d98e8a64 megatron/training/initialize.py",
    ),
    Convention(
        name="llama3",
        label="Llama 3",
        order=("tp", "cp", "pp", "dp"),
        etp="tp",
        etp_fixed=True,
        source="The Llama 3 Herd of Models, arXiv:2407.21783, §3.3.2 and figure 5",
    ),
    Convention(
        name="torchtitan",
        label="torchtitan",
        order=("tp", "cp", "ep", "dp", "pp"),
        etp=1,
        etp_fixed=True,
        source="pytorch/torchtitan@b5bcd76c torchtitan/distributed/parallel_dims.py",
    ),
    Convention(
        name="deepspeed",
        label="DeepSpeed pipeline topology",
        order=("tp", "ep", "dp", "pp"),
        etp=1,
        etp_fixed=False,
        source="deepspeedai/DeepSpeed@edaa7221 deepspeed/runtime/pipe/topology.py "
        "(pipe, data, model; slowest first), deepspeed/utils/groups.py (experts) and "
        "deepspeed/moe/layer.py (enable_expert_tensor_parallelism is off by default)",
    ),
    Convention(
        name="nanotron",
        label="nanotron",
        order=("tp", "cp", "dp", "pp"),
        etp="tp",
        etp_fixed=True,
        source="huggingface/nanotron@2411b022 src/nanotron/parallel/context.py",
    ),
    Convention(
        name="nanotron-moe",
        label="nanotron with experts",
        order=("tp", "cp", "ep", "pp", "dp"),
        etp=1,
        etp_fixed=False,
        source="huggingface/nanotron@009b8f71 src/nanotron/parallel/context.py, enabled_moe=True",
    ),
)

CONVENTIONS: dict[str, Convention] = {convention.name: convention for convention in _ALL}


def convention(order: str) -> Convention:
    """Return the convention called `order`, or one parsed from a string such as "tp-cp-dp-pp".

    Raises InputError for an unknown name, an unknown axis, or an axis named twice.
    """
    if order in CONVENTIONS:
        return CONVENTIONS[order]
    axes = tuple(order.split("-"))
    if len(axes) < 2 or not any(axis in AXES for axis in axes):
        raise unknown("rank order", order, CONVENTIONS)
    for axis in axes:
        if axis not in AXES:
            raise unknown("axis of a rank order", axis, AXES)
    if len(set(axes)) != len(axes):
        raise InputError(f"rank order {order!r}", expected="each axis once", key="order")
    return Convention(
        name=order, label=order, order=axes, etp="tp", etp_fixed=False, source="given by the author"
    )


def full_order(order: tuple[str, ...]) -> tuple[str, ...]:
    """Return `order` with the axes that it leaves out (all of size 1) appended as slowest."""
    return order + tuple(axis for axis in AXES if axis not in order)
