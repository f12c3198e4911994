"""Command lines for tests: replaces options, because an option given twice is refused."""

from __future__ import annotations

from collections.abc import Sequence


def without(arguments: Sequence[str], replaced: Sequence[str]) -> tuple[str, ...]:
    """Return `arguments`, pairs of an option and its value, without the options in `replaced`."""
    pairs = list(zip(arguments[::2], arguments[1::2], strict=True))
    return tuple(word for pair in pairs if pair[0] not in replaced for word in pair)
