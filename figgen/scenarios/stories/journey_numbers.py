"""The numbers of a step by the names that pages use. The module is printed as JavaScript."""

from __future__ import annotations

from figgen.scenarios.stories.journey_step import JourneyStep

NUMBERS = tuple(
    name
    for kind in reversed(JourneyStep.__mro__)
    for name, member in vars(kind).items()
    if isinstance(member, property) and member.fget.__annotations__["return"] in ("float", "int")
)
"""Properties of a step that are numbers, in the order of their definition."""


def numbers(one: JourneyStep) -> dict[str, float]:
    """Return every number of a step by the name that pages use."""
    found: dict[str, float] = {}
    for name in NUMBERS:
        found[name] = getattr(one, name)
    return found
