"""Writes the command that starts a job under Megatron-Bridge, as a recipe with overrides.

Recipes and fields: NVIDIA-NeMo/Megatron-Bridge at 067f987d, scripts/training/run_recipe.py,
src/megatron/bridge/recipes and src/megatron/bridge/training/config.py and mixed_precision.py.
"""

from __future__ import annotations

from figgen.models.setup.training_setup import TrainingSetup
from figgen.scenarios.writing.captured import (
    captured_options,
    needs_current_scaling,
    overlaps_experts,
)
from figgen.scenarios.writing.layouts import cannot_place, megatron_order
from figgen.scenarios.writing.megatron_lm import CP_COMM_TYPES, hierarchical_sizes
from figgen.scenarios.writing.megatron_options import (
    Option,
    dispatcher_options,
    recompute_options,
    schedule_options,
)
from figgen.scenarios.writing.written import (
    JobToWrite,
    Written,
    command,
    leave_out_rest,
    refusal,
    script,
    switch,
    torchrun,
)

RECIPES = {
    "gpt-3-175b": "gpt3_175b_pretrain_32gpu_h100_bf16_config",
    "llama-2-7b": "llama2_7b_pretrain_2gpu_h100_bf16_config",
    "llama-3-1b": "llama32_1b_pretrain_1gpu_h100_bf16_config",
    "llama-3-8b": "llama3_8b_pretrain_2gpu_h100_bf16_config",
    "llama-3-70b": "llama3_70b_pretrain_32gpu_h100_bf16_config",
    "llama-3-405b": "llama31_405b_pretrain_256gpu_h100_bf16_config",
    "qwen-3-8b": "qwen3_8b_pretrain_4gpu_h100_bf16_config",
    "qwen-3-14b": "qwen3_14b_pretrain_8gpu_h100_bf16_config",
    "qwen-3-32b": "qwen3_32b_pretrain_16gpu_h100_bf16_config",
    "qwen-3-30b-a3b": "qwen3_30b_a3b_pretrain_16gpu_h100_bf16_config",
    "qwen-3-235b-a22b": "qwen3_235b_a22b_pretrain_256gpu_h100_bf16_config",
    "deepseek-v2": "deepseek_v2_pretrain_128gpu_h100_bf16_config",
    "deepseek-v3": "deepseek_v3_pretrain_1024gpu_h100_bf16_config",
    "gpt-oss-120b": "gpt_oss_120b_pretrain_64gpu_h100_bf16_config",
    "kimi-k2": "kimi_k2_pretrain_512gpu_h100_bf16_config",
}
"""Recipes by the catalog's name of their model; the job's numbers replace those of the recipe."""

NESTED = ("llama-2-7b", "llama-3-1b", "llama-3-8b", "llama-3-70b", "llama-3-405b")
"""Models whose recipes keep the settings of layers in `model.transformer`, which an override has
to name."""

OVERLAPPING = {
    "gpt-3-175b": ("defer_embedding_wgrad_compute",),
    "qwen-3-30b-a3b": ("overlap_moe_expert_parallel_comm",),
    "qwen-3-235b-a22b": ("overlap_moe_expert_parallel_comm", "delay_wgrad_compute"),
}
"""Overlap that recipes switch on, and that not every layout allows."""

PRECISIONS = {
    "bf16": "bf16_mixed", "fp16": "fp16_mixed", "fp8": "bf16_with_fp8_delayed_scaling_mixed",
    "fp4": "bf16_with_nvfp4_mixed",
}  # fmt: skip
"""Registered mixed-precision settings by the number format of matmuls."""


def megatron_bridge(job: JobToWrite) -> Written:
    """Write the command that starts a job under Megatron-Bridge."""
    parallel, setup = job.parallel, job.setup
    if job.model not in RECIPES:
        return refusal("Megatron-Bridge has no recipe for this model")
    order = megatron_order(parallel)
    if not order:
        return cannot_place("Megatron-Bridge", parallel)
    if setup.lora_rank is not None:
        return refusal("LoRA jobs under Megatron-Bridge are not supported here")
    if order == "megatron-tp-pp-dp" and setup.zero_stage >= 2:
        return refusal("Megatron's FSDP has no order of ranks with pipelines before replicas")
    if parallel.etp > 1 and job.model == "gpt-oss-120b":
        return refusal("experts with biases cannot be split: ETP 1")
    left_out: dict[str, str] = {}
    options: list[Option] = [
        ("model.tensor_model_parallel_size", str(parallel.tp)),
        ("model.pipeline_model_parallel_size", str(parallel.pp)),
        ("model.context_parallel_size", str(parallel.cp)),
        ("model.expert_model_parallel_size", str(parallel.ep)),
        ("model.expert_tensor_parallel_size", str(parallel.etp)),
        ("dataset.seq_length", str(setup.sequence)),
        ("train.micro_batch_size", str(setup.microbatch_size)),
        ("train.global_batch_size", str(setup.global_batch)),
        ("train.train_iters", "50"),
    ]
    if order == "megatron-tp-pp-dp":
        options.append(("dist.use_tp_pp_dp_mapping", "true"))
    options = options + _pipeline(setup, left_out) + _state(setup, job.model)
    options = options + _precision(setup, job.dtype, left_out) + _kept(setup, left_out)
    options = options + _overlap(setup, job.model)
    leave_out_rest(
        setup, left_out, ("dropout", "mtp", "flash", "activations", "dispatcher", "captured")
    )
    if not setup.flash_attention:
        left_out["flash_attention"] = "the recipe decides how attention is computed"
    place = "model.transformer." if job.model in NESTED else "model."
    words = [f"{name.replace('model.', place)}={value}" for name, value in options]
    quoted = [f"'{word}'" if "[" in word or "|" in word else word for word in words]
    first = [f"--recipe {RECIPES[job.model]}", "--mode pretrain", "--dataset mock"]
    body = command(torchrun(parallel), "scripts/training/run_recipe.py", first + quoted)
    return Written(text=script("Megatron-Bridge", job, body, left_out), left_out=left_out)


def _pipeline(setup: TrainingSetup, left_out: dict[str, str]) -> list[Option]:
    """Return chunks and uneven stages, as null if only the recipe might set them."""
    found = dict(schedule_options(setup, left_out))
    names = {
        "num_virtual_stages_per_pipeline_rank": "virtual_pipeline_model_parallel_size",
        "decoder_first_pipeline_num_layers": "num_layers_in_first_pipeline_stage",
        "decoder_last_pipeline_num_layers": "num_layers_in_last_pipeline_stage",
        "pipeline_model_parallel_layout": "pipeline_model_parallel_layout",
    }
    options = [(f"model.{theirs}", found.get(name, "null")) for name, theirs in names.items()]
    for end in ("embedding", "loss"):  # which some recipes count as a layer
        options.append((f"model.account_for_{end}_in_pipeline_split", "false"))
    return options


def _overlap(setup: TrainingSetup, model: str) -> list[Option]:
    """Return overlap as the job has it where the recipe has another."""
    behind = overlaps_experts(setup, {})
    found: list[Option] = []
    for name in OVERLAPPING.get(model, ()):
        on = behind and name == "overlap_moe_expert_parallel_comm"
        found.append((f"comm_overlap.{name}", switch(on)))
    return found


def _state(setup: TrainingSetup, model: str) -> list[Option]:
    """Return the overrides for sharding and for overlap with computation."""
    sharded = setup.zero_stage >= 1
    behind = setup.overlap_data_parallel
    found: list[Option] = [
        ("ddp.use_distributed_optimizer", switch(sharded)),
        ("ddp.overlap_grad_reduce", switch(behind)),
        ("ddp.overlap_param_gather", switch(behind and sharded and setup.overlap_weights)),
    ]
    if setup.zero_stage >= 2:
        strategy = {2: "optim_grads", 3: "optim_grads_params"}[setup.zero_stage]
        found.append(("ddp.use_megatron_fsdp", "true"))
        found.append(("ddp.data_parallel_sharding_strategy", strategy))
        found.append(("checkpoint.ckpt_format", "fsdp_dtensor"))
        found.append(("model.gradient_accumulation_fusion", "false"))
        if model == "deepseek-v3":  # whose recipe has one connection, too few for FSDP
            found.append(("env_vars.CUDA_DEVICE_MAX_CONNECTIONS", "8"))
    return found


def _precision(setup: TrainingSetup, dtype: str, left_out: dict[str, str]) -> list[Option]:
    usual = "mcore20" if dtype == "fp16" else "mcore18"
    if setup.recipe.name != usual:
        left_out["recipe"] = f"the state is kept as {usual}"
    kept = "fp8" if dtype == "fp8" else "16-bit"
    if setup.activations != kept:
        left_out["activations"] = f"activations are kept as {kept}"
    if dtype not in PRECISIONS:
        left_out["dtype"] = f"no mixed-precision setting has matmuls in {dtype}"
        return []
    precision = PRECISIONS[dtype]
    if dtype == "fp8" and needs_current_scaling(setup):
        precision = precision.replace("delayed", "current")
    return [("mixed_precision", precision)]


def _kept(setup: TrainingSetup, left_out: dict[str, str]) -> list[Option]:
    """Return overrides for recomputation, sequence parallelism, dropout and context exchange."""
    found = dict(recompute_options(setup.recompute, left_out))
    modules = found.get("recompute_modules", "")
    if modules:
        found["recompute_modules"] = f"[{modules.replace(' ', ',')}]"
    options: list[Option] = [
        (f"model.recompute_{part}", found.pop(f"recompute_{part}", "null"))
        for part in ("granularity", "method", "num_layers")
    ]
    options = options + [(f"model.{name}", value) for name, value in found.items()]
    if setup.recomputation.method and setup.cuda_graphs == "usual":
        options.append(("model.cuda_graph_impl", "none"))
    several = setup.parallel.tp > 1 and setup.sequence_parallel
    options.append(("model.sequence_parallel", switch(several)))
    rate = "0.1" if setup.dropout else "0.0"
    options.append(("model.attention_dropout", rate))
    options.append(("model.hidden_dropout", rate))
    if setup.parallel.cp > 1:
        options.append(("model.cp_comm_type", CP_COMM_TYPES[setup.context_exchange]))
        for name, value in hierarchical_sizes(setup):
            options.append((f"model.{name}", f"[{value.replace(' ', ',')}]"))
    if setup.dispatcher != "usual":
        chosen = dispatcher_options(setup.dispatcher)
        options = options + [(f"model.{name}", value) for name, value in chosen]
    captured = captured_options(setup, left_out)
    if any(name == "cuda_graph_impl" and value != "none" for name, value in captured):
        options.append(("model.use_te_rng_tracker", "true"))
        options.append(("rng.te_rng_tracker", "true"))
        options.append(("rerun_state_machine.check_for_nan_in_loss", "false"))
    for name, value in captured:
        listed = f"[{','.join(value.split())}]" if name == "cuda_graph_scope" else value or "true"
        options.append((f"model.{name}", listed))
    if setup.mtp_layers:
        options.append(("model.mtp_num_layers", str(setup.mtp_layers)))
    return options
