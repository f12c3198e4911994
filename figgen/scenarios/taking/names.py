"""The names of settings in training frameworks, and the option of a job that each one means.

Names are compared without dashes and case. If a file nests a name, its last two or three parts are
tried before the last one, so that `zero_optimization.stage` matches and `optimizer.stage` does not.
Sources: NVIDIA/Megatron-LM megatron/training/arguments.py; NVIDIA-NeMo/Megatron-Bridge and NeMo
model configurations; pytorch/torchtitan config/job_config.py; huggingface/nanotron
config/config.py; EleutherAI/gpt-neox neox_arguments; deepspeedai/DeepSpeed runtime/config.py;
huggingface/accelerate commands/launch.py; axolotl utils/schemas; LLaMA-Factory hparams;
mosaicml/llm-foundry command_utils/train.py; Slurm's sbatch and srun; torchrun.
"""

from __future__ import annotations

from figgen.scenarios.texts.entry import is_whole, normal

KEYS: dict[str, str] = {
    # Cluster
    "nodes": (
        "nnodes num_nodes n_nodes num_machines nodes nnode dgxnnodes trainer.num_nodes "
        "trainer.nnodes "
        "experimental.num_nodes resource.nnodes"
    ),
    "processes_per_node": (
        "nproc_per_node num_gpus ntasks_per_gpu_node npernode ppn nproc trainer.devices "
        "trainer.n_gpus_per_node devices n_devices num_devices nprocpernode local_worker_num"
    ),
    "gpus_per_node": (
        "gn gpus_per_node gpus_per_host num_gpus_per_node n_gpus_per_node accelerators dgxngpu "
        "nvidia.com.gpu amd.com.gpu"
    ),
    "replicas": "master.replicas worker.replicas",
    "tasks_per_node": "ntasks_per_node",
    "tasks": "ntasks",
    "gpus_per_task": "gpus_per_task",
    "included": "include",
    "processes": (
        "ng num_processes world_size num_gpus_total nprocs worker_num resources.slots_per_trial "
        "compute.gpus"
    ),
    "generic_resources": "gres tres_per_node",
    "gpus": "gpus",
    # Layout
    "tp": (
        "tp tensor_model_parallel_size tensor_parallel_degree tensor_parallel_size "
        "model_parallel_size parallelism.tp tp_size autotp_size tensor_parallel tp_degree "
        "model_tensor_parallel_size intra_layer_model_parallel_size mesh.tp num_mp "
        "target_tensor_parallel_size tensor_parallel.tp_size tensor_parallel_dim "
        "tensor_parallelism"
    ),
    "pp": (
        "pp pipeline_model_parallel_size pipeline_parallel_degree pipeline_parallel_size "
        "pipe_parallel_size parallelism.pp pp_size pp_degree num_pp "
        "num_stages mesh.pp pipeline_parallelism"
    ),
    "cp": (
        "cp context_parallel_size context_parallel_degree cp_size parallelism.cp "
        "sequence_parallel_degree sequence_parallel_size cp_degree "
        "mesh.cp context_parallelism"
    ),
    "ulysses": (
        "ulysses_sequence_parallel_size sp_size seq_parallel_size "
        "ds_sequence_parallel_size ulysses_size"
    ),
    "ep": (
        "ep expert_model_parallel_size expert_parallel_degree expert_parallel_size "
        "moe_expert_parallel_size moe_expert_parallel_degree ep_size parallelism.ep mesh.ep "
        "expert_mesh.ep ep_degree"
    ),
    "etp": (
        "et etp expert_tensor_parallel_size expert_tensor_parallel_degree etp_size "
        "parallelism.etp mesh.etp expert_mesh.etp parallelism.expert_tensor_parallel_size"
    ),
    "edp": "expert_mesh.edp expert_mesh.dp",
    "dp": (
        "parallelism.dp data_parallel_size mesh.dp mesh.data mesh.data_parallel num_dp "
        "data_parallel_degree dp_size"
    ),
    "dp_shard": (
        "data_parallel_shard_degree data_parallel_shard_dim dp_shard_size "
        "mesh.dp_shard mesh.shard mesh.fsdp parallelism.dp_shard"
    ),
    "dp_replicate": (
        "data_parallel_replicate_degree data_parallel_replicate_dim dp_replicate_size "
        "mesh.replicate mesh.dp_replicate mesh.ddp "
        "num_distributed_optimizer_instances"
    ),
    "pipeline_last": "use_tp_pp_dp_mapping",
    "expert_tensor": "enable_expert_tensor_parallelism",
    "order": "order",
    "virtual_layers": "num_layers_per_virtual_pipeline_stage",
    "virtual_stages": (
        "vp num_virtual_stages_per_pipeline_rank virtual_pipeline_model_parallel_size "
        "virtual_pipeline_parallel_size virtual_pipeline_parallelism"
    ),
    "stage_layers": "pipeline_parallel_layers_per_stage",
    "schedule": "pipeline_parallel_schedule pp_engine",
    "layers_first": "decoder_first_pipeline_num_layers num_layers_in_first_pipeline_stage",
    "layer_list": "num_layer_list custom_pipeline_layers",
    "pipeline_layout": "pipeline_model_parallel_layout",
    "layers_last": "decoder_last_pipeline_num_layers num_layers_in_last_pipeline_stage",
    # Batch
    "microbatch_size": (
        "mb mbs micro_batch_size train_micro_batch_size_per_gpu per_device_train_batch_size "
        "device_train_microbatch_size tokens.micro_batch_size microbatch_size "
        "pipeline_parallel_microbatch_size device_train_batch_size_micro batch_size_training "
        "minibs data.batch_size"
    ),
    "local_batch": "local_batch_size training.batch_size device_train_batch_size",
    "plain_batch": "batch_size",
    "global_batch": (
        "gb gbs global_batch_size train_batch_size global_train_batch_size global_batch "
        "trainer.train_batch_size train_dataloader.batch_size"
    ),
    "accumulation": (
        "gradient_accumulation_steps batch_accumulation_per_replica num_micro_batches "
        "accumulate_grad_batches grad_accum_steps gradient_accumulation gas num_pp_microbatches"
    ),
    "sequence": (
        "seq_length seq_len sequence_length sequence_len max_seq_length max_seq_len cutoff_len "
        "model_max_length encoder_seq_length max_length context_length seqlen train_seq_len "
        "tokenizer.max_seq_len block_size max_context_width max_context_length"
    ),
    "prompt_tokens": "max_prompt_length max_prompt_len source_max_len",
    "answer_tokens": "max_completion_length target_max_len",
    "objective": "rl stage rlhf_type trainer_type",
    "document_mask": (
        "dataloader_inter_document_masking reset_attention_mask sample_packing packing "
        "dataset.reset_attention_mask neat_packing padding_free dataset.packed packed_sequence"
    ),
    "mask_kind": "attn_mask_type model.attn_mask_type",
    "positions": "max_position_embeddings n_positions n_ctx",
    # State and number formats
    "sequence_parallel": (
        "sequence_parallel sequence_parallelism "
        "enable_sequence_parallel"
    ),
    "tp_mode": "parallelism.tp_mode",
    "recompute_granularity": (
        "recompute_granularity activations_checkpoint_granularity ac_granularity"
    ),
    "recompute_method": "recompute_method activations_checkpoint_method",
    "recompute_layers": "recompute_num_layers activations_checkpoint_num_layers",
    "recompute_modules": "recompute_modules",
    "recompute_selective": (
        "recompute_activations selective_checkpoint_activations"
    ),
    "recompute_full": (
        "gradient_checkpointing checkpoint_activations fsdp_activation_checkpointing "
        "activation_checkpointing enable_activation_checkpointing recompute_layer "
        "fsdp_config.activation_checkpointing use_gradient_checkpointing use_gc "
        "enable_gradient_checkpointing grad_checkpoint gradient_checkpointing.enable "
        "grad_checkpointing"
    ),
    "recompute_off": "disable_gradient_checkpointing",
    "ac_mode": "activation_checkpoint.mode ac_config.mode ac_mode",
    "ac_option": (
        "activation_checkpoint.selective_ac_option selective_ac_option ac_config.option ac_option"
    ),
    "bf16": "bf16 bf16.enabled bfloat16.enabled bfloat16",
    "fp16": "fp16 fp16.enabled",
    "fp8": "fp8 fp8_format fp8.enabled enable_fp8 transformer_engine.fp8 model.fp8",
    "fp8_recipe": "fp8_recipe",
    "fp4": "fp4 fp4_format",
    "precision": (
        "precision mixed_precision compute_dtype trainer.precision model.dtype "
        "mixed_precision_param dtype torch_dtype distributed.model_dtype fp16_type"
    ),
    "state_dtype": "training.dtype",
    "precision_reduce": "mixed_precision_reduce fsdp_config.mixed_precision reduce_dtype",
    "converters": "model.converters converters",
    "distributed_optimizer": (
        "use_distributed_optimizer "
        "ddp.use_distributed_optimizer"
    ),
    "moments_dtype": "exp_avg_dtype optimizer.exp_avg_dtype",
    "main_grads_dtype": "main_grads_dtype",
    "accumulate_fp32": (
        "accumulate_allreduce_grads_in_fp32 grad_reduce_in_fp32 accumulate_grad_in_fp32"
    ),
    "master_weights": "megatron_amp_o2",
    "accumulate_bf16": "grad_reduce_in_bf16 accumulate_allreduce_grads_in_bf16",
    "zero": (
        "zero_optimization.stage zero_stage deepspeed_stage optimizer.zero_stage zero "
        "deepspeed_config.zero_stage"
    ),
    "offload": (
        "offload_param.device cpu_offload fsdp_offload_params enable_cpu_offload "
        "offload_param_device fsdp_cpu_offload fsdp_config.offload_params offload"
    ),
    "offload_optimizer": (
        "offload_optimizer.device offload_optimizer_device zero_optimization.cpu_offload "
        "optimizer_cpu_offload"
    ),
    "offload_overlap": "overlap_cpu_optimizer_d2h_h2d",
    "offload_fraction": "optimizer_offload_fraction offload_optimizer.ratio",
    "offload_activations": (
        "enable_activation_offloading activation_offloading cpu_offloading "
        "fsdp_activation_checkpointing_offload use_activation_cpu_offload offload_activations"
    ),
    "offload_layers": "cpu_offloading_num_layers",
    "offload_modules": "fine_grained_activation_offloading offload_modules",
    "use_fsdp": (
        "use_fsdp use_torch_fsdp2 use_megatron_fsdp use_custom_fsdp fsdp distributed_type "
        "use_deepspeed dist_config.name enable_fsdp use_mcore_fsdp fsdp_config.fsdp_mode "
        "model.fsdp"
    ),
    "fsdp_strategy": (
        "fsdp_sharding_strategy sharding_strategy data_parallel_sharding_strategy fsdp_type"
    ),
    "fsdp_reshard": "fsdp_reshard_after_forward reshard_after_forward",
    "deepspeed_file": "deepspeed deepspeed_config deepspeed_config_file ds_cfgs ds_config",
    "eight_bit_optimizer": "use_bnb_optimizer",
    "optimizer": "optimizer optimizer.type optimizer.name optim optim.name optimizer_type",
    "overlap_gradients": "overlap_grad_reduce overlap_comm ddp.overlap_grad_reduce",
    "overlap_weights": "overlap_param_gather ddp.overlap_param_gather",
    "buckets": "ddp_num_buckets",
    "fused_loss": "cross_entropy_loss_fusion",
    "fused_loss_by": "cross_entropy_fusion_impl",
    "dispatcher": "moe_token_dispatcher_type token_dispatcher_type",
    "dispatcher_backend": "moe_flex_dispatcher_backend",
    "deepep": "moe_enable_deepep",
    "expert_overlap": (
        "overlap_moe_expert_parallel_comm comm_overlap.overlap_moe_expert_parallel_comm "
        "moe_a2a_overlap"
    ),
    "graphs": "cuda_graph_impl",
    "older_graphs": "enable_cuda_graph external_cuda_graph",
    "graph_scope": "cuda_graph_scope",
    "as_modelled": (
        "fsdp_version fsdp_auto_wrap_policy fsdp_state_dict_type "
        "fsdp_transformer_layer_cls_to_wrap fsdp_config.auto_wrap_policy "
        "transformer_layer_cls_to_wrap tensor_parallel_plan._component_ tf32"
    ),
    "trainer_strategy": "strategy",
    "less_layers": (
        "pipeline_parallel_first_stage_less_layers pipeline_parallel_last_stage_less_layers"
    ),
    "context_exchange": (
        "cp_comm_type context_parallel_rotate_method context_parallel_strategy cp_style "
        "context_parallel_algo cp_strategy"
    ),
    "hierarchical_context": "hierarchical_context_parallel_sizes",
    "dropout_attention": "attention_dropout attn_pdrop attn_config.attn_pdrop",
    "dropout_hidden": "hidden_dropout resid_pdrop",
    "attention_kinds": "attention_config",
    "flash": (
        "use_flash_attn use_flash_attn_v2 use_flash_attn_v1 use_flash_attention flash_attention "
        "flash_attn attention_backend attn_implementation attn_impl use_flash_attention_2 "
        "use_flash_attn_triton"
    ),
    "engine": "model.transformer_engine",
    # Model
    "model_name": (
        "model_name_or_path base_model pretrained_model_name_or_path hf_model_path model_id "
        "model_recipe_name recipe model.path hf_assets_path model_path model_name load_hf_model "
        "pretrained_model from_pretrained policy.model_name model model.name llm_path hf_model_id "
        "hf_checkpoint factory checkpoint.pretrained_checkpoint"
    ),
    "model_size_name": "flavor model.flavor model_size",
    "config": "config",
    "layers": "nls num_layers num_hidden_layers n_layers n_layer nlayers",
    "hidden": "hs hidden_size hidden_width d_model n_embd dim model.dim",
    "heads": "nah num_attention_heads n_heads n_head num_heads",
    "kv_heads": "num_query_groups num_key_value_heads n_kv_heads kv_n_heads num_kv_heads",
    "multi_query": "attention_head_type multi_query multi_query_attention",
    "head_dim": "kv_channels head_dim",
    "ffn": "ffn_hidden_size intermediate_size ffn_dim n_inner llama_intermediate_size filter_size",
    "expansion": "expansion_ratio",
    "vocab": "vocab_size padded_vocab_size",
    "swiglu": "swiglu gated_linear_unit",
    "activation": (
        "activation model.activation hidden_act activation_function activation_func nonlinearity"
    ),
    "squared_relu": "squared_relu",
    "quick_geglu": "quick_geglu",
    "window_skip": "window_attn_skip_freq sliding_window_pattern",
    "norm": "normalization norm",
    "rms": "apply_layernorm_rms",
    "no_bias": "disable_bias_linear",
    "bias": (
        "bias model.bias has_bias add_bias_linear use_bias_in_mlp use_bias_in_attn_linear "
        "use_ffn_bias"
    ),
    "qkv_bias": "add_qkv_bias attention_bias",
    "model_kind": "model_type",
    "is_starcoder2": "is_starcoder2_config",
    "is_qwen2": "is_qwen2_config",
    "qk_norm": "qk_layernorm qk_norm",
    "untied": "untie_embeddings_and_output_weights no_weight_tying",
    "tied": (
        "tie_word_embeddings share_embeddings_and_output_weights share_embedding_weights"
    ),
    "position_kind": "position_embedding_type pos_emb",
    "no_positions": "no_position_embedding attn_config.alibi attn_config.rope",
    "rotary": (
        "use_rotary_position_embeddings use_llama2_rotary_position_embeddings "
        "use_mistral_rotary_position_embeddings"
    ),
    "ffn_block": "multiple_of mlp_multiple_of",
    "ffn_kind": "mlp_type",
    "decoder_sequence": "decoder_seq_length",
    "grouped": "group_query_attention",
    "experts": "num_experts num_moe_experts moe_num_experts n_routed_experts num_local_experts",
    "top_k": "moe_router_topk num_experts_per_tok moe_top_k expert_top_k moe_config.top_k",
    "expert_ffn": "moe_ffn_hidden_size moe_intermediate_size",
    "shared_ffn": "moe_shared_expert_intermediate_size",
    "shared_experts": "n_shared_experts num_shared_experts",
    "dense_layers": "first_k_dense_replace",
    "moe_layer_freq": "moe_layer_freq",
    "latent": "multi_latent_attention multi_head_latent_attention",
    "query_rank": "q_lora_rank",
    "kv_rank": "kv_lora_rank",
    "nope_head_dim": "qk_head_dim qk_nope_head_dim",
    "rope_head_dim": "qk_pos_emb_head_dim qk_rope_head_dim",
    "value_head_dim": "v_head_dim",
    "window": "window_size sliding_window",
    "mtp_layers": "mtp_num_layers num_nextn_predict_layers",
    # Fine-tuning
    "adapter": (
        "adapter finetuning_type use_peft peft_scheme train_type use_lora use_peft_lora "
        "tuner_type lora_enable peft_method"
    ),
    "lora_rank": (
        "lora_r lora_rank peft_config.r lora.rank peft.dim lora_dim use_llm_lora lora_config.rank"
    ),
    "lora_targets": "lora_target_modules lora_target target_modules lora_attn_modules lora_modules",
    "lora_all": "lora_target_linear apply_lora_to_mlp",
    "four_bit": "load_in_4bit use_qlora use_4bit_quantization",
    "eight_bit": "load_in_8bit use_8bit_quantization",
    "bits": "quantization_bit quant_bits bits",
    "chip": "gpu gpu_type accelerator_type constraint tpu_type compile_topology",
}  # fmt: skip
"""Keys of a job, each with its names in frameworks, which blanks separate."""

VARIABLES = {
    "nnodes": "nodes", "num_nodes": "nodes", "n_nodes": "nodes", "nnode": "nodes",
    "slurm_nnodes": "nodes", "gpus_per_node": "gpus_per_node", "nproc_per_node": "gpus_per_node",
    "num_gpus_per_node": "gpus_per_node", "n_gpus_per_node": "gpus_per_node",
    "ngpu": "gpus_per_node", "gpus_per_host": "gpus_per_node", "nproc": "gpus_per_node",
}  # fmt: skip
"""Variables of scripts that set the cluster even if the launcher is in another file."""


def _by_name() -> dict[str, str]:
    found: dict[str, str] = {}
    for key, names in KEYS.items():
        for name in names.split(" "):
            found[name] = key
    return found


BY_NAME = _by_name()


def key_of(name: str) -> str:
    """Return the key that a setting means, or ""; at most three parts of its name count."""
    plain = normal(name).replace("/", ".")
    for start in PREFIXES:
        plain = plain.replace(start, "")
    parts = plain.split(".")
    while len(parts) > 1 and is_whole(parts[-1]):  # of a list in a list
        parts.pop()
    if len(parts) > 1 and parts[0] in OTHER_SECTIONS:
        return ""
    for count in (3, 2, 1):
        if count > len(parts):
            continue
        tail = ".".join(parts[len(parts) - count :])
        if count == 1 and len(parts) > 1 and tail in TOP_ONLY:
            continue
        if tail in BY_NAME:
            return BY_NAME[tail]
    return ""


PREFIXES = ("megatron_lm_", "parallelism_config_")
"""Beginnings of accelerate's names for options of Megatron-LM and of a mesh."""

TOP_ONLY = (
    "model", "config", "optimizer", "fsdp", "tp", "pp", "cp", "ep", "et", "etp", "gb", "gbs", "mb",
    "mbs", "vp", "nls", "hs", "nah", "ng", "gn", "nodes", "gpus", "dim", "bias", "norm", "recipe",
    "dtype", "path", "activation",
    "fp8", "zero", "order", "precision", "deepspeed", "nproc", "ppn", "window_size", "gpu",
    "model_type", "batch_size", "max_length", "devices", "world_size", "adapter", "model_name",
    "from_pretrained", "tensor_parallel", "bits", "nprocs", "pos_emb", "strategy", "offload", "rl",
    "stage", "trainer_type",
)  # fmt: skip
"""Names that count only at the top of a file or on a command line."""

OTHER_SECTIONS = (
    "validation", "eval", "evaluation", "checkpoint_engine", "comm", "metrics", "wandb", "logging",
    "profiling", "lr_monitor", "callbacks", "eval_loader", "icl_tasks", "loggers", "flops_profiler",
    "rollout", "sglang", "vllm", "exp_manager", "teacher", "teacher_model", "teacher_distributed",
    "reference", "actor_infer", "rewards", "critic", "reward_model", "validation_dataset",
    "validation_dataloader", "reward_and_value_model", "lighteval",
)  # fmt: skip
"""Sections of files that do not concern the training step."""
