"""Writes the files that start a job of transformers' trainer, under DeepSpeed or accelerate.

Fields and options: deepspeedai/DeepSpeed at edaa7221, deepspeed/runtime/config.py and
deepspeed/runtime/zero/config.py; huggingface/accelerate 1.15.0, accelerate/commands/launch.py and
accelerate/commands/config/config_args.py; huggingface/transformers 5.24, training_args.py and
examples/pytorch/language-modeling/run_clm.py.
"""

from __future__ import annotations

from figgen.models.machine.layout import ParallelLayout
from figgen.models.setup.training_setup import TrainingSetup
from figgen.scenarios.writing.model_file import LAYERS, model_file, model_kind
from figgen.scenarios.writing.offloading import deepspeed_offloading
from figgen.scenarios.writing.written import (
    JobToWrite,
    Written,
    leave_out_rest,
    refusal,
    script,
    switch,
)


def trainer_refused(job: JobToWrite, who: str) -> str:
    """Return why transformers' trainer cannot run a job, or "" if it can."""
    parallel, setup = job.parallel, job.setup
    if parallel.tp * parallel.pp * parallel.cp * parallel.ep > 1:
        return f"{who} divides a job by data parallelism only"
    if not model_kind(setup.shape):
        return "transformers' classes for such layers are not supported here"
    if setup.lora_rank is not None:
        return "run_clm.py trains no adapters"
    return ""


def deepspeed(job: JobToWrite) -> Written:
    """Write the script that starts a job under DeepSpeed with transformers."""
    setup = job.setup
    why = trainer_refused(job, "ZeRO")
    if why:
        return refusal(why)
    left_out: dict[str, str] = {}
    if setup.recipe.name != "zero16":
        left_out["recipe"] = "the state is kept as zero16"
    if job.dtype not in ("bf16", "fp16"):
        left_out["dtype"] = f"matmuls are in bf16, not in {job.dtype}"
    if not setup.overlap_weights:
        left_out["overlap_weights"] = "DeepSpeed has no such option"
    half = "fp16" if job.dtype == "fp16" else "bf16"
    fields = [
        f'"train_batch_size": {setup.global_batch}',
        f'"train_micro_batch_size_per_gpu": {setup.microbatch_size}',
        f'"gradient_accumulation_steps": {setup.microbatches}',
        f'"{half}": {{"enabled": true}}',
        f'"zero_optimization": {{"stage": {setup.zero_stage}, '
        f'"overlap_comm": {switch(setup.overlap_data_parallel)}'
        f"{deepspeed_offloading(setup, left_out)}}}",
        '"gradient_clipping": 1.0',
    ]
    lines = ",\n".join([f"  {field}" for field in fields]).split("\n")
    file = ["cat > ds_config.json <<'JSON'", "{", *lines, "}", "JSON"]
    parallel = job.parallel
    hosts = " --hostfile hostfile" if parallel.nodes > 1 else ""
    sizes = f"--num_nodes {parallel.nodes} --num_gpus {parallel.gpus_per_node}"
    start = f"deepspeed{hosts} {sizes} run_clm.py"
    checkpointing = "True" if setup.recompute == "full" else "False"
    options = [
        *_program(setup, half, left_out, ("offload",)),
        f"--gradient_checkpointing {checkpointing}",
        "--deepspeed ds_config.json",
    ]
    body = _body(setup, file, start, options)
    text = script("DeepSpeed with transformers", job, body, left_out)
    return Written(text=text, left_out=left_out)


def accelerate(job: JobToWrite) -> Written:
    """Write the script that starts a job under accelerate's FSDP2 with transformers."""
    setup = job.setup
    why = trainer_refused(job, "FSDP")
    if why:
        return refusal(why)
    if setup.zero_stage < 2:
        return refusal("FSDP2 shards gradients at least (ZeRO 2): DeepSpeed runs ZeRO 0 and 1")
    left_out: dict[str, str] = {}
    if setup.recipe.name != "fsdp16":
        left_out["recipe"] = "the state is kept in FP32 and gathered in 16 bits (fsdp16)"
    if job.dtype not in ("bf16", "fp16"):
        left_out["dtype"] = f"matmuls are in bf16, not in {job.dtype}"
    if not setup.overlap_data_parallel:
        left_out["overlap_data_parallel"] = "FSDP always prefetches"
    if not setup.overlap_weights:
        left_out["overlap_weights"] = "FSDP always prefetches"
    half = "fp16" if job.dtype == "fp16" else "bf16"
    start = "accelerate launch --config_file fsdp.yaml"
    if job.parallel.nodes > 1:
        start = f"{start} --machine_rank $NODE_RANK --main_process_ip $MASTER_ADDR"
    options = _program(setup, half, left_out, ("away",))
    if setup.offloaded_activations and not _all_away(setup):
        left_out["offloaded_activations"] = "only inputs of recomputed layers can be offloaded"
    file = ["cat > fsdp.yaml <<'YAML'", *_accelerate_file(job.parallel, setup, half), "YAML"]
    body = _body(setup, file, f"{start} run_clm.py", options)
    text = script("accelerate with FSDP2", job, body, left_out)
    return Written(text=text, left_out=left_out)


def _accelerate_file(parallel: ParallelLayout, setup: TrainingSetup, half: str) -> list[str]:
    return [
        "compute_environment: LOCAL_MACHINE",
        "distributed_type: FSDP",
        f"mixed_precision: {half}",
        f"num_machines: {parallel.nodes}",
        f"num_processes: {parallel.world_size}",
        "fsdp_config:",
        "  fsdp_version: 2",
        f"  fsdp_reshard_after_forward: {switch(setup.zero_stage == 3)}",
        "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP",
        f"  fsdp_transformer_layer_cls_to_wrap: {LAYERS[model_kind(setup.shape)]}",
        f"  fsdp_activation_checkpointing: {switch(setup.recompute == 'full')}",
        "  fsdp_state_dict_type: SHARDED_STATE_DICT",
        *(["  fsdp_activation_checkpointing_offload: true"] if _all_away(setup) else []),
    ]


def _all_away(setup: TrainingSetup) -> bool:
    """Return whether the inputs of all recomputed layers are offloaded."""
    return setup.recompute == "full" and setup.offloaded_activations == 1


def _program(
    setup: TrainingSetup, half: str, left_out: dict[str, str], known: tuple[str, ...]
) -> list[str]:
    """Return the options of transformers' example program."""
    if setup.recompute not in ("none", "full"):
        left_out["recompute"] = f"layers are recomputed whole or not at all, not {setup.recompute}"
    leave_out_rest(setup, left_out, known)
    return [
        "--config_name model",
        "--tokenizer_name $TOKENIZER",
        "--dataset_name Salesforce/wikitext --dataset_config_name wikitext-103-raw-v1",
        f"--do_train --{half} True",
        f"--block_size {setup.sequence}",
        f"--per_device_train_batch_size {setup.microbatch_size}",
        f"--gradient_accumulation_steps {setup.microbatches}",
        "--max_steps 50 --logging_steps 1 --output_dir out",
    ]


def _body(setup: TrainingSetup, file: list[str], start: str, options: list[str]) -> str:
    """Return both files, and the command that starts transformers' example program."""
    lines = [*model_file(setup.shape, setup.sequence), *file]
    hint = "# run_clm.py is transformers/examples/pytorch/language-modeling/run_clm.py."
    words = [start, *[f"  {option}" for option in options]]
    return "\n".join([*lines, hint]) + "\n" + " \\\n".join(words)
