"""Renames settings of trainers for fine-tuning and small models to known ones.

They are NeMo Automodel, XTuner, EasyLM, Mistral's and Kyutai's trainers, OpenChatKit and nanochat.
Sources: NVIDIA-NeMo/Automodel examples and components/distributed; InternLM/xtuner xtuner/configs
and xtuner/model/sft.py; young-geng/EasyLM EasyLM/models/llama/llama_train.py;
mistralai/mistral-finetune and kyutai-labs/moshi-finetune finetune/args.py;
togethercomputer/OpenChatKit training; karpathy/nanochat scripts/base_train.py.
"""

from __future__ import annotations

from figgen.scenarios.taking.research_words import renamed, with_usual
from figgen.scenarios.texts.entry import Entry, aside, entry, is_whole, normal


def tuning_words(entries: list[Entry]) -> list[Entry]:
    """Return the settings in known words, or nothing for other texts."""
    names = [normal(one.name) for one in entries]
    if "step_scheduler.local_batch_size" in names or any(
        one.value.startswith("nemo_automodel.") for one in entries
    ):
        return _automodel(entries)
    if any(name.startswith("train.accelerator.") for name in names):
        recomputed = "train.gradient_checkpointing.enable" in names
        return with_usual(entries, XTUNER_1 if not recomputed else FSDP, "config")
    if "pack_max_length" in names:
        return _xtuner_1(entries)
    if "block_size" in names and "wandb_log" in names:
        return _nanogpt(entries)
    if "load_llama_config" in names:
        return _easylm(entries)
    if "accumulative_counts" in names:
        return _xtuner(entries)
    if "lora.rank" in names and "run_dir" in names:
        return _mistral(entries)
    if "pipeline_group_size" in names:
        return _openchatkit(entries)
    if any(one.name == "program" and one.value.endswith("base_train") for one in entries):
        return _nanochat(entries)
    return []


FSDP = {"bf16": "true", "recipe_of": "fsdp"}
XTUNER_1 = {**FSDP, "gradient_checkpointing": "true"}


def _xtuner_1(entries: list[Entry]) -> list[Entry]:
    """Rename the second XTuner's; samples are packs of tokens, and layers are recomputed."""
    found = [entry("micro_batch_size", "1", "config"), entry("zero_stage", "3", "config")]
    for one in entries:
        if one.name == "recompute_ratio" and one.value in ("0", "0.0"):
            found.append(entry("gradient_checkpointing", "false", "python"))
        elif one.name == "pack_max_length":
            found.append(entry("seq_length", one.words, "config"))
        else:
            found.append(aside(one) if one.name == "max_length" else one)  # of a document
    return with_usual(found, XTUNER_1, "config")


NANOGPT = {
    **FSDP, "n_layer": "12", "n_head": "12", "n_embd": "768", "vocab_size": "50304",
    "bias": "false", "model_type": "gpt2", "zero_stage": "0",
}  # fmt: skip
"""What nanoGPT uses unless a file says otherwise."""


def _nanogpt(entries: list[Entry]) -> list[Entry]:
    """Rename nanoGPT's; microbatches are those of all GPUs together, on a model like GPT-2."""
    numbers = {"batch_size": 12, "gradient_accumulation_steps": 40}
    found: list[Entry] = []
    for one in entries:
        if one.name in numbers and is_whole(one.value):
            numbers[one.name] = int(one.value)
        else:
            found.append(one)
    size = numbers["batch_size"]
    batch = size * numbers["gradient_accumulation_steps"]
    found.append(entry("micro_batch_size", str(size), "config"))
    found.append(entry("global_batch_size", str(batch), "config"))
    return with_usual(found, NANOGPT, "config")


AUTOMODEL = {
    "step_scheduler.local_batch_size": "micro_batch_size",
    "packed_sequence.packed_sequence_size": "seq_length",
    "distributed.activation_checkpointing": "gradient_checkpointing",
    "distributed.moe.ep_size": "ep_size", "model.backend.attn": "attn_implementation",
    "model.backend.dispatcher": "moe_token_dispatcher_type",
}  # fmt: skip


def _automodel(entries: list[Entry]) -> list[Entry]:
    """Rename Automodel's settings; all strategies but DDP shard everything, weights are BF16."""
    stage = "3"
    found: list[Entry] = []
    for one in renamed(entries, AUTOMODEL):
        strategy = one.name in ("distributed.strategy", "distributed._target_")
        if strategy:
            stage = "0" if one.value.lower().endswith(("ddp", "ddpmanager")) else "3"
        elif one.name == "seq_length" and one.value == "0":
            found.append(aside(one))
        elif one.name == "peft.match_all_linear":
            matrices = "all-linear" if one.value.lower() == "true" else ""
            found.append(entry("lora_target_modules", matrices, "config"))
        elif one.name == "peft.dim":
            found.append(one)
            found.append(entry("adapter", "lora", "config"))
        elif one.name == "model.torch_dtype":
            found.append(entry("precision", one.value.rpartition(".")[2], "config"))
        elif one.name.startswith(("model.config.", "ci.")):
            found.append(aside(one))
        else:
            found.append(one)
    found.append(entry("zero_stage", stage, "config"))
    return [*found, entry("recipe_of", "automodel", "config")]


XTUNER = {
    "accumulative_counts": "gradient_accumulation_steps", "batch_size": "micro_batch_size",
    "use_activation_checkpointing": "gradient_checkpointing",
}  # fmt: skip


def _xtuner(entries: list[Entry]) -> list[Entry]:
    """Rename XTuner's; by default, activations are recomputed and all matrices have adapters."""
    found: list[Entry] = [entry("gradient_checkpointing", "true", "python")]
    adapted = any(one.name == "type" and one.value == "LoraConfig" for one in entries)
    for one in renamed(entries, XTUNER):
        if one.name == "r" and adapted:
            found.append(entry("lora_rank", one.words, "python"))
        elif one.name in ("torch_dtype", "bnb_4bit_compute_dtype"):
            found.append(aside(one))
        elif one.name == "dtype":
            found.append(entry("precision", one.words, "python"))
        else:
            found.append(one)
    if adapted:
        found.append(entry("adapter", "lora", "python"))
        found.append(entry("lora_target", "all-linear", "python"))
    return [*found, entry("recipe_of", "transformers", "python")]


def _easylm(entries: list[Entry]) -> list[Entry]:
    """Rename EasyLM's settings; its mesh has copies, shards and tensor parallelism."""
    found: list[Entry] = []
    for one in entries:
        name = normal(one.name)
        sizes = one.value.lstrip("!").split(",")
        if name == "load_llama_config":
            found.append(entry("model_name", "llama-" + one.words, "script"))
        elif name == "mesh_dim" and len(sizes) == 3:
            found.append(entry("tp_size", sizes[2], "script"))
            if is_whole(sizes[0]) and is_whole(sizes[1]):
                found.append(entry("dp_size", str(int(sizes[0]) * int(sizes[1])), "script"))
        elif name.startswith("train_dataset.") and name.endswith(".batch_size"):
            found.append(entry("global_batch_size", one.words, "script"))
        else:
            found.append(one)
    return [*found, entry("zero_stage", "3", "script"), entry("recipe_of", "maxtext", "script")]


MISTRAL = {
    "batch_size": "micro_batch_size", "model_id_or_path": "model_name",
    "num_microbatches": "gradient_accumulation_steps", "checkpoint": "gradient_checkpointing",
    "lora.enable": "adapter", "param_dtype": "precision", "moshi_paths.hf_repo_id": "model_name",
}  # fmt: skip

MISTRAL_USUAL = {
    "gradient_checkpointing": "true", "zero_stage": "3", "precision": "bfloat16",
    "lora_target": "all-linear", "gradient_accumulation_steps": "1",
}  # fmt: skip
"""Values that the trainer uses if a file doesn't set them."""


def _mistral(entries: list[Entry]) -> list[Entry]:
    """Rename Mistral's; a batch is a GPU's, FSDP shards everything, and layers are recomputed."""
    found = [entry(name, value, "config") for name, value in MISTRAL_USUAL.items()]
    full = any(one.name == "full_finetuning" and one.value == "true" for one in entries)
    for one in renamed(entries, MISTRAL):
        found.append(aside(one) if full and one.name in ("lora.rank", "adapter") else one)
    return found


OPENCHATKIT = {
    "pipeline_group_size": "pp_size", "data_group_size": "dp_size", "embedding_dim": "hidden_size",
    "pp_mode": "pipeline_parallel_schedule",
}  # fmt: skip


def _openchatkit(entries: list[Entry]) -> list[Entry]:
    """Rename OpenChatKit's settings; layers are those of a stage, a batch is that of a replica."""
    values = {normal(one.name): one.value for one in entries}
    stages = values["pipeline_group_size"]
    replicas = values.get("data_group_size", "1")
    found: list[Entry] = []
    for one in renamed(entries, OPENCHATKIT):
        count = int(one.value) if is_whole(one.value) else 0
        if normal(one.name) == "num_layers" and count and is_whole(stages):
            found.append(entry("num_layers", str(count * int(stages)), "script"))
        elif normal(one.name) == "batch_size" and count and is_whole(replicas):
            found.append(entry("global_batch_size", str(count * int(replicas)), "script"))
        else:
            found.append(one)
    return [*found, entry("recipe_of", "fsdp", "script"), entry("zero_stage", "0", "script")]


def _nanochat(entries: list[Entry]) -> list[Entry]:
    """Rename nanochat's; width is 64 times the depth, heads are 128 wide, batches count tokens."""
    values = {normal(one.name): one.value for one in entries}
    depth = values.get("depth", "20")
    each = values.get("head_dim", "128")
    ratio = values.get("aspect_ratio", "64")
    tokens = values.get("max_seq_len", "2048")
    found: list[Entry] = []
    for one in entries:
        if normal(one.name) == "device_batch_size":
            found.append(entry("micro_batch_size", one.words, one.origin))
        elif normal(one.name) == "total_batch_size" and is_whole(one.value) and is_whole(tokens):
            size = int(one.value) // max(1, int(tokens))
            found.append(entry("global_batch_size", str(size), one.origin))
        elif normal(one.name) == "depth":
            found.append(entry("num_layers", one.words, one.origin))
        else:
            found.append(one)
    if "max_seq_len" not in values:
        found.append(entry("seq_length", tokens, "config"))
    if "device_batch_size" not in values:
        found.append(entry("micro_batch_size", "32", "config"))
    if is_whole(depth) and is_whole(each) and is_whole(ratio) and int(each) > 0:
        heads = (int(depth) * int(ratio) + int(each) - 1) // int(each)
        width = heads * int(each)
        sizes = {"num_layers": int(depth), "hidden_size": width, "num_heads": heads}
        sizes = {**sizes, "ffn_hidden_size": 4 * width, "vocab_size": 32768}
        found.extend([entry(name, str(size), "config") for name, size in sizes.items()])
        found.append(entry("activation", "squared-relu", "config"))
    found.append(entry("optimizer", "muon", "config"))
    return [*found, entry("precision", "bf16", "config"), entry("recipe_of", "fsdp", "config")]
