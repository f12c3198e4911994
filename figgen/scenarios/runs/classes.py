"""The class of a run: its software stack, its generation of chips, dense or with experts.

Runs of one class err in a similar way, so the errors of published runs tell how far off the
prediction of another run may be.
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
"""Stacks by the name that a source gives its framework; the first match applies. InternEvo and
LiBai lay out models as Megatron does."""

OTHER_STACK = "other software"

CARDS = ("a10", "l4", "l40s", "rtx-", "gb10")
"""Prefixes of the names of workstation cards and cards for small servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunClass:
    """A class of runs, given by its three parts."""

    stack: str
    chips: str
    experts: bool

    @property
    def name(self) -> str:
        """The name of the class, such as `Megatron on Hopper, experts`."""
        return f"{self.stack} on {self.chips}, {'experts' if self.experts else 'dense'}"


def stack_of(words: str) -> str:
    """Return the stack that a framework's name, or a source's words for it, belong to."""
    return first_match(STACKS, words) or OTHER_STACK


def chips_of(chip: Accelerator) -> str:
    """Return a generation of NVIDIA's data-center chips, its cards, or another vendor's family."""
    if chip.vendor != "NVIDIA":
        family = {"AMD": "AMD Instinct", "Google": "TPU", "AWS": "Trainium", "Intel": "Gaudi"}
        return family.get(chip.vendor, chip.vendor)
    generation = generation_of(chip)
    if generation != "other":
        return generation.capitalize()
    return "cards" if chip.name.startswith(CARDS) else chip.vendor


def run_class(run: DescribedRun, stack: str = "") -> RunClass:
    """Return the class of a run; `stack` replaces the framework if the source is more specific."""
    return RunClass(
        stack=stack or stack_of(run.framework),
        chips=chips_of(run.accelerator),
        experts=run.shape.experts is not None,
    )
