"""Published steps of mixtures that differ in how tokens reach their experts, with predictions."""

from __future__ import annotations

from typing import Any, NamedTuple

from figgen.charts import Axis, Bars, Column, Named, Scalar, Table
from figgen.plotting.placed import headings
from figgen.plotting.series import segments
from figgen.quantity_shown import NBSP
from figgen.registry import figure
from figgen.scenarios.evidence.validation import judged_runs
from figgen.scenarios.options.resolve import training_step
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.verdict.like import utilisation_of

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
    """A published step of a job, with the options in which it differs from the previous one."""

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
        *headings("job", "dispatcher", "overlap", "CUDA graphs"),
        *headings("measured", "predicted", unit="s", spec="time"),
        Column(label="predicted over measured", spec=".2f"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


RUNS = {
    "dense": ("Llama 3.1 70B, dense", "dgxc-v25.04-llama3.1-70b-h100-bf16-g64-b128"),
    "grok": ("Grok-1, 2 of 8 experts", "dgxc-v25.02-grok1-314b-proxy8L-h100-bf16-g64-b1024"),
    "deepseek_v3": ("DeepSeek-V3, 8 of 256", "dgxc-v25.08-deepseek-v3-example-g1024-b8192"),
    "qwen3_235b": ("Qwen3-235B, 8 of 128", "dgxc-v25.12-qwen3-235b-a22b-example-g256-b2048"),
    "gpt_oss_120b": ("gpt-oss-120b, 4 of 128", "mbridge-26.04-gpt-oss-120b-h100-bf16-g64-b1280"),
}
"""Runs of one publisher on one chip in one format, so that MFUs compare: label and name."""


@figure("experts-mfu")
def experts_mfu() -> Bars:
    """Measured and predicted MFU of a dense model and of mixtures of experts, on H100 in BF16.

    FLOPs are those of the active parameters and of attention over all pairs of tokens.
    """
    judged = {one.run.name: one for one in judged_runs()}
    shown = {key: (label, judged[name]) for key, (label, name) in RUNS.items()}
    measured = {key: utilisation_of(one.run, one.measured_s) for key, (_, one) in shown.items()}
    predicted = {key: utilisation_of(one.run, one.predicted_s) for key, (_, one) in shown.items()}
    return Bars(
        labels=tuple(f"{label} ({_layout(one.run)})" for label, one in shown.values()),
        segments=segments(
            {"measured": list(measured.values()), "predicted": list(predicted.values())}
        ),
        axis=Axis(label="MFU", low=0.0, spec=".0%"),
        stacked=False,
        values={
            f"{key}_{side}": Named(shares[key])
            for side, shares in (("measured", measured), ("predicted", predicted))
            for key in shares
        }
        | {
            f"{key}_tokens": Named(
                one.run.global_batch * one.run.sequence / one.measured_s / one.run.gpus, "token/s"
            )
            for key, (_, one) in shown.items()
        },
    )


def _layout(run: DescribedRun) -> str:
    """Return the sizes of a run's layout that are not 1, and its number of GPUs."""
    axes = (("TP", run.tp), ("CP", run.cp), ("PP", run.pp), ("EP", run.ep))
    sizes = " · ".join(f"{name} {size}" for name, size in axes if size != 1)
    return f"{sizes} on {run.gpus:,}".replace(" ", NBSP)  # so that labels break before it
