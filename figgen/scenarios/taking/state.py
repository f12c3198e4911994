"""How the state is sharded, what is kept or recomputed, and the number formats."""

from __future__ import annotations

from figgen.scenarios.taking.given import (
    Given,
    assume,
    switch_of,
    take,
    text_of,
    value_of,
    whole_of,
)
from figgen.scenarios.taking.switches import take_switches
from figgen.scenarios.taking.trainers import SECOND, assume_default, assume_defaults
from figgen.scenarios.texts.entry import normal

MEGATRON = ("megatron-lm", "megatron-deepspeed", "nemo", "megatron-bridge", "megatron-core")
RECOMPUTED = (
    "core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts",
)  # fmt: skip
"""Modules that Megatron-LM's option can name."""


def take_state(given: Given, dialect: str) -> None:
    """Set ZeRO, precision, recomputation, fine-tuning and overlap."""
    _take_zero(given, dialect)
    _take_precision(given, dialect)
    _take_recomputation(given, dialect)
    _take_adapters(given, dialect)
    _take_sequence_parallel(given, dialect)
    take_switches(given, dialect)
    modules = whole_of(given, "mtp_layers")
    if modules:
        take(given, "mtp_layers", modules)
    _take_offloading(given, dialect)
    assume_defaults(given, dialect)


STRATEGIES = {
    "full_shard": 3, "1": 3, "hybrid_shard": 3, "4": 3, "optim_grads_params": 3,
    "shard_grad_op": 2, "2": 2, "_hybrid_shard_zero2": 2, "5": 2, "optim_grads": 2,
    "no_shard": 0, "3": 0, "optim": 1, "fsdp": 3, "hsdp": 3, "ddp": 0, "full": 3, "hybrid": 3,
}  # fmt: skip
"""ZeRO stages by FSDP strategies of PyTorch and Megatron, and by accelerate's numbers for them."""


def _take_zero(given: Given, dialect: str) -> None:
    zero = text_of(given, "zero").lower().removeprefix("zero_").removeprefix("stage_")[:1]
    strategy = text_of(given, "fsdp_strategy").split(" ")[0].lower().rpartition(".")[2]
    reshard = text_of(given, "fsdp_reshard").split(" ")[0].lower()
    used = text_of(given, "use_fsdp").lower()
    file = _deepspeed_file(given)
    fsdp = used and used.split(" ")[0] not in (
        "false",
        "no",
        "multi_gpu",
        "deepspeed",
        "none",
        "megatron_lm",
    )
    distributed = switch_of(given, "distributed_optimizer")
    for word in used.split(" "):  # as in `--fsdp "hybrid_shard auto_wrap"`
        strategy = word if not strategy and "shard" in word else strategy
    if zero in ("0", "1", "2", "3"):
        take(given, "zero_stage", int(zero))
    elif strategy in STRATEGIES and used.split(" ")[0] not in ("false", "no"):
        take(given, "zero_stage", STRATEGIES[strategy])
        if "hybrid" in strategy or strategy in ("4", "5", "hsdp"):
            given.notes.append(
                "hybrid sharding shards within a node; the predicted step shards over all replicas"
            )
    elif reshard in ("false", "never"):
        take(given, "zero_stage", 2)
    elif fsdp or reshard in ("true", "always", "default"):
        take(given, "zero_stage", 3)
    elif distributed is not None:
        take(given, "zero_stage", 1 if distributed else 0)
    elif file and file.lower() not in ("true", "false"):
        _assume_of_file(given, file)
    elif dialect == "torchtitan" and text_of(given, "dp_shard") == "1":
        take(given, "zero_stage", 0)
    elif dialect == "mesh":
        return
    elif _trainer_stage(given) >= 0:
        take(given, "zero_stage", _trainer_stage(given))
    elif "distributed_" in text_of(given, "optimizer"):  # Apex's and Megatron-Core's, in NeMo
        take(given, "zero_stage", 1)
    elif "recipe" in _names(given) or "--factory" in _names(given):
        assume(given, "zero_stage", 1)
    else:
        _assume_default(given, dialect, "zero_stage", 0)


def _deepspeed_file(given: Given) -> str:
    """Return the last name of a DeepSpeed file, whose folder may be unknown; "" without one."""
    files = [one for one in given.keys.get("deepspeed_file", []) if "." in one.value]
    given.heeded.extend([one.name for one in files])
    return files[-1].value if files else text_of(given, "deepspeed_file")


def _assume_default(
    given: Given,
    dialect: str,
    option: str,
    plain: int | str,
    whose: str = "a plain PyTorch program",
) -> None:
    """Assume a trainer's default, or what a plain PyTorch program does."""
    assume_default(given, dialect, option)
    if option not in given.assumed:
        assume(given, option, plain, whose)


SHARDING = ("llm-foundry", "torchtune", "litgpt", "levanter", "olmo", "automodel", "prime-rl")
"""Trainers that shard everything by default."""


def _names(given: Given) -> list[str]:
    return [one.name for one in given.entries]


def _trainer_stage(given: Given) -> int:
    """Return the ZeRO stage of a strategy of Lightning's trainer, or -1."""
    said = text_of(given, "trainer_strategy").lower()
    if said.startswith("deepspeed_stage_") and said[16:17] in ("1", "2", "3"):
        return int(said[16:17])
    return {"fsdp": 3, "fsdp2": 3, "ddp": 0}.get(said, -1)


def _assume_of_file(given: Given, file: str) -> None:
    """Assume the stage in the name of a DeepSpeed file, such as `zero3.json`."""
    name = file.split(" ")[0].rpartition("/")[2].lower()
    for stage in ("3", "2", "1", "0"):
        for word in (
            "zero" + stage,
            "z" + stage,
            "zero_" + stage,
            "stage" + stage,
            "stage_" + stage,
        ):
            if word in name:
                assume(given, "zero_stage", int(stage), f"the name of {name}")
                if "offload" in name and "no_offload" not in name:
                    assume(given, "offloaded_optimizer", "1", f"the name of {name}")
                return
    given.notes.append(f"the ZeRO settings are in {file.split(' ')[0]}; add its content")


def _take_offloading(given: Given, dialect: str) -> None:
    """Set the shares of optimizer state and activations in the host's memory."""
    weights = _is_offloaded(given, "offload") or "offload" in text_of(given, "use_fsdp").split(" ")
    fraction = text_of(given, "offload_fraction")
    if _is_offloaded(given, "offload_optimizer") or weights:
        take(given, "offloaded_optimizer", fraction if fraction else "1")
    elif "offload_optimizer" in given.keys:
        take(given, "offloaded_optimizer", "0")
    if weights:
        given.notes.append(
            "offloaded weights are counted in GPU memory, and fetching them is not timed"
        )
    behind = switch_of(given, "offload_overlap")
    layers = value_of(given, "layers", 0)
    away = whole_of(given, "offload_layers")
    if _is_offloaded(given, "offload_activations") or (away and layers):
        share = str(away / layers) if away and layers else "1"
        take(given, "offloaded_activations", share)
    elif "offloaded_optimizer" in given.taken and dialect in MEGATRON and not behind:
        take(given, "offload_overlap", False)
    if text_of(given, "offload_modules"):
        given.notes.append(
            "give the offloaded modules' share of the activations with --offload-activations"
        )


def _is_offloaded(given: Given, key: str) -> bool:
    text_of(given, key)
    for one in given.keys.get(key, []):
        if one.value.lower() not in ("none", "false", "no", "null", "0"):
            return True
    return False


def _take_precision(given: Given, dialect: str) -> None:
    said = text_of(given, "precision").lower().removeprefix("torch.")
    recipe = text_of(given, "fp8_recipe").lower()
    converters = text_of(given, "converters").lower()
    fp8 = switch_of(given, "fp8") or "fp8" in said or "float8" in converters
    fp4 = switch_of(given, "fp4") or "fp4" in said
    usual = dialect == "axolotl" and text_of(given, "bf16") == "auto"  # if the chip supports it
    bf16 = usual or switch_of(given, "bf16") or "bf16" in said or "bfloat16" in said
    fp16 = switch_of(given, "fp16") or said.startswith(("16", "fp16", "float16", "amp_fp16"))
    full = said.startswith(("fp32", "float32", "32", "no"))
    if fp4:
        take(given, "dtype", "fp4")
    elif fp8 or "mx" in converters:
        take(given, "dtype", "fp8")
        if dialect in MEGATRON:
            assume(given, "activations", "fp8")
    elif bf16 or (fp16 and said.startswith("bf16")):
        take(given, "dtype", "bf16")
    elif fp16:
        take(given, "dtype", "fp16")
    elif full:
        take(given, "dtype", "tf32")
    else:
        assume_default(given, dialect, "dtype")
    reduced = text_of(given, "precision_reduce").lower()
    if "16" in reduced or reduced == "pure":
        given.notes.append("gradients are summed in 16 bits; the predicted step sums them in FP32")
    if recipe and fp8:
        given.notes.append(f"the FP8 recipe {recipe} is modeled like any other FP8")
    _take_recipe(given, dialect, bool(fp16), not (bf16 or fp16 or fp8 or fp4))


def _take_recipe(given: Given, dialect: str, fp16: bool, wide: bool) -> None:
    """Set the bytes per parameter from the optimizer and from what the framework keeps in FP32."""
    optimizer = text_of(given, "optimizer").lower()
    moments = text_of(given, "moments_dtype").lower()
    grads = text_of(given, "main_grads_dtype").lower()
    if optimizer and not any(word in optimizer for word in MODELLED):
        given.notes.append(f"the optimizer {optimizer} is computed like Adam, with two moments")
    if "8bit" in optimizer or switch_of(given, "eight_bit_optimizer"):
        take(given, "recipe", "adam10")
    elif "adafactor" in optimizer:
        take(given, "recipe", "adafactor8")
    elif "muon" in optimizer:
        take(given, "recipe", "muon14")
    elif moments.endswith(SHORT):
        take(given, "recipe", "mcore14")
    elif dialect in MEGATRON and wide and dialect == "megatron-lm":
        assume(given, "recipe", "fp32_16")
        assume(given, "dtype", "tf32")
    elif dialect in MEGATRON:
        assume(given, "recipe", _megatron_recipe(given, dialect, fp16, grads.endswith(SHORT)))
    elif dialect in IN_ONE_FORMAT and text_of(given, "state_dtype").endswith(SHORT):
        take(given, "recipe", "bf16_8")
    elif dialect == "torchtune":
        assume(given, "recipe", "bf16_8")  # its configurations have `dtype: bf16`
    elif text_of(given, "precision").lower() in ("bf16-true", "16-true"):
        take(given, "recipe", "bf16_8")  # Lightning's name for 16-bit weights
    elif dialect in HUGGING_FACE:
        _assume_hugging_face(given, dialect)
    elif dialect in ("torchtitan", "mesh", "fsdp", "maxtext", "fairseq2", *SHARDING):
        assume(given, "recipe", "fsdp16")
    elif dialect == "nanotron":
        light = switch_of(given, "accumulate_fp32") is False
        assume(given, "recipe", "bf16_8" if light else "mcore18")
    elif dialect in ("deepspeed", "gpt-neox", "deepspeed-topology"):
        assume(given, "recipe", "zero16")


IN_ONE_FORMAT = ("torchtitan", "fairseq2", "fsdp")
"""Trainers that keep weights and moments in one format, which a file may change."""

SHORT = ("bf16", "bfloat16")
MODELLED = ("adam", "distributed_", "muon", "adafactor", "8bit", "true", "$")
"""Parts of the names of optimizers whose state is known."""

HUGGING_FACE = ("transformers", "accelerate", "axolotl", "llama-factory", "ms-swift")
"""Trainers that run Hugging Face's, alone or with DeepSpeed or FSDP."""


def _assume_hugging_face(given: Given, dialect: str) -> None:
    """Assume the recipe of DeepSpeed, or that of the weights' own format.

    Sharded weights are kept in FP32, and LLaMA-Factory keeps all trained ones in it.
    """
    weights = [one for one in given.keys.get("precision", []) if one.name.endswith("dtype")]
    half = any("16" in one.value for one in weights) or dialect == "axolotl"
    if "zero" in given.keys or "deepspeed_file" in given.keys:
        assume(given, "recipe", "zero16", "DeepSpeed's")
    elif value_of(given, "zero_stage", 0) >= 2 or dialect == "llama-factory" or not half:
        assume(given, "recipe", "fsdp16", "trained weights are kept in FP32")
    else:
        assume(given, "recipe", "bf16_8", "weights are loaded in 16 bits")


def _megatron_recipe(given: Given, dialect: str, fp16: bool, light: bool) -> str:
    """Return what Megatron keeps per parameter; NeMo without O2 keeps FP32 weights for autocast."""
    wide = switch_of(given, "accumulate_fp32")
    light = light or switch_of(given, "accumulate_bf16") is True
    if dialect == "nemo" and switch_of(given, "master_weights") is False:
        return "fp32_16"
    if fp16 and not wide:
        return "mcore20"
    return "zero16" if light or wide is False else "mcore18"


def _take_recomputation(given: Given, dialect: str) -> None:
    granularity = text_of(given, "recompute_granularity").split(" ")[0].lower()
    mode = text_of(given, "ac_mode").split(" ")[0].lower()
    full = switch_of(given, "recompute_full")
    off = switch_of(given, "recompute_off")
    full = full if off is None else not off
    if granularity == "full":
        take(given, "recompute", _whole_layers(given))
    elif (
        switch_of(given, "recompute_selective")
        or granularity == "selective"
        or (not granularity and text_of(given, "recompute_modules") and full is None)
    ):
        take(given, "recompute", _modules(given))
    elif granularity in ("none", "null"):
        take(given, "recompute", "none")
    elif text_of(given, "recompute_method").split(" ")[0] in ("uniform", "block"):
        take(given, "recompute", _whole_layers(given))  # before there were granularities
    elif mode:
        _take_mode(given, mode)
    elif full is not None:
        take(given, "recompute", "full" if full else "none")
    else:
        _assume_default(given, dialect, "recompute", "none")


def _whole_layers(given: Given) -> str:
    method = text_of(given, "recompute_method").split(" ")[0].lower()
    number = whole_of(given, "recompute_layers")
    if method == "block" and number:
        return "block:" + str(number)
    if method == "uniform" and number > 1:
        return "uniform:" + str(number)
    return "full"


def _modules(given: Given) -> str:
    """Return Megatron's module names, separated by commas; the attention core is the default."""
    said = text_of(given, "recompute_modules").replace(",", " ").split()
    known = [module.strip("[]\"'") for module in said if module.strip("[]\"'") in RECOMPUTED]
    others = [module for module in said if module.strip("[]\"'") not in RECOMPUTED]
    if others:
        given.notes.append(f"modules that cannot be recomputed here: {', '.join(others)}")
    if not known or known == ["core_attn"]:
        return "selective"
    return ",".join(known)


def _take_mode(given: Given, mode: str) -> None:
    """Set torchtitan's mode; selective is by operation or of every n-th layer."""
    option = text_of(given, "ac_option").split(" ")[0]
    if mode in ("full", "none"):
        take(given, "recompute", mode)
    elif mode == "selective" and (option == "op" or not option):
        take(given, "recompute", SECOND)
    elif mode == "selective" and option == "1":
        take(given, "recompute", "full")
    elif mode == "selective":
        layers = value_of(given, "layers", 0) // value_of(given, "pp", 1)
        if layers and option.isdigit() and int(option) > 0:
            take(given, "recompute", "block:" + str(max(1, layers // int(option))))
        else:
            given.notes.append(f"one layer in {option} is recomputed; give --recompute block:N")
    else:
        given.notes.append(f"the activation checkpointing mode {mode!r} is not modeled")
        assume(given, "recompute", "full", f"{mode} is not modeled")


def _take_adapters(given: Given, dialect: str) -> None:
    adapter = text_of(given, "adapter").split(" ")[0].lower()
    rank = whole_of(given, "lora_rank")
    targets = text_of(given, "lora_targets").lower()
    whole = switch_of(given, "lora_all")
    bits = text_of(given, "bits").split(" ")[0]
    four = switch_of(given, "four_bit") or bits == "4" or "qlora" in adapter
    eight = switch_of(given, "eight_bit") or bits == "8"
    recipe = any("_peft_" in one.value for one in given.keys.get("model_name", []))
    wanted = recipe or "lora" in adapter or adapter in ("true", "dora")
    if not (wanted or (rank and adapter not in ("full", "none", "freeze", "false"))):
        return
    llava = any(normal(one.name) == "lora_enable" for one in given.keys.get("adapter", []))
    whole = whole or llava  # which puts adapters of rank 64 on every matrix
    if rank:
        take(given, "lora_rank", rank)
    elif recipe:  # of Megatron-Bridge
        assume(given, "lora_rank", 32, "the recipe's")
        assume(given, "lora_matrices", "all-linear", "the recipe's")
    elif llava:
        assume(given, "lora_rank", 64, "LLaVA's default")
    else:
        _assume_default(given, dialect, "lora_rank", 8, "PEFT's default")
    if whole or targets in ("all", "all-linear") or _has_any(targets, FEED_FORWARD):
        take(given, "lora_matrices", "all-linear")
    elif _has_any(targets, ("k_proj", "o_proj", "out_proj", "output_proj", "linear_proj")):
        take(given, "lora_matrices", "attention")
    elif targets:
        take(given, "lora_matrices", "query-value")
    if four or eight:
        take(given, "frozen_weights", "nf4" if four else "int8")


FEED_FORWARD = ("up_proj", "gate_proj", "down_proj", "fc1", "fc2", "w1", "w2", "up|", "|up")


def _has_any(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)


def _take_sequence_parallel(given: Given, dialect: str) -> None:
    said = switch_of(given, "sequence_parallel")
    mode = text_of(given, "tp_mode").upper()
    split = value_of(given, "tp", 1) > 1
    if said is not None:
        take(given, "sequence_parallel", said)
    elif mode:
        take(given, "sequence_parallel", "SCATTER" in mode)
    elif split and "model_recipe_name" in [normal(one.name) for one in given.entries]:
        assume(given, "sequence_parallel", True, "the performance scripts' default")
    elif split and dialect in (*MEGATRON, "gpt-neox", "deepspeed", "deepspeed-topology"):
        assume(given, "sequence_parallel", False)
    elif split and dialect == "torchtitan":
        assume(given, "sequence_parallel", True)
