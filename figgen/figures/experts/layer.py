"""A mixture of experts as pictures: one small table of tokens, its layer, its two all-to-alls."""

from __future__ import annotations

import numpy as np

from figgen.charts import Box, Column, Diagram, DiagramLink, Named, Scalar, Table
from figgen.models.shape.routing import Routing, load_balance_loss, route
from figgen.plotting.placed import box_at, headings
from figgen.registry import figure

TOP_K, RANKS, EXPERTS = 2, 4, 4
LOGITS = (
    (2.0, 0.5, 1.2, -0.5),
    (1.6, 1.9, -0.2, 0.3),
    (0.1, 0.4, 1.8, 1.5),
    (1.4, -0.3, 1.1, 0.2),
    (2.2, 1.3, 0.0, 0.4),
    (-0.4, 0.9, 1.7, 0.6),
    (1.2, 0.2, 0.6, 1.9),
    (1.5, 0.8, 1.0, -1.0),
)
"""A router's output for eight tokens, two on each of four ranks; expert e is on rank e."""


def routed() -> Routing:
    """Return the worked example of the chapter."""
    return route(np.array(LOGITS), TOP_K)


def home(token: int) -> int:
    """Return the rank that a token belongs to."""
    return token // (len(LOGITS) // RANKS)


def values_of(routing: Routing) -> dict[str, Named]:
    """Return the values for captions."""
    loads = routing.loads
    local = sum(home(t) == int(e) for t, row in enumerate(routing.choices) for e in row)
    copies = int(routing.choices.size)
    return {
        "tokens": Named(len(LOGITS), "token"),
        "copies": Named(copies),
        "local": Named(local),
        "sent": Named(copies - local),
        "largest_load": Named(max(loads)),
        "smallest_load": Named(min(loads)),
        "mean_load": Named(copies / EXPERTS),
        "loss": Named(load_balance_loss(routing.probabilities, routing.choices)),
        "first_gate": Named(float(routing.gates[0, 0])),
        "second_gate": Named(float(routing.gates[0, 1])),
        "first_expert": Named(int(routing.choices[0, 0])),
        "second_expert": Named(int(routing.choices[0, 1])),
    }


@figure("moe-routing")
def moe_routing() -> Table:
    """Eight tokens: probabilities of four experts, the two chosen, and their gates."""
    routing = routed()
    rows: list[tuple[Scalar, ...]] = []
    for token, chosen in enumerate(routing.choices):
        gates = " + ".join(
            f"{gate:.2f}·E{expert}"
            for expert, gate in zip(chosen, routing.gates[token], strict=True)
        )
        rows.append((token, home(token), *map(float, routing.probabilities[token]), gates))
    rows.append(("load", "", *(f"{load} copies" for load in routing.loads), ""))
    columns = (
        *headings("token", "rank"),
        *(Column(label=f"p of E{expert}", spec=".2f") for expert in range(EXPERTS)),
        Column(label="output"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values_of(routing))


@figure("moe-layer")
def moe_layer() -> Diagram:
    """One token of the example through router, two of four experts, and the weighted sum."""
    routing = routed()
    gates = dict(zip(map(int, routing.choices[0]), map(float, routing.gates[0]), strict=True))
    pitch, high, across = 1.3, 0.75, 5.1
    tops = {name: at * 1.2 for at, name in enumerate(("x", "router", "expert", "sum", "y"))}

    def wide(name: str, lines: tuple[str, ...], role: str = "neutral") -> Box:
        return box_at(name, lines, (0, tops[name]), (across, high), role)

    boxes = [
        wide("x", ("token 0", "1 × h")),
        wide("router", ("router", "h × 4, softmax, best 2"), "ep"),
        wide("sum", ("weighted sum",), "ep"),
        wide("y", ("output", "1 × h")),
    ]
    links = [DiagramLink(source="x", target="router"), DiagramLink(source="sum", target="y")]
    for expert in range(EXPERTS):
        probability = float(routing.probabilities[0, expert])
        used = expert in gates
        boxes.append(
            box_at(
                f"E{expert}",
                (f"expert {expert}", f"p = {probability:.2f}"),
                (expert * pitch, tops["expert"]),
                (across - 3 * pitch, high),
                "ep" if used else "idle",
            )
        )
        if used:
            links.append(DiagramLink(source="router", target=f"E{expert}", role="ep"))
            label = f"· {gates[expert]:.2f}"
            links.append(DiagramLink(source=f"E{expert}", target="sum", label=label, role="ep"))
    return Diagram(
        boxes=tuple(boxes),
        links=tuple(links),
        width=across,
        height=tops["y"] + high,
        values=values_of(routing),
    )


@figure("moe-send-matrix")
def moe_send_matrix() -> Table:
    """Token copies that every rank sends to every rank in the dispatch of the example."""
    routing = routed()
    counts = np.zeros((RANKS, RANKS), dtype=int)
    for token, row in enumerate(routing.choices):
        for expert in row:
            counts[home(token), expert] += 1
    rows: list[tuple[Scalar, ...]] = [
        (f"rank {rank}", *map(int, counts[rank]), int(counts[rank].sum() - counts[rank, rank]))
        for rank in range(RANKS)
    ]
    total = tuple(int(n) for n in counts.sum(axis=0))
    rows.append(("received", *total, int(counts.sum() - np.trace(counts))))
    columns = (
        Column(label="from"),
        *(Column(label=f"to rank {rank}") for rank in range(RANKS)),
        Column(label="over one link"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values_of(routing))
