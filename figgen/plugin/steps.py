"""Run the next step of a build, with errors that the host reports in one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.plugins import get_plugin_logger

log = get_plugin_logger("figgen")


def step(steps: Iterator[Any]) -> Any:
    """Run the next of `steps`.

    Raises the host's PluginError instead of InputError, and for faults of the site's own modules.
    Of several errors it raises the last, and logs the others.
    """
    from figgen.errors import InputError, PlacedError
    from figgen.serving.code import own_fault, own_place

    try:
        return next(steps)
    except InputError as error:
        place = own_place(error)
        *others, last = (
            str(one) if isinstance(one, PlacedError) else f"{place}{one}" for one in error.all
        )
        for message in others:
            log.error(message)
        raise PluginError(last) from error
    except Exception as error:
        if fault := own_fault(error):
            raise PluginError(fault) from error
        raise
