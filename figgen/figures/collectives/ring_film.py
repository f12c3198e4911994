"""The ring all-reduce with numbers in its chunks, scene by scene."""

from __future__ import annotations

from figgen.charts import Film, Named, Question, Scene, Thing
from figgen.errors import check_between
from figgen.models.collectives import CollectiveTrace, trace
from figgen.plotting.placed import thing_at
from figgen.registry import figure

CELL, HIGH, TOP, LEFT = 30.0, 20.0, 22.0, 22.0


def first_numbers(ranks: int) -> list[list[int]]:
    """Return rank r's input to chunk c as (r + 1)(c + 1), so that sums are easy to check."""
    return [[(rank + 1) * (chunk + 1) for chunk in range(ranks)] for rank in range(ranks)]


@figure("ring-film")
def ring_film(*, ranks: int = 4, schedule: str = "nccl") -> Film:
    """An all-reduce around a ring: each step sends numbers on, then adds or keeps them."""
    check_between("ranks", ranks, 3, 8)
    run = trace("all-reduce", "ring", ranks, schedule=schedule)
    held = first_numbers(ranks)
    complete = [sum(column) for column in zip(*held, strict=True)]
    width = LEFT + ranks * (CELL + _gap(ranks)) - _gap(ranks) + 2
    scenes = [Scene(says="Every rank begins with its own numbers.", things=_cells(held, complete))]
    half = len(run.steps) // 2
    for step, sends in enumerate(run.steps):
        adds = sends[0].reduces
        carried = [(s, s.chunks[0], held[s.source][s.chunks[0]]) for s in sends]
        chips = tuple(
            thing_at(
                f"sent {s.source}",
                (_x(s.target, ranks), _y(chunk)),
                (CELL, HIGH),
                str(value),
                _rank(s.source),
                origin=(_x(s.source, ranks), _y(chunk)),
                strong=True,
            )
            for s, chunk, value in carried
        )
        verb = "to be added" if adds else "finished"
        says = f"Step {step + 1} of {len(run.steps)}: each rank sends one number, {verb}."
        asks = _question(run, step, half, held) if step in (0, half) else None
        scenes.append(Scene(says=says, things=(*_cells(held, complete), *chips), asks=asks))
        for s, chunk, value in carried:
            held[s.target][chunk] = value + held[s.target][chunk] * adds
        scenes.append(Scene(says=_outcome(step, half, run), things=_cells(held, complete)))
    last = len(scenes) - 1
    values = {
        "ranks": Named(ranks),
        "steps": Named(len(run.steps)),
        "reduce_steps": Named(half),
        "first_sum": Named(complete[0]),
        "last_sum": Named(complete[-1]),
    }
    return Film(
        width=width,
        height=TOP + ranks * (HIGH + 4),
        scenes=tuple(scenes),
        stills=(1, 2, 2 * half, last),
        opens=2 * half,
        values=values,
    )


def _outcome(step: int, half: int, run: CollectiveTrace) -> str:
    if step == half - 1:
        return "Each rank has one finished sum: the reduce-scatter is done."
    if step == len(run.steps) - 1:
        return "Every rank has every sum: the all-gather is done."
    return "What came in is added." if step < half else "What came in is kept."


def _question(run: CollectiveTrace, step: int, half: int, held: list[list[int]]) -> Question:
    send = next(s for s in run.steps[step] if s.target == 0)
    value, own = held[send.source][send.chunks[0]], held[0][send.chunks[0]]
    if step < half:
        text = f"Rank {send.source} is about to send chunk {send.chunks[0]} to rank 0."
        return Question(
            text=f"{text} What will rank 0 hold there?",
            choices=(str(value), str(value + own), str(own)),
            right=1,
            because=f"{own} + {value} = {value + own}: in the first half what comes in is added.",
        )
    sums = len(held)
    return Question(
        text=f"Every rank holds one of {sums} finished sums. How many steps until all hold all?",
        choices=(str(sums - 1), str(sums), "1"),
        right=0,
        because=f"Each step brings one of the other {sums - 1} sums.",
    )


def _gap(ranks: int) -> float:
    return 22.0 if ranks <= 4 else 10.0


def _x(rank: int, ranks: int) -> float:
    return LEFT + rank * (CELL + _gap(ranks))


def _y(chunk: int) -> float:
    return TOP + chunk * (HIGH + 4)


def _rank(rank: int) -> str:
    return f"rank-{rank % 8}"


def _cells(held: list[list[int]], complete: list[int]) -> tuple[Thing, ...]:
    ranks = len(held)
    names = [
        thing_at(f"c{chunk}", (0, _y(chunk)), (20, HIGH), f"c{chunk}") for chunk in range(ranks)
    ]
    heads = [
        thing_at(f"r{rank}", (_x(rank, ranks) + 9, 0), (CELL, 16), f"r{rank}")
        for rank in range(ranks)
    ]
    cells = [
        thing_at(
            f"r{rank}c{chunk}",
            (_x(rank, ranks), _y(chunk)),
            (CELL, HIGH),
            str(value),
            _rank(rank),
            strong=value == complete[chunk],
        )
        for rank, row in enumerate(held)
        for chunk, value in enumerate(row)
    ]
    return (*names, *heads, *cells)
