"""Writes the configuration and the command that start a job under torchtitan 0.2.

Sections and fields: torchtitan 0.2.2, torchtitan/config/job_config.py, the last release that reads
TOML; ranks as pytorch/torchtitan torchtitan/distributed/parallel_dims.py places them.
"""

from __future__ import annotations

from figgen.models.machine.layout import ParallelLayout
from figgen.models.setup.stage_layers import virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.scenarios.writing.layouts import torchtitan_degrees, torchtitan_refused
from figgen.scenarios.writing.written import (
    JobToWrite,
    Written,
    command,
    leave_out_rest,
    refusal,
    script,
    torchrun,
)

MODELS = {
    "llama-3-8b": ("llama3", "8B"), "llama-3-70b": ("llama3", "70B"),
    "llama-3-405b": ("llama3", "405B"), "qwen-3-8b": ("qwen3", "8B"),
    "qwen-3-14b": ("qwen3", "14B"), "qwen-3-32b": ("qwen3", "32B"),
    "qwen-3-30b-a3b": ("qwen3", "30B-A3B"), "qwen-3-235b-a22b": ("qwen3", "235B-A22B"),
    "deepseek-v3": ("deepseek_v3", "671B"), "gpt-oss-120b": ("gpt_oss", "120b"),
}  # fmt: skip
"""Models of the catalog with torchtitan's name and flavor."""

SCHEDULES = {
    "1f1b": "1F1B", "gpipe": "GPipe", "interleaved-1f1b": "Interleaved1F1B",
    "looped-bfs": "LoopedBFS", "zbv": "ZBVZeroBubble", "dualpipev": "DualPipeV",
}  # fmt: skip
"""Pipeline schedules of torch.distributed.pipelining."""


def torchtitan(job: JobToWrite) -> Written:
    """Write the script that starts a job under torchtitan."""
    parallel, setup = job.parallel, job.setup
    why = torchtitan_refused(parallel)
    if why:
        return refusal(why)
    if job.model not in MODELS:
        return refusal("torchtitan 0.2 has no such model")
    if setup.lora_rank is not None:
        return refusal("torchtitan 0.2 trains no adapters")
    left_out: dict[str, str] = {}
    name, flavor = MODELS[job.model]
    lines = ["[model]", f'name = "{name}"', f'flavor = "{flavor}"']
    if job.dtype == "fp8":
        lines.append('converters = ["quantize.linear.float8"]')
    lines = [*lines, "", "[training]", *_training(setup, parallel), ""]
    lines = [*lines, "[parallelism]", *_parallelism(setup, parallel, left_out), ""]
    lines = [*lines, "[activation_checkpoint]", *_checkpointing(setup.recompute, left_out)]
    _leave_out(job, setup, left_out)
    file = "\n".join(["cat > train.toml <<'TOML'", *lines, "TOML"])
    program = "-m torchtitan.train"
    body = f"{file}\n{command(torchrun(parallel), program, ['--job.config_file train.toml'])}"
    return Written(text=script("torchtitan 0.2", job, body, left_out), left_out=left_out)


def _training(setup: TrainingSetup, parallel: ParallelLayout) -> list[str]:
    """Return the batch. A pipeline cuts it into microbatches; otherwise gradients accumulate."""
    piped = parallel.pp > 1
    local = setup.microbatch_size * (setup.microbatches if piped else 1)
    return [
        f"local_batch_size = {local}",
        f"global_batch_size = {setup.global_batch}",
        f"seq_len = {setup.sequence}",
        "steps = 50",
    ]


def _parallelism(
    setup: TrainingSetup, parallel: ParallelLayout, left_out: dict[str, str]
) -> list[str]:
    lines = [f"{name} = {size}" for name, size in torchtitan_degrees(parallel, setup.zero_stage)]
    if setup.zero_stage in (2, 3):
        policy = "always" if setup.zero_stage == 3 else "never"
        lines.append(f'fsdp_reshard_after_forward = "{policy}"')
    if setup.zero_stage == 1:
        left_out["zero_stage"] = "FSDP shards gradients and weights too"
    if parallel.pp > 1:
        lines.append(f"pipeline_parallel_microbatch_size = {setup.microbatch_size}")
        if setup.schedule in SCHEDULES:
            lines.append(f'pipeline_parallel_schedule = "{SCHEDULES[setup.schedule]}"')
        else:
            left_out["schedule"] = f"PyTorch has no {setup.schedule}: it runs 1F1B"
        _cut(setup, lines, left_out)
    if parallel.cp > 1:
        method = "allgather" if setup.context_exchange == "all-gather" else "alltoall"
        lines.append(f'context_parallel_rotate_method = "{method}"')
        if setup.traded_ranks > 1:
            left_out["context_exchange"] = "keys and values go around a ring, not all-to-all"
    return lines


def _cut(setup: TrainingSetup, lines: list[str], left_out: dict[str, str]) -> None:
    """Add the layers per stage to `lines`, or note in `left_out` that stages differ."""
    counts = [share.layers for share in virtual_stage_shares(setup)]
    if len(set(counts)) == 1:
        lines.append(f"pipeline_parallel_layers_per_stage = {counts[0]}")
        lines.append("pipeline_parallel_first_stage_less_layers = 0")
        lines.append("pipeline_parallel_last_stage_less_layers = 0")
    else:
        left_out["layers_per_stage"] = "torchtitan splits uneven stages by its own rule"
        if setup.placement.chunks > 1:
            left_out["chunks"] = "the number of stages follows from their layers"


def _checkpointing(recompute: str, left_out: dict[str, str]) -> list[str]:
    if recompute in ("none", "full"):
        return [f'mode = "{recompute}"']
    if recompute == "every_second_product":
        return ['mode = "selective"', 'selective_ac_option = "op"']
    left_out["recompute"] = f"there is no mode for {recompute}: nothing is recomputed"
    return ['mode = "none"']


def _leave_out(job: JobToWrite, setup: TrainingSetup, left_out: dict[str, str]) -> None:
    leave_out_rest(setup, left_out, ())
    if job.dtype not in ("bf16", "fp8"):
        left_out["dtype"] = f"weights are gathered in bf16, not multiplied in {job.dtype}"
    if setup.recipe.name != "fsdp16":
        left_out["recipe"] = "the state is kept in FP32 and gathered in BF16 (fsdp16)"
    if not setup.sequence_parallel and setup.parallel.tp > 1:
        left_out["sequence_parallel"] = "tensor parallelism always splits the sequence"
    if not setup.overlap_data_parallel:
        left_out["overlap_data_parallel"] = "FSDP always prefetches"
    if not setup.overlap_weights:
        left_out["overlap_weights"] = "FSDP always prefetches"
