"""Says which settings of Megatron-LM and its relatives, besides sizes, may change the answer.

`tests/taking/test_megatron.py` goes through the options of thirteen frameworks. Each must be read,
listed as one that may matter, or recorded as one that changes nothing.
"""

from __future__ import annotations

from figgen.scenarios.taking.unread import OFF, may_change
from figgen.scenarios.texts.entry import Entry, entry, normal

FAMILY = (
    "megatron-lm", "megatron-deepspeed", "megatron-core", "megatron-bridge", "nemo", "gpt-neox",
    "nanotron",
)  # fmt: skip
"""Frameworks with Megatron's names."""

ON = (
    "mode", "use_mcore_models", "mcore_gpt", "transformer_engine", "persist_layer_norm",
    "overlap_p2p_comm", "use_fused_rotary_pos_emb", "torch_adam_is_fused", "batch_p2p_comm",
    "moe_router_force_load_balancing", "fp8_hybrid", "no_check_for_nan_in_loss_and_grad",
    "no_async_tensor_model_parallel_allreduce", "use_remove_padding", "manual_gc",
    "moe_grouped_gemm", "gradient_as_bucket_view", "use_precision_aware_optimizer",
    "tp_linear_async_communication", "te_rng_tracker", "use_te_rng_tracker",
)  # fmt: skip
"""Switches besides fusions that the models assume to be on."""

AS_MODELLED = {
    "transformer_impl": "transformer_engine", "checkpoint_num_layers": "1",
    "check_for_nan_in_loss_and_grad": "false", "check_for_nan_in_grad": "false",
    "transformer_block_type": "pre_ln", "output_layer_parallelism": "column",
    "moe_router_num_groups": "1", "moe_router_group_topk": "1", "ddp_impl": "local",
    "distributed_backend": "nccl", "make_vocab_size_divisible_by": "1 2 8 64 128 256 512",
    "exp_avg_sq_dtype": "fp32 bf16 bfloat16 torch.bfloat16", "sync_batch_comm": "false",
}  # fmt: skip
"""Options that change memory or time, each with the values that the models assume."""

TELLING = (
    "fusion", "autocast", "tp_comm", "mla_", "mamba", "_kd_", "teacher", "balance_data",
    "checkpoint_args",
    "mtp_", "vision_", "language_model", "loss_ch", "loss_comp", "pipeline_split", "in_cpu",
    "alibi", "scatter_gather", "ous_checkpointing", "topk", "curriculum", "data_eff", "ns_steps",
    "sparsity", "hybridep", "paged_stash", "priority", "logits_load", "grad_reduce", "param_gather",
    "partition_method", "pin_cpu", "model_provider", "mem_eff", "stateless", "no_replica",
    "contiguous_buf", "transpose_cache", "gather_group", "enable_linear_qkv", "qkv_rope",
    "cpu_torch", "remote_dev", "symmetric", "hybrid", "transformer_type", "grouper", "retro_add",
    "split_trans", "ds_sequence", "post_norm", "dense_bias", "softcapping", "softmax_type",
    "router_type", "fc_type", "sharp", "target_regex", "extra_kwargs", "vit_", "deterministic",
    "max_tokens_per", "name_patterns", "deallocate", "output_layer", "soft_prompt", "unused_param",
    "_ddp_", "te_rng", "dynamic_bsz", "additional_conf", "_optimizer_",
)  # fmt: skip
"""Parts of names of options that change memory or time."""


NEUTRAL = (
    "_amax_", "_aux_loss_co", "_exit_", "_init", "_log_", "_mup_", "_rotary_", "_save_", "_yarn_",
    "ckpt_f", "inprocess", "iterations_", "recorder", "t_ckpt_", "vllm_",
    "accelerator", "bias_update", "enabled", "eod_", "expert_bias", "finetune", "init_method",
    "iters", "load_balancing", "mbridge", "pre_softmax", "project", "reset_pos",
    "score_function", "signal_handler", "_sft_", "topk_scaling", "vocab_f",
    "wall_clock",
)  # fmt: skip
"""Parts of names of options that change neither."""


def megatron_may_matter(one: Entry) -> bool:
    """Return whether an unused setting of the family may change memory or time."""
    whole = normal(one.name).removeprefix("model.")
    name = whole.rpartition(".")[2]
    said = one.words.lower().strip("\"'")
    if name in ON or (name.endswith("_fusion") and name[:3] != "no_"):
        return said in OFF
    if name in AS_MODELLED:
        return said not in AS_MODELLED[name].split(" ")
    padded = "_" + name + "_"
    if said not in OFF and any(part in padded for part in TELLING):
        return True
    if any(part in padded for part in NEUTRAL):
        return False
    dashes = "--" if one.name[:2] == "--" else "-" if one.name[:1] == "-" else ""
    return may_change(entry(dashes + whole, one.words, one.origin))
