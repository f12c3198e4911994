"""A pipeline's step as a film: slots appear over time, next to the activations of each rank."""

from __future__ import annotations

from figgen.charts import Film, Named, Question, Scene
from figgen.errors import check_between
from figgen.figures.pipeline.timelines import simulated
from figgen.models.pipeline.schedule_work import held
from figgen.models.pipeline.schedules import ACTION_NAMES, TITLES
from figgen.models.pipeline.simulate import Trace
from figgen.plotting.placed import thing_at
from figgen.registry import figure

LEFT, WIDE, BAR, HIGH, TOP = 26.0, 236.0, 58.0, 24.0, 18.0
GAP = 10.0


@figure("pipeline-film")
def pipeline_film(*, schedule: str = "1f1b", stages: int = 4, microbatches: int = 4) -> Film:
    """The schedule event by event: completed slots, a cursor, each rank's activations.

    A backward takes twice as long as a forward. Numbers in slots are microbatches; bars count the
    microbatches held.
    """
    check_between("stages", stages, 2, 8)
    check_between("microbatches", microbatches, 2, 8)
    trace = simulated(schedule, stages, microbatches)
    shares = (1 / trace.schedule.placement.chunks,) * trace.schedule.placement.stages
    amounts = [held(lane, shares) for lane in trace.placed]
    most = max(trace.peak_in_flight)
    events = sorted(
        {time for lane in trace.placed for slot in lane for time in (slot.start, slot.end)}
    )
    scenes = [_scene(trace, amounts, most, time) for time in events]
    turn = next(i for i, time in enumerate(events) if time >= _first_backward(trace))
    asks = _questions(trace, turn)
    scenes = [
        Scene(says=scene.says, things=scene.things, asks=asks.get(at))
        for at, scene in enumerate(scenes)
    ]
    last = len(scenes) - 1
    values = {
        "stages": Named(stages),
        "microbatches": Named(microbatches),
        "makespan": Named(trace.makespan),
        "bubble_fraction": Named(trace.bubble_fraction),
        "peak_first": Named(trace.peak_in_flight[0]),
        "peak_last": Named(trace.peak_in_flight[-1]),
    }
    return Film(
        width=LEFT + WIDE + GAP + BAR,
        height=TOP + stages * (HIGH + 6) + 2,
        scenes=tuple(scenes),
        stills=(stages - 1, turn + 1, last - stages, last),
        opens=_fullest(events, amounts[0]),
        values=values,
    )


def _fullest(events: list[float], held_first: tuple[tuple[float, float], ...]) -> int:
    """Return the last event at which the first rank holds the most microbatches."""
    most = max(amount for _, amount in held_first)
    return max(at for at, time in enumerate(events) if _held_at(held_first, time) == most)


def _held_at(amounts: tuple[tuple[float, float], ...], now: float) -> float:
    return next(held for time, held in reversed(amounts) if time <= now)


def _first_backward(trace: Trace) -> float:
    return min(slot.start for lane in trace.placed for slot in lane if slot.action.kind != "F")


def _scene(
    trace: Trace, amounts: list[tuple[tuple[float, float], ...]], most: float, now: float
) -> Scene:
    scale = WIDE / trace.makespan
    things = [
        thing_at("held", (LEFT + WIDE + GAP, 0), (BAR, 14), "held"),
        thing_at("time", (LEFT, 0), (60, 14), f"t = {now:g}"),
    ]
    busy = 0
    for rank, lane in enumerate(trace.placed):
        y = TOP + rank * (HIGH + 6)
        things.append(thing_at(f"r{rank}", (0, y), (22, HIGH), f"r{rank}"))
        things.append(thing_at(f"lane {rank}", (LEFT, y), (WIDE, HIGH), role="idle"))
        for slot in lane:
            # A slot is there as soon as it runs, so that what a rank does now can be seen.
            if slot.start > now or (slot.start == now and now == trace.makespan):
                continue
            running = slot.start <= now < slot.end
            busy += running
            things.append(
                thing_at(
                    str(slot.action),
                    (LEFT + slot.start * scale, y),
                    ((slot.end - slot.start) * scale, HIGH),
                    str(slot.action.microbatch),
                    ACTION_NAMES[slot.action.kind],
                    strong=running,
                )
            )
        amount = _held_at(amounts[rank], now)
        things.append(
            thing_at(
                f"bar {rank}",
                (LEFT + WIDE + GAP, y),
                (max(1.0, BAR * amount / most), HIGH),
                f"{amount:g}" if amount else "",
                f"rank-{rank}",
            )
        )
    x = LEFT + now * scale
    things.append(
        thing_at("cursor", (x - 1, TOP - 3), (1.5, len(trace.placed) * (HIGH + 6)), role="neutral")
    )
    total = len(trace.placed)
    says = f"t = {now:g}: {busy} of {total} ranks work."
    if now == trace.makespan:
        says = f"The step has taken {now:g} forward times; {trace.bubble_fraction:.0%} was idle."
    return Scene(says=says, things=tuple(things))


def _questions(trace: Trace, turn: int) -> dict[int, Question]:
    peak = trace.peak_in_flight
    name = TITLES[trace.schedule.name]
    return {
        turn: Question(
            text="The last rank has finished its first forward. What does it run next?",
            choices=("another forward", "a backward", "nothing, it waits"),
            right=0 if trace.schedule.name in ("gpipe", "looped-bfs") else 1,
            because=f"With {name} the order of the last rank begins "
            f"{' '.join(map(str, trace.schedule.orders[-1][:3]))}.",
        ),
        turn + 3: Question(
            text="Which rank will have held the most microbatches when the step is over?",
            choices=("the first", "the last", "all as many"),
            right=2 if peak[0] == peak[-1] else 0,
            because=f"The first holds at most {peak[0]:g}, the last {peak[-1]:g}.",
        ),
    }
