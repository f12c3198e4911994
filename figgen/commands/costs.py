"""cost: how long a collective takes, by the textbook and by NCCL's own reckoning."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, TypeAlias

from figgen.catalog import link, load, nccl_tuning
from figgen.catalog.nccl_links import nccl_group, step_latency_s
from figgen.commands import Answer, add_verb
from figgen.commands.collectives import (
    add_collective,
    algorithm_of,
    ranks_per_node,
    trace_options,
)
from figgen.commands.quantities import quantity
from figgen.errors import InputError, unknown
from figgen.formulas import evaluate, worked
from figgen.models.collectives import MOST_RANKS, synchronous_time_s, trace
from figgen.models.collectives.closed_forms import CLOSED_FORMS, LIMITS
from figgen.models.machine.nccl_tuning import predictions
from figgen.units import format_quantity, parse_quantity

if TYPE_CHECKING:
    from figgen.commands import Verbs

AlphaBeta: TypeAlias = tuple[float, float]
"""Latency of a step in s, and bandwidth of one direction in B/s."""

NCCL_ALGORITHMS = {"ring": "ring", "chain": "ring", "double-binary-tree": "tree"}
"""Name of a trace → what NCCL calls the algorithm."""


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "cost",
        _cost,
        "the time of a collective under the α–β model, or under NCCL's",
        "all-reduce --algorithm ring --ranks 8 --bytes '1 GB' --link nvlink4",
        "all-reduce --algorithm ring --ranks 8 --bytes '1 GB' --link '450 GB/s' --latency '1 µs'",
        "all-reduce --algorithm hierarchical --ranks 64 --bytes 1e9 --link nvlink4 "
        "--network ib-ndr",
        "all-reduce --algorithm double-binary-tree --ranks 8 --bytes '1 MB' --link nvlink4 "
        "--model nccl",
    )
    add_collective(parser, 10**9)
    parser.add_argument("--bytes", required=True, help="largest per-rank buffer, such as '1 GB'")
    parser.add_argument("--link", required=True, help="a link of the catalog, or '450 GB/s'")
    parser.add_argument("--latency", help="per step; the link's own, or else NCCL's, when left out")
    parser.add_argument("--network", help="the link between nodes, where there are two levels")
    parser.add_argument("--network-latency", help="per step between nodes")
    parser.add_argument("--model", choices=("textbook", "nccl"), default="textbook")


def _cost(options: argparse.Namespace) -> Answer:
    name = algorithm_of(options.collective, options.algorithm)
    size = quantity(options.bytes, "B", "--bytes")
    if options.model == "nccl":
        return _by_nccl(options, name, size)
    near = _link(options.link, options.latency, "--latency")
    if name.startswith("hierarchical"):
        return _by_formula(options, name, size, _two_levels(options, near))
    single = {"latency_s": near[0], "bandwidth_bytes_per_s": near[1], "ranks": options.ranks}
    if (options.collective, name) not in CLOSED_FORMS:
        return _by_trace(options, name, size, near)
    if name == "chain":
        single["segments"] = options.segments or 4
    return _by_formula(options, name, size, single)


def _by_formula(
    options: argparse.Namespace, name: str, size: float, arguments: dict[str, float]
) -> Answer:
    key = options.collective, name
    evaluation = evaluate(CLOSED_FORMS[key], message_bytes=size, **arguments)
    line, source = worked(evaluation, "time"), evaluation.formula.source
    data = {
        "model": "textbook",
        "time_s": evaluation.value,
        "formula": evaluation.formula.name,
        "worked": line.text,
        "source": source,
        "assumes": LIMITS.get(key, ""),
    }
    lines = [line.result, line.text, f"source: {source}"]
    if key in LIMITS:
        lines.append(f"assumes: {LIMITS[key]}")
    return Answer(data, "\n".join(lines))


def _by_trace(options: argparse.Namespace, name: str, size: float, near: AlphaBeta) -> Answer:
    if options.ranks > MOST_RANKS:
        raise InputError(
            f"{name} {options.collective} has no formula and is traced",
            expected=f"at most {MOST_RANKS} ranks",
            got=options.ranks,
        )
    found = trace(options.collective, name, options.ranks, **trace_options(options, name))
    time_s = synchronous_time_s(found, size, *near)
    source = f"the trace, {len(found.steps)} steps one after the other"
    data = {"model": "textbook", "time_s": time_s, "formula": None, "worked": ""}
    shown = format_quantity(time_s, "s", "time")
    return Answer({**data, "source": source, "assumes": ""}, f"{shown}\nsource: {source}")


def _nodes(options: argparse.Namespace) -> tuple[int, int]:
    """Nodes, and ranks on each of them."""
    width = ranks_per_node(options)
    nodes, rest = divmod(options.ranks, width)
    if rest:
        raise InputError("ranks", expected=f"a multiple of {width} per node", got=options.ranks)
    return nodes, width


def _two_levels(options: argparse.Namespace, near: AlphaBeta) -> dict[str, float]:
    nodes, width = _nodes(options)
    if options.network is None:
        raise InputError("a hierarchical algorithm has two links", expected="--network LINK")
    far = _link(options.network, options.network_latency, "--network-latency")
    return {
        "gpus_per_node": width,
        "nodes": nodes,
        "intra_latency_s": near[0],
        "intra_bandwidth_bytes_per_s": near[1],
        "inter_latency_s": far[0],
        "inter_bandwidth_bytes_per_s": far[1],
    }


def _by_nccl(options: argparse.Namespace, name: str, size: float) -> Answer:
    if name not in NCCL_ALGORITHMS:
        raise unknown("algorithm that NCCL's model knows", name, NCCL_ALGORITHMS)
    nodes, _ = _nodes(options) if options.network else (1, options.ranks)
    far = link(options.network or "ib-ndr")
    group = nccl_group(link(options.link), options.ranks, nodes, far)
    found = predictions(nccl_tuning().constants, group, options.collective, size)
    mine = [p for p in found if p.algorithm == NCCL_ALGORITHMS[name]]
    if not mine:
        known = dict.fromkeys(p.algorithm for p in found)
        raise unknown(f"NCCL algorithm for {options.collective}", options.algorithm, known)
    data = {
        "model": "nccl",
        "time_s": mine[0].time_s,
        "algorithm": mine[0].algorithm,
        "protocol": mine[0].protocol,
        "predictions": [
            {"algorithm": p.algorithm, "protocol": p.protocol, "time_s": p.time_s} for p in found
        ],
        "source": "NCCL 2.30.7, src/graph/tuning.cc",
    }
    lines = [f"{format_quantity(mine[0].time_s, 's', 'time')} with {mine[0].protocol}"]
    lines += [
        f"{p.algorithm} {p.protocol}: {format_quantity(p.time_s, 's', 'time')}" for p in found
    ]
    return Answer(data, "\n".join([*lines, f"source: {data['source']}"]))


def _link(text: str, latency: str | None, option: str) -> AlphaBeta:
    """Latency and bandwidth of a catalogued link, or of one written as `450 GB/s`."""
    given = None if latency is None else quantity(latency, "s", option)
    if text not in load.links.names() and text[:1].isdigit():
        if given is None:
            raise InputError("a bandwidth alone has no latency", expected=f"{option} TIME")
        return given, parse_quantity(text, "B/s").value
    entry = link(text)
    if given is None and entry.kind == "host":
        raise InputError(f"link {text!r} has no latency of a step", expected=f"{option} TIME")
    return step_latency_s(entry) if given is None else given, entry.bandwidth_bytes_per_s
