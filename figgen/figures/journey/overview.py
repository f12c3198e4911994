"""The front page's picture: every GPU of the journey's job, and the step of one replica."""

from __future__ import annotations

from figgen.charts import Named, Overview, RankCell, RankGrid, Slot, Timeline, interval_values
from figgen.errors import InputError
from figgen.models.machine.mesh import RankMesh, coordinate_array, groups
from figgen.models.pipeline.schedules import ACTION_NAMES
from figgen.models.pipeline.simulate import Trace
from figgen.models.step.step import carried_out
from figgen.registry import figure
from figgen.scenarios.stories.journey import JourneyJob, rung


@figure("journey-job")
def journey_job(*, page: int) -> Overview:
    """All ranks of a page's job in their nodes, and a step of its first replica.

    The lanes are pipeline stages, with the times that the step model simulates.
    """
    found = rung(page)
    parallel = found.found.setup.parallel
    axes = tuple((name, size) for name, size in parallel.dense.axes if size > 1)
    mesh = RankMesh(axes)
    if not axes or axes[0][0] != "tp" or parallel.pp < 2:
        raise InputError("page", expected="one whose job has TP and stages", got=page)
    places = coordinate_array(mesh).tolist()
    stages = [place[mesh.names.index("pp")] for place in places]
    cells = tuple(
        RankCell(
            rank=rank, node=rank // parallel.gpus_per_node,
            local_rank=rank % parallel.gpus_per_node, coordinates=tuple(place),
        )
        for rank, place in enumerate(places)
    )  # fmt: skip
    room = RankGrid(
        axes=mesh.names, cells=cells, communicators=(), gpus_per_node=parallel.gpus_per_node,
        world_size=mesh.world_size,
    )  # fmt: skip
    return Overview(
        room=room,
        step=_step(found),
        stage_of_cell=tuple(stages),
        marked=tuple(
            next(group for group in groups(mesh, "tp") if stages[group[0]] == stage)
            for stage in range(parallel.pp)
        ),
        values={
            "gpus": Named(found.gpus),
            "nodes": Named(parallel.nodes),
            "replicas": Named(parallel.dp),
            "microbatches": Named(found.microbatches),
            "step": Named(found.step_time_s, "s"),
            "tokens_per_second": Named(found.tokens_per_second),
            "mfu": Named(found.mfu),
            **interval_values(found.predicted.residuals),
        },
    )  # fmt: skip


def _step(found: JourneyJob) -> Timeline:
    """Return the timeline of gathered weights, the schedule, and exposed gradients."""
    trace, before_s, after_s = carried_out(found.found.setup, found.found.stages)
    end = before_s + trace.makespan + after_s
    ranks = range(len(trace.placed))
    return Timeline(
        lanes=tuple(f"stage {rank}" for rank in ranks),
        slots=(
            *(
                Slot(lane=r, start=0.0, end=before_s, role="exposed", label="weights")
                for r in ranks
            ),
            *_slots(trace, before_s),
            *(
                Slot(lane=r, start=end - after_s, end=end, role="exposed", label="gradients")
                for r in ranks
            ),
        ),
        end=end,
        time_label="time",
        time_unit="s",
    )


def _slots(trace: Trace, begins_s: float) -> list[Slot]:
    held = trace.schedule.placement.held
    piece = {stage: at for stages in held for at, stage in enumerate(stages)}
    return [
        Slot(
            lane=placed.rank, start=begins_s + placed.start, end=begins_s + placed.end,
            role=ACTION_NAMES[placed.action.kind], label=str(placed.action.microbatch),
            chunk=piece[placed.action.stage],
        )
        for lane in trace.placed for placed in lane
    ]  # fmt: skip
