"""The numbers of a step of the journey by their names on pages, printed."""

from __future__ import annotations

from figgen.scenarios.stories.journey_step import JourneyStep

NUMBERS = tuple(
    name
    for kind in reversed(JourneyStep.__mro__)
    for name, member in vars(kind).items()
    if isinstance(member, property) and member.fget.__annotations__["return"] in ("float", "int")
)
"""Names of the properties of a step that are numbers, in their order there."""


def numbers(one: JourneyStep) -> dict[str, float]:
    """Every number of a step by its name on pages."""
    found: dict[str, float] = {}
    for name in NUMBERS:
        found[name] = getattr(one, name)
    return found
