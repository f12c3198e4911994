"""The data of the journey's charts.

The module is printed as JavaScript, so pages can redraw them.
"""

from __future__ import annotations

from collections.abc import Sequence

from figgen.models.setup.training_setup import TrainingSetup
from figgen.scenarios.stories.journey_step import JourneyStep

REST = ("working", "communication", "reserve")
"""Parts of memory that the journey adds up under one name."""


def layout_words(setup: TrainingSetup) -> str:
    """Return a job's layout: "TP 8 · PP 2 · DP 4, ZeRO-1, 5 slices", "FSDP 64", "alone"."""
    parallel, stage = setup.parallel, setup.zero_stage
    data = "FSDP" if stage == 3 else "DP"
    sizes = [("TP", parallel.tp), ("CP", parallel.cp), ("EP", parallel.ep), ("PP", parallel.pp)]
    sizes.append((data, parallel.dp))
    words = [" · ".join([f"{name} {size}" for name, size in sizes if size > 1]) or "alone"]
    if parallel.dp > 1 and stage in (1, 2):
        words.append(f"ZeRO-{stage}")
    chunks = setup.placement.chunks
    if chunks > 1:
        words.append(f"{chunks} slices")
    return ", ".join(words)


def kinds_of_memory(one: JourneyStep) -> dict[str, float]:
    """Return the bytes of the fullest GPU by kind; they add up to its total."""
    fullest = one.memory.fullest
    return {
        "weights": one.weights_bytes,
        "gradients": one.gradients_bytes,
        "optimizer": one.optimizer_bytes,
        "activations": one.activations_bytes,
        "buffers and the rest": sum([fullest.bytes_of(part) for part in REST]),
    }


def memory_values(jobs: Sequence[JourneyStep]) -> dict[str, float]:
    """Return what a caption quotes about some jobs' memory: values of the first and the last."""
    last = jobs[-1]
    return {
        "capacity": last.capacity_bytes,
        "total": last.total_bytes,
        "state": last.state_bytes,
        "activations": last.activations_bytes,
        "first": jobs[0].total_bytes,
        "missing": last.missing_bytes,
    }


def parts_of_step(one: JourneyStep) -> dict[str, float]:
    """Return the seconds of a step by part; they add up to the step."""
    parts = one.parts
    return {
        "forward and backward": one.computing_s,
        "exposed messages": one.exposed_s,
        "pipeline fills and drains": float(parts.idle_s),
        "update": float(parts.update_s),
        "everything else": float(parts.straggling_s + parts.fixed_s),
    }


def layouts_values(jobs: Sequence[JourneyStep]) -> dict[str, float]:
    """Return what a caption quotes of some layouts, numbered from 1."""
    first, last = jobs[0], jobs[-1]
    values = {
        "first": first.step_time_s,
        "last": last.step_time_s,
        "ratio": first.step_time_s / last.step_time_s,
    }
    for at, one in enumerate(jobs, 1):
        values[f"step_{at}"] = one.step_time_s
        values[f"idle_{at}"] = one.idle_share
        values[f"mfu_{at}"] = one.mfu
        values[f"rate_{at}"] = one.tokens_per_second_and_gpu
    return values


def board_values(one: JourneyStep) -> dict[str, float]:
    """Return what a caption quotes of the scoreboard's last row."""
    return {
        "gpus": one.gpus,
        "memory": one.total_bytes,
        "near": one.near_bytes,
        "far": one.far_bytes,
        "step": one.step_time_s,
        "low": one.low_s,
        "high": one.high_s,
        "tokens_per_second": one.tokens_per_second,
        "batch": one.tokens_per_step,
        "mfu": one.mfu,
    }


def model_size(title: str, parameters: int) -> str:
    """Return the size in a model's name, such as "70B", or else its parameters, such as "671B"."""
    return title.split()[-1] if title.startswith("Llama") else f"{parameters / 1e9:.0f}B"


def job_words(setup: TrainingSetup) -> str:
    """Return a job's layout and options in words: "TP 8 · FSDP 8, 2 sequences, recomputing"."""
    words = [layout_words(setup)]
    if setup.zero_stage in (1, 2) and setup.dense_shards > 1:
        words.append(f"ZeRO-{setup.zero_stage}")
    if setup.microbatch_size > 1:
        words.append(f"{setup.microbatch_size} sequences")
    if setup.recompute != "none":
        words.append("recomputing" if setup.recompute == "full" else "recomputing some")
    return ", ".join(words)
