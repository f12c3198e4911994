"""The rank mesh: global ranks as points on a grid of parallel axes, and their groups.

A mesh is one array, `arange(world)` reshaped to the axis sizes; every group of every axis is that
array with the axis moved last. This gives the same groups in the same order as the prefix products
of Megatron's `RankGenerator` (NVIDIA/Megatron-LM@d98e8a64 megatron/core/parallel_state.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from figgen.errors import InputError, check_size, unknown

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RankMesh:
    """An ordered set of named axes over the ranks 0 … world − 1, fastest axis first.

    `axes` is a tuple of (name, size); along the first axis neighbors are consecutive ranks.
    Raises InputError on an empty mesh, a repeated name, or a size that is not an integer ≥ 1.
    """

    axes: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        if not self.axes:
            raise InputError("a rank mesh", expected="at least one axis", got=self.axes)
        for name, size in self.axes:
            check_size(name, size)
        if len(set(self.names)) != len(self.axes):
            raise InputError("axes of a rank mesh", expected="each name once", got=self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """Axis names, fastest first."""
        return tuple(name for name, _ in self.axes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Axis sizes, fastest first."""
        return tuple(size for _, size in self.axes)

    @property
    def world_size(self) -> int:
        """Number of ranks, the product of all sizes."""
        return math.prod(self.sizes)


def axis_size(mesh: RankMesh, axis: str) -> int:
    """Size of one axis. Raises InputError for an axis that the mesh does not have."""
    return mesh.sizes[_position(mesh, axis)]


def axis_stride(mesh: RankMesh, axis: str) -> int:
    """Distance in rank between neighbors along `axis`: the product of all faster sizes."""
    return math.prod(mesh.sizes[: _position(mesh, axis)])


def rank_of(mesh: RankMesh, coordinates: Mapping[str, int]) -> int:
    """Global rank at `coordinates`, one index from 0 per axis; an axis of size 1 may be left out.

    Raises InputError for an unknown axis, a missing one, or an index outside its axis.
    """
    for name in coordinates:
        _position(mesh, name)
    rank, stride = 0, 1
    for name, size in mesh.axes:
        if name not in coordinates and size > 1:
            raise InputError(f"coordinates without {name!r}", expected=f"{name}=0 … {size - 1}")
        index = coordinates.get(name, 0)
        if not 0 <= index < size:
            raise InputError(f"coordinate {name!r}", expected=f"0 … {size - 1}", got=index)
        rank += index * stride
        stride *= size
    return rank


def coordinates_of(mesh: RankMesh, rank: int) -> dict[str, int]:
    """Coordinates of `rank`, axis name to index, fastest axis first; the inverse of `rank_of`."""
    if not 0 <= rank < mesh.world_size:
        raise InputError("rank", expected=f"0 … {mesh.world_size - 1}", got=rank)
    coordinates: dict[str, int] = {}
    for name, size in mesh.axes:
        coordinates[name] = rank % size
        rank //= size
    return coordinates


def coordinate_array(mesh: RankMesh, ranks: ArrayLike | None = None) -> IntArray:
    """Coordinates of many ranks (all of them by default), shape (ranks, axes), in mesh order."""
    given = np.arange(mesh.world_size) if ranks is None else np.asarray(ranks, dtype=np.int64)
    outside = given[(given < 0) | (given >= mesh.world_size)]
    if outside.size:
        raise InputError("ranks", expected=f"0 … {mesh.world_size - 1}", got=int(outside.flat[0]))
    slowest_first = np.unravel_index(given, mesh.sizes[::-1])
    return np.stack(slowest_first[::-1], axis=-1).astype(np.int64)


def group_offsets(mesh: RankMesh, axes: str | Sequence[str]) -> tuple[int, ...]:
    """The group of rank 0 along one axis or several together, ascending.

    Every other group is this one moved to its own first rank.
    """
    inner = axis_names(axes)
    for name in inner:
        _position(mesh, name)
    return _grid(mesh, [name for name in mesh.names if name in inner])


def group_starts(mesh: RankMesh, axes: str | Sequence[str]) -> tuple[int, ...]:
    """The first rank of every group along `axes`, ascending."""
    inner = axis_names(axes)
    return _grid(mesh, [name for name in mesh.names if name not in inner])


def _grid(mesh: RankMesh, names: Sequence[str]) -> tuple[int, ...]:
    """Return the ranks with coordinate 0 on all axes except `names`, in the mesh's order."""
    ranks = [0]
    for name in names:
        stride = axis_stride(mesh, name)
        ranks = [at * stride + rank for at in range(axis_size(mesh, name)) for rank in ranks]
    return tuple(ranks)


def group_array(mesh: RankMesh, axes: str | Sequence[str]) -> IntArray:
    """Groups along one axis or several together, shape (groups, ranks per group).

    `axes` is a name ("tp"), names joined by hyphens ("dp-cp") or a sequence of names; their order
    does not matter. Two ranks share a group when all other coordinates are equal. Rows are sorted
    by their first rank and ranks ascend inside a row, which is Megatron's order.
    """
    offsets, starts = group_offsets(mesh, axes), group_starts(mesh, axes)
    return np.add.outer(np.array(starts, dtype=np.int64), np.array(offsets, dtype=np.int64))


def groups(mesh: RankMesh, axes: str | Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The rows of `group_array` as tuples of ranks."""
    return tuple(map(tuple, group_array(mesh, axes).tolist()))


def group_index(mesh: RankMesh, axes: str | Sequence[str]) -> IntArray:
    """For every rank the row of `group_array` that it is in, shape (world,)."""
    rows = group_array(mesh, axes)
    index = np.empty(mesh.world_size, dtype=np.int64)
    index[rows] = np.arange(len(rows))[:, None]
    return index


def axis_names(axes: str | Sequence[str]) -> tuple[str, ...]:
    """Axis names from "dp-cp" or a sequence; raises InputError if none or one of them twice."""
    names = tuple(axes.split("-")) if isinstance(axes, str) else tuple(axes)
    if not names or len(set(names)) != len(names):
        raise InputError("axes of a group", expected="one or more, each once", got=axes)
    return names


def _position(mesh: RankMesh, axis: str) -> int:
    if axis not in mesh.names:
        raise unknown("axis", axis, mesh.names)
    return mesh.names.index(axis)
