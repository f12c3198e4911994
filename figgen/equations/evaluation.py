"""Evaluate a formula at one point, with every argument checked."""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from types import CodeType
from typing import Any

from figgen.equations.definition import FORMULAS, Formula
from figgen.equations.notation import Argument
from figgen.equations.ops import CONSTANTS, OPERATORS
from figgen.equations.syntax import conditions, names, tree
from figgen.equations.tree import text
from figgen.errors import InputError, unknown
from figgen.units import agree, parse_quantity


@dataclass(frozen=True, slots=True)
class Evaluation:
    """`value` in `formula.unit`; arguments as plain SI numbers, in the formula's order."""

    formula: Formula
    arguments: Mapping[str, float]
    value: float

    @property
    def unit(self) -> str:
        return self.formula.unit


def evaluate(name: str, /, **arguments: object) -> Evaluation:
    """Evaluate formula `name` at `arguments`: numbers in SI, or text such as "5 s".

    An argument may also be anything with a `value` in SI and its `unit`: a quantity of a catalog,
    or an evaluation.

    Raises InputError for an unknown formula, an unknown or missing argument, one in the wrong unit
    or not a finite number, a count that is not whole, and arguments outside the domain.
    """
    if name not in FORMULAS:
        raise unknown("formula", name, FORMULAS)
    found = FORMULAS[name]
    known = {argument.name: argument for argument in found.args}
    for given in arguments:
        if given not in known:
            raise unknown(f"argument of {name}", given, known)
    missing = [argument for argument in known if argument not in arguments]
    if missing:
        raise InputError(f"{name} needs {', '.join(missing)}")
    values = {key: _number(name, known[key], arguments[key]) for key in known}
    _check_domain(found, values, arguments)
    try:
        value = found.function(**values)
    except ArithmeticError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{name} has no value there", got=values)
    return Evaluation(found, values, value)


def _number(formula: str, argument: Argument, given: Any) -> float:
    where = f"{formula}: {argument.name}"
    if isinstance(given, str):
        try:
            given = parse_quantity(given, argument.unit).value
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    elif hasattr(given, "unit"):
        if not agree(given.unit, argument.unit):
            raise InputError(where, expected=argument.unit, got=given.unit)
        given = given.value
    if isinstance(given, bool) or not isinstance(given, Real) or not math.isfinite(given):
        raise InputError(where, expected="a finite number", got=given)
    value: float = int(given) if isinstance(given, int) else float(given)
    if not argument.whole:
        return value
    if value != int(value):
        raise InputError(where, expected="a whole number", got=given)
    return int(value)


def _check_domain(
    formula: Formula, values: Mapping[str, float], given: Mapping[str, object]
) -> None:
    """Raise InputError outside the domain, with text as the author wrote it."""
    for condition, code in _compiled_conditions(formula):
        if not _run(code, values):
            involved = {
                name: given[name] if isinstance(given[name], str) else values[name]
                for name in names(condition)
            }
            alone = len(involved) == 1
            raise InputError(
                f"{formula.name} is not defined there",
                expected=text(tree(condition), {}),
                got=next(iter(involved.values())) if alone else involved,
            )


def _run(code: CodeType, arguments: Mapping[str, float]) -> Any:
    return eval(code, {"__builtins__": {}, **OPERATORS, **CONSTANTS}, dict(arguments))


def _compiled(node: ast.expr) -> CodeType:
    return compile(ast.fix_missing_locations(ast.Expression(node)), "<formula>", "eval")


@functools.cache
def _compiled_conditions(formula: Formula) -> tuple[tuple[ast.expr, CodeType], ...]:
    return tuple((condition, _compiled(condition)) for condition in conditions(formula))
