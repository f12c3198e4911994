"""The next step of a build, whose errors the host reports in one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mkdocs.exceptions import PluginError


def step(steps: Iterator[Any]) -> Any:
    """Take the next of `steps`. Raises the host's own error for bad input of any kind."""
    from figgen.errors import InputError
    from figgen.serving.code import own_place

    try:
        return next(steps)
    except InputError as error:
        raise PluginError(f"{own_place(error)}{error}") from error
