"""A parallel configuration on a cluster: sizes, rank order, and the two meshes they make."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.errors import InputError, check_size
from figgen.models.machine.frameworks import (
    EXPERT_NAMES,
    Convention,
    convention,
    full_order,
)
from figgen.models.machine.mesh import RankMesh, axis_names
from figgen.models.machine.nearest import Sizes, expert_tp, nearest_valid, problem

MOST_RANKS = 2**20
"""The largest supported world; a larger one is a typo, and would fill the memory."""


def context_in_node(cp: int, tp: int, gpus_per_node: int) -> int:
    """Return how many of `cp` context-parallel ranks fit in a node if each takes `tp` GPUs."""
    return max(1, min(cp, gpus_per_node // tp))


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelLayout:
    """Sizes of every parallel axis on `nodes` × `gpus_per_node` GPUs, in a rank order.

    Dense layers use TP·CP·DP·PP ranks, expert layers the same ranks as ETP·EP·EDP·PP; EP is not a
    factor of the world size. DP and EDP follow from the other sizes. `layout` builds one from
    defaults. Raises InputError, with the nearest valid sizes, if the sizes do not divide the world.
    """

    nodes: int
    gpus_per_node: int
    tp: int
    cp: int
    pp: int
    ep: int
    etp: int
    order: str

    def __post_init__(self) -> None:
        for name in ("nodes", "gpus_per_node", "tp", "cp", "pp", "ep", "etp"):
            _check_axis(name, getattr(self, name))
        sizes = Sizes(tp=self.tp, cp=self.cp, pp=self.pp, ep=self.ep, etp=self.etp)
        _check_fit(self.nodes, self.gpus_per_node, sizes, self.convention)

    @property
    def convention(self) -> Convention:
        """The rank order with its framework and source."""
        return convention(self.order)

    @property
    def world_size(self) -> int:
        """Number of GPUs, one rank each."""
        return self.nodes * self.gpus_per_node

    @property
    def dp(self) -> int:
        """Data-parallel size of dense layers, W / (TP·CP·PP)."""
        return self.world_size // (self.tp * self.cp * self.pp)

    @property
    def edp(self) -> int:
        """Data-parallel size of expert layers, W / (ETP·EP·PP)."""
        return self.world_size // (self.etp * self.ep * self.pp)

    @property
    def has_experts(self) -> bool:
        """Whether the rank order has an expert mesh."""
        return "ep" in self.convention.order

    @property
    def context_in_node(self) -> int:
        """The number of context-parallel ranks that share a node."""
        return context_in_node(self.cp, self.tp, self.gpus_per_node)

    @property
    def dense(self) -> RankMesh:
        """The mesh of dense layers: axes tp, cp, dp, pp, fastest first in the rank order."""
        sizes = {"tp": self.tp, "cp": self.cp, "dp": self.dp, "pp": self.pp}
        order = full_order(self.convention.order)
        return RankMesh(tuple((axis, sizes[axis]) for axis in order if axis in sizes))

    @property
    def expert(self) -> RankMesh:
        """The mesh of expert layers: axes etp, ep, edp, pp, fastest first in the rank order.

        Raises InputError for a rank order without "ep", which lays out no experts.
        """
        if not self.has_experts:
            raise InputError(
                f"order {self.order!r} lays out no experts", expected="ep in it", key="order"
            )
        sizes = {"etp": self.etp, "ep": self.ep, "edp": self.edp, "pp": self.pp}
        order = (EXPERT_NAMES[axis] for axis in full_order(self.convention.order) if axis != "cp")
        return RankMesh(tuple((axis, sizes[axis]) for axis in order))


def layout(
    *,
    nodes: int,
    gpus_per_node: int,
    tp: int = 1,
    cp: int = 1,
    pp: int = 1,
    ep: int = 1,
    etp: int | None = None,
    dp: int | None = None,
    order: str = "megatron",
) -> ParallelLayout:
    """Return a configuration, deriving everything that is not given.

    `order` is a name of `CONVENTIONS` or an order string, fastest axis first ("tp-cp-dp-pp"). `etp`
    defaults to the framework's value (TP for Megatron, 1 for torchtitan). `dp` is never needed; if
    given, it is checked. Raises InputError with the reason and the nearest configurations that fit.
    """
    given = {"nodes": nodes, "gpus_per_node": gpus_per_node, "tp": tp, "cp": cp, "pp": pp, "ep": ep}
    derived = {name: size for name, size in (("etp", etp), ("dp", dp)) if size is not None}
    for name, size in (given | derived).items():
        _check_axis(name, size)
    sizes = Sizes(tp=tp, cp=cp, pp=pp, ep=ep, etp=etp, dp=dp)
    chosen = convention(order)
    _check_fit(nodes, gpus_per_node, sizes, chosen)
    return ParallelLayout(
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        tp=tp,
        cp=cp,
        pp=pp,
        ep=ep,
        etp=expert_tp(sizes, chosen),
        order=order,
    )


def mesh_of(parallel: ParallelLayout, axes: str | tuple[str, ...]) -> RankMesh:
    """Return the mesh, dense or expert, on which `axes` ("tp", "dp-cp", "etp-ep" …) are defined.

    Raises InputError if the axes are not all on one mesh.
    """
    names = axis_names(axes)
    if set(names) <= set(parallel.dense.names):
        return parallel.dense
    if not set(names) <= set(EXPERT_NAMES.values()):
        raise InputError(
            "axes of a communicator",
            expected="axes of the dense mesh (tp cp dp pp) or of the expert mesh (etp ep edp pp)",
            got="-".join(names),
            key="communicators",
        )
    return parallel.expert


def _check_axis(name: str, size: object) -> None:
    if check_size(name, size) > MOST_RANKS:
        raise InputError(name, expected=f"at most {MOST_RANKS:,}", got=size)


def _check_fit(nodes: int, gpus_per_node: int, sizes: Sizes, chosen: Convention) -> None:
    if nodes * gpus_per_node > MOST_RANKS:
        raise InputError(
            "nodes × GPUs per node",
            expected=f"at most {MOST_RANKS:,}",
            got=nodes * gpus_per_node,
            key="nodes",
        )
    found = problem(nodes * gpus_per_node, sizes, chosen)
    if found is not None:
        near = nearest_valid(nodes, gpus_per_node, sizes, chosen)
        raise InputError(found.what, expected=found.expected, got=found.got, nearest=near)
