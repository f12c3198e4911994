"""What a run keeps per parameter and per layer, if its source says so."""

from __future__ import annotations

from figgen.errors import InputError
from figgen.models.setup.framework_memory import framework_memory
from figgen.models.shape.recipes import Recipe
from figgen.scenarios.runs.fields import Record, number_of, text_of
from figgen.scenarios.runs.switches import switch

PARTS = ("weight_bytes", "gradient_bytes", "optimizer_bytes", "update_bytes")
"""The meaning of the numbers in `state_bytes`, in order."""


COMPILED = {"pytorch": "pytorch-compiled"}
"""Memory habits of software whose modules a compiler fuses."""

NOT_COMPILED = {"torchtitan": "torchtitan-2024"}
"""Memory habits of software without its compiler: torchtitan compiles its loss with its layers,
which it did not before 2025."""


def memory_habits(record: Record, usual: str) -> str:
    """Return the software whose habits fill a run's memory, from its record or `usual`.

    Raises InputError for an unknown name.
    """
    if record.get("habits") is not None:
        return framework_memory(text_of(record, "habits")).name
    compiled = switch(record.get("compiled"))
    if compiled is None:
        return usual
    if not compiled and "litgpt" in str(record.get("framework") or "").lower():
        return "litgpt"
    return (COMPILED if compiled else NOT_COMPILED).get(usual, usual)


def stated_recipe(record: Record) -> Recipe | None:
    """Return the optimizer recipe of a record's `state_bytes`, or None if it has none.

    The field has three or four numbers: bytes per parameter of weight, gradient and optimizer
    state, and temporary bytes of the update. Raises InputError for anything else.
    """
    given = record.get("state_bytes")
    if given is None:
        return None
    if not isinstance(given, list | tuple) or len(given) not in (3, 4):
        raise InputError("state_bytes", expected=f"3 or 4 numbers: {', '.join(PARTS)}", got=given)
    weight, gradient, optimizer, update = (
        number_of({"state_bytes": each}, "state_bytes") or 0.0 for each in (*given, 0.0)[:4]
    )
    return Recipe(
        name="stated",
        label="as stated by its source",
        weight_bytes=weight,
        gradient_bytes=gradient,
        optimizer_bytes=optimizer,
        update_bytes=update,
    )
