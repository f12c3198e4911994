"""Run the next step of a build, with errors that the host reports in one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mkdocs.exceptions import PluginError


def step(steps: Iterator[Any]) -> Any:
    """Run the next of `steps`.

    Raises the host's PluginError instead of InputError, and for faults of the site's own modules.
    """
    from figgen.errors import InputError
    from figgen.serving.code import own_fault, own_place

    try:
        return next(steps)
    except InputError as error:
        raise PluginError(f"{own_place(error)}{error}") from error
    except Exception as error:
        if fault := own_fault(error):
            raise PluginError(fault) from error
        raise
