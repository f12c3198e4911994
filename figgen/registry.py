"""Figures and formulas of the site's subject by name.

A figure is a plain function; its keyword-only signature is the schema.
"""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from figgen.chart_check import checked
from figgen.charts import Chart
from figgen.equations.definition import FORMULAS, Formula, is_reloaded, written_at
from figgen.errors import InputError, closest, raise_all, unknown
from figgen.lookups import OneOf
from figgen.subject import subject
from figgen.units import parse_quantity


@dataclass(frozen=True, slots=True)
class Parameter:
    """One keyword of a figure: its name, its type, and its default, if any."""

    name: str
    annotation: Any
    default: Any = inspect.Parameter.empty

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A registered figure; an `explorable` one may be opened in Plotly (`as: plotly`).

    With `about`, the result of that function is the figure's first argument, and fences give the
    parameters of both. A page can recompute a figure that `follows` for a different machine, and a
    `recomputed` one for different parameters, with its printed function.
    """

    name: str
    function: Callable[..., Chart]
    parameters: tuple[Parameter, ...]
    explorable: bool
    follows: bool = False
    recomputed: bool = False
    of_reference: bool = False
    about: Callable[..., object] | None = None

    @property
    def place(self) -> str:
        """File and line of the function, such as `boat.py:30`."""
        return written_at(
            self.function.__module__, inspect.unwrap(self.function).__code__.co_firstlineno
        )

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.function) or "").split("\n", 1)[0]


FIGURES: dict[str, Figure] = {}
LOOKUPS: dict[str, Callable[..., object]] = {}
"""Lookups that a site's own modules registered for pages (`figgen.tables`)."""


def figure(
    name: str,
    *,
    about: Callable[..., object] | None = None,
    explorable: bool = False,
    follows: bool = False,
    recomputed: bool = False,
    of_reference: bool = False,
) -> Callable[[Callable[..., Chart]], Callable[..., Chart]]:
    """Register a figure function under `name`; all its parameters must be keyword-only.

    `of_reference` means that it shows the reference machine, not the reader's.
    `about` computes an object that several figures show; it becomes the first argument, the only
    one that need not be keyword-only.
    """

    def register(function: Callable[..., Chart]) -> Callable[..., Chart]:
        if name in FIGURES and not is_reloaded(FIGURES[name].function, function):
            raise InputError(f"two figures are named {name!r}; {FIGURES[name].place} is the first")
        own = _signature(function)
        if about is not None:
            own = own[1:]
        for parameter in own:
            if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
                raise InputError(
                    f"figure {name!r}: {parameter.name} must be keyword-only",
                    expected=f"def {function.__name__}(*, …)",
                )
        shared = _signature(about) if about is not None else []
        parameters = tuple(Parameter(p.name, p.annotation, p.default) for p in [*shared, *own])
        FIGURES[name] = Figure(
            name=name,
            function=function,
            parameters=parameters,
            explorable=explorable,
            follows=follows,
            recomputed=recomputed,
            of_reference=of_reference,
            about=about,
        )
        return function

    return register


def _signature(function: Callable[..., object]) -> list[inspect.Parameter]:
    return list(inspect.signature(function, eval_str=True).parameters.values())


def all_figures() -> Mapping[str, Figure]:
    """Return every figure of the site by name; the first call imports them."""
    _load(subject().figures)
    return FIGURES


def all_formulas() -> Mapping[str, Formula]:
    """Return every formula of the site by name; the first call imports them."""
    _load(subject().formulas)
    return FORMULAS


def all_lookups() -> Mapping[str, Callable[..., object]]:
    """Return the functions that an inline value may call besides formulas, by name."""
    return {**subject().lookups, **LOOKUPS}


def _load(module: str) -> None:
    if module and module not in sys.modules:
        import_module(module)


def figure_named(name: str) -> Figure:
    """Return a registered figure. Raises InputError, with similar names, for an unknown one."""
    all_figures()
    if name not in FIGURES:
        if not FIGURES:
            raise InputError(
                f"unknown figure {name!r}", expected="a module of yours in the plug-in's `modules`"
            )
        raise unknown("figure", name, FIGURES)
    return FIGURES[name]


def is_of_reference(name: str) -> bool:
    """Return whether a figure shows the reference machine; False if there is no such figure."""
    found = all_figures().get(name)
    return found is not None and found.of_reference


def follows(name: str) -> bool:
    """Return whether a page can recompute a figure; False if there is no such figure."""
    found = all_figures().get(name)
    return found is not None and found.follows


def controls(name: str, arguments: Mapping[str, object]) -> list[dict[str, object]] | None:
    """Return a figure's parameters for the form that recomputes it, or None if no page can.

    A site without tools has no printed functions.

    Only numbers, strings, flags and lists of them have a `kind` and thus a control. A string with
    few possible values has `choices`: [value, words] pairs.
    """
    spec = figure_named(name)
    if not spec.recomputed or subject().tools() is None:
        return None
    values = inputs(name, arguments)
    return [
        {"name": p.name, "value": values[p.name], "unit": unit_of(p.name), **_field(p.annotation)}
        for p in spec.parameters
    ]


def _field(annotation: Any) -> dict[str, object]:
    """Describe the field of a parameter: numbers or strings, one or a list, optional or not."""
    optional = typing.get_origin(annotation) in (types.UnionType, typing.Union)
    if optional:
        annotation = next(c for c in typing.get_args(annotation) if c is not type(None))
    several = typing.get_origin(annotation) is tuple
    one = typing.get_args(annotation)[0] if several else annotation
    found: dict[str, object] = {"list": several, "optional": optional}
    if several and Ellipsis not in typing.get_args(annotation):
        found["count"] = len(typing.get_args(annotation))
    if typing.get_origin(one) is Literal:
        choices = typing.get_args(one)
        pairs = [[choice, str(choice)] for choice in choices]
        return {"kind": type(choices[0]).__name__, "choices": pairs, **found}
    known = one_of(one)
    if isinstance(known, Mapping):
        found["choices"] = [[k, v if isinstance(v, str) else k] for k, v in known.items()]
    one = _bare(one)
    return {**({"kind": one.__name__} if one in (int, float, str, bool) else {}), **found}


def _bare(annotation: Any) -> Any:
    """Return a type without its annotations."""
    is_annotated = typing.get_origin(annotation) is typing.Annotated
    return typing.get_args(annotation)[0] if is_annotated else annotation


def one_of(annotation: Any) -> Callable[[str], object] | Mapping[str, object] | None:
    """Return what a parameter is a name of, or each of its values (`figgen.lookups.OneOf`)."""
    marks = [one for one in getattr(annotation, "__metadata__", ()) if isinstance(one, OneOf)]
    inner = (one for one in typing.get_args(annotation) if not isinstance(one, str))
    found = (known for one in inner if (known := one_of(one)) is not None)
    return marks[0].known if marks else next(found, None)


def build(name: str, arguments: Mapping[str, object]) -> Chart:
    """Evaluate figure `name`. Raises InputError for unknown names and invalid arguments."""
    spec = figure_named(name)
    bound = bind(spec, arguments)
    try:
        if spec.about is None:
            made = spec.function(**bound)
        else:
            shared = {p.name: bound.pop(p.name) for p in _signature(spec.about) if p.name in bound}
            made = spec.function(spec.about(**shared), **bound)
    except InputError as error:
        raise _about(spec, error) from error
    except ArithmeticError as error:
        raise _about(spec, InputError(f"nothing to compute with these values: {error}")) from error
    try:
        return checked(made)
    except InputError as error:
        raise _about(spec, error, spec.place) from error


def bind(spec: Figure, arguments: Mapping[str, object]) -> dict[str, Any]:
    """Check and convert `arguments` against the figure's signature.

    Raises one InputError for all arguments that are unknown, missing or invalid.
    """
    known = {parameter.name: parameter for parameter in spec.parameters}
    faults = [_unknown_parameter(str(name), known) for name in arguments if name not in known]
    slips = {near for fault in faults for near in fault.nearest}
    for parameter in spec.parameters:
        if parameter.required and parameter.name not in {*arguments, *slips}:
            faults.append(InputError(f"parameter {parameter.name!r} is missing"))
    bound = {}
    for name in known.keys() & arguments.keys():
        try:
            bound[name] = convert(arguments[name], known[name].annotation, name)
        except InputError as error:
            faults.append(error)
    raise_all(_about(spec, fault) for fault in faults)
    return {name: bound[name] for name in arguments}


def inputs(name: str, arguments: Mapping[str, object]) -> dict[str, Any]:
    """Return the values of all parameters of figure `name`, including defaults."""
    spec = figure_named(name)
    given = bind(spec, arguments)
    return {p.name: given.get(p.name, None if p.required else p.default) for p in spec.parameters}


def _unknown_parameter(name: str, known: Mapping[str, Parameter]) -> InputError:
    nearest = closest(name, known)
    listed = ", ".join(known) or "none"
    expected = None if nearest else f"one of {listed}"
    return InputError(f"unknown parameter {name!r}", expected=expected, nearest=nearest, key=name)


def _about(spec: Figure, error: InputError, place: str = "") -> InputError:
    """Return the same error with the name of the figure, and the place of its function if given."""
    where = f" ({place})" if place else ""
    return InputError(
        f"figure {spec.name!r}{where}: {error.what}",
        expected=error.expected,
        got=error.got,
        nearest=error.nearest,
        key=error.key,
    )


def convert(value: object, annotation: Any, name: str) -> Any:
    """Convert `value` to its annotation: int, float, str, bool, Literal, tuple[T, ...] or T | None.

    Integers are accepted as floats and lists as tuples; nothing else is coerced, because a quoted
    number or a `yes` that became True is usually a mistake.
    """
    annotation = _bare(annotation)
    origin = typing.get_origin(annotation)
    choices = typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in choices:
            return None
        inner = next(choice for choice in choices if choice is not type(None))
        return convert(value, inner, name)
    if origin is Literal:
        if value in choices and not isinstance(value, bool):
            return value
        nearest = closest(str(value), map(str, choices))
        raise InputError(
            name, expected=f"one of {', '.join(map(str, choices))}", got=value, nearest=nearest
        )
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise InputError(name, expected=f"a list of {_kind(choices[0])}", got=value)
        if not value:
            raise InputError(name, expected=f"a list of {_kind(choices[0])}, not an empty one")
        if Ellipsis not in choices and len(value) != len(choices):
            raise InputError(name, expected=f"{len(choices)} values", got=tuple(value))
        return tuple(convert(item, choices[0], name) for item in value)
    return _convert_scalar(value, annotation, name)


def _convert_scalar(value: object, annotation: type, name: str) -> object:
    if annotation is float:
        return _convert_number(value, name)
    if not isinstance(value, annotation) or (annotation is int and isinstance(value, bool)):
        raise InputError(name, expected=_kind(annotation), got=value)
    return value


UNIT_OF_SUFFIX = {"_bytes_per_s": "B/s", "_flops_per_s": "FLOP/s", "_bytes": "B", "_s": "s"}


def unit_of(name: str) -> str:
    """Return the SI unit that a name ends in, or "1"."""
    return next((unit for suffix, unit in UNIT_OF_SUFFIX.items() if name.endswith(suffix)), "1")


def _convert_number(value: object, name: str) -> float:
    """Return a finite number; text such as `3 s` must have the unit that the name ends in."""
    if isinstance(value, str):
        try:
            value = parse_quantity(value, unit_of(name)).value
        except InputError as error:
            raise InputError(f"{name}: {error}", key=name) from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(name, expected="a number", got=value)
    if not abs(value) <= sys.float_info.max:
        raise InputError(name, expected="a finite number", got=value)
    return float(value)


def _kind(annotation: Any) -> str:
    names = {int: "an integer", float: "a number", str: "text", bool: "true or false"}
    return names.get(_bare(annotation), str(annotation))
