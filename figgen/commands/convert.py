"""convert: convert measured bandwidths and datasheet rates from one convention to another."""

from __future__ import annotations

import argparse

from figgen.commands import Answer, Verbs, add_verb, whole
from figgen.commands.line_rate import add_line_rate, full_busbw
from figgen.errors import InputError
from figgen.formulas import evaluate
from figgen.models.collectives.closed_forms import BUS_BANDWIDTHS
from figgen.models.collectives.measured_words import collective_sentence
from figgen.quantity_shown import format_number
from figgen.scenarios.options.typed import bare_bytes, typed_measure
from figgen.units import format_quantity

TWO_WAY, SPARSE = "two-way", "sparse"


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    parser = add_verb(
        verbs,
        "convert",
        _convert,
        "convert bandwidths and peaks between conventions",
        "busbw all-reduce --ranks 8 --bytes '16 GiB' --time '35.6 ms'",
        "busbw all-gather --ranks 64 --algbw '48 GB/s' --json",
        "busbw all-to-all --ranks 16 --busbw '20 GB/s' --ranks-per-node 8 --ports 8",
        "busbw all-reduce --ranks 16 --bytes '8 GiB' --time '43 ms' --ranks-per-node 8 --ports 8 "
        "--line-rate '400 Gb/s'",
        "link '900 GB/s' --as two-way",
        "peak '1979 TFLOP/s' --as sparse",
    )
    parser.add_argument("what", choices=("busbw", "link", "peak"))
    parser.add_argument("given", help="a collective, for busbw, or a rate such as '900 GB/s'")
    parser.add_argument("--as", dest="said", choices=(TWO_WAY, SPARSE), help="what the rate counts")
    parser.add_argument("--ranks", type=whole(2, 10**9))
    parser.add_argument("--bytes", help="largest per-rank buffer")
    parser.add_argument("--time", help="duration, such as '35.6 ms'")
    parser.add_argument("--algbw", help="bandwidth, instead of --time")
    parser.add_argument("--busbw", help="bandwidth, instead of --time")
    parser.add_argument(
        "--ranks-per-node",
        type=whole(1, 10**9),
        help="ranks per node, to compute what each network port sends",
    )
    add_line_rate(parser)


def _convert(options: argparse.Namespace) -> Answer:
    return {"busbw": _collective, "link": _link, "peak": _peak}[options.what](options)


def _link(options: argparse.Namespace) -> Answer:
    if options.said == SPARSE:
        raise InputError("convert link", expected=f"--as {TWO_WAY}, or nothing", got=SPARSE)
    rate = typed_measure("link", options.given, "B/s")
    both = options.said == TWO_WAY
    one = evaluate("one_way_bandwidth", two_way_bandwidth_bytes_per_s=rate).value if both else rate
    data = {
        "one_way_bytes_per_s": one,
        "two_way_bytes_per_s": 2 * one,
        "one_way_bits_per_s": 8 * one,
    }
    lines = [
        f"per direction {format_quantity(one, 'B/s', 'si.4')}, {_gigabits(one)}",
        f"both directions {format_quantity(2 * one, 'B/s', 'si.4')}",
    ]
    return Answer(data, "\n".join(lines))


def _peak(options: argparse.Namespace) -> Answer:
    if options.said == TWO_WAY:
        raise InputError("convert peak", expected=f"--as {SPARSE}, or nothing", got=TWO_WAY)
    rate = typed_measure("peak", options.given, "FLOP/s")
    sparse = options.said == SPARSE
    dense = evaluate("dense_peak", sparse_peak_flops_per_s=rate).value if sparse else rate
    data = {"dense_flops_per_s": dense, "sparse_flops_per_s": 2 * dense}
    shown = [format_quantity(value, "FLOP/s", "si.4") for value in (dense, 2 * dense)]
    return Answer(data, f"dense {shown[0]}\nwith 2:4 sparsity {shown[1]}")


def _collective(options: argparse.Namespace) -> Answer:
    options.given = options.given.lower().replace("_", "-")
    if options.given not in BUS_BANDWIDTHS:
        raise InputError("convert busbw", expected=" or ".join(BUS_BANDWIDTHS), got=options.given)
    if options.ranks is None:
        raise InputError("convert busbw", expected="--ranks")
    name = BUS_BANDWIDTHS[options.given]
    ranks = {} if name == "algorithm_bandwidth" else {"ranks": options.ranks}
    size = None if options.bytes is None else typed_measure("--bytes", options.bytes, "B")
    algbw = _algbw(options, name, ranks, size)
    busbw = evaluate(name, **ranks, message_bytes=algbw, time_s=1).value
    data = {
        "algbw_bytes_per_s": algbw,
        "busbw_bytes_per_s": busbw,
        "line_rate_bits_per_s": 8 * busbw,
    }
    full = full_busbw(
        options,
        collective=options.given,
        ranks=options.ranks,
        ranks_per_node=options.ranks_per_node,
    )
    lines = [f"algbw {format_quantity(algbw, 'B/s', 'si.4')}"]
    lines += [f"busbw {format_quantity(busbw, 'B/s', 'si.4')}", f"line rate {_gigabits(busbw)}"]
    if size is not None:
        data["time_s"] = size / algbw
        lines.append(f"time {format_quantity(size / algbw, 's', 'time')}")
        said = collective_sentence(
            collective=options.given,
            ranks=options.ranks,
            message_bytes=size,
            time_s=size / algbw,
            bus_bandwidth=busbw,
            full=full,
        )
        lines.insert(0, said)
        if bare_bytes(options.bytes):
            lines.append(bare_bytes(options.bytes))
    if full is not None:
        data["share_of_line_rate"] = busbw / full
    if options.ranks_per_node or options.ports:
        port = data["port_bytes_per_s"] = _port(options, busbw)
        lines.append(f"a port sends {format_quantity(port, 'B/s', 'si.4')}, {_gigabits(port)}")
    return Answer(data, "\n".join(lines))


def _algbw(
    options: argparse.Namespace, name: str, ranks: dict[str, float], size: float | None
) -> float:
    """Return the algorithm bandwidth from whichever of the three bandwidths was measured."""
    given = [value is not None for value in (options.time, options.algbw, options.busbw)]
    if sum(given) != 1 or (given[0] and size is None):
        raise InputError("convert busbw", expected="--bytes and --time, or --algbw, or --busbw")
    if options.time is not None:
        seconds = typed_measure("--time", options.time, "s")
        return evaluate("algorithm_bandwidth", message_bytes=size, time_s=seconds).value
    if options.algbw is not None:
        return typed_measure("--algbw", options.algbw, "B/s")
    per_algbw = evaluate(name, **ranks, message_bytes=1, time_s=1).value
    return typed_measure("--busbw", options.busbw, "B/s") / per_algbw


def _port(options: argparse.Namespace, busbw: float) -> float:
    """Return what a network port of a node sends.

    Raises InputError unless the ranks span nodes and the number of ports is given.
    """
    width, ports = options.ranks_per_node, options.ports
    if width is None or ports is None or width >= options.ranks:
        expected = "--ranks-per-node below --ranks, and --ports"
        raise InputError("a port's rate", expected=expected, got=f"{width} and {ports}")
    rate = {"bus_bandwidth_bytes_per_s": busbw, "nics_per_node": ports}
    if options.given != "all-to-all":
        return evaluate("ring_port_bandwidth", **rate).value
    sizes = {"ranks": options.ranks, "gpus_per_node": width}
    return evaluate("all_to_all_port_bandwidth", **sizes, **rate).value


def _gigabits(rate: float) -> str:
    return f"{format_number(8 * rate / 1e9, 4)} Gb/s"
