"""Pipeline schedules whose stages have different work and hold different activations.

Stages may have unequal numbers of layers. A layer takes the same time and keeps the same bytes
wherever it is, so a stage's share of the layers is its share of both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from figgen.errors import InputError
from figgen.models.pipeline.action import Action
from figgen.models.pipeline.order import Schedule
from figgen.models.pipeline.simulate import Durations, Trace, per_stage, simulate
from figgen.models.pipeline.stage_placement import Placement
from figgen.models.pipeline.trace import PerStage, PlacedAction


def stage_shares(
    placement: Placement, layers: tuple[float, ...] | None = None
) -> tuple[float, ...]:
    """Return the work of each virtual stage relative to a mean rank; equal stages have 1/V.

    `layers` has one number per rank, which its chunks share equally, or one per stage that a
    microbatch passes. Raises InputError for a different count, for negative numbers, and for a rank
    without layers.
    """
    if layers is None:
        return (1 / placement.chunks,) * placement.stages
    counts = sorted({placement.ranks, placement.depth})
    if len(layers) not in counts:
        raise InputError(
            "number of layers",
            expected=" or ".join(map(str, counts)) + ", one for each rank or each virtual stage",
            got=len(layers),
            key="layers",
        )
    total = 0.0
    for count in layers:  # sum() rounds differently between versions of Python
        total += count
    if not all(0 <= count < math.inf for count in layers) or total == math.inf:
        raise InputError("layers", expected="finite numbers ≥ 0", got=layers, key="layers")
    if len(layers) == placement.ranks:
        parts = [layers[rank] / placement.chunks for rank in placement.rank_of_stage]
    else:
        parts = list(layers) * placement.pipes
    for rank, stages in enumerate(placement.held):
        # Idle time over work, one of the measures, would be undefined there.
        if not any(parts[stage] for stage in stages):
            raise InputError(f"layers of rank {rank}", expected="more than 0", got=0, key="layers")
    return tuple(part * placement.ranks / total for part in parts)


def carried_out(
    schedule: Schedule, durations: Durations, layers: tuple[float, ...] | None = None
) -> Trace:
    """Return the simulated schedule for `durations` of an average rank's whole share.

    A stage takes its share of them. `latency` is that of a message between any stages. Every
    overlapped pair hides the same share of its shorter half. Raises InputError as `stage_shares`
    and `simulate` do.
    """
    shares = stage_shares(schedule.placement, layers)

    def cut(name: str, time: PerStage) -> tuple[float, ...]:
        times = per_stage(name, time, len(shares))
        return tuple(t * share for t, share in zip(times, shares, strict=True))

    times = Durations(
        forward=cut("forward", durations.forward),
        backward_input=cut("backward_input", durations.backward_input),
        backward_weight=cut("backward_weight", durations.backward_weight),
        latency=durations.latency,
        overlapped_pair=_pairs(schedule, durations, shares),
    )
    return simulate(schedule, times)


def _pairs(
    schedule: Schedule, durations: Durations, shares: tuple[float, ...]
) -> tuple[float, ...] | None:
    """Return the times of pairs by the stage of their forward, or None if none are given."""
    if durations.overlapped_pair is None or not schedule.overlapped:
        return None

    stages = len(shares)
    forwards = per_stage("forward", durations.forward, stages)
    inputs = per_stage("backward_input", durations.backward_input, stages)
    weights = per_stage("backward_weight", durations.backward_weight, stages)
    given = per_stage("overlapped_pair", durations.overlapped_pair, stages)
    pairs = []
    for stage, share in enumerate(shares):
        behind = schedule.placement.beside(stage)
        forward, input_time, weight_time = forwards[stage], inputs[behind], weights[behind]
        shorter, longer = sorted((forward, input_time + weight_time))
        added = (given[stage] - longer) / (shorter or longer or 1)
        # Added in the simulator's order, so that rounding makes no pair shorter than its half.
        back = input_time * shares[behind] + weight_time * shares[behind]
        less, more = sorted((forward * share, back))
        pairs.append(more + added * (less if shorter else more))
    return tuple(pairs)


def held(lane: Sequence[PlacedAction], shares: Sequence[float]) -> tuple[tuple[float, float], ...]:
    """Return the activations that one rank holds over time, as (time, amount from then on).

    `lane` has the actions of the rank; `shares[stage]` is what one microbatch leaves on a stage
    from the start of its forward to the end of its B or W. There is one entry for each change, the
    first at time 0.
    """
    changes: dict[float, dict[int, int]] = {0: {}}
    for placed in lane:
        action = placed.action
        if action.kind == "I":
            continue
        time, change = (placed.start, 1) if action.kind == "F" else (placed.end, -1)
        at = changes.setdefault(time, {})
        at[action.stage] = at.get(action.stage, 0) + change
    # Counting whole microbatches accumulates no rounding errors.
    counts = dict.fromkeys(sorted({placed.action.stage for placed in lane}), 0)
    steps: list[tuple[float, float]] = []
    for time in sorted(changes):
        for stage, change in changes[time].items():
            counts[stage] += change
        now = 0.0
        for stage, count in counts.items():
            now += count * shares[stage]
        if not steps or steps[-1][1] != now:
            steps.append((time, now))
    return tuple(steps)


def peak_held(
    lanes: Sequence[Sequence[PlacedAction]], shares: Sequence[float]
) -> tuple[float, ...]:
    """Return the most activations that each rank holds at once, in the unit of `shares`."""
    return tuple(max(amount for _, amount in held(lane, shares)) for lane in lanes)


def words_of_blocks(schedule: Schedule, rank: int) -> tuple[str, ...]:
    """Return what `rank` runs in turn, in torch's notation.

    An action is written `0F0`, an overlapped pair `(0F1;7B0)OVERLAP_F_B`.
    Source: pytorch/pytorch, torch/distributed/pipelining/schedules.py, `_Action.__repr__`.
    """
    return tuple(
        str(block[0]) if len(block) == 1 else f"({';'.join(map(str, block))})OVERLAP_F_B"
        for block in schedule.blocks(rank)
    )


def torch_listing(schedule: Schedule) -> str:
    """Return Python that passes the order to torch's pipeline runtime, which adds the messages.

    Raises InputError for two copies of the model, whose stages see only a part of the microbatches;
    torch sends every microbatch through every stage.
    Source: pytorch/pytorch, torch/distributed/pipelining/schedules.py,
    `_PipelineScheduleRuntime._prepare_schedule_with_comms`, `_validate_schedule`.
    """
    placement, microbatches = schedule.placement, schedule.microbatches
    if placement.pipes > 1:
        raise InputError(
            f"torch listing of schedule {schedule.name!r}",
            expected="every microbatch on every stage, as torch's runtime requires",
            got=f"{placement.pipes} copies of the model, each with its own microbatches",
            nearest=("dualpipev",),
        )
    rows = [
        f'    {rank}: "{" ".join(words_of_blocks(schedule, rank))}",'
        for rank in range(placement.ranks)
    ]
    lines = (
        f"# {schedule.name}: {placement.ranks} ranks, {microbatches} microbatches, "
        f"{placement.stages} stages; {placement.name} placement.",
        "from torch.distributed.pipelining.schedules import _Action, _PipelineScheduleRuntime",
        "",
        "ORDER = {",
        *rows,
        "}",
        "",
        "",
        "def pipeline_schedule(stages, loss_fn):",
        '    """`stages`: the PipelineStage objects of this rank, in ascending order."""',
        f"    schedule = _PipelineScheduleRuntime(stages, {microbatches}, loss_fn)",
        "    actions = {",
        "        rank: [_Action.from_str(word) for word in row.split()]",
        "        for rank, row in ORDER.items()",
        "    }",
        "    schedule._prepare_schedule_with_comms(actions)",
        "    return schedule",
    )
    return "\n".join(lines) + "\n"


def slots_csv(trace: Trace) -> str:
    """Return a CSV row per action: its place in its rank's order, and when it runs."""
    lines = ["rank,place,action,stage,kind,microbatch,start,end"]
    for rank, lane in enumerate(trace.placed):
        for place, slot in enumerate(lane):
            action: Action = slot.action
            lines.append(
                f"{rank},{place},{action},{action.stage},{action.kind},{action.microbatch},"
                f"{_plain(slot.start)},{_plain(slot.end)}"
            )
    return "\n".join(lines) + "\n"


def _plain(time: float) -> str:
    """Format a time so that it reads back exactly; whole numbers have no point."""
    return str(int(time)) if time == int(time) else repr(float(time))
