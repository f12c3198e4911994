"""Which layout a figure is about, and which of its GPUs a grid of limited size shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from figgen import catalog
from figgen.errors import InputError
from figgen.models.layout import ParallelLayout, layout
from figgen.models.mesh import IntArray, RankMesh, coordinate_array, group_array

SIZES = ("nodes", "gpus_per_node", "tp", "cp", "pp", "ep", "etp", "dp")
"""What a `sizes:` text may set: the words in which a refusal names what would fit."""

LARGEST_GRID = 512
"""GPUs up to which a grid is drawn whole."""


@dataclass(frozen=True, slots=True)
class Block:
    """The ranks that a grid shows, whole nodes, and how many such blocks make up the world."""

    ranks: IntArray
    multiplicity: int
    words: str


def laid_out(
    preset: str | None = None,
    run: str | None = None,
    sizes: str = "",
    order: str = "megatron",
) -> ParallelLayout:
    """The layout of a map preset, of a published run, or of sizes written "nodes=8 tp=8 …".

    Raises InputError unless exactly one of the three is given, and for sizes that do not fit.
    """
    given = {"preset": preset, "run": run, "sizes": sizes}
    if sum(bool(text) for text in given.values()) != 1:
        names = [name for name, text in given.items() if text]
        raise InputError("a rank map", expected="one of preset, run or sizes", got=names)
    if preset:
        return layout(**_preset_sizes(preset), order=order)
    return layout(**(run_sizes(catalog.run(run)) if run else written_sizes(sizes)), order=order)


def written_sizes(text: str) -> dict[str, int]:
    """Sizes from words such as "nodes=8 gpus_per_node=8 tp=8 pp=4".

    Raises InputError for a word that is not a name of `SIZES` with a whole number, and for a
    text without the size of the cluster.
    """
    found: dict[str, int] = {}
    for word in text.split():
        name, _, size = word.partition("=")
        if name not in SIZES or not size.isdigit():
            expected = f"name=number, the names being {' '.join(SIZES)}"
            raise InputError(f"sizes {text!r}", expected=expected, got=word)
        found[name] = int(size)
    for name in ("nodes", "gpus_per_node"):
        if name not in found:
            raise InputError(f"sizes {text!r}", expected=f"{name}=… among them")
    return found


def run_sizes(run: catalog.Run) -> dict[str, int]:
    """Sizes of a published run on nodes as wide as its accelerator's scale-up domain.

    Raises InputError for a run that does not publish its layout.
    """
    axes = {"tp": run.tp, "cp": run.cp, "pp": run.pp, "dp": run.dp}
    known = {axis: size for axis, size in axes.items() if size is not None}
    width = run.accelerator.scale_up_domain
    if len(known) < len(axes) or run.gpus is None or run.gpus % width:
        raise InputError(f"run {run.name!r}", expected="a published layout on whole nodes")
    return {"nodes": run.gpus // width, "gpus_per_node": width, **known, "ep": run.ep}


def _preset_sizes(name: str) -> dict[str, int]:
    found = catalog.map_preset(name)
    return {size: getattr(found, size) for size in SIZES}


def whole_world(parallel: ParallelLayout) -> Block:
    """Every rank."""
    world = parallel.world_size
    return Block(np.arange(world), 1, f"all {world:,} GPUs")


def block_of(parallel: ParallelLayout, most: int = LARGEST_GRID) -> Block:
    """All ranks of a small world; of a large one the nodes of one model replica, or of less.

    Raises InputError when no part of the layout up to `most` GPUs repeats over the nodes.
    """
    world = parallel.world_size
    if world <= most:
        return whole_world(parallel)
    choices = (
        (("tp", "cp", "pp"), "one model replica", "model replicas"),
        (("tp", "pp"), "one pipeline", "pipelines"),
        (("tp", "cp"), "one pipeline stage of one replica", "pipeline stages"),
        (("tp",), "one tensor-parallel group", "tensor-parallel groups"),
    )
    for axes, one, several in choices:
        found = _repeating(parallel, axes, most)
        if found is not None:
            nodes = len(found.ranks) // parallel.gpus_per_node
            held = len(found.ranks) // group_array(parallel.dense, axes).shape[1]
            what = one if held == 1 else f"{held} {several}"
            return Block(found.ranks, found.multiplicity, f"{what} on {nodes} nodes")
    raise InputError("a grid of this layout", expected=f"at most {most} GPUs", got=world)


def _repeating(parallel: ParallelLayout, axes: tuple[str, ...], most: int) -> Block | None:
    """The nodes of the first group along `axes`, if such sets of nodes tile the cluster."""
    width = parallel.gpus_per_node
    rows = group_array(parallel.dense, axes)
    sets = {tuple(sorted(set(row))) for row in (rows // width).tolist()}
    size = max(map(len, sets))
    if size * width > most or any(len(nodes) != size for nodes in sets):
        return None
    if len(sets) * size != parallel.nodes:
        return None
    first = np.array(min(sets))
    ranks = (first[:, None] * width + np.arange(width)).ravel()
    return Block(ranks, len(sets), "")


def coordinates(parallel: ParallelLayout, ranks: IntArray) -> tuple[tuple[str, ...], IntArray]:
    """Names of all axes of both meshes, each once, and the ranks' indices along them."""
    axes: tuple[str, ...] = ("tp", "cp", "dp", "pp")
    points = _columns(parallel.dense, axes, ranks)
    if not parallel.has_experts:
        return axes, points
    own = ("etp", "ep", "edp")
    return (*axes, *own), np.hstack([points, _columns(parallel.expert, own, ranks)])


def _columns(mesh: RankMesh, axes: tuple[str, ...], ranks: IntArray) -> IntArray:
    return coordinate_array(mesh, ranks)[:, [mesh.names.index(axis) for axis in axes]]
