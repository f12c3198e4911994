"""A scenario: the starting point of a training job, and the options that override it."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.errors import InputError
from figgen.scenarios.options.option import Value
from figgen.scenarios.options.schema import OPTIONS, unknown_option


@dataclass(frozen=True, slots=True)
class Scenario:
    """A preset, a published run, or neither, and the options that override it, by name.

    `scenario` creates one; `figgen.scenarios.options.resolve` turns it into a training step.
    """

    preset: str = ""
    run: str = ""
    chosen: tuple[tuple[str, Value], ...] = ()

    def but(self, **changes: Value) -> Scenario:
        """Return the scenario with changed options. Raises InputError as `scenario` does."""
        return scenario(preset=self.preset, run=self.run, **dict(self.chosen) | changes)


def scenario(*, preset: str | None = "", run: str | None = "", **chosen: Value) -> Scenario:
    """Return a scenario with checked options; None leaves an option at its default.

    Raises InputError if both preset and run are given, for an unknown option, and for a value that
    an option cannot have.
    """
    if preset and run:
        raise InputError("a scenario", expected="a preset or a run", got=f"{preset} and {run}")
    for name in chosen:
        if name not in OPTIONS:
            raise unknown_option("option", name, OPTIONS)
    checked = {
        name: OPTIONS[name].checked(value)
        for name, value in sorted(chosen.items())
        if value is not None
    }
    return Scenario(preset or "", run or "", tuple(checked.items()))
