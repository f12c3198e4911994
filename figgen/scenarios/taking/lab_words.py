"""Renames settings of Megatron-Bridge's launcher, Primus, slime, open-instruct, OpenLM and Oumi.

Sources: NVIDIA-NeMo/Megatron-Bridge scripts/performance; AMD-AGI/Primus examples/megatron/configs
and primus/configs/modules/megatron; THUDM/slime scripts and slime/utils/arguments.py;
allenai/open-instruct scripts/train, mason.py and open_instruct/grpo_fast.py;
mlfoundations/open_lm open_lm/params.py; oumi-ai/oumi src/oumi/core/configs/params.
"""

from __future__ import annotations

from figgen.scenarios.taking.research_words import renamed
from figgen.scenarios.texts.entry import Entry, aside, entry, is_whole, normal


def lab_words(entries: list[Entry]) -> list[Entry]:
    """Return the settings under known names, or nothing for other texts.

    Megatron-Bridge's `--num_gpus` counts those of all nodes.
    """
    names = [normal(one.name) for one in entries]
    if "compute_dtype" in names and "num_gpus" in names:
        found = renamed(entries, {"num_gpus": "num_processes"})
        return [*found, entry("recipe_of", "megatron-bridge", "script")]
    if any(name.startswith("modules.") and name.endswith(".framework") for name in names):
        return _primus(entries)
    if "actor_num_gpus_per_node" in names and "rollout_batch_size" in names:
        return _slime(entries)
    if any(one.name == "program" and one.value.endswith("mason.py") for one in entries):
        return _open_instruct(entries)
    if any(one.name == "program" and one.value.endswith("open_lm.main") for one in entries):
        return [*entries, entry("recipe_of", "fsdp", "script")]
    if "training.trainer_type" in names or "model.model_max_length" in names:
        return [*renamed(entries, OUMI), entry("recipe_of", "transformers", "config")]
    return []


OUMI = {
    "model.model_name": "model_name", "model.torch_dtype_str": "torch_dtype",
    "training.optimizer": "optimizer", "fsdp.enable_fsdp": "use_fsdp",
    "fsdp.sharding_strategy": "fsdp_sharding_strategy", "fsdp.cpu_offload": "cpu_offload",
    "peft.q_lora": "load_in_4bit", "training.trainer_type": "trainer_type",
}  # fmt: skip


def _primus(entries: list[Entry]) -> list[Entry]:
    """Rename Primus's settings; a module names the file of its model.

    It trains in BF16 by default. Settings under `overrides` are those of Megatron-LM's command
    line.
    """
    found: list[Entry] = []
    megatron = False
    for one in entries:
        section, _, last = one.name.rpartition(".")
        if last == "model" and section.startswith("modules."):
            found.append(entry("model_name", one.words.removesuffix(".yaml"), "script"))
        elif section.endswith(".overrides") and one.words:
            found.append(entry("--" + last, one.words, "script"))
        elif last == "framework":
            megatron = one.value == "megatron"
        else:
            found.append(one)
    if megatron and not any(normal(one.name) in ("bf16", "fp16") for one in found):
        found.append(entry("--bf16", "true", "script"))
    return found


def _slime(entries: list[Entry]) -> list[Entry]:
    """Rename the settings of the actor's training with Megatron-LM, in BF16."""
    found: list[Entry] = []
    for one in entries:
        name = normal(one.name)
        if name in SLIME:
            found.append(entry(SLIME[name], one.words, one.origin))
        elif name == "num_gpus":
            found.append(aside(one))  # the GPUs that Ray may use, for actor and servers
        elif name.startswith(("rollout_", "sglang", "eval_", "critic_", "ref_", "n_samples")):
            found.append(aside(one))
        else:
            found.append(one)
    usual = {"--bf16": "true", "--use-distributed-optimizer": "true", "--seq-length": "4096"}
    said = [normal(one.name) for one in found]
    for name, value in usual.items():
        if normal(name) not in said:
            found.append(entry(name, value, "script"))
    return found


SLIME = {
    "actor_num_nodes": "num_nodes", "actor_num_gpus_per_node": "num_gpus_per_node",
    "hf_checkpoint": "model_name",
}  # fmt: skip


def _open_instruct(entries: list[Entry]) -> list[Entry]:
    """Rename mason.py's settings: learners get some of each node's GPUs, one number per node."""
    learners = [one for one in entries if normal(one.name) == "num_learners_per_node"]
    each = [int(word) for word in learners[-1].words.split() if is_whole(word)] if learners else []
    found: list[Entry] = []
    for one in entries:
        name = normal(one.name)
        if name.startswith("vllm_") or (each and name in ("num_nodes", "gpus")):
            found.append(aside(one))
        elif name == "gpus":
            found.append(entry("--gpus-per-node", one.words, "launcher"))
        elif name == "pack_length":
            found.append(entry("seq_length", one.words, one.origin))
        elif name != "num_learners_per_node":
            found.append(one)
    if each:
        found.append(entry("--num-nodes", str(len(each)), "launcher"))
        found.append(entry("--gpus-per-node", str(max(each)), "launcher"))
    return found
