"""Renames settings of Megatron-Bridge's launcher, Primus, slime, open-instruct, OpenLM and Oumi.

Sources: NVIDIA-NeMo/Megatron-Bridge scripts/performance; AMD-AGI/Primus examples/megatron/configs
and primus/configs/modules/megatron; THUDM/slime scripts and slime/utils/arguments.py;
allenai/open-instruct scripts/train, mason.py and open_instruct/grpo_fast.py;
mlfoundations/open_lm open_lm/params.py; oumi-ai/oumi src/oumi/core/configs/params.
"""

from __future__ import annotations

from figgen.scenarios.taking.research_words import renamed, with_usual
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
    if "max_context_width" in names:
        return _aws(entries, names)
    if "num_learners_per_node" in names or any(
        one.name == "program" and one.value.endswith("mason.py") for one in entries
    ):
        return _open_instruct(entries)
    if any(one.name == "program" and one.value.endswith("open_lm.main") for one in entries):
        return [*entries, entry("recipe_of", "fsdp", "script")]
    if "training.trainer_type" in names or "model.model_max_length" in names:
        return [*renamed(entries, OUMI), entry("recipe_of", "transformers", "config")]
    return []


def _aws(entries: list[Entry], names: list[str]) -> list[Entry]:
    """Add what AWS's program sets by itself: recomputation, and the experts of Mixtral."""
    found = list(entries)
    if "activation_checkpointing" not in names:
        found.append(entry("activation_checkpointing", "true", "script"))
    if any(normal(one.name) == "model_type" and one.value == "mixtral" for one in entries):
        found.append(entry("num_local_experts", "8", "script"))
        found.append(entry("num_experts_per_tok", "2", "script"))
    return found


OUMI = {
    "model.model_name": "model_name", "model.torch_dtype_str": "torch_dtype",
    "training.optimizer": "optimizer", "fsdp.enable_fsdp": "use_fsdp",
    "fsdp.sharding_strategy": "fsdp_sharding_strategy", "fsdp.cpu_offload": "cpu_offload",
    "peft.q_lora": "load_in_4bit", "training.trainer_type": "trainer_type",
}  # fmt: skip


def _primus(entries: list[Entry]) -> list[Entry]:
    """Rename Primus's settings; a module names the file of its model.

    It trains in BF16 with Megatron's distributed optimizer and without dropout by default. Settings
    under `overrides` are those of Megatron-LM's command line.
    """
    found: list[Entry] = []
    megatron = False
    for one in entries:
        section, _, last = one.name.rpartition(".")
        if last == "model" and section.startswith("modules."):
            found.append(entry("model_name", one.words.removesuffix(".yaml"), "script"))
        elif section.endswith(".overrides") and one.words:
            name = "moe_enable_deepep" if last == "use_turbo_deepep" else last
            found.append(entry("--" + name, one.words, "script"))
        elif last == "framework":
            megatron = one.value == "megatron"
        else:
            found.append(one)
    return _megatron(found, PRIMUS) if megatron else found


SLIME_USUAL = {"--bf16": "true", "--use-distributed-optimizer": "true"}
PRIMUS = {**SLIME_USUAL, "--attention-dropout": "0", "--hidden-dropout": "0"}


def _megatron(entries: list[Entry], usual: dict[str, str]) -> list[Entry]:
    """Return the settings with those of Megatron-LM that a launcher adds by itself."""
    found = with_usual(entries, usual, "script")
    half = any(normal(one.name) == "fp16" for one in entries)
    return [one for one in found if not (half and one.name == "--bf16")]


def _slime(entries: list[Entry]) -> list[Entry]:
    """Rename the settings of the actor's training with Megatron-LM, in BF16.

    A sample is as long as its prompt and its answer, and a microbatch has as many as fit.
    """
    found: list[Entry] = []
    tokens = 0
    together = 0
    split = 1
    for one in entries:
        name = normal(one.name)
        number = int(one.value) if is_whole(one.value) else 0
        tokens += number if name in ("rollout_max_response_len", "rollout_max_prompt_len") else 0
        together = number if name == "max_tokens_per_gpu" else together
        split = number if name == "context_parallel_size" else split
        if name in SLIME:
            found.append(entry(SLIME[name], one.words, one.origin))
        elif name == "num_gpus":
            found.append(aside(one))  # the GPUs that Ray may use, for actor and servers
        elif name.startswith(("rollout_", "sglang", "eval_", "critic_", "ref_", "n_samples")):
            found.append(aside(one))
        else:
            found.append(one)
    if tokens:
        found.append(entry("--seq-length", str(tokens), "script"))
        size = max(1, together * split // tokens)
        found.append(entry("micro_batch_size", str(size), "script"))
    return _megatron(found, SLIME_USUAL)


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
