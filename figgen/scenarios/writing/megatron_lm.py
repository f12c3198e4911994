"""Writes the command that starts a job under Megatron-LM.

Options: NVIDIA/Megatron-LM at d98e8a64, megatron/training/arguments.py.
"""

from __future__ import annotations

from figgen.models.setup.training_setup import TrainingSetup
from figgen.scenarios.writing.captured import captured_options, needs_current_scaling
from figgen.scenarios.writing.layouts import (
    cannot_place,
    flags,
    megatron_degrees,
    megatron_order,
)
from figgen.scenarios.writing.megatron_options import (
    FORMATS,
    Option,
    model_options,
    recompute_options,
    schedule_options,
    state_recipe,
)
from figgen.scenarios.writing.offloading import KNOWN, megatron_offloading
from figgen.scenarios.writing.written import (
    JobToWrite,
    Written,
    command,
    leave_out_rest,
    refusal,
    script,
    torchrun,
)

BEGINNING: list[Option] = [
    ("mock_data", ""),
    ("tokenizer_type", "NullTokenizer"),
    ("train_iters", "50"),
    ("lr", "1e-4"),
    ("log_interval", "1"),
    ("log_throughput", ""),
]
"""Options for a trial run: random tokens, a few steps, and a log of their times."""


def megatron_lm(job: JobToWrite) -> Written:
    """Write the command that starts a job under Megatron-LM."""
    parallel, setup = job.parallel, job.setup
    order = megatron_order(parallel)
    if not order:
        return cannot_place("Megatron-LM", parallel)
    why = not_megatron(setup)
    if why:
        return refusal(why)
    left_out: dict[str, str] = {}
    options = megatron_degrees(parallel, order) + model_options(setup, left_out)
    options.append(("vocab_size", str(setup.shape.vocab)))
    options = options + _batch(setup) + schedule_options(setup, left_out)
    if "layers_per_stage" in left_out and setup.shape.layers % setup.placement.stages:
        return refusal(f"under Megatron-LM, {left_out['layers_per_stage']}")
    options = options + _state(setup, left_out)
    options = options + _numbers(setup, job.dtype, left_out)
    options = options + recompute_options(setup.recompute, left_out)
    options = options + megatron_offloading(setup, left_out)
    captured = captured_options(setup, left_out)
    if ("cuda_graph_impl", "full_iteration") in captured:
        captured.append(("no_check_for_nan_in_loss_and_grad", ""))
    options = options + captured + _rest(setup) + BEGINNING
    known = ("dropout", "mtp", "flash", "activations", "buckets", "dispatcher", "captured")
    leave_out_rest(setup, left_out, (*known, *_masked(setup), *KNOWN))
    start = "" if _needs_free_queues(setup) else "export CUDA_DEVICE_MAX_CONNECTIONS=1\n"
    body = start + command(torchrun(parallel), "pretrain_gpt.py", flags(options))
    return Written(text=script("Megatron-LM", job, body, left_out), left_out=left_out)


def not_megatron(setup: TrainingSetup) -> str:
    """Return why Megatron-Core's GPT cannot train this job, or "" if it can."""
    if setup.shape.state_space is not None:
        return "pretrain_gpt.py has no state-space layers"
    if setup.lora_rank is not None:
        return "Megatron-LM trains no adapters"
    if setup.mtp_layers and setup.shape.learned_positions:
        return "multi-token prediction needs rotary positions"
    return ""


def _batch(setup: TrainingSetup) -> list[Option]:
    found: list[Option] = [
        ("seq_length", str(setup.sequence)),
        ("max_position_embeddings", str(setup.sequence)),
        ("micro_batch_size", str(setup.microbatch_size)),
        ("global_batch_size", str(setup.global_batch)),
    ]
    if _masked(setup):
        found.append(("dataloader_inter_document_masking", ""))
    return found


def _masked(setup: TrainingSetup) -> tuple[str, ...]:
    """Return the option for packed documents if it can be written, which it can't under CP."""
    return ("documents",) if setup.document_tokens and setup.parallel.cp == 1 else ()


def _needs_free_queues(setup: TrainingSetup) -> bool:
    """Return whether the job shards as FSDP does, for which one hardware queue is too few."""
    return setup.zero_stage >= 2


def _state(setup: TrainingSetup, left_out: dict[str, str]) -> list[Option]:
    """Return the options for sharding and for overlap with computation."""
    found: list[Option] = []
    if setup.zero_stage >= 1:
        found.append(("use_distributed_optimizer", ""))
    if setup.zero_stage >= 2:
        strategy = {2: "optim_grads", 3: "optim_grads_params"}[setup.zero_stage]
        found.append(("use_megatron_fsdp", ""))
        found.append(("data_parallel_sharding_strategy", strategy))
        found.append(("ckpt_format", "fsdp_dtensor"))
        found.append(("init_model_with_meta_device", ""))
        found.append(("no_gradient_accumulation_fusion", ""))
    if setup.overlap_data_parallel:
        found.append(("overlap_grad_reduce", ""))
        if setup.zero_stage >= 1 and setup.overlap_weights:
            found.append(("overlap_param_gather", ""))
    if setup.buckets is not None:
        found.append(("ddp_num_buckets", str(setup.buckets)))
    if setup.framework == "megatron-fused-loss":
        found.append(("cross_entropy_loss_fusion", ""))
    return found + _exchanges(setup, left_out)


CP_COMM_TYPES = {
    "p2p": "p2p", "all-gather": "all_gather", "all-to-all": "a2a", "a2a+p2p": "a2a+p2p",
}  # fmt: skip
"""Megatron-Core's names for the exchanges between context-parallel ranks."""


def _exchanges(setup: TrainingSetup, left_out: dict[str, str]) -> list[Option]:
    """Return the options for the exchanges of tensor- and context-parallel ranks."""
    found: list[Option] = []
    if setup.sequence_parallel and setup.parallel.tp > 1:
        found.append(("sequence_parallel", ""))
    if setup.parallel.cp > 1:
        found.append(("cp_comm_type", CP_COMM_TYPES[setup.context_exchange]))
        found += hierarchical_sizes(setup)
    if setup.parallel.cp > 1 and not setup.flash_attention:
        left_out["flash_attention"] = "context parallelism requires fused attention"
    return found


def hierarchical_sizes(setup: TrainingSetup) -> list[Option]:
    """Return context ranks per node and across nodes, if the exchange differs between the two."""
    if setup.context_exchange != "a2a+p2p":
        return []
    inner = setup.traded_ranks
    return [("hierarchical_context_parallel_sizes", f"{inner} {setup.parallel.cp // inner}")]


def _numbers(setup: TrainingSetup, dtype: str, left_out: dict[str, str]) -> list[Option]:
    """Return the number formats of matmuls and of the state."""
    if dtype not in FORMATS:
        left_out["dtype"] = f"there is no option for {dtype}"
    found: list[Option] = []
    if dtype == "fp16":
        found.append(("fp16", ""))
    elif dtype != "tf32":
        found.append(("bf16", ""))
    if dtype == "fp8":
        found.append(("fp8_format", "hybrid"))
        if needs_current_scaling(setup):
            found.append(("fp8_recipe", "tensorwise"))
    if dtype == "fp4":
        found.append(("fp4_format", "e2m1"))
    usual = "fp8" if dtype == "fp8" else "16-bit"
    if setup.activations != usual:
        left_out["activations"] = f"activations are kept as {usual}"
    return found + state_recipe(dtype, left_out, setup)


def _rest(setup: TrainingSetup) -> list[Option]:
    rate = "0.1" if setup.dropout else "0.0"
    found: list[Option] = [("attention_dropout", rate), ("hidden_dropout", rate)]
    if not setup.flash_attention:
        found.append(("attention_backend", "unfused"))
    if setup.mtp_layers:
        found.append(("mtp_num_layers", str(setup.mtp_layers)))
    return found
