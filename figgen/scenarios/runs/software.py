"""The software that a step is assumed to run on: framework, release, low-precision recipe."""

from __future__ import annotations

import re

from figgen import catalog
from figgen.errors import InputError, unknown
from figgen.lookups import remembered
from figgen.scenarios.runs.names import DTYPE_OF, FRAMEWORKS, first_match, format_of
from figgen.scenarios.runs.published_record import record_of
from figgen.scenarios.runs.record import framework_of, version_of
from figgen.scenarios.runs.setup import memory_framework

SOFTWARE = "megatron-bridge 26.04"
"""The software assumed for a step by default: the last release before those of the tests."""

FORMER_FRAMEWORKS = {
    "megatron": SOFTWARE, "megatron-deepspeed": "megatron-deepspeed", "nanotron": "nanotron",
    "torchtitan": "torchtitan", "torchtitan-2024": "torchtitan 24.12", "fsdp": "fsdp",
}  # fmt: skip
"""Values of the option `framework` in older addresses, as software."""

TIMED_AS = {
    "deepspeed": "pytorch", "hf-trainer": "pytorch", "prime-rl": "torchtitan",
    "prime-rl-logits": "torchtitan", "litgpt": "pytorch", "deepspeed-liger": "pytorch",
    "megatron-fused-loss": "megatron-lm",
    "pytorch-compiled": "pytorch", "torchtune-logits": "torchtune", "torchtune-eager": "torchtune",
}  # fmt: skip
"""Software with memory habits of its own, and the software whose time is used for it."""

COMPILED = {"pytorch-compiled": True, "torchtune-eager": False}
"""Whether a compiler fuses its modules, if this differs from the software that times it."""

RECIPE_OF = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "fp4": "nvfp4", "tf32": "tf32"}
"""The low-precision recipe if only the number type of matmuls is known."""


def software_of(run: catalog.Run) -> str:
    """Return framework, release and recipe of a published run, such as "nemo 24.09 fp8"."""
    record = record_of(run)
    version = version_of(record)
    words = [framework_of(record)]
    if version is not None:
        year, month = divmod(round(version * 12) - 1, 12)
        words.append(f"{year}.{month + 1:02d}")
    recipe = format_of(run.precision)
    if recipe != RECIPE_OF[run.dtype]:
        words.append(recipe)
    return " ".join(words)


@remembered(1)
def known_software() -> tuple[str, ...]:
    """Return the default software, then the presets', then all other, by framework."""
    runs = (p.run for p in catalog.PRESETS.values() if isinstance(p, catalog.TrainingPreset))
    others = [*FORMER_FRAMEWORKS.values(), *(name for _, name in FRAMEWORKS), *TIMED_AS]
    return tuple(dict.fromkeys([SOFTWARE, *map(software_of, runs), *others]))


def memory_of(text: str) -> str:
    """Return the framework whose memory habits apply. Raises InputError for unknown software."""
    framework, version, _ = read_software(text)
    named = text.split()[0]
    return named if named in TIMED_AS else memory_framework(framework, version)


def compiled_of(text: str) -> bool | None:
    """Return whether a compiler fuses the modules; None means as in the software that times it."""
    return COMPILED.get(text.split()[0])


def read_software(text: str) -> tuple[str, float | None, str | None]:
    """Return timed framework, release and recipe. Raises InputError for unknown words."""
    named, *rest = text.split() or [""]
    framework = TIMED_AS.get(named, named)
    if first_match(FRAMEWORKS, framework) != framework and framework != "deepseek":
        raise unknown(
            "software", framework, dict.fromkeys([*(name for _, name in FRAMEWORKS), *TIMED_AS])
        )
    version, recipe = None, None
    for word in rest:
        found = re.fullmatch(r"(2[0-9])\.(0[1-9]|1[0-2])", word)
        if found is not None:
            version = int(found[1]) + int(found[2]) / 12
        elif word in DTYPE_OF:
            recipe = word
        else:
            expected = "a framework, a release such as 25.09, a recipe such as mxfp8"
            raise InputError("software", expected=expected, got=text)
    return framework, version, recipe
