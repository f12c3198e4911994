"""Configurations of the rank map, and what the models compute for each."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

from figgen.__main__ import main
from figgen.errors import InputError
from figgen.models.machine.frameworks import CONVENTIONS
from figgen.models.machine.layout import ParallelLayout, layout, mesh_of
from figgen.models.machine.mesh import coordinate_array
from figgen.models.machine.placement import communicator
from figgen.scenarios.tools.data import layouts

SIZES = ("nodes", "gpus", "tp", "cp", "ep", "etp", "pp", "order")
PRESETS = [{key: found[key] for key in SIZES} | {"dp": None} for found in layouts()]  # type: ignore[literal-required]
State = dict[str, Any]


def laid_out(state: State) -> ParallelLayout:
    sizes = {key: state[key] for key in ("nodes", "tp", "cp", "ep", "etp", "pp", "dp", "order")}
    return layout(**sizes, gpus_per_node=state["gpus"])


def printed(command: str) -> str:
    """Return what the command line prints for the command that the tool offers."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(command.removeprefix("figgen ").split()) == 0
    return out.getvalue()


def shows(parallel: ParallelLayout) -> list[str]:
    names = ["tp", "cp", "ep", "dp", "edp", "pp", "tp-cp", "dp-cp", "etp"]
    hidden = {"ep", "edp", "etp"} if not parallel.has_experts else set()
    hidden |= {"etp"} if parallel.etp == parallel.tp else set()
    return [name for name in names if name not in hidden]


def row(parallel: ParallelLayout, name: str) -> list[Any]:
    found = communicator(parallel, name)
    grid = "dense" if mesh_of(parallel, name) == parallel.dense else "expert"
    low, high = found.nodes_touched_min, found.nodes_touched_max
    inside, between = found.intra_node_links, found.inter_node_links
    level = "none" if found.size == 1 else "inside nodes" if not between else "between nodes"
    if inside and between:
        level = "both"
    span = str(low) if low == high else f"{low}–{high}"
    sizes = [found.group_count, found.size, found.stride, span, level, inside, between]
    return [name, grid, *sizes]


def moved(parallel: ParallelLayout) -> int:
    """Return the ranks whose dense coordinates differ from Megatron's order, computed
    by reshaping."""
    sizes = [getattr(parallel, axis) for axis in ("pp", "dp", "cp", "tp")]
    usual = np.argwhere(np.ones(sizes))[:, ::-1]
    order = [parallel.dense.names.index(axis) for axis in ("tp", "cp", "dp", "pp")]
    here = coordinate_array(parallel.dense)[:, order]
    return int((here != usual).any(axis=1).sum())


def random_states(seed: int, count: int) -> list[State]:
    """Return sizes, half of which fit, on clusters of up to 512 GPUs, in any order."""
    rng = np.random.default_rng(seed)
    orders = [*CONVENTIONS, "pp-dp-tp", "cp-tp-ep-pp-dp", "tp-cp-pp-dp"]
    states = []
    for _ in range(count):
        state: State = {"nodes": int(rng.integers(1, 65)), "gpus": int(rng.choice([1, 2, 4, 8, 6]))}
        state |= {axis: int(2 ** rng.integers(0, 4)) for axis in ("tp", "cp", "ep", "pp")}
        state |= {axis: 1 for axis in ("cp", "ep", "pp") if rng.random() < 0.5}
        state["etp"] = int(2 ** rng.integers(0, 4)) if rng.random() < 0.3 else None
        state["dp"] = int(rng.integers(1, 9)) if rng.random() < 0.1 else None
        state["order"] = str(rng.choice(orders))
        states.append(state)
    return states


def expected(state: State) -> Any:
    try:
        parallel = laid_out(state)
    except InputError as error:
        return {"error": str(error), "nearest": list(error.nearest)}
    return {"rows": [row(parallel, name) for name in shows(parallel)], "moved": moved(parallel)}
