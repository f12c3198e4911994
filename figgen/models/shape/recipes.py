"""Optimizer recipes: how many bytes a parameter costs, and where they go.

A text that says "16 bytes per parameter" means one of these, and they differ by a quarter, so a
recipe is always named.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.errors import InputError, unknown

RECIPE_PARTS = (
    "weight_bytes",
    "gradient_bytes",
    "optimizer_bytes",
    "table_bytes",
    "update_bytes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Bytes per parameter of weights, gradients and optimizer state, including master weights.

    The gradient bytes are those kept between microbatches; they are also what data parallelism
    reduces. Embedding and head have `table_bytes` more state if their optimizer differs from that
    of the layers. During the update there are `update_bytes` in addition to all state: gradients in
    FP32, or temporaries of Adam. `iterations` is the number of steps that orthogonalize matrices
    before they are applied, if any. Raises InputError for a negative number.
    """

    name: str
    label: str
    weight_bytes: float
    gradient_bytes: float
    optimizer_bytes: float
    table_bytes: float = 0
    update_bytes: float = 0
    iterations: int = 0

    def __post_init__(self) -> None:
        for part in RECIPE_PARTS:
            if getattr(self, part) < 0:
                raise InputError(f"{part} of a recipe", expected=">= 0", got=getattr(self, part))

    @property
    def total_bytes(self) -> float:
        """Bytes per parameter of a layer if nothing is sharded."""
        return self.weight_bytes + self.gradient_bytes + self.optimizer_bytes


EIGHT_BITS = 1 + 4 / 2048
"""An 8-bit moment with a 32-bit scale for each block of 2,048."""

_ALL = (
    # Rajbhandari et al. 2020 (ZeRO), arXiv:1910.02054, section 3.1.
    Recipe(
        name="zero16",
        label="16-bit weights and gradients, Adam in FP32",
        weight_bytes=2,
        gradient_bytes=2,
        optimizer_bytes=12,
    ),
    # Megatron-LM docs, dist_optimizer.md, as for mcore20 and fp32_16.
    Recipe(
        name="mcore18",
        label="BF16 weights, FP32 gradients, Adam in FP32",
        weight_bytes=2,
        gradient_bytes=4,
        optimizer_bytes=12,
    ),
    # DeepSeek-V3, arXiv:2412.19437, section 3.3.3; Megatron-LM docs, dist_optimizer.md.
    Recipe(
        name="mcore14",
        label="BF16 weights and moments, the rest in FP32",
        weight_bytes=2,
        gradient_bytes=4,
        optimizer_bytes=8,
    ),
    Recipe(
        name="mcore20",
        label="FP16 weights and gradients, the rest in FP32",
        weight_bytes=2,
        gradient_bytes=2,
        optimizer_bytes=16,
    ),
    Recipe(
        name="fp32_16",
        label="everything in FP32, no master copy",
        weight_bytes=4,
        gradient_bytes=4,
        optimizer_bytes=8,
    ),
    # pytorch/torchtune@0031bfb0, recipes/configs/llama3_1/8B_lora.yaml: dtype bf16, AdamW.
    Recipe(
        name="bf16_8",
        label="everything in BF16, no master copy",
        weight_bytes=2,
        gradient_bytes=2,
        optimizer_bytes=4,
    ),
    # pytorch/torchtitan@b5bcd76c, training.mixed_precision_param; half of the weight's four
    # bytes is counted with the optimizer, because messages carry the other half.
    Recipe(
        name="fsdp16",
        label="FP32 throughout, weights gathered in BF16",
        weight_bytes=2,
        gradient_bytes=4,
        optimizer_bytes=10,
    ),
    # Dettmers et al. 2021, arXiv:2110.02861, section 2.
    Recipe(
        name="adam10",
        label="16-bit weights and gradients, moments in 8 bits",
        weight_bytes=2,
        gradient_bytes=2,
        optimizer_bytes=4 + 2 * EIGHT_BITS,
    ),
    # Shazeer and Stern 2018, arXiv:1804.04235; sums of rows and columns left out: < 0.1 %.
    Recipe(
        name="adafactor8",
        label="16-bit weights and gradients, Adafactor without momentum",
        weight_bytes=2,
        gradient_bytes=2,
        optimizer_bytes=4,
    ),
    # Jordan et al. 2024, Muon; Liu et al. 2025, arXiv:2502.16982, section 2.3.
    Recipe(
        name="muon14",
        label="BF16 weights, the rest in FP32, one momentum; tables with Adam",
        weight_bytes=2,
        gradient_bytes=4,
        optimizer_bytes=8,
        table_bytes=4,
        iterations=5,
    ),
)

RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in _ALL}
"""Recipes by name; a number in the name is the bytes per parameter."""


def recipe(name: str) -> Recipe:
    """Return the recipe `name`. Raises InputError, with the nearest names, if it is unknown."""
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    return RECIPES[name]
