"""The class of a run: its software stack, its generation of chips, dense or with experts.

Runs of one class err in a similar way, so the errors of published runs tell how far off the
prediction of another run may be.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.catalog.hardware import Accelerator
from figgen.catalog.residuals import Residuals, residuals
from figgen.scenarios.runs.class_ends import MOST_GPUS, class_name, named_ends
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
    (r"torch|nanogpt|litgpt|lightning|ddp|hugging|\bhf\b|attention|swift", "plain PyTorch"),
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
        return class_name(self.stack, self.chips, self.experts)


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


def run_class(run: DescribedRun) -> RunClass:
    """Return the class of a run."""
    return RunClass(
        stack=run.stack or stack_of(run.framework),
        chips=chips_of(run.accelerator),
        experts=run.shape.experts is not None,
    )


def residuals_of(run: DescribedRun, *, tuned: bool) -> Residuals:
    """Return how runs like this one were measured over predicted.

    Jobs with adapters (`tuned`), with state-space layers and on more GPUs than any run of the fit
    are unlike all of them.
    """
    found = run_class(run)
    unlike = tuned or run.shape.state_space is not None or run.gpus > MOST_GPUS
    ends = {name: (entry.low, entry.high) for name, entry in residuals().items()}
    name, low, high = named_ends(ends, found.stack, found.chips, found.experts, unlike)
    return residuals().get(name) or Residuals(name=name, publishers=0, runs=0, low=low, high=high)
