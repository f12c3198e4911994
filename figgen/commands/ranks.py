"""ranks: where each rank runs, and which ranks communicate with each other."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TypeAlias

from figgen.commands import Answer, Verbs, add_verb
from figgen.commands.training import add_options, hosts_lines, scenario_of
from figgen.errors import InputError
from figgen.models.machine.layout import ParallelLayout, mesh_of
from figgen.models.machine.mesh import group_array, groups
from figgen.models.machine.placement import (
    LABELS,
    Communicator,
    communicator,
    inter_node_links,
    warnings,
)
from figgen.models.machine.placement_words import placement_sentence
from figgen.scenarios.options.resolve import hosts_apart, resolve_layout
from figgen.scenarios.taking.hosts import (
    Hosts,
    differences,
    host_names,
    read_hosts,
    write_hosts,
)
from figgen.scenarios.taking.options import read_text

DENSE = ("tp", "cp", "dp", "pp")
EXPERT = ("etp", "ep", "edp", "pp")

Groups: TypeAlias = "dict[str, dict[str, tuple[tuple[int, ...], ...]]]"
"""Groups of ranks by mesh and by axes."""


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "ranks",
        _ranks,
        "show the process groups of a layout, and what crosses nodes",
        "--nodes 2 --gpus-per-node 8 --tp 2 --pp 4",
        "--nodes 32 --gpus-per-node 8 --tp 8 --pp 2 --ep 8 --etp 1 --json",
        "--nodes 8 --gpus-per-node 8 --tp 8 --cp 2 --groups dp-cp,pp",
        "--preset llama-3-405b-131k --groups tp,cp",
        "--nodes 2 --gpus-per-node 8 --tp 8 --hosts hostfile",
        "--nodes 2 --gpus-per-node 8 --tp 8 --order tp-pp-dp --file rankfile",
    )
    add_options(parser, "layout")
    parser.add_argument(
        "--groups", help="process groups to print, such as tp,ep,dp-cp; dp-cp is DP and CP together"
    )
    parser.add_argument(
        "--hosts",
        metavar="FILE",
        help="a hostfile, a rankfile, `scontrol show hostnames`, or ranks that NCCL, Slurm or "
        "torch printed: say what differs from the layout",
    )
    parser.add_argument(
        "--file",
        choices=("hostfile", "rankfile"),
        help="print this file of Open MPI for the layout, with the names of --hosts",
    )


def _ranks(options: argparse.Namespace) -> Answer:
    asked = scenario_of(options)
    parallel, said = resolve_layout(asked), hosts_apart(asked)
    hosts = _hosts_of(options.hosts) if options.hosts else None
    if options.file:
        text, note = write_hosts(options.file, parallel, host_names(parallel, hosts))
        return Answer({"file": options.file, "text": text, "note": note}, text)
    names = _names(parallel, options.groups)
    found = _groups(parallel, names)
    crossings = {name: communicator(parallel, name) for name in names}
    data = {
        "world_size": parallel.world_size,
        "sizes": _sizes(parallel),
        **found,
        "crossings": {name: _crossing(parallel, c) for name, c in crossings.items()},
        "warnings": [*warnings(parallel), *hosts_lines(said)],
    }
    told = [f"warning: {text}" for text in hosts_lines(said)]
    text = "\n".join([_text(parallel, found, crossings), *told])
    if hosts is None:
        return Answer(data, text)
    differing = differences(parallel, hosts)
    data["hosts"] = {"kind": hosts.kind, "names": hosts.names, **asdict(differing)}
    lines = differing.sentences or ["everything in the text agrees with the layout"]
    return Answer(data, "\n".join([text, *(f"{options.hosts}: {line}" for line in lines)]))


def _hosts_of(path: str) -> Hosts:
    hosts = read_hosts(read_text(path))
    if hosts is None:
        raise InputError(f"file {path!r}", expected="hosts, or ranks with their places", got="none")
    return hosts


def _names(parallel: ParallelLayout, asked: str | None) -> list[str]:
    """Return the requested communicators, or all those of the layout."""
    if asked is not None:
        return [name.strip() for name in asked.split(",")]
    return [name for name in LABELS if parallel.has_experts or name not in EXPERT[:3]]


def _groups(parallel: ParallelLayout, names: list[str]) -> Groups:
    """Return the groups by mesh; pp is in both meshes, and several axes together are `combined`."""
    found: Groups = {"dense": {}, "expert": {}, "combined": {}}
    for name in names:
        members = groups(mesh_of(parallel, name), name)
        if name not in (*DENSE, *EXPERT):
            found["combined"][name] = members
        if name in DENSE:
            found["dense"][name] = members
        if name in EXPERT and parallel.has_experts:
            found["expert"][name] = groups(parallel.expert, name)
    return found


def _crossing(parallel: ParallelLayout, summary: Communicator) -> dict[str, object]:
    """Return the summary, and how many ring links of each group, in order, cross between nodes."""
    rows = group_array(mesh_of(parallel, summary.name), summary.name)
    links = inter_node_links(rows, parallel.gpus_per_node).tolist()
    return asdict(summary) | {"inter_node_links_by_group": links}


def _sizes(parallel: ParallelLayout) -> dict[str, int]:
    names = ("tp", "cp", "dp", "pp", *(("ep", "etp", "edp") if parallel.has_experts else ()))
    return {name: getattr(parallel, name) for name in names}


def _text(parallel: ParallelLayout, found: Groups, crossings: dict[str, Communicator]) -> str:
    sizes = " ".join(f"{name}={size}" for name, size in _sizes(parallel).items())
    lines = [placement_sentence(parallel), f"{parallel.world_size} ranks: {sizes}"]
    for grid, named in found.items():
        for name, members in named.items():
            few = " ".join(str(list(group)) for group in members[:4])
            more = f" … {len(members)} groups" if len(members) > 4 else ""
            lines.append(f"{grid} {name}: {few}{more}")
    for name, c in crossings.items():
        lines.append(
            f"{name}: {c.crossing_groups} of {c.group_count} groups cross nodes, "
            f"{c.inter_node_links} of {c.inter_node_links + c.intra_node_links} ring links"
        )
    return "\n".join([*lines, *(f"warning: {text}" for text in warnings(parallel))])
