"""Renames settings of policy trainers: ROLL, ChatLearn, SkyRL, EasyR1, prime-rl and veRL's
fine-tuning.

Only the training of the policy is read; critics, rewards and servers have settings of their own.

Sources: alibaba/ROLL examples and roll/configs; alibaba/ChatLearn scripts and template;
NovaSky-AI/SkyRL examples/train and skyrl/train/config; hiyouga/EasyR1 examples and verl/workers;
volcengine/verl trainer/config/sft_trainer;
PrimeIntellect-ai/prime-rl packages/prime-rl-configs.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.scenarios.taking.research_words import with_usual
from figgen.scenarios.texts.entry import Entry, aside, entry, is_whole, normal


def policy_words(entries: list[Entry]) -> list[Entry]:
    """Return the settings in known words, or nothing for other texts."""
    names = [normal(one.name) for one in entries]
    if any(name.startswith("actor_train.") for name in names):
        return _roll(entries)
    if any(name.startswith("models.policy_trainer.") for name in names):
        return _chatlearn(entries)
    if any(name.startswith("trainer.policy.") for name in names):
        return _policy(entries, SKYRL)
    if any(name.startswith("worker.actor.") for name in names):
        return _policy(entries, EASY_R1)
    if any(name.endswith("data.micro_batch_size_per_gpu") for name in names):
        return _verl_tuning(entries)
    tuned = all(name in names for name in ("data.seq_len", "data.batch_size", "model.name"))
    if tuned or any(name.startswith("orchestrator.") for name in names):
        return _prime_rl(entries)
    return []


PRIME_RL = {
    "name": "model_name", "batch_size": "global_batch_size", "num_train_gpus": "num_gpus",
    "num_train_nodes": "num_nodes", "cp_style": "cp_comm_type", "ac.mode": "ac_mode",
    "optim_cpu_offload": "offload_optimizer_device", "full_offload": "offload_optimizer_device",
    "ac_offloading.max_inflight_activations": "activation_offloading",
    "dp_replicate": "dp_replicate_size", "ep": "ep_size", "cp": "cp_size",
    "attn": "attn_implementation",
}  # fmt: skip


def _prime_rl(entries: list[Entry]) -> list[Entry]:
    """The trainer's settings; a model that serves and the orchestrator have their own."""
    found: list[Entry] = []
    for one in entries:
        section, _, name = one.name.removeprefix("trainer.").partition(".")
        if one.name == "data.name":
            found.append(aside(one))
        elif section in ("model", "data", "deployment") or one.name == "orchestrator.batch_size":
            found.append(entry(PRIME_RL.get(name, name), one.words, "config"))
        elif section in ("orchestrator", "inference", "wandb", "weight_broadcast"):
            found.append(aside(one))
        else:
            found.append(one)
    return [*found, entry("recipe_of", "prime-rl", "config")]


ROLL_SECTIONS = ("actor_train.strategy_args.strategy_config.", "actor_train.training_args.")


def _roll(entries: list[Entry]) -> list[Entry]:
    """Rename the actor's settings, with its GPUs; other workers have their own."""
    found: list[Entry] = []
    tokens = 0
    framework = "fsdp"
    for one in entries:
        name = one.name
        last = name.rpartition(".")[2]
        for section in ROLL_SECTIONS:
            name = name.removeprefix(section)
        if one.name in ("prompt_length", "response_length") and is_whole(one.value):
            tokens += int(one.value)
        elif one.name == "pretrain":
            found.append(entry("model_name", one.words, "config"))
        elif one.name == "actor_train.device_mapping":
            found.extend(_mapped(one))
        elif one.name == "actor_train.strategy_args.strategy_name":
            framework = "megatron-core" if "megatron" in one.value else "fsdp"
            stage = "3" if "fsdp" in one.value else ""
            found.append(entry("zero_stage", stage, "config"))
        elif last == "disable_gradient_checkpointing" and one.name.startswith("actor_train."):
            kept = "false" if one.value.lower() == "true" else "true"
            found.append(entry("gradient_checkpointing", kept, "config"))
        elif last == "ulysses_size" and one.name.startswith("actor_train."):
            found.append(entry("sp_size", one.words, "config"))
        elif name != one.name or one.name.startswith("actor_train.model_args."):
            found.append(entry(last if name == one.name else name, one.words, "config"))
        elif one.name in ("sequence_length", "defaults"):
            found.append(one)
        else:
            found.append(aside(one))
    if tokens:
        found.append(entry("seq_length", str(tokens), "config"))
    return [*found, entry("recipe_of", framework, "config")]


MOST_IN_NODE = 8


def _mapped(one: Entry) -> list[Entry]:
    """Return the GPUs in `list(range(0,16))` or `[1]`, at most eight per node."""
    inner = one.words.partition("(")[2].partition("(")[2].partition(")")[0]
    ends = [part.strip() for part in inner.split(",")]
    if len(ends) == 1 and is_whole(ends[0]):
        ends = ["0", ends[0]]
    if len(ends) == 2 and is_whole(ends[0]) and is_whole(ends[1]):
        count = int(ends[1]) - int(ends[0])
    else:
        count = len([part for part in one.words.strip("[]").split(",") if is_whole(part.strip())])
    if count < 1:
        return [one]
    width = min(count, MOST_IN_NODE)
    return [
        entry("num_nodes", str(max(1, count // width)), "config"),
        entry("gpus_per_node", str(width), "config"),
    ]


CHATLEARN = {
    "runtime_args.train_global_batch_size": "global_batch_size",
    "runtime_args.train_micro_batch_size": "micro_batch_size",
    "models.policy_trainer.num_gpu": "num_processes",
    "models.policy_trainer.ulysses_sequence_parallel_size": "sp_size",
    "models.policy_trainer.load": "model_name", "models.policy.load": "model_name",
}  # fmt: skip


def _chatlearn(entries: list[Entry]) -> list[Entry]:
    """Rename ChatLearn's settings; sequences of the batch are as long as prompt plus response."""
    found: list[Entry] = []
    tokens = 0
    framework = "fsdp"
    for one in entries:
        name = one.name.removeprefix("models.policy_trainer.")
        if one.name in CHATLEARN:
            found.append(entry(CHATLEARN[one.name], one.words, one.origin))
        elif one.name == "runtime_args.train_backend":
            framework = "megatron-core" if one.value == "megatron" else "fsdp"
        elif one.name.endswith("_tokens_length") and is_whole(one.value):
            tokens += int(one.value)
        elif name.startswith(("optimizer.", "generation_")):
            found.append(aside(one))
        elif name != one.name or not one.name.startswith(("models.", "runtime_args.")):
            found.append(entry(name, one.words, one.origin))
        else:
            found.append(aside(one))
    if tokens:
        found.append(entry("seq_length", str(tokens), "script"))
    if framework == "fsdp":
        found.append(entry("zero_stage", "3", "script"))
    return [*found, entry("recipe_of", framework, "script")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The words of a trainer whose step takes one mini batch of prompts, each answered `samples`
    times.

    Settings of `section` have known names without it, those of `others` don't concern the training,
    and `lengths` add up to the tokens of a sample.
    """

    section: str
    names: dict[str, str]
    lengths: tuple[str, ...]
    prompts: str
    samples: str
    others: tuple[str, ...]
    usual: dict[str, str]


SKYRL = Policy(
    section="trainer.policy.megatron_config.",
    names={
        "trainer.placement.policy_num_nodes": "num_nodes",
        "trainer.placement.policy_num_gpus_per_node": "num_gpus_per_node",
        "trainer.micro_train_batch_size_per_gpu": "micro_batch_size",
        "trainer.policy.model.path": "model_name",
        "trainer.policy.model.lora.rank": "lora_rank",
        "trainer.policy.sequence_parallel_size": "sp_size",
        "trainer.gradient_checkpointing": "gradient_checkpointing",
    },
    lengths=("trainer.max_prompt_length", "generator.sampling_params.max_generate_length"),
    prompts="trainer.policy_mini_batch_size",
    samples="generator.n_samples_per_prompt",
    others=("trainer.", "generator.", "data.", "environment."),
    usual={"gradient_checkpointing": "true", "bf16": "true", "num_nodes": "1"},
)

EASY_R1 = Policy(
    section="worker.actor.",
    names={
        "worker.actor.model.model_path": "model_name",
        "worker.actor.model.lora.rank": "lora_rank",
        "worker.actor.micro_batch_size_per_device_for_update": "micro_batch_size",
        "worker.actor.fsdp.torch_dtype": "training.dtype",
        "worker.actor.model.enable_gradient_checkpointing": "gradient_checkpointing",
    },
    lengths=("data.max_prompt_length", "data.max_response_length"),
    prompts="worker.actor.global_batch_size",
    samples="worker.rollout.n",
    others=("worker.", "data.", "algorithm."),
    usual={"gradient_checkpointing": "true", "bf16": "true", "micro_batch_size": "1"},
)


def _policy(entries: list[Entry], words: Policy) -> list[Entry]:
    """Rename the settings of a policy's training."""
    found: list[Entry] = []
    tokens: list[int] = []
    prompts = 0
    samples = 1
    megatron = any(one.name == "trainer.strategy" and one.value == "megatron" for one in entries)
    for one in entries:
        count = int(one.value) if is_whole(one.value) else 0
        name = one.name.removeprefix(words.section)
        if one.name in words.lengths:
            tokens.append(count)
        elif one.name == words.prompts:
            prompts = count
        elif one.name == words.samples:
            samples = count
        elif one.name in words.names:
            found.append(entry(words.names[one.name], one.words, "config"))
        elif name != one.name:
            found.append(entry(name, one.words, one.origin))
        else:
            found.append(aside(one) if one.name.startswith(words.others) else one)
    found = with_usual(found, words.usual, "config")
    found.append(entry("global_batch_size", str(prompts * samples) if prompts else "", "config"))
    whole = len(tokens) == len(words.lengths)  # the file of the other may have any length
    found.append(entry("seq_length", str(sum(tokens)) if whole else "", "config"))
    found.append(entry("zero_stage", "1" if megatron else "3", "config"))
    return [*found, entry("recipe_of", "megatron-core" if megatron else "fsdp", "config")]


VERL_TUNING = {
    "data.max_length": "seq_length", "data.train_batch_size": "global_batch_size",
    "data.micro_batch_size_per_gpu": "micro_batch_size", "engine.dtype": "precision",
    "model.path": "model_name", "model.partial_pretrain": "model_name",
    "model.lora_rank": "lora_rank", "model.target_modules": "lora_target_modules",
    "model.enable_gradient_checkpointing": "gradient_checkpointing",
    "engine.ulysses_sequence_parallel_size": "sp_size", "ulysses_sequence_parallel_size": "sp_size",
    "trainer.nnodes": "num_nodes", "trainer.n_gpus_per_node": "num_gpus_per_node",
    "trainer.num_nodes": "num_nodes", "trainer.devices": "num_gpus_per_node",
}  # fmt: skip


def _verl_tuning(entries: list[Entry]) -> list[Entry]:
    """Rename veRL's fine-tuning settings; FSDP trains in BF16 and recomputes layers by default."""
    found = [entry("gradient_checkpointing", "true", "config"), entry("bf16", "true", "config")]
    for one in entries:
        name = one.name.removeprefix("training_config.")
        known = name in VERL_TUNING
        kept = known or not name.startswith(("data.", "model.", "engine.", "optim.", "trainer."))
        if known and one.words:
            found.append(entry(VERL_TUNING[name], one.words, "config"))
        else:
            found.append(one if kept else aside(one))
    found.append(entry("zero_stage", "3", "config"))
    return [*found, entry("recipe_of", "fsdp", "config")]
