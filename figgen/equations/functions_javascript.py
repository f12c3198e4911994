"""Plain functions of models as an ES module, printed from their own source.

A model that is arithmetic from its first line to its last needs no second hand: its functions of
assignments and one return, its constants, and the dataclasses that it returns with their
properties are printed as they stand. Anything else is an error, so that nothing is left out.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Mapping
from types import ModuleType

from figgen.equations.javascript import CALLS, SIGNS
from figgen.errors import InputError

INDENT = "  "


def printed_module(modules: Iterable[ModuleType], exported: Iterable[str]) -> str:
    """An ES module with what the modules define, in their order; `exported` are for others."""
    trees = [ast.parse(inspect.getsource(module)) for module in modules]
    classes = {
        node.name: _fields(node)
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    printer = _Printer(classes)
    parts = [part for tree in trees for node in tree.body if (part := printer.top(node))]
    names = ", ".join(sorted(exported))
    return (
        f"// Printed from the Python models of figgen.\n\n{''.join(parts)}export {{ {names} }};\n"
    )


def _fields(node: ast.ClassDef) -> tuple[str, ...]:
    return tuple(
        line.target.id
        for line in node.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    )


class _Printer:
    """Prints nodes; knows the fields of the dataclasses that functions return."""

    def __init__(self, classes: Mapping[str, tuple[str, ...]]) -> None:
        self.classes = classes

    def top(self, node: ast.stmt) -> str:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
                return f"const {name} = {value!r};\n"
            case ast.FunctionDef(name=name, args=arguments, body=body):
                given = ", ".join(argument.arg for argument in arguments.args)
                return f"function {name}({given}) {{\n{self.body(body)}}}\n"
            case ast.ClassDef(name=name, body=body):
                return self.made(name, [line for line in body if isinstance(line, ast.FunctionDef)])
            case ast.Expr() | ast.Import() | ast.ImportFrom():
                return ""
        raise _unprintable(node)

    def made(self, name: str, properties: list[ast.FunctionDef]) -> str:
        """A dataclass as a function that makes an object with its properties."""
        lines = [f"{INDENT}self.{one.name} = {self.returned(one.body)};\n" for one in properties]
        return f"function {name}(self) {{\n{''.join(lines)}{INDENT}return self;\n}}\n"

    def returned(self, body: list[ast.stmt]) -> str:
        last = body[-1]
        if isinstance(last, ast.Return) and last.value is not None:
            return self.shown(last.value)
        raise _unprintable(last)

    def body(self, body: list[ast.stmt]) -> str:
        lines, known = [], set[str]()
        for node in body:
            match node:
                case ast.Expr(value=ast.Constant()):
                    continue
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    word = "" if name in known else "let "
                    known.add(name)
                    lines.append(f"{word}{name} = {self.alone(value)}")
                case ast.Assign(targets=[ast.Tuple(elts=names)], value=value):
                    told = [self.shown(one) for one in names]
                    known |= set(told)
                    lines.append(f"let [{', '.join(told)}] = {self.shown(value)}")
                case ast.Return(value=ast.expr() as value):
                    lines.append(f"return {self.alone(value)}")
                case _:
                    raise _unprintable(node)
        return "".join(f"{INDENT}{line};\n" for line in lines)

    def alone(self, node: ast.expr) -> str:
        """An expression that stands alone, by itself or between commas: without parentheses."""
        found = self.shown(node)
        functions = (ast.Pow, ast.FloorDiv)
        compound = isinstance(node, ast.BinOp) and not isinstance(node.op, functions)
        return found[1:-1] if compound or isinstance(node, ast.Compare) else found

    def shown(self, node: ast.expr) -> str:
        """An expression, with parentheses around all that is compound."""
        match node:
            case ast.Name(id=name):
                return name
            case ast.Constant(value=int() | float() as value):
                return repr(value)
            case ast.Attribute(value=value, attr=name):
                return f"{self.shown(value)}.{name}"
            case ast.Tuple(elts=parts):
                return f"[{', '.join(map(self.shown, parts))}]"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{self.shown(operand)})"
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return f"Math.pow({self.shown(left)}, {self.shown(right)})"
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
                return f"Math.floor({self.shown(left)} / {self.shown(right)})"
            case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
                return f"({self.shown(left)} && {self.shown(right)})"
            case ast.BinOp(left=left, op=op, right=right) if type(op) in SIGNS:
                shown = self.operand(left, op, first=True), self.operand(right, op, first=False)
                return f"({SIGNS[type(op)].join(shown)})"
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return f"({self.shown(left)}{SIGNS[type(op)]}{self.shown(right)})"
            case ast.Call(func=ast.Name(id=name), args=given, keywords=named):
                return self.called(name, given, named)
        raise _unprintable(node)

    def operand(self, node: ast.expr, op: ast.operator, *, first: bool) -> str:
        """A side of an operation; without parentheses where both are read in the same order."""
        if not isinstance(node, ast.BinOp):
            return self.shown(node)
        product, sum_ = (ast.Mult, ast.Div), (ast.Add, ast.Sub)
        before = isinstance(node.op, product) and (first or isinstance(op, sum_))
        alike = first and isinstance(node.op, sum_) and isinstance(op, sum_)
        return self.alone(node) if before or alike else self.shown(node)

    def called(self, name: str, given: list[ast.expr], named: list[ast.keyword]) -> str:
        shown = [self.alone(one) for one in given]
        if name in CALLS:
            return CALLS[name].format(*shown)
        if name in self.classes:
            pairs = dict(zip(self.classes[name], shown, strict=False))
            pairs |= {str(one.arg): self.shown(one.value) for one in named}
            return f"{name}({{ {', '.join(f'{key}: {value}' for key, value in pairs.items())} }})"
        return f"{name}({', '.join(shown)})"


def _unprintable(node: ast.AST) -> InputError:
    return InputError(
        "a model to print as JavaScript",
        expected="assignments and one return of arithmetic",
        got=ast.unparse(node)[:80],
    )
