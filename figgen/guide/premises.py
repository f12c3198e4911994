"""Sizes that a page may type because it has named what they belong to."""

from __future__ import annotations

from collections.abc import Iterator

from figgen.catalog.load import accelerators
from figgen.models.shape.recipes import RECIPES


def entry_sizes(name: str) -> Iterator[tuple[float, str]]:
    """Return the memory of a GPU, or a recipe's bytes per parameter; nothing for other names."""
    if chip := accelerators().get(name):
        yield chip.hbm_bytes, "B"
    if recipe := RECIPES.get(name):
        sizes = recipe.weight_bytes, recipe.gradient_bytes, recipe.optimizer_bytes
        yield from ((size, "B") for size in (*sizes, recipe.total_bytes))
