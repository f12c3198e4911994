"""cost: how long a collective takes, by textbook formulas and by NCCL's own cost model."""

from __future__ import annotations

import argparse
import inspect
from dataclasses import replace
from typing import TypeAlias

from figgen.catalog import link, load, nccl_tuning
from figgen.catalog.nccl_links import message_gap, nccl_group, step_latency_s
from figgen.commands import Answer, Verbs, add_verb
from figgen.commands.collectives import (
    add_collective,
    algorithm_of,
    ranks_per_node,
    trace_options,
)
from figgen.commands.quantities import rate_per_rank
from figgen.errors import InputError, unknown
from figgen.formulas import evaluate, worked
from figgen.models.collectives import MOST_RANKS, TRACES, synchronous_time_s, trace
from figgen.models.collectives.closed_forms import CLOSED_FORMS, LIMITS
from figgen.models.collectives.two_levels import (
    TwoLevels,
    posted_all_to_all_time_s,
    ring_time_s,
)
from figgen.models.machine.nccl_tuning import predictions
from figgen.scenarios.options.typed import typed_measure
from figgen.units import format_quantity

AlphaBeta: TypeAlias = tuple[float, float]
"""Latency of a step in s, and bandwidth per direction in B/s."""

NCCL_ALGORITHMS = {"ring": "ring", "chain": "ring", "double-binary-tree": "tree"}
"""NCCL's name for each algorithm that has a trace."""

POSTED = "posted"
"""The all-to-all that posts all of its messages at once, as NCCL's does.

Its messages have no order, so it has no trace.
"""

CROSSING = (POSTED, "ring", "pairwise")
"""Single-level algorithms whose cost across nodes is computed too."""

LAPS = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1}
"""How many times a ring passes every chunk around."""


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "cost",
        _cost,
        "compute the time of a collective by the α–β model or by NCCL's",
        "all-reduce --algorithm ring --ranks 8 --bytes '1 GB' --link nvlink4",
        "all-reduce --algorithm ring --ranks 8 --bytes '1 GB' --link '450 GB/s' --latency '1 µs'",
        "all-reduce --ranks 64 --bytes 1e9 --link nvlink4 --network ib-ndr",
        "all-to-all --ranks 64 --bytes '8 MiB' --link nvlink4 --network '400 GB/s per node' "
        "--network-latency '14 µs'",
        "all-reduce --ranks 8 --bytes '16 GiB' --link nvlink4 --model nccl",
    )
    add_collective(parser, 10**9)
    parser.add_argument("--bytes", required=True, help="largest per-rank buffer, such as '1 GB'")
    parser.add_argument("--link", required=True, help="a link of the catalog, or '450 GB/s'")
    parser.add_argument(
        "--latency",
        help="latency per step; the link's by default, or NCCL's if the catalog has none",
    )
    parser.add_argument(
        "--network",
        help="the link between nodes: one of the catalog, '50 GB/s' for each GPU, or "
        "'400 GB/s per node'",
    )
    parser.add_argument("--network-latency", help="latency per step between nodes")
    parser.add_argument(
        "--model",
        choices=("textbook", "nccl"),
        default="textbook",
        help="textbook: α–β; nccl: the cost model by which NCCL chooses an algorithm",
    )


def _cost(options: argparse.Namespace) -> Answer:
    size = typed_measure("--bytes", options.bytes, "B")
    posted = options.collective == "all-to-all" and options.algorithm in (None, POSTED)
    if options.model == "nccl":
        _refuse_unused(options, options.algorithm or "nccl", ("network", *_nodes_option(options)))
        return _by_nccl(options, size)
    name = POSTED if posted else algorithm_of(options.collective, options.algorithm)
    _refuse_unused(options, name, _used_options(options, name))
    near = _link(options, "link", "latency")
    if posted or (name == "ring" and options.network):
        return _by_levels(options, name, size, near)
    if name == "pairwise" and options.network:
        # Every step has ranks whose partner is on another node; the slowest pairs set its time.
        far = _link(options, "network", "network_latency", _nodes(options)[1])
        near = max(near[0], far[0]), min(near[1], far[1])
    if name.startswith("hierarchical"):
        return _by_formula(options, name, size, _two_levels(options, near))
    single = {"latency_s": near[0], "bandwidth_bytes_per_s": near[1], "ranks": options.ranks}
    if (options.collective, name) not in CLOSED_FORMS:
        return _by_trace(options, name, size, near)
    if name == "chain":
        single["segments"] = options.segments or 4
    return _by_formula(options, name, size, single)


def _nodes_option(options: argparse.Namespace) -> tuple[str, ...]:
    """Add `--ranks-per-node`, which has an effect only if a network link is given."""
    return ("ranks_per_node",) if options.network else ()


def _used_options(options: argparse.Namespace, name: str) -> tuple[str, ...]:
    """Return the options, other than link and size, that change an algorithm's time."""
    if name in CROSSING:
        crossing = ("network_latency",) if options.network else ()
        return ("latency", "network", *crossing, *_nodes_option(options))
    if name.startswith("hierarchical"):
        return ("latency", "network", "network_latency", "ranks_per_node")
    if name == "chain":
        return ("latency", "segments")
    traced = (options.collective, name) not in CLOSED_FORMS
    accepted = inspect.signature(TRACES[options.collective, name]).parameters if traced else ()
    return ("latency", *(["segments"] if "segments" in accepted else []))


def _refuse_unused(options: argparse.Namespace, name: str, used: tuple[str, ...]) -> None:
    """Raise InputError for the first option that was given but has no effect."""
    for option in ("latency", "network", "network_latency", "ranks_per_node", "segments"):
        if getattr(options, option) is None or option in used:
            continue
        flag = f"--{option.replace('_', '-')}"
        if option in ("network_latency", "ranks_per_node") and "network" in used:
            raise InputError(f"{flag} without a network", expected="--network LINK as well")
        what = "--model nccl" if name == "nccl" else f"{name} {options.collective}"
        expected = f"the command without {flag}"
        if option == "network":
            expected = f"{', '.join(CROSSING)} or hierarchical, or {expected}"
        raise InputError(f"{flag} is not used by {what}", expected=expected)


def _by_levels(options: argparse.Namespace, name: str, size: float, near: AlphaBeta) -> Answer:
    """Return the time of a ring or of a posted all-to-all, within a node or across several."""
    width, far = options.ranks, near
    if options.network:
        _, width = _nodes(options)
        far = _link(options, "network", "network_latency", width)
    levels = TwoLevels(
        ranks=options.ranks,
        ranks_per_node=width,
        near_latency_s=near[0],
        near_bytes_per_s=near[1],
        far_latency_s=far[0],
        far_bytes_per_s=far[1],
    )
    if name == POSTED:
        gap = message_gap(options.network or "")
        time_s = posted_all_to_all_time_s(levels, size, message_gap_s=gap.value)
        assumes = "all messages are posted at once"
        if levels.nodes > 1:
            assumes += f"; one leaves for the network every {format_quantity(gap.value, 's')}"
        source = gap.source if levels.nodes > 1 else "derivation: one latency, then all bytes"
    else:
        time_s = ring_time_s(levels, size, laps=LAPS[options.collective])
        source = "derivation: latencies along the ring, bytes at its slower level"
        assumes = "one ring for each port of a node"
    data = {
        "model": "textbook", "algorithm": name, "time_s": time_s, "formula": None, "worked": "",
        "ranks_per_node": width, "source": source, "assumes": assumes,
    }  # fmt: skip
    shown = format_quantity(time_s, "s", "time")
    lines = [shown, *_level_lines(levels), f"source: {source}", f"assumes: {assumes}"]
    return Answer(data, "\n".join(lines))


def _level_lines(levels: TwoLevels) -> list[str]:
    """Return both levels of links as lines, so that users can check how their input was read."""
    near, far = (
        f"{format_quantity(rate, 'B/s')} per rank per direction, "
        f"{format_quantity(latency, 's')} a step"
        for rate, latency in (
            (levels.near_bytes_per_s, levels.near_latency_s),
            (levels.far_bytes_per_s, levels.far_latency_s),
        )
    )
    if levels.nodes == 1:
        return [f"one level: {near}"]
    within = f"{levels.nodes} nodes of {levels.ranks_per_node}: {near}"
    return [within, f"between nodes: {far}"]


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
    """Return the number of nodes and the ranks on each."""
    width = ranks_per_node(options)
    nodes, rest = divmod(options.ranks, width)
    if rest:
        raise InputError("ranks", expected=f"a multiple of {width} per node", got=options.ranks)
    return nodes, width


def _two_levels(options: argparse.Namespace, near: AlphaBeta) -> dict[str, float]:
    nodes, width = _nodes(options)
    if options.network is None:
        raise InputError("a hierarchical algorithm has two links", expected="--network LINK")
    far = _link(options, "network", "network_latency", width)
    return {
        "gpus_per_node": width,
        "nodes": nodes,
        "intra_latency_s": near[0],
        "intra_bandwidth_bytes_per_s": near[1],
        "inter_latency_s": far[0],
        "inter_bandwidth_bytes_per_s": far[1],
    }


def _by_nccl(options: argparse.Namespace, size: float) -> Answer:
    """Return NCCL's estimate for the named algorithm, or for the one that NCCL would choose."""
    if options.collective == "all-to-all":
        expected = "the command without --model: it posts all messages, as NCCL does"
        raise InputError("NCCL has one way to run an all-to-all", expected=expected)
    nodes, width = _nodes(options) if options.network else (1, options.ranks)
    far = link("ib-ndr")
    if options.network:
        rate = _rate(options, "network", width)
        far = replace(far, bandwidth=replace(far.bandwidth, value=rate))
    group = nccl_group(link(options.link), options.ranks, nodes, far)
    found = predictions(nccl_tuning().constants, group, options.collective, size)
    mine = found
    if options.algorithm is not None:
        name = algorithm_of(options.collective, options.algorithm)
        if name not in NCCL_ALGORITHMS:
            raise unknown("algorithm that NCCL's model knows", name, NCCL_ALGORITHMS)
        mine = tuple(p for p in found if p.algorithm == NCCL_ALGORITHMS[name])
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
    chosen = "NCCL's choice" if mine[0] == found[0] else f"NCCL would run {found[0].algorithm}"
    lines = [
        f"{format_quantity(mine[0].time_s, 's', 'time')} with {mine[0].algorithm} "
        f"{mine[0].protocol} ({chosen})"
    ]
    lines += [
        f"{p.algorithm} {p.protocol}: {format_quantity(p.time_s, 's', 'time')}" for p in found
    ]
    return Answer(data, "\n".join([*lines, f"source: {data['source']}"]))


def _link(
    options: argparse.Namespace, which: str, latency_option: str, width: int = 1
) -> AlphaBeta:
    """Return latency and per-rank bandwidth of a catalog link, or of a rate such as `450 GB/s`.

    If `width` ranks of a node share the link, each gets an equal share of its bandwidth.
    """
    text, latency = getattr(options, which), getattr(options, latency_option)
    rate = _rate(options, which, width)
    flag = f"--{latency_option.replace('_', '-')}"
    given = None if latency is None else typed_measure(flag, latency, "s")
    if text not in load.links.names() and text[:1].isdigit():
        if given is None:
            raise InputError("a bandwidth alone has no latency", expected=f"{flag} TIME")
        return given, rate
    entry = link(text)
    if given is None and entry.kind == "host":
        raise InputError(f"link {text!r} has no latency per step", expected=f"{flag} TIME")
    return step_latency_s(entry) if given is None else given, rate


def _rate(options: argparse.Namespace, which: str, width: int) -> float:
    """Return the bandwidth of one rank on a link that `width` ranks of a node may share."""
    text = getattr(options, which)
    if text not in load.links.names() and text[:1].isdigit():
        return rate_per_rank(text, width, f"--{which}")
    entry = link(text)
    return entry.bandwidth_bytes_per_s / (width if entry.per == "node" else 1)
