"""Generations of chips, and the classes of runs whose predictions are off alike."""

from __future__ import annotations

from figgen.catalog.hardware import Accelerator
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.names import UNKNOWN_SOFTWARE

STARTS = {
    "v100": "volta", "a100": "ampere", "a800": "ampere", "h": "hopper", "gh": "hopper",
    "b": "blackwell", "gb2": "blackwell", "gb3": "blackwell",
}  # fmt: skip
"""What names of chips of a generation begin with."""

OWN_CLASS = ("nanotron", "llm-foundry", "torchtitan")
"""Frameworks whose runs err in a way of their own."""

UNKNOWN = "unmeasured"
"""What nobody published a time of: other hardware, software or layers, more GPUs."""
PLAIN = ("pytorch", "torchtune")
"""Software that runs PyTorch's own kernels, of which the fit has no run."""
OWN_FAMILY = (
    "nanotron", "llm-foundry", "torchtitan", "maxtext", "paxml", "megascale", UNKNOWN_SOFTWARE,
)  # fmt: skip
"""Frameworks with constants of their own."""

TIMED = {
    "megatron": ("hopper", "blackwell"), "megatron-2021": ("ampere",), "megascale": ("ampere",),
    "nanotron": ("hopper",), "llm-foundry": ("ampere", "hopper"), "torchtitan": ("hopper",),
}  # fmt: skip
"""Generations on which eight runs or more of the fit used a family of frameworks. What fewer timed
has the class of what was never measured."""
BORROWED = ("fsdp",)
"""Frameworks that are timed as Megatron and have fewer than eight runs of their own."""

LARGE, LARGE_GPUS, MOST_GPUS = "dense models on thousands of GPUs", 3000, 16_384
"""Production runs of reports, slower and faster than benchmarks of the same chips on fewer; the
largest there is.

Trainings and benchmarks are not told apart: three runs of two reports took 14 to 18 % longer than
predicted and most benchmarks did not, but MegaScale's could be either, and ends of intervals from
all sources but one hold 7 of the 11 runs of the remaining ones with two classes, 8 with one."""


FEWEST_GPUS = 8
"""The fit has no run on fewer GPUs but one, on two GB200; plain transformers on one GPU is
predicted from its operations, in `figgen.scenarios.runs.device_run`."""


def generation_of(chip: Accelerator) -> str:
    """The generation that a chip belongs to; "other" for chips without published runs."""
    if chip.vendor != "NVIDIA":
        return "other"
    return next((found for start, found in STARTS.items() if chip.name.startswith(start)), "other")


def family_of(run: DescribedRun) -> str:
    """The family of frameworks whose constants hold for a run."""
    if run.framework in PLAIN:
        return "pytorch"
    if run.dtype == "fp16" or run.framework == "megatron-deepspeed":
        return "megatron-2021"
    return run.framework if run.framework in OWN_FAMILY else "megatron"


def class_of(run: DescribedRun) -> str:
    """The class whose residuals tell how far off a prediction may be.

    What was never measured, state-space layers or experts on thousands of GPUs, is one of its own.
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
    """The class of a run by its size, its layers, its framework and its generation of chips.

    `framework` is `framework_class` of the run and `dense` is `dense_class` of its chip.
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
    """The framework of a run whose residuals make a class of their own; empty for all others.

    For software that the fit has hardly timed on such a chip, and for software that is timed as
    another, it is the class of what was never measured.
    """
    timed = TIMED.get(family_of(run), ())
    if run.habits or run.framework in BORROWED or generation_of(run.accelerator) not in timed:
        return UNKNOWN
    return run.framework if run.framework in OWN_CLASS else ""


def dense_class(chip: Accelerator) -> str:
    """The class of dense models on chips of a generation."""
    generation = generation_of(chip)
    known = generation not in ("other", "volta")
    return f"dense models on {generation.title()}" if known else UNKNOWN


def interval_class(run: DescribedRun, *, tuned: bool) -> str:
    """The class whose residuals are the interval of a prediction, as `interval_name` says."""
    return interval_name(run.gpus, tuned, class_of(run))


def interval_name(gpus: int, tuned: bool, alike: str) -> str:
    """The class whose residuals are the interval of a prediction for a run of a class.

    On fewer GPUs than anybody published, and where adapters are `tuned`, of which the fit has no
    run, it is that of what was never measured.
    """
    return UNKNOWN if tuned or gpus < FEWEST_GPUS else alike
