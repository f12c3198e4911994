"""Memory on the fullest GPU that each measure saves by itself."""

from __future__ import annotations

from collections.abc import Mapping

from figgen.charts import Bars, Column, Named, Scalar, Table
from figgen.figures.training.step import fullest_bars
from figgen.models.memory.memory import MemoryEstimate
from figgen.plotting.placed import headings
from figgen.registry import figure
from figgen.scenarios.options.option import Choices
from figgen.scenarios.options.resolve import training_step

START: Choices = {
    "tp": 8, "pp": 4, "zero_stage": 0, "microbatch_size": 2, "microbatches": 16,
    "recompute": "none", "sequence_parallel": False, "flash_attention": False,
}  # fmt: skip
"""A careless layout: nothing sharded over the replicas, nothing recomputed."""

MEASURES: Mapping[str, tuple[str, Choices, str]] = {
    "flash": ("a kernel that keeps no scores", {"flash_attention": True}, "nothing, it is faster"),
    "sp": ("sequence parallelism", {"sequence_parallel": True},
           "a quarter more bytes of tensor parallelism"),
    "zero1": ("ZeRO-1", {"zero_stage": 1}, "no extra bytes"),
    "zero3": ("ZeRO-3", {"zero_stage": 3}, "weights gathered per microbatch"),
    "small": ("half the microbatch", {"microbatch_size": 1, "microbatches": 32},
              "thinner matmuls"),
    "core": ("recompute the attention core", {"recompute": "selective"}, "a few % more work"),
    "full": ("recompute everything", {"recompute": "full"}, "a third more work"),
    "cp": ("CP 2 for DP 2", {"cp": 2, "microbatches": 32}, "keys and values sent"),
}  # fmt: skip


FREE: Choices = {"flash_attention": True, "sequence_parallel": True, "zero_stage": 1}
"""The three measures that repeat no work, combined."""

AS_IT_IS, TOGETHER = "as it is", "kernel, sequence parallelism and ZeRO-1"


def _memories(model: str, nodes: int, sequence: int) -> dict[str, MemoryEstimate]:
    """Return memory without measures, with each alone, best first, and with all cheap ones."""

    def held(choices: Choices) -> MemoryEstimate:
        asked = {**START, **choices, "sequence": sequence}
        return training_step(model=model, nodes=nodes, gpus_per_node=8, **asked).memory

    alone = {key: held(choices) for key, (_, choices, _) in MEASURES.items()}
    ordered = sorted(alone.items(), key=lambda item: item[1].fullest.total_bytes)
    return {"start": held({}), **dict(ordered), "free": held(FREE)}


@figure("measures-by-kind")
def measures_by_kind(*, model: str = "llama-3-70b", nodes: int = 8, sequence: int = 8192) -> Bars:
    """Memory of the fullest GPU by kind, for each measure alone, with its capacity."""
    found = _memories(model, nodes, sequence)
    titles = {"start": AS_IT_IS, "free": TOGETHER} | {key: m[0] for key, m in MEASURES.items()}
    return fullest_bars({titles[key]: each for key, each in found.items()}, tuple(found))


@figure("memory-measures")
def memory_measures(*, model: str = "llama-3-70b", nodes: int = 8, sequence: int = 8192) -> Table:
    """Each measure by itself, starting from one careless layout, best first."""
    found = _memories(model, nodes, sequence)
    kept = {key: each.fullest.total_bytes for key, each in found.items()}
    start, free = kept.pop("start"), kept.pop("free")
    rows: list[tuple[Scalar, ...]] = [(AS_IT_IS, start, 0.0, "")]
    rows += [(MEASURES[key][0], size, start - size, MEASURES[key][2]) for key, size in kept.items()]
    rows.append((TOGETHER, free, start - free, MEASURES["sp"][2]))
    columns = (
        Column(label="measure"),
        *headings("fullest GPU", "saves", unit="B", spec="bytes"),
        Column(label="costs"),
    )
    values = {"start": Named(start, "B"), "free": Named(free, "B")}
    values |= {key: Named(size, "B") for key, size in kept.items()}
    values |= {f"{key}_saves": Named(start - size, "B") for key, size in kept.items()}
    return Table(columns=columns, rows=tuple(rows), values=values)
