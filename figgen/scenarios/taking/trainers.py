"""Defaults of trainers for what a job's file doesn't set.

Sources, in the order of the table: NVIDIA/Megatron-LM@d98e8a64 megatron/training/arguments.py (for
its forks and NeMo 1, too); NVIDIA-NeMo/Megatron-Bridge@067f987d src/megatron/bridge/training;
torchtitan 0.3.0 on PyPI, torchtitan/config/configs.py; huggingface/nanotron src/nanotron/config;
EleutherAI/gpt-neox megatron/neox_arguments; deepspeedai/DeepSpeed@edaa7221
deepspeed/runtime/zero/config.py; transformers 5.24.0 on PyPI, training_args.py; accelerate 1.15.0
on PyPI; axolotl-ai-cloud/axolotl@002a637c src/axolotl/utils/schemas/config.py;
hiyouga/LLaMA-Factory src/llamafactory/hparams (@00577a85 finetuning_args.py, @072bfe29
data_args.py); mosaicml/llm-foundry@0081bd28 llmfoundry/utils/config_utils.py, whose published files
all shard with FSDP; recipes of torchtune, LitGPT, OLMo and NeMo Automodel; the models of Levanter;
and AI-Hypercomputer/maxtext@000e9355 MaxText/configs/base.yml.
"""

from __future__ import annotations

from figgen.scenarios.taking.given import Given, assume

SECOND = "every_second_product"

DEFAULTS: dict[str, dict[str, int | str | bool]] = {
    "megatron-lm": {"zero_stage": 0, "recompute": "none"},
    "megatron-deepspeed": {"zero_stage": 0, "recompute": "none"},
    "nemo": {"zero_stage": 0, "recompute": "none"},
    "megatron-bridge": {"zero_stage": 1, "recompute": "none"},
    "megatron-core": {"zero_stage": 1, "recompute": "none"},
    "torchtitan": {"zero_stage": 3, "recompute": SECOND, "dtype": "bf16", "schedule": "1f1b"},
    "nanotron": {"zero_stage": 0, "recompute": "none"},
    "gpt-neox": {"zero_stage": 0, "recompute": "none"},
    "deepspeed": {"zero_stage": 0},
    "transformers": {"zero_stage": 0, "recompute": "none", "microbatch_size": 8},
    "accelerate": {"zero_stage": 0, "recompute": "none"},
    "axolotl": {"zero_stage": 0, "recompute": "none", "dtype": "bf16", "sequence": 512},
    "llama-factory": {
        "zero_stage": 0, "recompute": "full", "sequence": 2048, "lora_rank": 8,
        "lora_matrices": "all-linear",
    },
    "ms-swift": {
        "zero_stage": 0, "recompute": "full", "lora_rank": 8, "lora_matrices": "all-linear",
    },
    "prime-rl": {
        "zero_stage": 3, "recompute": "full", "dtype": "bf16", "sequence": 2048,
        "microbatch_size": 1, "offloaded_optimizer": "1",
    },
    "llm-foundry": {"zero_stage": 3, "recompute": "none", "dtype": "bf16"},
    "torchtune": {"zero_stage": 3, "recompute": "none"},
    "litgpt": {"zero_stage": 3, "recompute": "none", "dtype": "bf16"},
    "fairseq2": {"zero_stage": 0, "recompute": "none", "dtype": "bf16"},
    "levanter": {"zero_stage": 3, "recompute": "full"},
    "olmo": {"zero_stage": 3, "recompute": "none"},
    "automodel": {"zero_stage": 3, "recompute": "none"},
    "maxtext": {"recompute": "full", "dtype": "bf16", "sequence": 2048},
}  # fmt: skip
"""Values of a job's options by trainer."""


def assume_defaults(given: Given, dialect: str) -> None:
    """Assume a trainer's defaults for options that are not set; adapters only if not disabled."""
    tuned = "adapter" not in given.keys or "lora_rank" in {**given.assumed, **given.taken}
    for option in DEFAULTS.get(dialect, {}):
        if tuned or not option.startswith("lora_"):
            assume_default(given, dialect, option)


def assume_default(given: Given, dialect: str, option: str) -> None:
    """Assume a trainer's default of an option if it is known and nothing sets the option."""
    defaults = DEFAULTS.get(dialect, {})
    if option in defaults and option not in given.assumed and option not in given.keys:
        assume(given, option, defaults[option], f"{dialect}'s default")
