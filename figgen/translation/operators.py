"""Print operations, comparisons and conditions."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from figgen.translation.base import PrinterBase, is_simple
from figgen.translation.code import (
    Code,
    Level,
    array,
    binary,
    is_list,
    is_native,
    is_number,
    is_plain,
    truth,
)
from figgen.translation.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    STR,
    Type,
    element,
    kinds,
    union,
    without_none,
)

_SIGNS: dict[type[ast.AST], tuple[str, Level]] = {
    ast.Add: ("+", Level.SUM), ast.Sub: ("-", Level.SUM), ast.Mult: ("*", Level.PRODUCT),
    ast.Div: ("/", Level.PRODUCT),
    ast.Lt: ("<", Level.RELATION), ast.LtE: ("<=", Level.RELATION),
    ast.Gt: (">", Level.RELATION), ast.GtE: (">=", Level.RELATION),
}  # fmt: skip


class Operators(PrinterBase):
    """Prints operations."""

    def on_unaryop(self, node: ast.UnaryOp, wanted: Type) -> Code:
        value = self.expression(node.operand)
        match node.op:
            case ast.Not():
                return Code(f"!{self.truth(value).within(Level.UNARY)}", Level.UNARY, BOOL)
            case ast.USub():
                shown = value.within(Level.UNARY)
                return Code(
                    f"-{shown}" if shown[0] != "-" else f"-({shown})",
                    Level.UNARY,
                    INT if value.type == BOOL else value.type,
                )
            case ast.UAdd():
                return value
        raise self.no(node, "this sign")

    def truth(self, value: Code) -> Code:
        """Print a value as a condition; note the runtime function that this may need."""
        found = truth(value)
        if found.text.startswith("$truth("):
            self.help("truth")
        return found

    def condition(self, node: ast.expr) -> Code:
        """Print an expression of which only the truth matters."""
        match node:
            case ast.BoolOp(op=op, values=values):
                return self.joined_conditions(op, values)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return Code(f"!{self.condition(inner).within(Level.UNARY)}", Level.UNARY, BOOL)
        return self.truth(self.expression(node))

    def joined_conditions(self, op: ast.boolop, values: Sequence[ast.expr]) -> Code:
        first = self.condition(values[0])
        if len(values) == 1:
            return first
        with self.narrowed(values[0], isinstance(op, ast.And)):
            rest = self.joined_conditions(op, values[1:])
        sign, level = ("&&", Level.AND) if isinstance(op, ast.And) else ("||", Level.OR)
        return Code(f"{first.within(level)} {sign} {rest.within(level)}", level, BOOL)

    def on_boolop(self, node: ast.BoolOp, wanted: Type) -> Code:
        return self.chosen(node.op, node.values, wanted)

    def chosen(self, op: ast.boolop, values: Sequence[ast.expr], wanted: Type) -> Code:
        """Print `a and b` or `a or b` as a value."""
        first = self.expression(values[0], wanted)
        if len(values) == 1:
            return first
        both = isinstance(op, ast.And)
        with self.narrowed(values[0], both):
            rest = self.chosen(op, values[1:], wanted)
        kept = first.type if both else without_none(first.type)
        type = union((kept, rest.type)) if kept.kind != "any" else rest.type
        if is_native(first.type):
            sign, level = ("&&", Level.AND) if both else ("||", Level.OR)
            return Code(f"{first.within(level)} {sign} {rest.within(level)}", level, type)
        if not is_simple(values[0]):
            name = f"{self.help('both' if both else 'either')}({first.text}, () => {rest.text})"
            return Code(name, type=type)
        test = self.truth(first).within(Level.OR)
        parts = (rest, first) if both else (first, rest)
        shown = [part.within(Level.CHOICE) for part in parts]
        return Code(f"{test} ? {shown[0]} : {shown[1]}", Level.CHOICE, type)

    def on_compare(self, node: ast.Compare, wanted: Type) -> Code:
        parts, left = [], self.expression(node.left)
        before: ast.expr = node.left
        for op, child in zip(node.ops, node.comparators, strict=True):
            right = self.expression(child)
            parts.append(self.compared(left, op, right, before))
            left, before = right, child
        if len(parts) == 1:
            return parts[0]
        return Code(" && ".join(p.within(Level.AND) for p in parts), Level.AND, BOOL)

    def compared(self, left: Code, op: ast.cmpop, right: Code, node: ast.AST) -> Code:
        match op:
            case ast.Is() | ast.IsNot():
                sign = "===" if isinstance(op, ast.Is) else "!=="
                return binary(left, sign, right, Level.EQUAL, BOOL)
            case ast.Eq() | ast.NotEq():
                same = isinstance(op, ast.Eq)
                if is_plain(left.type) or is_plain(right.type):
                    numbers = is_number(left.type) and is_number(right.type)
                    loose = numbers and (left.type == BOOL) != (right.type == BOOL)
                    sign = ("==" if loose else "===") if same else ("!=" if loose else "!==")
                    return binary(left, sign, right, Level.EQUAL, BOOL)
                text = f"{self.help('equal')}({left.text}, {right.text})"
                return Code(text if same else f"!{text}", Level.ATOM if same else Level.UNARY, BOOL)
            case ast.In() | ast.NotIn():
                found = self.contained(left, right, node)
                if isinstance(op, ast.In):
                    return found
                return Code(f"!{found.within(Level.UNARY)}", Level.UNARY, BOOL)
        sign, level = _SIGNS[type(op)]
        if kinds(left.type) & {"set"}:
            if sign != "<=":
                raise self.no(node, "this comparison of sets")
            return Code(f"{self.help('subset')}({left.text}, {right.text})", type=BOOL)
        if is_list(left.type) or is_list(right.type):
            order = Code(f"{self.help('compare')}({left.text}, {right.text})")
            return Code(f"{order.text} {sign} 0", level, BOOL)
        return binary(left, sign, right, level, BOOL)

    def contained(self, item: Code, within: Code, node: ast.AST) -> Code:
        """Print `item in within`."""
        given = without_none(within.type)
        if given.kind in ("dict", "set"):
            return Code(f"{within.atom}.has({item.text})", type=BOOL)
        if given.kind == "str" or (is_list(given) and is_plain(item.type)):
            return Code(f"{within.atom}.includes({item.text})", type=BOOL)
        if is_list(given):
            name = self.help("equal")
            return Code(f"{within.atom}.some(($part) => {name}($part, {item.text}))", type=BOOL)
        if given.kind == "iterator":
            return self.contained(item, array(within), node)
        raise self.no(node, f"a search in a value of kind {given.kind}")

    def on_binop(self, node: ast.BinOp, wanted: Type) -> Code:
        left, right = self.expression(node.left, wanted), self.expression(node.right)
        one, other = without_none(left.type), without_none(right.type)
        listed_one, listed_other = is_list(one), is_list(other)
        match node.op:
            case ast.Add() if listed_one or listed_other:
                if not (listed_one and listed_other):
                    raise self.no(node, "a sum of a list and something else")
                joined = Type("tuple", (*one.args, *other.args))
                if not one.kind == other.kind == "tuple":
                    joined = Type("list", (union((element(one), element(other))),), one.about)
                return Code(f"[...{left.text}, ...{right.text}]", type=joined)
            case ast.Mult() if listed_one or listed_other:
                items, times = (left, right) if listed_one else (right, left)
                given = Type("list", (element(items.type),), items.type.about or "tuple")
                return Code(f"{self.help('repeated')}({items.text}, {times.text})", type=given)
            case ast.Mult() if "str" in (one.kind, other.kind):
                text, times = (left, right) if one.kind == "str" else (right, left)
                return Code(f"{text.atom}.repeat({times.text})", type=STR)
            case ast.BitOr() if one.kind == "dict":
                pairs = f"[...{left.text}, ...{right.text}]"
                made = self.made_dict(pairs, *map(union, zip(one.args, other.args, strict=True)))
                return made
            case ast.BitOr() | ast.BitAnd() | ast.Sub() if one.kind == "set":
                names = {ast.BitOr: "joined", ast.BitAnd: "common", ast.Sub: "without"}
                name = self.help(names[type(node.op)])
                return Code(f"{name}({left.text}, {right.text})", type=one)
        if "record" in (one.kind, other.kind):
            return self.overloaded(node, left, right)
        return self.arithmetic(node, left, right)

    def overloaded(self, node: ast.BinOp, left: Code, right: Code) -> Code:
        """Print an operation that a record defines."""
        names = {ast.Add: "__add__", ast.Sub: "__sub__", ast.Mult: "__mul__"}
        name = names.get(type(node.op), "")
        given = without_none(left.type)
        if given.kind != "record" or not name:
            raise self.no(node, "this operation on records")
        found = self.member_type(given.about, name, node)
        return Code(f"{left.atom}.{name}({right.text})", type=found.args[-1])

    def arithmetic(self, node: ast.BinOp, left: Code, right: Code) -> Code:
        """Print an operation on numbers, or the concatenation of two strings."""
        text = STR in (left.type, right.type)
        found = union((left.type, right.type))
        result = STR if text else INT if kinds(found) <= {"int", "bool"} else FLOAT
        if ANY in (left.type, right.type):
            result = ANY if not text else STR
        match node.op:
            case ast.FloorDiv():
                inner = binary(left, "/", right, Level.PRODUCT, FLOAT)
                return Code(f"Math.floor({inner.text})", type=result)
            case ast.Mod() if not text and is_simple(node.right):
                rest = binary(left, "%", right, Level.PRODUCT, result)
                shown = f"({rest.text} + {right.text}) % {right.text}"
                return Code(shown, Level.PRODUCT, result)
            case ast.Mod() if not text:
                return Code(f"{self.help('modulo')}({left.text}, {right.text})", type=result)
            case ast.Pow():
                return self.power(node, left, right, result)
            case ast.BitAnd():
                both = binary(left, "&&", right, Level.AND, result)
                return (
                    both if BOOL in (left.type, right.type) or result == ANY else self.no_bits(node)
                )
            case ast.LShift():
                return binary(
                    left, "*", Code(f"2 ** {right.atom}", Level.POWER), Level.PRODUCT, INT
                )
            case ast.RShift():
                return Code(
                    f"Math.floor({left.within(Level.PRODUCT)} / 2 ** {right.atom})", type=INT
                )
        if type(node.op) not in _SIGNS or (text and not isinstance(node.op, ast.Add)):
            raise self.no(node, "this operation")
        sign, level = _SIGNS[type(node.op)]
        return binary(left, sign, right, level, FLOAT if sign == "/" else result)

    def no_bits(self, node: ast.AST) -> Code:
        raise self.no(node, "a bitwise operation on numbers")

    def power(self, node: ast.BinOp, left: Code, right: Code, found: Type) -> Code:
        """Print small whole powers as products: `Math.pow` may differ from C in the last digit."""
        match node.left, node.right:
            case ast.Constant(value=int() as number), ast.Constant(value=int() as power):
                return self.literal(number**power, node)
            case base, ast.Constant(value=int() as power) if 2 <= power <= 4 and _is_cheap(base):
                return Code(" * ".join([left.within(Level.UNARY)] * power), Level.PRODUCT, found)
            case _, ast.Constant(value=2):
                return Code(f"{self.help('squared')}({left.text})", type=found)
        return Code(f"Math.pow({left.text}, {right.text})", type=found)


def _is_cheap(node: ast.expr) -> bool:
    """Return whether an expression contains no call, so that it may be repeated."""
    return not any(isinstance(inner, ast.Call) for inner in ast.walk(node))
