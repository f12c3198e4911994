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
    from figgen.errors import InputError
    from figgen.serving.code import in_place, own_fault

    try:
        return next(steps)
    except InputError as error:
        *others, last = map(str, in_place(error))
        for message in others:
            log.error(message)
        raise PluginError(last) from error
    except Exception as error:
        if fault := own_fault(error):
            raise PluginError(fault) from error
        raise
