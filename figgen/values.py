"""Compute inline values such as `{{ bubble_fraction(stages=4, microbatches=8):.1%}}`.

The grammar is one call of a registered name, with literal arguments, quantities in quotes
(`"5 s"`) or further calls as arguments, and at most one `.field`; then a format spec.
It is parsed with `ast` and never evaluated as Python.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from math import nan
from typing import TypeAlias

from figgen.charts import Named, Scalar
from figgen.equations.call_data import CallData, formula_value
from figgen.equations.definition import Formula
from figgen.equations.evaluation import Evaluation, evaluate
from figgen.equations.opened_data import Opened
from figgen.equations.syntax import expression_tree
from figgen.errors import InputError, check_once, unknown
from figgen.lookups import remembered
from figgen.registry import all_formulas, all_lookups, unit_of
from figgen.subject import Subject, subject
from figgen.units import format_quantity

LONGEST = 400
GRAMMAR = 'one call such as name(argument=1, other="5 s") with at most one .field'

Argument: TypeAlias = "Scalar | bool | tuple[Argument, ...] | Call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A parsed name with arguments; `field` is the field of the result to use, if any."""

    name: str
    positional: tuple[Argument, ...] = ()
    keywords: tuple[tuple[str, Argument], ...] = ()
    field: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """A value in SI with its unit and source; `evaluation` is set if it has a formula.

    `quantity` is the formula, or the field of the looked-up entry, and `inputs` are its arguments.
    `opened` explains the value of a model. `follows` is the call as data if a script can recompute
    it for a different machine. `has_unit` is False for text and for a bare number whose name ends
    in no unit. `low` and `high` are set, and shown, if the catalog's sources
    disagree.
    """

    value: Scalar
    unit: str
    source: str
    call: str
    evaluation: Evaluation | None = None
    low: float | None = None
    high: float | None = None
    opened: Opened | None = None
    has_unit: bool = True
    follows: CallData | None = None
    quantity: str = ""
    inputs: Mapping[str, object] = field(default_factory=dict)

    def text(self, spec: str) -> str:
        """Format the value for readers, such as `27.3%`, with its range if it has one."""
        shown = show(self.value, self.unit, spec)
        if self.low is None or self.high is None:
            return shown
        low, high = (show(bound, self.unit, spec) for bound in (self.low, self.high))
        return f"{shown} ({low} to {high})"


def show(value: Scalar, unit: str, spec: str) -> str:
    """Format a scalar with `spec`; strings are returned unchanged and accept no spec."""
    if isinstance(value, str):
        if spec:
            raise InputError(f"format {spec!r}", expected="a number to format", got=value)
        return value
    return format_quantity(value, unit, spec)


def compute(text: str, named: Mapping[str, Named] | None = None) -> tuple[Computed, str]:
    """Return the value of `call:spec` and the spec. `named` are results with bare names.

    Raises InputError for anything that is not in the grammar, not registered, or outside a
    formula's domain.
    """
    source, spec = split_spec(text)
    if named is not None and source.isidentifier():
        if source not in named:
            raise unknown("value of this figure", source, named)
        found = named[source]
        return Computed(value=found.value, unit=found.unit, source="", call=source), spec
    return _resolved(source, subject()), spec


# A page's numbers are computed when it is checked, when it is converted and when it is listed.
@remembered(8192)
def _resolved(source: str, about: Subject) -> Computed:
    """Return the value of a call; a server that reloads changed code has a new subject."""
    return resolve(parse(source), source)


def split_spec(text: str) -> tuple[str, str]:
    """Split at the first colon outside brackets and quotes: `f(x="a:b"):.1%`."""
    depth = 0
    quote = ""
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == ":" and depth == 0:
            return text[:index].strip(), text[index + 1 :].strip()
    return text.strip(), ""


def parse(text: str) -> Call:
    """Parse `text` as a call. Raises InputError, and nothing else, on any other text."""
    if len(text) > LONGEST:
        raise InputError("an inline value is too long", expected=f"≤ {LONGEST} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError("cannot read this value", expected=GRAMMAR, got=text) from None
    call = _call(tree, text)
    if call is None:
        raise InputError("cannot read this value", expected=GRAMMAR, got=text)
    return call


def _call(node: ast.expr, text: str) -> Call | None:
    field = ""
    if isinstance(node, ast.Attribute):
        field, node = node.attr, node.value
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    check_once(f"argument of {node.func.id}", [key.arg or "**" for key in node.keywords])
    positional = tuple(_argument(argument, text) for argument in node.args)
    keywords = tuple((key.arg or "**", _argument(key.value, text)) for key in node.keywords)
    return Call(name=node.func.id, positional=positional, keywords=keywords, field=field)


def _argument(node: ast.expr, text: str) -> Argument:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float | str):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _argument(node.operand, text)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return -value
    if isinstance(node, ast.List | ast.Tuple):
        return tuple(_argument(item, text) for item in node.elts)
    call = _call(node, text)
    if call is None:
        raise InputError("cannot read an argument", expected="a literal or a call", got=text)
    return call


def resolve(call: Call, text: str) -> Computed:
    """Find the formula or lookup that a call names, and compute it."""
    formulas, lookups = all_formulas(), all_lookups()
    try:
        if call.name in formulas:
            return _formula(formulas[call.name], call, text)
        if call.name in lookups:
            return _lookup(lookups[call.name], call, text)
    except (ArithmeticError, RecursionError) as error:
        raise InputError(f"{call.name} cannot be computed: {error}", got=text) from None
    raise unknown("formula", call.name, [*formulas, *lookups])


def _formula(formula: Formula, call: Call, text: str) -> Computed:
    if call.field:
        raise InputError(f"formula {call.name!r} has no fields", got=call.field)
    if call.positional:
        names = ", ".join(argument.name for argument in formula.args)
        raise InputError(f"formula {call.name!r} takes its arguments by name", expected=names)
    expression_tree(formula)  # raises for one that no page can print
    arguments = {name: _with_unit(argument) for name, argument in call.keywords}
    evaluation = evaluate(call.name, **arguments)
    return Computed(
        value=evaluation.value,
        unit=formula.unit,
        source=formula.source,
        call=text,
        evaluation=evaluation,
        quantity=formula.name,
        inputs=evaluation.arguments,
        follows=_follows(call, evaluation.arguments),
    )


def _follows(call: Call, given: Mapping[str, float]) -> CallData | None:
    """Return a formula as data if scripts can recompute its inner calls for a different machine."""
    inner = {n: resolve(one, one.name).follows for n, one in call.keywords if isinstance(one, Call)}
    if not inner or None in inner.values():
        return None
    return [call.name, {**given, **inner}]


def _lookup(look_up: Callable[..., object], call: Call, text: str) -> Computed:
    positional = [_plain(argument) for argument in call.positional]
    keywords = {name: _plain(argument) for name, argument in call.keywords}
    try:
        found = look_up(*positional, **keywords)
    except TypeError as error:
        raise InputError(f"{call.name}: {error}", got=text) from None
    if not call.field:
        raise InputError(f"{call.name}(…) is a whole entry", expected="one of its fields", got=text)
    fields = [name for name in dir(found) if not name.startswith("_")]
    if call.field not in fields:
        raise unknown(f"field of {call.name}", call.field, fields)
    computed = _computed(getattr(found, call.field), found, call, text)
    if explain := getattr(found, "opened", None):
        computed = replace(computed, opened=explain(call.field))
    if isinstance(computed.value, int | float) and getattr(found, "follows", False):
        given = signature(look_up).bind(*positional, **keywords).args
        computed = replace(computed, follows=[call.name, list(given), call.field])
    # The name of an entry is an input named after its kind: model, run, schedule.
    _, *others = signature(look_up).parameters
    named = dict(zip((call.name, *others), positional, strict=False)) | keywords
    quantity = f"{call.name}.{call.field}"
    return replace(computed, quantity=quantity, inputs=named)


def call_data(call: Call) -> CallData:
    """Return the call of a formula as data, with quantities in SI; a lookup becomes its number."""
    if call.name not in all_formulas():
        return _number(resolve(call, call.name).value)
    given = {name: _with_unit(argument) for name, argument in call.keywords}
    found = evaluate(call.name, **given).arguments
    inner = {name: one for name, one in call.keywords if isinstance(one, Call)}
    return [call.name, {n: call_data(inner[n]) if n in inner else v for n, v in found.items()}]


def evaluated(asked: CallData) -> float:
    """Compute a formula given as data. Raises InputError outside its domain."""
    return formula_value(asked, lambda name, given: evaluate(name, **given).value)


def evaluated_or_nan(name: str, given: Mapping[str, float]) -> float:
    """Return the value of a formula, or NaN outside its domain, as scripts compute it."""
    try:
        return evaluate(name, **given).value
    except InputError:
        return nan


def looked_up_again(name: str, given: Sequence[object], field: str) -> float:
    """Return a looked-up number from the call's data."""
    found = getattr(all_lookups()[name](*given), field)
    return float(getattr(found, "value", found))


def _number(value: Scalar) -> float:
    if isinstance(value, str):
        raise InputError("a number to compute with", got=value)
    return value


def _plain(argument: Argument) -> object:
    return resolve(argument, argument.name).value if isinstance(argument, Call) else argument


def _with_unit(argument: Argument) -> object:
    """Return an argument of a formula; a number that has a unit keeps it, so that it is checked."""
    if not isinstance(argument, Call):
        return argument
    found = resolve(argument, argument.name)
    return found if found.has_unit else found.value


def _computed(found: object, entry: object, call: Call, text: str) -> Computed:
    """Return a looked-up value; a bare number has its unit in its name, its source in `entry`."""
    value = getattr(found, "value", found)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InputError(f"{call.name}(…).{call.field} is not a number or a string", got=text)
    unit = getattr(found, "unit", unit_of(call.field))
    known = hasattr(found, "unit") or unit != "1"
    source = getattr(found, "source", getattr(entry, "source", ""))
    # A bare number has lost its range.
    given = getattr(entry, subject().ranges.get(call.field, ""), found)
    low, high = getattr(given, "low", None), getattr(given, "high", None)
    return Computed(
        value=value,
        unit=unit,
        source=source,
        call=text,
        has_unit=known and not isinstance(value, str),
        low=low,
        high=high,
    )
