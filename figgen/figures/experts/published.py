"""Published steps of mixtures that differ in how tokens reach their experts, beside ours."""

from __future__ import annotations

from typing import Any, NamedTuple

from figgen.charts import Column, Named, Scalar, Table
from figgen.registry import figure
from figgen.scenarios.options.resolve import training_step

QWEN_235B: dict[str, Any] = {
    "model": "qwen-3-235b-a22b", "accelerator": "h800-sxm-80gb", "nodes": 32, "gpus_per_node": 8,
    "tp": 2, "ep": 32, "etp": 1, "pp": 8, "schedule": "interleaved-1f1b", "chunks": 4,
    "global_batch": 2048, "sequence": 4096, "recompute": "layernorm,moe_act",
    "software": "megatron-lm 25.06",
}  # fmt: skip
QWEN_30B: dict[str, Any] = {
    "model": "qwen-3-30b-a3b", "accelerator": "h100-sxm-80gb", "nodes": 2, "gpus_per_node": 8,
    "ep": 16, "microbatches": 64, "sequence": 4096, "software": "megatron-bridge",
}  # fmt: skip


class Compared(NamedTuple):
    """A published step of a job, with the options in which it differs from the one before."""

    job: str
    dispatcher: str
    expert_overlap: str
    cuda_graphs: str
    measured_s: float


STEPS = (
    Compared("Qwen3-235B, EP 32", "all-to-all", "off", "none", 35.392),
    Compared("Qwen3-235B, EP 32", "deepep", "off", "none", 25.73),
    Compared("Qwen3-30B, EP 16", "all-to-all", "off", "none", 41.25),
    Compared("Qwen3-30B, EP 16", "all-to-all", "on", "none", 31.31),
    Compared("Qwen3-30B, EP 16", "hybridep", "off", "layers", 24.7138),
    Compared("Qwen3-30B, EP 16", "hybridep", "on", "layers", 20.992),
)
"""Steps of Qwen3-235B-A22B on 256 H800 (InternLM/xtuner@b934f462,
docs/en/benchmark/megatron_moe_benchmark.md) and of Qwen3-30B-A3B on 16 H100
(NVIDIA-NeMo/Megatron-Bridge@067f987d, skills/nemo-mbridge-perf-expert-parallel-overlap/SKILL.md),
all with forced balance or, the two with an all-to-all of the latter, fine-tuned."""


@figure("experts-published")
def experts_published() -> Table:
    """Published steps that differ in dispatcher, overlap and CUDA graphs, and what is predicted."""
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for at, one in enumerate(STEPS, 1):
        chosen = one._asdict()
        job = QWEN_235B if chosen.pop("job").startswith("Qwen3-235B") else QWEN_30B
        measured_s = chosen.pop("measured_s")
        found_s = training_step(**job, **chosen).predicted.step_time_s
        rows.append((*one[:4], measured_s, found_s, found_s / measured_s))
        values |= {
            f"measured_{at}": Named(measured_s, "s"),
            f"predicted_{at}": Named(found_s, "s"),
            f"ratio_{at}": Named(found_s / measured_s),
        }
    columns = (
        Column(label="job"),
        Column(label="dispatcher"),
        Column(label="overlap"),
        Column(label="CUDA graphs"),
        Column(label="measured", unit="s", spec="time"),
        Column(label="predicted", unit="s", spec="time"),
        Column(label="predicted over measured", spec=".2f"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)
