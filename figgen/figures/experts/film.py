"""Dispatch and combine as a film: copies of tokens travel to their experts and back."""

from __future__ import annotations

from figgen.charts import Film, Question, Scene, Thing
from figgen.figures.experts.layer import EXPERTS, LOGITS, RANKS, TOP_K, home, routed, values_of
from figgen.models.shape.routing import Routing
from figgen.plotting.placed import thing_at
from figgen.registry import figure

CHIP, HIGH, ROW, LEFT, AWAY, TOP = 26.0, 19.0, 46.0, 44.0, 150.0, 20.0
Spot = tuple[float, float]


@figure("moe-film")
def moe_film() -> Film:
    """The example's eight tokens on four ranks: routed, sent, computed, returned.

    A color is the rank that a token belongs to; copy `3b` is the second copy of token 3.
    """
    routing = routed()
    width = AWAY + max(routing.loads) * (CHIP + 3) + 8
    return Film(
        width=width,
        height=TOP + RANKS * ROW,
        scenes=_scenes(routing),
        stills=(1, 2, 3, 5),
        opens=3,
        values=values_of(routing),
    )


def _scenes(routing: Routing) -> tuple[Scene, ...]:
    """Return the scenes from the router's choice to the sum of the experts' outputs."""
    loads = routing.loads
    at_home, away = _places(routing)
    tokens = _tokens(at_home)
    local = sum(home(t) == int(e) for t, row in enumerate(routing.choices) for e in row)
    copies = int(routing.choices.size)
    slowest = loads.index(max(loads))
    return (
        Scene(
            says="Two tokens on each of four ranks, and one expert on each rank.",
            things=(*_frame(), *tokens),
        ),
        Scene(
            says=f"The router chooses {TOP_K} experts for each token: {copies} copies.",
            things=(*_frame(), *_copies(routing, at_home, None)),
        ),
        Scene(
            says=f"Dispatch: every copy goes to the rank of its expert; {local} stay at home.",
            things=(*_frame(), *_left(at_home), *_copies(routing, away, at_home)),
            asks=_question(loads),
        ),
        Scene(
            says=f"Experts compute: {max(loads)} copies on rank {slowest}, {min(loads)} on rank "
            f"{loads.index(min(loads))}. The fullest sets the time, the others wait.",
            things=(*_frame(loads), *_left(at_home), *_copies(routing, away, None, strong=True)),
        ),
        Scene(
            says="Combine: results go home the way they came.",
            things=(*_frame(), *_copies(routing, at_home, away)),
        ),
        Scene(
            says="Each token's results are added up, weighted by their gates.",
            things=(*_frame(), *(_done(thing) for thing in tokens)),
        ),
    )


def _question(loads: tuple[int, ...]) -> Question:
    even = sum(loads) / EXPERTS
    return Question(
        text=f"An even share would be {even:g} copies for each rank. How many get more or less?",
        choices=("none of the four", "two of the four", "all four"),
        right=(0, 0, 1, 2, 2)[sum(load != even for load in loads)],
        because=f"The ranks get {', '.join(map(str, loads))} copies.",
    )


def _done(token: Thing) -> Thing:
    return thing_at(
        token.name,
        (token.x, token.y),
        (CHIP, HIGH),
        token.text.replace("t", "y"),
        token.role,
        strong=True,
    )


def _tokens(at_home: dict[Spot, Spot]) -> tuple[Thing, ...]:
    """Return the tokens on their own ranks."""
    return tuple(
        thing_at(f"token {t}", (x, y), (CHIP, HIGH), f"t{t}", f"rank-{home(t)}")
        for t in range(len(LOGITS))
        for x, y in [at_home[t, 0]]
    )


def _places(routing: Routing) -> tuple[dict[Spot, Spot], dict[Spot, Spot]]:
    """Return the place of each (token, copy) at its own rank and at its expert."""
    at_home: dict[Spot, Spot] = {}
    away: dict[Spot, Spot] = {}
    filled = [0] * EXPERTS
    per_rank = len(LOGITS) // RANKS
    for token, row in enumerate(routing.choices):
        y = TOP + home(token) * ROW + token % per_rank * (HIGH + 2)
        for copy, expert in enumerate(map(int, row)):
            at_home[token, copy] = LEFT + copy * (CHIP + 3), y
            x = AWAY + filled[expert] * (CHIP + 3)
            away[token, copy] = x, TOP + expert * ROW + HIGH + 2
            filled[expert] += 1
    return at_home, away


def _copies(
    routing: Routing, now: dict[Spot, Spot], before: dict[Spot, Spot] | None, strong: bool = False
) -> tuple[Thing, ...]:
    return tuple(
        thing_at(
            f"copy {token} {copy}",
            (now[token, copy][0], now[token, copy][1]),
            (CHIP, HIGH),
            f"{token}{'ab'[copy]}",
            f"rank-{home(token)}",
            origin=before[token, copy] if before else None,
            strong=strong,
        )
        for token in range(len(routing.choices))
        for copy in range(TOP_K)
    )


def _left(at_home: dict[Spot, Spot]) -> tuple[Thing, ...]:
    """Return the places that copies have left."""
    return tuple(
        thing_at(
            f"left {token:.0f} {copy:.0f}",
            (x, y),
            (CHIP, HIGH),
            f"{token:.0f}{'ab'[int(copy)]}",
            "idle",
        )
        for (token, copy), (x, y) in at_home.items()
    )


def _frame(loads: tuple[int, ...] = ()) -> tuple[Thing, ...]:
    """Return the names of ranks and experts; with `loads`, also the copies per expert."""
    heads = [thing_at("home", (LEFT, 0), (70, 14), "at home")]
    heads.append(thing_at("away", (AWAY, 0), (90, 14), "at their experts"))
    for rank in range(RANKS):
        y = TOP + rank * ROW
        work = f": {loads[rank]} copies" if loads else ""
        heads.append(thing_at(f"r{rank}", (0, y), (40, HIGH), f"rank {rank}"))
        heads.append(
            thing_at(f"e{rank}", (AWAY, y), (160, HIGH), f"expert {rank} on rank {rank}{work}")
        )
    return tuple(heads)
