"""Rank orders of frameworks side by side, and refused layouts with their nearest fits."""

from __future__ import annotations

import numpy as np

from figgen.charts import Column, Named, Table
from figgen.errors import InputError
from figgen.models.machine.frameworks import CONVENTIONS
from figgen.models.machine.mesh import groups
from figgen.models.machine.placement import warnings
from figgen.plotting.blocks import coordinates
from figgen.plotting.words import identifier, ranks_words
from figgen.registry import figure
from figgen.scenarios.options.resolve import parallel_layout
from figgen.scenarios.options.written import written_layout, written_sizes


@figure("framework-orders")
def framework_orders(*, sizes: str, orders: tuple[str, ...] = ()) -> Table:
    """One layout in the rank order of every framework, and how many ranks move from Megatron's.

    A rank has moved if its dense coordinates, and so its shard, differ.
    """
    names = orders or tuple(CONVENTIONS)
    usual_layout = written_layout(sizes=sizes)
    world = np.arange(usual_layout.world_size)
    usual = coordinates(usual_layout, world)[1][:, :4]
    rows = []
    values = {"world_size": Named(len(world))}
    for name in names:
        parallel = written_layout(sizes=sizes, order=name)
        here = coordinates(parallel, world)[1][:, :4]
        moved = int((here != usual).any(axis=1).sum())
        first = {axis: ranks_words(groups(parallel.dense, axis)[0]) for axis in ("dp", "pp")}
        known = parallel.convention
        rows.append((known.label, " ".join(known.order), first["dp"], first["pp"], moved))
        values[f"{identifier(name)}_moved"] = Named(moved)
    heads = ("framework", "order, fastest first", "DP group of rank 0", "PP group of rank 0")
    return Table(
        columns=(*(Column(label=head) for head in heads), Column(label="ranks moved")),
        rows=tuple(rows),
        values=values,
    )


@figure("layout-checks")
def layout_checks(*, asked: tuple[str, ...]) -> Table:
    """Layouts that do not fit, with reasons and the nearest sizes, and layouts that are slow.

    Each text holds sizes as in a `sizes:` field, optionally followed by `order=NAME`. Raises
    InputError for sizes that fit without a warning.
    """
    rows = tuple(_verdict(text) for text in asked)
    heads = ("asked for", "verdict", "because", "nearest that fit")
    return Table(
        columns=tuple(Column(label=head) for head in heads),
        rows=rows,
        values={
            "rows": Named(len(rows)),
            "refused": Named(sum(row[1] == "refused" for row in rows)),
        },
    )


def _verdict(text: str) -> tuple[str, str, str, str]:
    sizes, _, order = text.partition(" order=")
    try:
        parallel = parallel_layout(**written_sizes(sizes), order=order or None)
    except InputError as error:
        got = "" if error.got is None else f", got {error.got}"
        reason = f"{error.what}: expected {error.expected}{got}"
        return text, "refused", reason, " or ".join(error.nearest)
    found = warnings(parallel)
    if not found:
        raise InputError(
            f"layout {text!r}", expected="one that is refused or warned of", key="asked"
        )
    return text, "fits, but slow", "; ".join(found), ""
