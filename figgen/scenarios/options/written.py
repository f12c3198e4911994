"""Parses the `sizes:` and `options:` of pages into scenarios.

sizes: nodes=8 gpus_per_node=8 tp=8 pp=4
options: schedule=zbv microbatches=64 nic=ib-xdr dropout=off

Figures about a step or a layout take these parameters; nothing else uses this syntax.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from figgen.errors import InputError, check_once
from figgen.models.machine.layout import ParallelLayout
from figgen.scenarios.options.resolve import SIZES, TrainingStep, resolve, resolve_layout
from figgen.scenarios.options.scenario import Scenario, scenario
from figgen.scenarios.options.schema import OPTIONS, unknown_option

CHOOSABLE = tuple(name for name in OPTIONS if name not in (*SIZES, "model"))
"""Options that a page's `options:` may set."""


def written_words(text: str, key: str, names: Collection[str]) -> dict[str, Any]:
    """Return the options among `names` that the text of a page's `key` sets.

    Raises InputError for an unknown name, and for a value that the option cannot have.
    """
    found: dict[str, Any] = {}
    check_once(f"{key} {text!r}:", (word.partition("=")[0] for word in text.split()), key)
    for word in text.split():
        name, _, value = word.partition("=")
        if name not in names:
            raise unknown_option(f"word of {key} {text!r}:", name, names).about(key)
        try:
            found[name] = OPTIONS[name].read(value)
        except InputError as error:
            where = f"{key} {text!r}: {error.what}"
            raise InputError(
                where, expected=error.expected, got=error.got, nearest=error.nearest, key=key
            ) from None
    return found


def written_sizes(text: str) -> dict[str, Any]:
    """Return the sizes of a cluster and its axes. Raises InputError as `written_words` does."""
    return written_words(text, "sizes", SIZES)


def written_options(text: str) -> dict[str, Any]:
    """Return all other options. Raises InputError as `written_words` does."""
    return written_words(text, "options", CHOOSABLE)


def written_scenario(
    preset: str | None = None,
    run: str | None = None,
    model: str = "",
    sizes: str = "",
    options: str = "",
) -> Scenario:
    """Return the scenario that a figure's parameters describe.

    Raises InputError unless exactly one of preset, run and model is given, and for any word that
    does not fit.
    """
    given = {"preset": preset, "run": run, "model": model}
    if sum(bool(text) for text in given.values()) != 1:
        names = [name for name, text in given.items() if text]
        raise InputError("a training step", expected="one of preset, run or model", got=names)
    chosen = written_sizes(sizes) | written_options(options)
    return scenario(preset=preset, run=run, **({"model": model} if model else {}), **chosen)


def written_step(
    preset: str | None = None,
    run: str | None = None,
    model: str = "",
    sizes: str = "",
    options: str = "",
) -> TrainingStep:
    """Return the step of a training preset, a published run, or `model` with the layout `sizes`."""
    asked = written_scenario(preset, run, model, sizes, options)
    try:
        found = resolve(asked)
        _ = found.cluster  # refused here, where the page's key is known
        return found
    except InputError as error:
        raise _on_page(error) from None


def written_layout(
    preset: str | None = None,
    run: str | None = None,
    sizes: str = "",
    order: str = "",
) -> ParallelLayout:
    """Return the layout of a preset, of a published run in its own order, or from `sizes`.

    Raises InputError unless exactly one of the three is given, and for sizes that do not fit.
    """
    given = {"preset": preset, "run": run, "sizes": sizes}
    if sum(bool(text) for text in given.values()) != 1:
        names = [name for name, text in given.items() if text]
        raise InputError("a rank map", expected="one of preset, run or sizes", got=names)
    chosen = written_sizes(sizes) | ({"order": order} if order else {})
    try:
        return resolve_layout(scenario(preset=preset, run=run, **chosen))
    except InputError as error:
        raise _on_page(error) from None


def _on_page(error: InputError) -> InputError:
    """Return the same error, with the key of the page that sets the option."""
    keys = dict.fromkeys(CHOOSABLE, "options") | dict.fromkeys(SIZES, "sizes")
    return error.about(keys.get(error.key, error.key))
