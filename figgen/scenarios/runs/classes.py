"""The class of a run: its stack of software, the generation of its chips, dense or with experts.

Runs of one class err in a similar way, so that the errors of published ones tell how far off the
prediction of another may be.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.catalog.hardware import Accelerator
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.names import first_match
from figgen.scenarios.runs.residual_classes import generation_of

STACKS = (
    (r"nanotron", "nanotron"),
    (r"foundry|composer", "llm-foundry"),
    (r"xla|torchprime", "PyTorch/XLA"),
    (r"neuron", "Neuron"),
    (r"maxtext|pax|jax", "JAX"),
    (r"torchtitan|prime-rl", "torchtitan"),
    (r"megatron|nemo|mcore|megascale|deepseek|internevo|libai", "Megatron"),
    (r"deepspeed", "DeepSpeed"),
    (r"fsdp", "FSDP"),
    (r"torch|nanogpt|litgpt|lightning|ddp|hugging|attention|swift", "plain PyTorch"),
)
"""Stacks by what a source calls its framework; the first that fits. InternEvo and LiBai lay models
out as Megatron does."""

OTHER_STACK = "other software"

CARDS = ("a10", "l4", "l40s", "rtx-", "gb10")
"""What names of workstation cards and small servers begin with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunClass:
    """A class of runs by its three parts."""

    stack: str
    chips: str
    experts: bool

    @property
    def name(self) -> str:
        """`Megatron on Hopper, experts`."""
        return f"{self.stack} on {self.chips}, {'experts' if self.experts else 'dense'}"


def stack_of(words: str) -> str:
    """The stack that a framework's name or a source's words for it belong to."""
    return first_match(STACKS, words) or OTHER_STACK


def chips_of(chip: Accelerator) -> str:
    """A generation of NVIDIA's chips for data centers, its cards, or another vendor's family."""
    if chip.vendor != "NVIDIA":
        family = {"AMD": "AMD Instinct", "Google": "TPU", "AWS": "Trainium", "Intel": "Gaudi"}
        return family.get(chip.vendor, chip.vendor)
    generation = generation_of(chip)
    if generation != "other":
        return generation.capitalize()
    return "cards" if chip.name.startswith(CARDS) else chip.vendor


def run_class(run: DescribedRun, stack: str = "") -> RunClass:
    """The class of a run, whose stack its source may say more exactly than its framework does."""
    return RunClass(
        stack=stack or stack_of(run.framework),
        chips=chips_of(run.accelerator),
        experts=run.shape.experts is not None,
    )
