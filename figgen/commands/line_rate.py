"""The options of verbs that compare a collective with the rate of its links."""

from __future__ import annotations

import argparse

from figgen.commands import whole
from figgen.models.collectives.measured_words import full_bus_bandwidth
from figgen.scenarios.options.typed import typed_measure


def add_line_rate(parser: argparse.ArgumentParser) -> None:
    """Add `--line-rate` and `--ports`."""
    parser.add_argument(
        "--line-rate",
        metavar="RATE",
        help="rate to judge a busbw by, such as '450 GB/s': of a network port or, without "
        "--ports, of a GPU's link in its node",
    )
    parser.add_argument("--ports", type=whole(1, 10**6), help="network ports of a node")


def full_busbw(
    options: argparse.Namespace, *, collective: str, ranks: int, ranks_per_node: int | None
) -> float | None:
    """Return the busbw in B/s at which the links are full, or None if their rate is not given."""
    if options.line_rate is None:
        return None
    return full_bus_bandwidth(
        collective=collective,
        ranks=ranks,
        gpus_per_node=ranks_per_node or ranks,
        ports=options.ports,
        line_rate=typed_measure("--line-rate", options.line_rate, "B/s"),
    )
