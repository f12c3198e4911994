"""Parts of a pipeline: layers on ranks, messages, and microbatches for a goal."""

from __future__ import annotations

import math

from figgen.charts import Box, Column, Diagram, DiagramLink, Named, Scalar, Table
from figgen.errors import InputError, check_between, check_equal_lengths
from figgen.formulas.pipeline import (
    interleaved_bubble_fraction,
    microbatches_for_efficiency,
    pipeline_boundary_bytes,
    pipeline_total_bytes,
)
from figgen.formulas.placement import split_pipeline_rank_bytes
from figgen.models.pipeline.stage_placement import Placement, looping, v_shape
from figgen.plotting.placed import box_at, headings
from figgen.registry import figure

RANK = 1.15
"""Grid units from rank to rank, so that four fit on a phone."""

MOST_RANKS = 4


@figure("layer-map")
def layer_map(*, layers: int = 24, stages: int = 4, chunks: int = 2) -> Diagram:
    """Layers of every rank, for looping chunks and for a second chunk in reverse.

    Raises InputError unless the chunks of all ranks divide the layers.
    """
    check_between("stages", stages, 2, MOST_RANKS)
    check_between("chunks", chunks, 2, 4)
    if layers % (stages * chunks) or layers % (2 * stages):
        expected = f"a multiple of {math.lcm(stages * chunks, 2 * stages)}"
        raise InputError("layers", expected=expected, got=layers)
    boxes: list[Box] = []
    links: list[DiagramLink] = []
    values: dict[str, Named] = {"layers": Named(layers), "stages": Named(stages)}
    left, high = 0.0, chunks * 0.75 + 0.55
    for title, placement in (("interleaved", looping(stages, chunks)), ("V", v_shape(stages))):
        words = [_layers_of(placement, stage, layers) for stage in range(placement.stages)]
        turn = "then back to rank 0" if placement.name == "looping" else "then back up"
        heads = (f"{title}: layers on ranks 0 to {stages - 1}", f"from left to right, {turn}")
        boxes.append(box_at(title, heads, (left, 0), (stages * RANK, high), frame=True))
        for stage, rank in enumerate(placement.rank_of_stage):
            chunk = placement.stages_of_rank(rank).index(stage)
            boxes.append(
                box_at(
                    f"{title} {stage}",
                    (words[stage],),
                    (left + rank * RANK + 0.18, 0.65 + chunk * 0.75),
                    (RANK - 0.36, 0.5),
                    "pp",
                )
            )
            # The way round from the last rank to the first would cross the boxes between.
            if stage and placement.rank_of_stage[stage - 1] <= rank + 1:
                links.append(DiagramLink(source=f"{title} {stage - 1}", target=f"{title} {stage}"))
        values[f"first_{title.lower()}"] = Named(
            " and ".join(f"layers {words[stage]}" for stage in placement.stages_of_rank(0))
        )
        left += stages * RANK + 0.4
    return Diagram(
        boxes=tuple(boxes), links=tuple(links), width=left - 0.4, height=high, values=values
    )


def _layers_of(placement: Placement, stage: int, layers: int) -> str:
    each = layers // placement.stages
    return f"{stage * each + 1}–{(stage + 1) * each}"


@figure("stage-messages")
def stage_messages(
    *,
    layers: int = 32,
    stages: int = 4,
    microbatch_size: int = 1,
    sequence: int = 8192,
    hidden: int = 4096,
) -> Diagram:
    """Consecutive layers on each rank, and one microbatch's bytes over each boundary."""
    check_between("stages", stages, 2, 4)
    if layers % stages:
        raise InputError("layers", expected=f"a multiple of {stages}", got=layers)
    message = float(pipeline_boundary_bytes(microbatch_size, sequence, hidden, 2))
    each = layers // stages
    boxes = tuple(
        box_at(
            f"stage {stage}",
            (f"rank {stage}", "layers", f"{stage * each + 1}–{(stage + 1) * each}"),
            (stage * (RANK + 0.15), 0.1),
            (RANK - 0.35, 0.9),
            "pp",
        )
        for stage in range(stages)
    )
    links = []
    for stage in range(1, stages):
        low, high = f"stage {stage - 1}", f"stage {stage}"
        links.append(DiagramLink(source=low, target=high, role="forward"))
        links.append(DiagramLink(source=high, target=low, role="backward"))
    values = {
        "message": Named(message, "B"),
        "each": Named(each),
        "stages": Named(stages),
        "layers": Named(layers),
    }
    return Diagram(
        boxes=boxes,
        links=tuple(links),
        width=stages * (RANK + 0.15) - 0.5,
        height=1.1,
        values=values,
    )


@figure("pipeline-volumes")
def pipeline_volumes(
    *,
    stages: tuple[int, ...],
    chunks: tuple[int, ...],
    microbatches: int,
    microbatch_size: int,
    sequence: int,
    hidden: int,
    tp: int = 1,
) -> Table:
    """Messages and bytes of one step, 16 bits; row i has stages[i] and chunks[i].

    Each of `tp` tensor-parallel ranks sends an equal share of a message.
    """
    check_equal_lengths(stages=stages, chunks=chunks)
    message = float(pipeline_boundary_bytes(microbatch_size, sequence, hidden, 2))
    rows: list[tuple[Scalar, ...]] = []
    values = {"message": Named(message, "B"), "microbatches": Named(microbatches)}
    for p, v in zip(stages, chunks, strict=True):
        total = float(pipeline_total_bytes(microbatches, p, v, message))
        own = float(
            split_pipeline_rank_bytes(microbatches, v, microbatch_size, sequence, hidden, 2, tp)
        )
        sizes = {"stages": p, "microbatches": microbatches, "chunks": v}
        busy = 1 - float(interleaved_bubble_fraction(**sizes))
        rows.append((p, v, round(total / message), total, own, busy))
        values |= {f"total_{p}_{v}": Named(total, "B"), f"busy_{p}_{v}": Named(busy)}
    columns = (
        *headings("stages P", "chunks V"),
        Column(label="messages", spec=","),
        *headings("all boundaries", "sent by an inner GPU", unit="B", spec="si"),
        Column(label="busy", spec=".1%"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


@figure("microbatches-needed")
def microbatches_needed(
    *,
    stages: tuple[int, ...] = (4, 8, 16),
    efficiencies: tuple[float, ...] = (0.8, 0.9, 0.95),
    chunks: tuple[int, ...] = (1, 2),
) -> Table:
    """Fewest microbatches per step that keep the pipeline busy for a share of the step."""
    pairs = [(efficiency, v) for efficiency in efficiencies for v in chunks]
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for p in stages:
        needed = [_needed(p, v, efficiency) for efficiency, v in pairs]
        rows.append((p, *needed))
        values |= {
            f"needed_{p}_{v}_{efficiency * 100:.0f}": Named(count)
            for (efficiency, v), count in zip(pairs, needed, strict=True)
        }
    columns = (
        Column(label="stages"),
        *(
            Column(label=f"{efficiency:.0%}" + (f", V = {v}" if v > 1 else ""), spec=",")
            for efficiency, v in pairs
        ),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


def _needed(stages: int, chunks: int, efficiency: float) -> int:
    """Return the number rounded up, at least P with chunks, as interleaving requires."""
    if not 0 < efficiency < 1:
        raise InputError("efficiencies", expected="between 0 and 1", got=efficiency)
    exact = float(microbatches_for_efficiency(stages, chunks, efficiency))
    # 0.9/(1 − 0.9) is 9.000000000000002 in binary.
    return max(math.ceil(exact - 1e-9), stages if chunks > 1 else 1)
