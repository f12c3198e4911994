"""The questions that choose a layout, as a picture."""

from __future__ import annotations

from itertools import pairwise

from figgen.catalog import hardware_preset
from figgen.charts import Diagram, DiagramLink, Named
from figgen.formulas.scale_and_state import largest_replicated_model
from figgen.models.shape.recipes import recipe as named_recipe
from figgen.plotting.placed import box_at
from figgen.registry import figure

IN_TURN = (
    ("fits", ("State and activations", "of one sequence: do", "they fit a GPU?"),
     "ddp", ("data parallelism", "with ZeRO-1")),
    ("shard", ("Sharded over all GPUs:", "do they fit, and do", "tokens hide gathers?"),
     "fsdp", ("ZeRO-3 over all GPUs,", "or hybrid sharding")),
    ("tensor", ("TP in the node with", "ZeRO-1: does it fit?"),
     "tp", ("TP in the node,", "DP outside")),
    ("batch", ("Stages until it fits:", "are there microbatches", "enough for them?"),
     "3d", ("TP in the node, PP", "between, DP outside")),
)  # fmt: skip
"""Questions with the answer for yes; a no leads to the next question."""

OF_EVERY = (
    ("long", ("Is one sequence", "too long for a GPU?"),
     "cp", ("context parallelism", "next to TP, as well")),
    ("experts", ("Do layers", "have experts?"),
     "ep", ("expert parallelism", "over DP ranks, as well")),
)  # fmt: skip
"""Questions to ask in any case."""

OVER = ("over", ("the layout to beat,", "fewer GPUs, or a", "larger batch"))
APART, HEIGHT = 1.4, 0.95
ASKED, ANSWER, GIVEN = 2.2, 2.85, 2.25
"""Widths of a question and of an answer, and where answers begin: as wide as a phone shows."""


@figure("decision-tree")
def decision_tree() -> Diagram:
    """Four questions, from memory to the batch, and two more, with their answers."""
    tops = [APART * at for at in range(len(IN_TURN) + 1)]
    below = [tops[-1] + 1.25 + 1.1 * at for at in range(len(OF_EVERY))]
    boxes = [
        box_at(name, lines, (x, y), (width, HEIGHT))
        for (question, asked, answer, given), y in zip(
            (*IN_TURN, *OF_EVERY), (*tops[:-1], *below), strict=True
        )
        for name, lines, x, width in ((question, asked, 0.0, ASKED), (answer, given, ANSWER, GIVEN))
    ]
    boxes.append(box_at(OVER[0], OVER[1], (0, tops[-1]), (ASKED, HEIGHT)))
    down = [*(question for question, *_ in IN_TURN), OVER[0]]
    links = [
        DiagramLink(source=source, target=target, label="no") for source, target in pairwise(down)
    ]
    links += [
        DiagramLink(source=question, target=answer, label="yes")
        for question, _, answer, _ in (*IN_TURN, *OF_EVERY)
    ]
    gpu = hardware_preset("h100-ndr")
    per_param = named_recipe("mcore18").total_bytes
    one = float(largest_replicated_model(gpu.accelerator.capacity_bytes, 1, per_param))
    return Diagram(
        boxes=tuple(boxes),
        links=tuple(links),
        width=ANSWER + GIVEN,
        height=below[-1] + HEIGHT,
        values={
            "questions": Named(len(IN_TURN) + len(OF_EVERY)),
            "capacity": Named(gpu.accelerator.capacity_bytes, "B"),
            "per_param": Named(per_param, "B"),
            "one_gpu": Named(one, "param"),
            "one_node": Named(gpu.gpus_per_node * one, "param"),
        },
    )
