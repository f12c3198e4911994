"""The publishers of runs, and the houses that they belong to."""

from __future__ import annotations

from figgen.catalog import load
from figgen.scenarios.runs.described import DescribedRun

OF_GROUPS = {
    "ultrascale-playbook": "huggingface-ultrascale-playbook",
    "llm-foundry": "mosaicml-llm-foundry",
    "dgxc-benchmarking": "nvidia-dgxc-benchmarking",
    "megatron-bridge": "nvidia-megatron-bridge",
    "nemo-summary": "nvidia-nemo",
    "nemo-longseq": "nvidia-nemo",
    "torchtitan": "pytorch-torchtitan",
}
"""Publishers of the measured runs, by the group of their record."""

OF_FAMILIES = {
    "megatron-bridge": "nvidia-megatron-bridge",
    "megatron-2021": "nvidia-megatron-reports",
    "megatron-2022": "nvidia-megatron-reports",
    "megatron-2024": "nvidia-megatron-reports",
    "mt-nlg": "nvidia-megatron-reports",
    "nemotron-4": "nvidia-megatron-reports",
    "mlperf": "mlperf",
    "megascale": "bytedance-megascale",
    "maxtext": "google-maxtext",
    "palm": "google-palm",
    "torchtitan": "pytorch-torchtitan",
    "llama-1": "meta-reports",
    "llama-3": "meta-reports",
    "opt": "meta-reports",
    "gpt-3": "openai",
    "bloom": "bigscience-bloom",
    "glm": "tsinghua-glm",
    "deepseek-v2": "deepseek",
    "deepseek-v3": "deepseek",
    "kimi-k2": "moonshot",
}
"""Publishers of the catalog's runs, by their family."""


def publisher_of(run: DescribedRun) -> str:
    """Return the publisher of a measured run or of a run of the catalog."""
    if run.group == "catalog":
        return OF_FAMILIES[load.runs()[run.name].family]
    return OF_GROUPS[run.group]


def house_of(publisher: str) -> str:
    """Return the house of a publisher: `nvidia` for `nvidia-jax-toolbox`.

    Publishers of one house share people, machines and habits, so they are left out together.
    """
    return publisher.partition("-")[0]
