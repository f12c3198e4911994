"""Renames settings of smaller trainers to known ones.

They are torchtune's files, LitGPT, Levanter, OpenRLHF, NeMo RL, ColossalAI's benchmarks, and those
of `research_words`.
Sources: meta-pytorch/torchtune recipes/configs; Lightning-AI/litgpt config_hub, litgpt/args.py,
pretrain.py and finetune/full.py; stanford-crfm/levanter config; OpenRLHF/OpenRLHF examples/scripts;
NVIDIA-NeMo/RL examples/configs; hpcaitech/ColossalAI examples/language/llama/benchmark.py.
"""

from __future__ import annotations

from figgen.scenarios.taking.research_words import (
    fairseq2,
    internevo,
    olmo,
    olmo_core,
    renamed,
)
from figgen.scenarios.texts.entry import Entry, aside, entry, is_whole, normal


def trainer_words(entries: list[Entry]) -> list[Entry]:
    """Return the settings under known names with the trainer's name, or nothing for other texts."""
    names = [normal(one.name) for one in entries]
    if "model._component_" in names:
        return _torchtune(entries)
    if "train.micro_batch_size" in names and (
        "train.max_seq_length" in names or "checkpoint_dir" in names or "out_dir" in names
    ):
        return _litgpt(entries)
    if "trainer.mp" in names or ("model.hidden_dim" in names and "model.type" in names):
        return [*renamed(entries, LEVANTER), entry("recipe_of", "levanter", "config")]
    if "global_train_batch_size" in names and "model.mlp_hidden_size" in names:
        return olmo(entries)
    if any(name.startswith(("policy.megatron_cfg.", "policy.dtensor_cfg.")) for name in names):
        return _nemo_rl(entries)
    if "rank_microbatch_size" in names:
        return olmo_core(entries)
    if "micro_num" in names and "micro_bsz" in names:
        return internevo(entries)
    if any(name in FAIRSEQ2 for name in names):
        return fairseq2(entries)
    if "ds.zero_stage" in names or "micro_train_batch_size" in names:
        return _openrlhf(entries)
    if any(one.name == "launcher" and one.value == "colossalai" for one in entries):
        return _colossalai(entries)
    return []


FAIRSEQ2 = ("gang.tensor_parallel_size", "dataset.max_num_tokens", "regime.num_steps")


def _torchtune(entries: list[Entry]) -> list[Entry]:
    """Rename torchtune's settings; its builder functions name models, as in `lora_llama3_8b`.

    A recipe for one device shards nothing.
    """
    found: list[Entry] = []
    for one in entries:
        if one.name == "model._component_":
            builder = one.value.rpartition(".")[2]
            family, _, name = builder.partition("lora_")
            found.append(entry("model_name", name if name else builder, "config"))
            if name:
                found.append(entry("adapter", family + "lora", "config"))
        elif one.name == "optimizer._component_":
            found.append(entry("optimizer", one.words, "config"))
        else:
            found.append(one)
    if any(one.name == "output_dir" and "single_device" in one.value for one in entries):
        found.append(entry("zero_stage", "0", "config"))
        found.append(entry("num_nodes", "1", "config"))
        found.append(entry("gpus_per_node", "1", "config"))
    return [*found, entry("recipe_of", "torchtune", "config")]


def _litgpt(entries: list[Entry]) -> list[Entry]:
    """Rename LitGPT's settings; fine-tuning on several devices recomputes every block."""
    found: list[Entry] = []
    matrices: list[str] = []
    tuned = False
    several = False
    for one in renamed(entries, LITGPT):
        name = normal(one.name)
        if name == "checkpoint_dir":
            tuned = True
            found.append(entry("model_name", one.words, one.origin))
        elif name == "quantize" and one.value:
            found.append(entry("load_in_4bit", "true", one.origin))
        elif name == "model_config.mlp_class_name":
            kind = "gelu" if one.value == "GptNeoxMLP" else "geglu" if "Gemma" in one.value else ""
            found.append(entry("activation", kind or "swiglu", one.origin))
        elif name == "model_config.norm_class_name":
            found.append(entry("normalization", one.words, one.origin))
        elif name in LITGPT_MATRICES:
            if one.value == "true":
                matrices.append(LITGPT_MATRICES[name])
        else:
            several = several or (name in ("devices", "num_nodes") and one.value not in ("1", ""))
            found.append(one)
    if matrices:
        found.append(entry("lora_target_modules", " ".join(matrices), "config"))
    if tuned and several:
        found.append(entry("gradient_checkpointing", "true", "config"))
    return [*found, entry("recipe_of", "litgpt", "config")]


LITGPT = {
    "model_config.name": "model_name",
    "model_config.n_query_groups": "num_query_groups",
    "model_config.head_size": "head_dim",
    "model_config.n_expert": "num_experts",
    "model_config.n_expert_per_token": "moe_top_k",
    "model_config.n_shared_expert": "num_shared_experts",
    "model_config.attn_bias": "attention_bias",
    "train.tie_embeddings": "tie_word_embeddings",
}
"""LitGPT's sizes, which no other trainer names so."""

LITGPT_MATRICES = {
    "lora_query": "q_proj", "lora_key": "k_proj", "lora_value": "v_proj",
    "lora_projection": "o_proj", "lora_mlp": "up_proj", "lora_head": "lm_head",
}  # fmt: skip

LEVANTER = {
    "model.hidden_dim": "hidden_size", "model.intermediate_dim": "ffn_hidden_size",
    "model.type": "model_type", "trainer.train_batch_size": "global_batch_size",
    "trainer.per_device_parallelism": "micro_batch_size", "trainer.mp": "precision",
    "trainer.model_axis_size": "tp_size", "initialize_from_hf": "model_name",
    "model.use_bias": "bias", "model.activation_function": "activation_function",
    "model.reference_checkpoint": "model_name", "trainer.quantization.fp8": "fp8",
}  # fmt: skip

OPENRLHF = {
    "train.batch_size": "global_batch_size", "train.micro_batch_size": "micro_batch_size",
    "micro_train_batch_size": "micro_batch_size", "data.max_len": "seq_length",
    "max_len": "seq_length", "ds.param_dtype": "precision", "param_dtype": "precision",
    "ds.lora.rank": "lora_rank", "model.gradient_checkpointing_enable": "gradient_checkpointing",
    "actor.gradient_checkpointing_enable": "gradient_checkpointing", "pretrain": "model_name",
    "ds.tensor_parallel_size": "tensor_parallel_size", "ds_tensor_parallel_size": "tp_size",
    "ds.ring_attn_size": "context_parallel_size", "ring_attn_size": "context_parallel_size",
    "ds.adam_offload": "optimizer_cpu_offload", "ds.packing_samples": "packing",
    "adam_offload": "optimizer_cpu_offload", "packing_samples": "packing",
    "actor_num_nodes": "num_nodes", "actor_num_gpus_per_node": "num_gpus_per_node",
}  # fmt: skip

OPENRLHF_OTHERS = (
    "ref.", "reward.", "critic.", "vllm.", "ref_", "reward_", "critic_", "vllm_", "rollout.",
    "eval.", "logger.", "ckpt.",
)  # fmt: skip
"""Options of models and programs other than the trained one."""


def _openrlhf(entries: list[Entry]) -> list[Entry]:
    """Rename the settings of the actor's training, whose step takes the samples of one batch."""
    found: list[Entry] = []
    tokens = 0
    for one in renamed(entries, OPENRLHF):
        name = normal(one.name)
        if name.startswith(OPENRLHF_OTHERS):
            found.append(aside(one))
        elif name in ("prompt_max_len", "generate_max_len") and is_whole(one.value):
            tokens += int(one.value)
        else:
            found.append(one)
    if tokens:
        found.append(entry("seq_length", str(tokens), "script"))
    return [*found, entry("recipe_of", "deepspeed", "script")]


NEMO_RL = {
    "policy.train_global_batch_size": "global_batch_size",
    "policy.train_micro_batch_size": "micro_batch_size",
    "policy.max_total_sequence_length": "seq_length",
}


def _nemo_rl(entries: list[Entry]) -> list[Entry]:
    """Return the settings of the policy's training, from the backend that is enabled."""
    values = {one.name: one.value.lower() for one in entries}
    megatron = values.get("policy.megatron_cfg.enabled", "") == "true" or (
        "policy.dtensor_cfg.enabled" in values and values["policy.dtensor_cfg.enabled"] == "false"
    )
    backend = "policy.megatron_cfg." if megatron else "policy.dtensor_cfg."
    adapter = values.get(backend + "peft.enabled", values.get(backend + "lora_cfg.enabled", ""))
    found: list[Entry] = []
    for one in renamed(entries, NEMO_RL):
        name = one.name.removeprefix(backend)
        if name.startswith(("peft.", "lora_cfg.")):
            rank = name.endswith(".dim") and adapter == "true"
            found.append(entry("lora_rank", one.words, one.origin) if rank else aside(one))
        elif name == "activation_checkpointing":
            found.append(entry("gradient_checkpointing", one.words, one.origin))
        elif name.startswith("recompute_") and values.get(backend + "activation_checkpointing", ""):
            found.append(aside(one))
        elif name != one.name and not name.startswith(("optimizer.optimizer", "scheduler.")):
            found.append(entry(name, one.words, one.origin))
        elif one.name.startswith("cluster.") or "." not in name or name == one.name == "seq_length":
            found.append(one)
        elif one.name in ("policy.model_name", "policy.precision"):
            found.append(entry(one.name.removeprefix("policy."), one.words, one.origin))
        else:
            found.append(aside(one))
    found.append(entry("recipe_of", "megatron-core" if megatron else "fsdp", "config"))
    if not megatron:
        found.append(entry("zero_stage", "3", "config"))
    return found


COLOSSAL = {
    "-b": "local_batch_size", "batch_size": "local_batch_size", "-l": "seq_length",
    "-g": "gradient_checkpointing", "grad_checkpoint": "gradient_checkpointing",
    "-x": "use_flash_attn", "xformers": "use_flash_attn", "mbs": "micro_batch_size",
    "max_len": "seq_length", "accumulation_steps": "gradient_accumulation_steps",
    "pp_style": "pipeline_parallel_schedule", "n_chunks": "virtual_pipeline_model_parallel_size",
    "pretrain": "model_name",
}  # fmt: skip

COLOSSAL_STAGES = {"zero1": "1", "zero2": "2", "gemini": "3", "fsdp": "3", "torch_ddp": "0"}


def _colossalai(entries: list[Entry]) -> list[Entry]:
    """Rename ColossalAI's settings; the plugin shards the state, and a batch is a replica's."""
    found: list[Entry] = []
    for one in entries:
        name = normal(one.name) if one.name.startswith("--") else one.name
        if name in ("plugin", "-p"):
            stage = COLOSSAL_STAGES.get(one.value.replace("_cpu", "").replace("_auto", ""), "")
            found.append(entry("zero_stage", stage, one.origin) if stage else aside(one))
            if one.value.endswith("_cpu"):
                found.append(entry("cpu_offload", "true", one.origin))
        else:
            found.append(entry(COLOSSAL.get(name, one.name), one.words, one.origin))
    return [*found, entry("recipe_of", "colossalai", "script")]
