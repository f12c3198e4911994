"""Renames settings of MaxText, veRL, torchtune and ms-swift to known ones.

Sources: AI-Hypercomputer/maxtext configs/base.yml; volcengine/verl trainer/config/ppo_trainer.yaml
and actor/actor.yaml; meta-pytorch/torchtune recipes/configs; modelscope/ms-swift megatron/argument.
"""

from __future__ import annotations

from figgen.scenarios.taking.lab_words import lab_words
from figgen.scenarios.taking.policy_words import policy_words
from figgen.scenarios.taking.trainer_words import trainer_words
from figgen.scenarios.taking.tuning_words import tuning_words
from figgen.scenarios.texts.entry import Entry, aside, entry, is_whole, normal


def in_known_words(entries: list[Entry]) -> list[Entry]:
    """Return the settings, those of these four frameworks under names in `names.KEYS`."""
    if any(one.name == "compute.gpus" for one in entries):  # MosaicML's launcher
        entries = [_within(one) for one in entries]
    names = [normal(one.name) for one in entries]
    if any(name.startswith(("ici_", "dcn_")) or name == "per_device_batch_size" for name in names):
        return _maxtext(entries)
    if any(name.startswith("actor_rollout_ref.") for name in names):
        return _verl(entries)
    if any(one.value == "torchtune" for one in entries):
        return _torchtune(entries)
    for reader in (trainer_words, lab_words, tuning_words, policy_words):
        found = reader(entries)
        if found:
            mesh = any(one.name.startswith("--ici_") for one in found)  # of MaxText, in Primus
            return _maxtext([_plainly(one) for one in found]) if mesh else found
    if any(one.name == "program" and one.value == "megatron" for one in entries):
        return [*entries, entry("recipe_of", "megatron-core", "script")]
    return entries


def _within(one: Entry) -> Entry:
    return entry(one.name.removeprefix("parameters."), one.words, one.origin)


def _plainly(one: Entry) -> Entry:
    return entry(one.name.removeprefix("--"), one.words, one.origin)


MAXTEXT_AXES = {
    "data": "dp", "fsdp": "dp", "fsdp_transpose": "dp", "expert": "ep", "tensor": "tp",
    "tensor_transpose": "tp", "tensor_sequence": "tp", "sequence": "cp", "context": "cp",
    "pipeline": "pp",
}  # fmt: skip
"""The axis of a layout to which each axis of MaxText's mesh belongs."""

PLAIN_ATTENTION = ("dot_product", "paged")
MOST_IN_NODE = 8


def _maxtext(entries: list[Entry]) -> list[Entry]:
    """Rename MaxText's settings, combining axes within a slice and between slices.

    The batch of a device becomes that of all devices.
    """
    sizes = {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "dp": 1}
    copies = 1
    within = 1
    between = 1
    open = "ici_fsdp_parallelism" not in [one.name for one in entries]
    sharded = open
    found: list[Entry] = []
    each = 0.0
    count = 1
    for one in entries:
        place, _, rest = one.name.partition("_")
        axis = rest.removesuffix("_parallelism")
        if place in ("ici", "dcn") and axis in MAXTEXT_AXES:
            size = int(one.value) if is_whole(one.value) else 0
            open = open or size == 0
            if size == 0 and "fsdp" not in axis:
                found.append(entry(MAXTEXT_AXES[axis], "auto", one.origin))
            sharded = sharded or (axis.startswith("fsdp") and size != 1)
            within = within * max(size, 1) if place == "ici" else within
            between = between * max(size, 1) if place == "dcn" else between
            sizes[MAXTEXT_AXES[axis]] *= max(size, 1)
            copies *= max(size, 1) if axis == "data" else 1
        elif one.name == "per_device_batch_size" and _is_number(one.value):
            each = float(one.value)
        elif one.name in ("gradient_accumulation_steps", "num_pipeline_microbatches"):
            count = max(count, int(one.value) if is_whole(one.value) else 1)
        elif one.name in MAXTEXT_WORDS:
            found.append(entry(MAXTEXT_WORDS[one.name], one.words, one.origin))
        else:
            found.append(_maxtext_kind(one))
    found.append(entry("recipe_of", "maxtext", "config"))
    found.append(entry("zero_stage", "3" if sharded else "0", "config"))
    replica = sizes["tp"] * sizes["cp"] * sizes["pp"]
    for axis in ("tp", "pp", "cp", "ep"):
        if sizes[axis] > 1:
            found.append(entry(axis, str(sizes[axis]), "config"))
    if sharded and copies > 1:
        found.append(entry("dp_replicate_size", str(copies), "config"))
    dp = sizes["dp"] * sizes["ep"]
    if not open:
        found.append(entry("parallelism.dp", str(dp), "config"))
        found.append(entry("global_batch_size", str(int(each * replica * dp)), "config"))
        if within <= MOST_IN_NODE:
            found.append(entry("num_nodes", str(between), "config"))
            found.append(entry("gpus_per_node", str(within), "config"))
    elif each:
        found.append(entry("gradient_accumulation_steps", str(count), "config"))
    if each:
        size = int(each * replica) // count
        found.append(entry("micro_batch_size", str(max(1, size)), "config"))
    return found


def _maxtext_kind(one: Entry) -> Entry:
    """Rename a setting of MaxText that names a kind of attention, recomputation or format."""
    if one.name == "attention":
        kind = "eager" if one.value in PLAIN_ATTENTION else "flash"
        return entry("attn_implementation", kind, one.origin)
    if one.name == "remat_policy" and one.value == "minimal_offloaded":
        return entry("activation_offloading", "true", one.origin)
    if one.name == "remat_policy":
        return entry("ac_mode", one.words, one.origin)
    fp8 = one.name == "quantization" and "fp8" in one.value
    return entry("fp8", "true", one.origin) if fp8 else one


MAXTEXT_WORDS = {
    "max_target_length": "seq_length",
    "base_emb_dim": "hidden_size",
    "base_num_decoder_layers": "num_layers",
    "base_num_query_heads": "num_attention_heads",
    "base_num_kv_heads": "num_query_groups",
    "base_mlp_dim": "ffn_hidden_size",
}


def _is_number(text: str) -> bool:
    whole, _, part = text.partition(".")
    return is_whole(whole) and (part == "" or is_whole(part))


def _verl(entries: list[Entry]) -> list[Entry]:
    """Rename the settings of the actor's training, whose step takes one mini-batch of prompts."""
    found: list[Entry] = []
    numbers = {"n": 1, "ppo_mini_batch_size": 0, "prompt": 0, "response": 0, "together": 16384}
    split = 1
    packed = False
    megatron = False
    for one in entries:
        last = one.name.rpartition(".")[2]
        if one.name.startswith("data.max_") and last.endswith("_length") and is_whole(one.value):
            numbers[last[4:].partition("_")[0]] = int(one.value)
        elif last == "ppo_mini_batch_size" and ".actor." in one.name and is_whole(one.value):
            numbers["ppo_mini_batch_size"] = int(one.value)
        elif one.name.endswith(".actor.use_dynamic_bsz"):
            packed = one.value.lower() == "true"
        elif one.name.endswith(".actor.ppo_max_token_len_per_gpu") and is_whole(one.value):
            numbers["together"] = int(one.value)
        elif one.name.endswith("rollout.n") and is_whole(one.value):
            numbers["n"] = int(one.value)
        elif ".actor.megatron." in one.name:
            megatron = True
            if last == "context_parallel_size" and is_whole(one.value):
                split = int(one.value)
            found.append(entry(last, one.words, one.origin))
        elif last == "ppo_micro_batch_size_per_gpu" and ".actor." in one.name:
            found.append(entry("micro_batch_size", one.words, one.origin))
        elif last == "ppo_micro_batch_size" and ".actor." in one.name and is_whole(one.value):
            size = int(one.value) // max(1, _product(entries, VERL_GPUS))  # that of all GPUs
            found.append(entry("micro_batch_size", str(max(1, size)), one.origin))
        elif one.name.endswith(("actor.fsdp_config.param_offload", ".optimizer_offload")):
            found.append(one)
        elif last == "ulysses_sequence_parallel_size" and ".actor." in one.name:
            split = int(one.value) if is_whole(one.value) else 1
            found.append(entry("context_parallel_size", one.words, one.origin))
            found.append(entry("cp_comm_type", "ulysses", one.origin))
        elif "_ref.model." in one.name or not one.name.startswith(VERL_OTHERS):
            found.append(one)
        else:
            found.append(aside(one))
    found.append(entry("recipe_of", "megatron-core" if megatron else "fsdp", "script"))
    found.append(entry("zero_stage", "1" if megatron else "3", "script"))
    if megatron and not any(one.name == "sequence_parallel" for one in found):
        found.append(entry("sequence_parallel", "true", "config"))
    batch = numbers["ppo_mini_batch_size"] * numbers["n"]
    tokens = numbers["prompt"] + numbers["response"]
    if batch:
        found.append(entry("global_batch_size", str(batch), "script"))
    if tokens:
        found.append(entry("seq_length", str(tokens), "script"))
    if packed and tokens:
        # As many samples as fit into the tokens of a GPU, whatever else a file says.
        size = max(1, numbers["together"] * split // tokens)
        found.append(entry("micro_batch_size", str(size), "script"))
    return found


VERL_GPUS = ("trainer.nnodes", "trainer.n_gpus_per_node")


def _product(entries: list[Entry], names: tuple[str, ...]) -> int:
    """Return the product of the whole numbers under some names."""
    product = 1
    for one in entries:
        product *= int(one.value) if one.name in names and is_whole(one.value) else 1
    return product


VERL_OTHERS = ("data.", "critic.", "reward_model.", "algorithm.", "actor_rollout_ref.")
"""Sections that do not concern the actor's training step."""


def _torchtune(entries: list[Entry]) -> list[Entry]:
    """Return the model and method in the name of a configuration, such as `llama3_1/70B_full`."""
    found = [*entries, entry("recipe_of", "torchtune", "script")]
    for one in entries:
        family, _, rest = one.value.partition("/")
        if one.name == "--config" and rest:
            found.append(entry("model_name", family + rest.partition("_")[0], "script"))
            if "lora" in rest:
                found.append(entry("adapter", "lora", "script"))
    return found
