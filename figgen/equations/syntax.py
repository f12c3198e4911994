"""Read the syntax tree of a formula from its function's source.

Only syntax that all printers support is accepted, so that every registered formula can be shown.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Mapping

from figgen.equations.definition import Formula
from figgen.equations.ops import CONSTANTS, OPERATORS
from figgen.equations.tree import NAME, NUMBER, Node, text
from figgen.errors import InputError, closest

ALLOWED: tuple[type[ast.AST], ...] = (
    ast.Constant, ast.Name, ast.Load, ast.Call, ast.BinOp, ast.UnaryOp, ast.USub, ast.Compare,
    ast.BoolOp, ast.And, ast.Or,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow,
    ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE,
)  # fmt: skip

SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.And: "and", ast.Or: "or", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<",
    ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


@functools.cache
def expression(formula: Formula) -> ast.expr:
    """Return the expression in the return statement, with earlier assignments substituted.

    Raises InputError unless the body is single assignments and one return, and for syntax that the
    printers do not support.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(formula.function)))
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise InputError(f"{formula.place()}: formula {formula.name} is not a function")
    bound = _arguments(formula)
    for statement in definition.body[1:]:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in bound:
                bound[name] = _resolved(formula, value, bound)
            case ast.Return(value=ast.expr() as value) if statement is definition.body[-1]:
                return _resolved(formula, value, bound)
            case _:
                where = f"{formula.place(statement.lineno)}: formula {formula.name}"
                raise InputError(where, expected="single assignments, then one return")
    raise InputError(f"{formula.place()}: formula {formula.name} returns nothing")


@functools.cache
def expression_tree(formula: Formula) -> Node:
    """Return the formula's expression as a tree. Raises InputError as `expression` does."""
    return tree(expression(formula))


@functools.cache
def conditions(formula: Formula) -> tuple[ast.expr, ...]:
    """Return all conditions of the domain: the ranges of the arguments, then those of `where`."""
    special = _conjuncts(formula.where)
    # A bound in `where` (ranks >= 2) replaces the argument's own (ranks >= 1) on the same side.
    narrowed = {_side(condition) for condition in special} - {None}
    general = [
        condition
        for argument in formula.args
        for condition in _conjuncts(argument.range.format(argument.name))
        if _side(condition) not in narrowed
    ]
    bound = _arguments(formula)
    return tuple(_resolved(formula, condition, bound) for condition in [*general, *special])


def _side(condition: ast.expr) -> tuple[str, bool] | None:
    """Return the argument that a constant bounds, and whether from below; None for other forms."""
    if (
        isinstance(condition, ast.Compare)
        and isinstance(condition.left, ast.Name)
        and isinstance(condition.comparators[0], ast.Constant | ast.UnaryOp)
    ):
        return condition.left.id, isinstance(condition.ops[0], ast.Gt | ast.GtE)
    return None


def domain(formula: Formula) -> str:
    """Return the domain of the formula as text, such as "ranks ≥ 2, latency_s ≥ 0"."""
    return ", ".join(text(tree(condition), {}) for condition in conditions(formula))


def tree(node: ast.expr) -> Node:
    """Convert an expression to a tree for the printers. Raises InputError for other syntax."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return Node(sign=NUMBER, value=value)
        case ast.Name(id=name) if name in CONSTANTS:
            return Node(sign=name)
        case ast.Name(id=name):
            return Node(sign=NAME, name=name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return Node(sign="neg", operands=(tree(operand),))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SIGNS:
            return Node(sign=SIGNS[type(op)], operands=(tree(left), tree(right)))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            compared = tree(left)
            for compares, right in zip(ops, comparators, strict=True):
                compared = Node(sign=SIGNS[type(compares)], operands=(compared, tree(right)))
            return compared
        case ast.BoolOp(op=op, values=values):
            return Node(sign=SIGNS[type(op)], operands=tuple(map(tree, values)))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return Node(sign=name, operands=tuple(map(tree, arguments)))
    raise InputError(f"cannot print {type(node).__name__} in a formula", got=ast.unparse(node))


def names(node: ast.expr) -> tuple[str, ...]:
    """Return the arguments that occur in `node`, in order of first occurrence."""
    called = {id(child.func) for child in ast.walk(node) if isinstance(child, ast.Call)}
    every = (child for child in ast.walk(node) if isinstance(child, ast.Name))
    found = (name for name in every if name.id not in CONSTANTS)
    return tuple(dict.fromkeys(name.id for name in found if id(name) not in called))


def _arguments(formula: Formula) -> dict[str, ast.expr]:
    return {argument.name: ast.Name(argument.name, ast.Load()) for argument in formula.args}


def _conjuncts(condition: str) -> list[ast.expr]:
    if not condition:
        return []
    node = ast.parse(condition, mode="eval").body
    return node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) else [node]


class _Substitute(ast.NodeTransformer):
    def __init__(self, bound: Mapping[str, ast.expr]) -> None:
        self.bound = bound

    def visit_Name(self, name: ast.Name) -> ast.expr:
        return self.bound.get(name.id, name)


def _resolved(formula: Formula, node: ast.expr, bound: Mapping[str, ast.expr]) -> ast.expr:
    """Substitute bound names in `node`, after checking that all printers support its parts."""
    for child in ast.walk(node):
        if fault := _unprintable(child):
            line = getattr(child, "lineno", 1)
            what = f"{formula.place(line)}: formula {formula.name} cannot {fault.what}"
            raise InputError(what, expected=fault.expected, nearest=fault.nearest)
    for name in names(node):
        if name not in bound:
            uses = (one for one in ast.walk(node) if isinstance(one, ast.Name) and one.id == name)
            where = formula.place(min(getattr(one, "lineno", 1) for one in uses))
            raise InputError(
                f"{where}: formula {formula.name} uses the unknown name {name!r}",
                expected=f"an argument or a number, or {', '.join(CONSTANTS)}",
                nearest=closest(name, bound),
            )
    replaced: ast.expr = _Substitute(bound).visit(node)
    return replaced


def _unprintable(node: ast.AST) -> InputError | None:
    """Return what a formula cannot do, and what to write instead; None for allowed syntax."""
    match node:
        case ast.Call(func=ast.Name(id=name), keywords=[]) if name in OPERATORS:
            return None
        case ast.Call(func=ast.Name(id="abs"), args=[inside]):
            negated = ast.UnaryOp(ast.USub(), inside)
            expected = f"maximum({ast.unparse(inside)}, {ast.unparse(negated)})"
            return InputError(f"call {ast.unparse(node)}", expected=expected)
        case ast.Call(func=function):
            called = ast.unparse(function).rpartition(".")[2]
            return InputError(
                f"call {ast.unparse(node)}",
                expected=f"one of {', '.join(OPERATORS)}, without keywords",
                nearest=closest(called, OPERATORS, 1),
            )
        case ast.IfExp(test=test, body=value, orelse=other):
            parts = ", ".join(map(ast.unparse, (test, value, other)))
            return InputError(f"use {ast.unparse(node)}", expected=f"where({parts})")
        case ast.Attribute(attr=name):
            return InputError(f"use {ast.unparse(node)}", nearest=closest(name, CONSTANTS, 1))
        case ast.Constant(value=bool() | complex() | str() | bytes() | None):
            return InputError(f"use {ast.unparse(node)}")
        case ast.expr() if not isinstance(node, ALLOWED):
            return InputError(f"use {ast.unparse(node)}", expected="arithmetic and comparisons")
        case _ if not isinstance(node, ALLOWED):
            return InputError(f"use {type(node).__name__}", expected="arithmetic and comparisons")
    return None
