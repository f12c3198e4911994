"""The timeline of a predicted step with the kernels of its passes and, at its end, the update.

The kernels of a pass are spread over its computing, with gaps in proportion to their durations; a
message that pauses the pass pauses the kernel that runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import fsum

from figgen.models.machine.cluster import Cluster
from figgen.models.operations.operation import BACKWARD, FORWARD, WEIGHT
from figgen.models.setup.stage_layers import StageShare, virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.step.pass_kernels import REPEATED, PassKernel, StepKernels
from figgen.models.step.predicted_parts import UPDATED, PredictedParts
from figgen.models.step.step import step_stages
from figgen.models.step.step_timeline import (
    AGAIN,
    COMPUTE,
    KernelEvent,
    StepEvent,
    StepTimeline,
    step_timeline,
)

PASSES: Mapping[str, tuple[str, ...]] = {
    "forward": (FORWARD,),
    AGAIN: (REPEATED,),
    "backward": (BACKWARD, WEIGHT),
    "backward, inputs": (BACKWARD,),
    "backward, weights": (WEIGHT,),
}
"""The phases of a layer's list whose kernels run in an event of a timeline."""
MOST_APART = 100_000
"""Most kernels of a step for which each layer's are events of their own."""


def kernel_timeline(
    setup: TrainingSetup,
    cluster: Cluster,
    compute_efficiency: float,
    parts: PredictedParts,
    kernels: StepKernels,
    *,
    each_call: bool = True,
) -> StepTimeline:
    """Return the events of the step that `parts` predict, with its `kernels`.

    With `each_call` every call is its own event, and so are the kernels of each layer unless there
    are too many; otherwise equal calls and kernels of a pass are one event.
    """
    stages = step_stages(setup, cluster, compute_efficiency, _before_update(parts))
    found = step_timeline(setup, stages, each_call=each_call)
    shares, passing = virtual_stage_shares(setup), setup.microbatches_of_stage
    layers = sum(one.layers for one in shares)
    apart = each_call and passing * layers * kernels.most <= MOST_APART
    end_s = parts.step_time_s
    updates = [
        StepEvent(rank, COMPUTE, UPDATED, found.step_time_s, end_s)
        for rank in range(setup.placement.ranks)
        if end_s > found.step_time_s
    ]
    running = [*_of_passes(found, shares, kernels, apart)]
    for one in updates:
        running += _placed(one, [(one.start_s, one.end_s)], kernels.update)
    return replace(
        found, events=(*found.events, *updates), step_time_s=end_s, kernels=tuple(running)
    )


def _before_update(parts: PredictedParts) -> PredictedParts:
    """Return the parts of the step without its update, for a timeline on which that comes last."""
    update_s = dict(parts.kinds)[UPDATED]
    return replace(
        parts,
        computing_s=parts.computing_s - update_s,
        kinds=tuple((name, 0.0 if name == UPDATED else seconds) for name, seconds in parts.kinds),
        step_time_s=parts.step_time_s - update_s,
    )


def _of_passes(
    timeline: StepTimeline, shares: Sequence[StageShare], kernels: StepKernels, apart: bool
) -> Iterator[KernelEvent]:
    """Yield the kernels of every pass, in the order of the passes."""
    pieces: dict[tuple[int, int, int, str], list[tuple[float, float]]] = {}
    firsts: dict[tuple[int, int, int, str], StepEvent] = {}
    for event in timeline.events:
        if event.stage is not None and event.microbatch is not None:
            key = (event.rank, event.stage, event.microbatch, event.name)
            pieces.setdefault(key, []).append((event.start_s, event.end_s))
            firsts.setdefault(key, event)
    known: dict[tuple[int, str], tuple[PassKernel, ...]] = {}
    for key, spans in pieces.items():
        _, stage, _, name = key
        if (stage, name) not in known:
            found: list[PassKernel] = []
            for phase in PASSES[name]:
                found += kernels.of_stage(shares[stage], phase, apart=apart)
            known[stage, name] = tuple(found)
        yield from _placed(firsts[key], spans, known[stage, name])


def _placed(
    event: StepEvent, spans: Sequence[tuple[float, float]], kernels: Sequence[PassKernel]
) -> Iterator[KernelEvent]:
    """Yield kernels spread over the `spans` of a pass, in which it computes."""
    whole, busy = fsum(end - start for start, end in spans), fsum(one.seconds for one in kernels)
    spread = whole / busy if busy else 0.0
    at, passed, place = 0, 0.0, 0.0
    for one in kernels:
        begin, end = place, place + min(1.0, spread) * one.seconds
        place += spread * one.seconds
        while begin < end and at < len(spans):
            start, stop = spans[at]
            until = min(end, passed + stop - start)
            if begin < until:
                yield KernelEvent(
                    rank=event.rank,
                    name=one.name,
                    kind=one.kind,
                    start_s=start + begin - passed,
                    end_s=min(stop, start + until - passed),
                    microbatch=event.microbatch,
                )
                begin = until
            if until < end:
                passed += stop - start
                at += 1
