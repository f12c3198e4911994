"""Generations of chips, and the classes of runs whose predictions have similar errors."""

from __future__ import annotations

from figgen.catalog.hardware import Accelerator
from figgen.scenarios.runs.class_ends import MOST_GPUS, UNKNOWN
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.names import UNKNOWN_SOFTWARE

STARTS = {
    "v100": "volta", "a100": "ampere", "a800": "ampere", "h": "hopper", "gh": "hopper",
    "b": "blackwell", "gb2": "blackwell", "gb3": "blackwell",
}  # fmt: skip
"""Prefixes of the chip names of each generation."""

OWN_CLASS = ("nanotron", "llm-foundry", "torchtitan")
"""Frameworks whose prediction errors differ from those of the others."""

PLAIN = ("pytorch", "torchtune")
"""Software with PyTorch's own kernels, of which the fit has no run."""
OWN_FAMILY = (
    "nanotron", "llm-foundry", "torchtitan", "maxtext", "paxml", "megascale", UNKNOWN_SOFTWARE,
)  # fmt: skip
"""Frameworks with their own constants."""

TIMED = {
    "megatron": ("hopper", "blackwell"), "megatron-2021": ("ampere",), "megascale": ("ampere",),
    "nanotron": ("hopper",), "llm-foundry": ("ampere", "hopper"), "torchtitan": ("hopper",),
}  # fmt: skip
"""Generations on which eight or more runs of the fit used a family of frameworks. With fewer runs
the class is that of runs without published times."""
BORROWED = ("fsdp",)
"""Frameworks timed as Megatron with fewer than eight runs of their own."""

LARGE, LARGE_GPUS = "dense models on thousands of GPUs", 3000
"""Production runs of reports, slower and faster than benchmarks of the same chips on fewer GPUs;
the largest class by size.

Trainings and benchmarks share this class. Three runs of two reports took 14 to 18 % longer than
predicted and most benchmarks did not, but MegaScale's could be either. Leaving out one source at a
time, intervals contain 7 of the 11 left-out runs with two classes, and 8 with one.
"""


def generation_of(chip: Accelerator) -> str:
    """Return the generation of a chip; "other" for chips without published runs."""
    if chip.vendor != "NVIDIA":
        return "other"
    return next((found for start, found in STARTS.items() if chip.name.startswith(start)), "other")


def family_of(run: DescribedRun) -> str:
    """Return the family of frameworks whose constants apply to a run."""
    if run.framework in PLAIN:
        return "pytorch"
    if run.dtype == "fp16" or run.framework == "megatron-deepspeed":
        return "megatron-2021"
    return run.framework if run.framework in OWN_FAMILY else "megatron"


def class_of(run: DescribedRun) -> str:
    """Return the group of runs in whose errors a run is counted.

    State-space layers, and experts on thousands of GPUs, are in the class without published times.
    """
    return residual_class(
        gpus=run.gpus,
        state_space=run.shape.state_space is not None,
        experts=run.shape.experts is not None,
        framework=framework_class(run),
        dense=dense_class(run.accelerator),
    )


def residual_class(
    *, gpus: int, state_space: bool, experts: bool, framework: str, dense: str
) -> str:
    """Return the residual class of a run by size, layers, framework and chip generation.

    `framework` is the `framework_class` of the run and `dense` the `dense_class` of its chip.
    """
    large = gpus >= LARGE_GPUS
    if state_space or gpus > MOST_GPUS or (large and experts) or framework == UNKNOWN:
        return UNKNOWN
    if large and dense != UNKNOWN:
        return LARGE
    if framework:
        return UNKNOWN if experts else framework
    return "mixtures of experts" if experts else dense


def framework_class(run: DescribedRun) -> str:
    """Return the class of a run's framework if it has its own, otherwise "".

    Software that the fit has hardly timed on such a chip, and software timed as another, is in the
    class without published times.
    """
    timed = TIMED.get(family_of(run), ())
    if run.habits or run.framework in BORROWED or generation_of(run.accelerator) not in timed:
        return UNKNOWN
    return run.framework if run.framework in OWN_CLASS else ""


def dense_class(chip: Accelerator) -> str:
    """Return the class of dense models on a chip's generation."""
    generation = generation_of(chip)
    known = generation not in ("other", "volta")
    return f"dense models on {generation.title()}" if known else UNKNOWN
