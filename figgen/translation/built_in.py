"""Calls of built-in functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from figgen.translation.code import (
    Code,
    Level,
    array,
    is_list,
    is_number,
    listed,
)
from figgen.translation.library import Library
from figgen.translation.sources import place_of
from figgen.translation.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    STR,
    Type,
    element,
    is_short,
    kinds,
    union,
    without_none,
)


class BuiltIn(Library):
    """Prints calls of built-in functions."""

    def built_in(self, name: str, node: ast.Call, wanted: Type) -> Code:
        """Print a call of a built-in function of Python."""
        method: Callable[[ast.Call, Type], Code] | None = getattr(self, f"do_{name}", None)
        if method is None:
            raise self.no(node, f"a call of {name}")
        return method(node, wanted)

    def do_len(self, node: ast.Call, wanted: Type) -> Code:
        value = self.expression(node.args[0])
        kind = without_none(value.type).kind
        if kind not in ("list", "tuple", "str", "dict", "set"):
            raise self.no(node, f"len of a value of kind {kind}")
        return Code(f"{value.atom}.{'size' if kind in ('dict', 'set') else 'length'}", type=INT)

    def do_range(self, node: ast.Call, wanted: Type) -> Code:
        shown = f"{self.help('range')}({self.texts(node.args)})"
        return Code(shown, type=Type("list", (INT,), "range"))

    def do_enumerate(self, node: ast.Call, wanted: Type) -> Code:
        items = array(self.expression(node.args[0]))
        start = listed([items.text, *(self.expression(k.value).text for k in node.keywords),
                        *(self.expression(one).text for one in node.args[1:])])  # fmt: skip
        pair = Type("tuple", (INT, element(items.type)))
        return Code(f"{self.help('enumerate')}({start})", type=Type("list", (pair,), "list"))

    def do_zip(self, node: ast.Call, wanted: Type) -> Code:
        if len(node.args) == 1 and isinstance(node.args[0], ast.Starred):
            rows = array(self.expression(node.args[0].value))
            item = Type("list", (element(element(rows.type)),), "tuple")
            shown = f"{self.help('transposed')}({rows.text})"
            return Code(shown, type=Type("list", (item,), "list"))
        parts = [array(self.expression(one)) for one in node.args]
        item = Type("tuple", tuple(element(one.type) for one in parts))
        shown = listed(one.text for one in parts)
        return Code(f"{self.help('zip')}({shown})", type=Type("list", (item,), "list"))

    def do_reversed(self, node: ast.Call, wanted: Type) -> Code:
        items = array(self.expression(node.args[0]))
        found = Type("list", (element(items.type),), "list")
        return Code(f"{self.help('reversed')}({items.text})", type=found)

    def do_sorted(self, node: ast.Call, wanted: Type) -> Code:
        items = array(self.expression(node.args[0]))
        found = Type("list", (element(items.type),), "list")
        options = self.options(node, items, ("key", "reverse"))
        return Code(f"{self.help('sorted')}({items.text}{options})", type=found)

    def options(self, node: ast.Call, items: Code, names: Sequence[str]) -> str:
        """Print `key=`, `reverse=` and `default=` as positional arguments."""
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if extra := set(given) - set(names):
            raise self.no(node, f"the keyword {extra}")
        shown = []
        for name in names:
            if name not in given:
                shown.append("undefined")
            elif name == "key":
                shown.append(self.function(given[name], [element(items.type)]).text)
            else:
                shown.append(self.expression(given[name]).text)
        while shown and shown[-1] == "undefined":
            shown.pop()
        return "".join(f", {one}" for one in shown)

    def do_min(self, node: ast.Call, wanted: Type) -> Code:
        return self.extreme("min", node, wanted)

    def do_max(self, node: ast.Call, wanted: Type) -> Code:
        return self.extreme("max", node, wanted)

    def extreme(self, name: str, node: ast.Call, wanted: Type) -> Code:
        """Print `min` or `max`; a few numbers without a key use `Math.min` or `Math.max`."""
        if len(node.args) > 1:
            parts = [
                self.spread(one) if isinstance(one, ast.Starred) else self.expression(one)
                for one in node.args
            ]
            types = [
                element(one.type) if isinstance(arg, ast.Starred) else one.type
                for arg, one in zip(node.args, parts, strict=True)
            ]
            few = not any(
                isinstance(arg, ast.Starred) and not is_short(one.type)
                for arg, one in zip(node.args, parts, strict=True)
            )
            numbers = all(is_number(one) or one == ANY for one in types)
            if few and numbers and not node.keywords:
                return Code(f"Math.{name}({listed(one.text for one in parts)})", type=union(types))
            items = Code(
                f"[{listed(one.text for one in parts)}]", type=Type("list", (union(types),), "list")
            )
        else:
            items = array(self.expression(node.args[0], Type("iterator", (wanted,))))
        found = element(items.type)
        for keyword in node.keywords:
            if keyword.arg == "default":
                found = union((found, self.expression(keyword.value).type))
        text = f"{self.help(name)}({items.text}{self.options(node, items, ('key', 'default'))})"
        return Code(text, type=found)

    def do_sum(self, node: ast.Call, wanted: Type) -> Code:
        items = array(self.expression(node.args[0]))
        found = element(items.type)
        start = [self.expression(one) for one in node.args[1:]]
        if start and is_list(start[0].type):
            return Code(f"{items.atom}.flat()", type=found)
        if found.kind == "record" and start:
            self.member_type(found.about, "__add__", node)
            self.member(found.about, "__add__")
            text = f"{items.atom}.reduce((total, one) => total.__add__(one), {start[0].text})"
            return Code(text, type=found)
        if not is_number(found) and found != ANY:
            raise self.no(node, f"a sum of values of kind {found.kind}")
        shown = listed(one.text for one in (items, *start))
        type = INT if kinds(found) <= {"int", "bool"} else found
        return Code(f"{self.help('sum')}({shown})", type=type)

    def do_any(self, node: ast.Call, wanted: Type) -> Code:
        return self.quantified("some", node)

    def do_all(self, node: ast.Call, wanted: Type) -> Code:
        return self.quantified("every", node)

    def quantified(self, name: str, node: ast.Call) -> Code:
        """Print `any` or `all` as `some` or `every`, which stop as early as Python does."""
        match node.args[0]:
            case ast.GeneratorExp(elt=test, generators=[ast.comprehension(ifs=[]) as loop]):
                items = array(self.expression(loop.iter))
                types: dict[str, Type] = {}
                target = self.target(loop.target, element(items.type), types)
                with self.names(types):
                    shown = self.condition(test).within(Level.CHOICE)
                return Code(f"{items.atom}.{name}(({target}) => {shown})", type=BOOL)
        items = array(self.expression(node.args[0]))
        shown = self.truth(Code("one", type=element(items.type))).text
        return Code(f"{items.atom}.{name}((one) => {shown})", type=BOOL)

    def do_next(self, node: ast.Call, wanted: Type) -> Code:
        """Print `next`: the first item of a generator, or else the default, if given."""
        items = array(self.expression(node.args[0]))
        text = items.text
        match node.args[0]:
            case ast.GeneratorExp(elt=ast.Name(id=name), generators=[only]) if (
                text.endswith(")") and ".filter(" in text and len(only.ifs) == 1
                and isinstance(only.target, ast.Name) and only.target.id == name
            ):  # fmt: skip
                head, _, tail = text.rpartition(".filter(")
                if _balanced(tail):
                    first = Code(f"{head}.find({tail}")
                    return self.first(first, node, element(items.type))
        return self.first(Code(f"{items.atom}[0]"), node, element(items.type))

    def first(self, code: Code, node: ast.Call, item: Type) -> Code:
        if len(node.args) == 1:
            return code.typed(item)
        other = self.expression(node.args[1])
        return Code(f"{code.text} ?? {other.within(Level.UNARY)}", Level.CHOICE,
                    union((item, other.type)))  # fmt: skip

    def do_map(self, node: ast.Call, wanted: Type) -> Code:
        function, *given = node.args
        parts = [array(self.expression(one)) for one in given]
        arrow = self.function(function, [element(one.type) for one in parts])
        found = Type("list", (arrow.type.args[-1],), "list")
        if len(parts) == 1:
            if arrow.text == "(one) => one":
                return parts[0].typed(found)
            return Code(f"{parts[0].atom}.map({arrow.text})", type=found)
        shown = listed(one.text for one in parts)
        zipped = f"{self.help('zip')}({shown})"
        return Code(f"{zipped}.map((given) => ({arrow.text})(...given))", type=found)

    def do_filter(self, node: ast.Call, wanted: Type) -> Code:
        items = array(self.expression(node.args[1]))
        arrow = self.function(node.args[0], [element(items.type)])
        return Code(f"{items.atom}.filter({arrow.text})", type=items.type)

    def do_tuple(self, node: ast.Call, wanted: Type) -> Code:
        return self.collected("tuple", node, wanted)

    def do_list(self, node: ast.Call, wanted: Type) -> Code:
        return self.collected("list", node, wanted)

    def collected(self, about: str, node: ast.Call, wanted: Type) -> Code:
        """Print an array of an iterable's items; a copy if the original may be mutated."""
        if not node.args:
            return Code("[]", type=Type("list", (element(without_none(wanted)),), about))
        value = self.expression(node.args[0], wanted)
        items = array(value)
        given = without_none(value.type)
        made = not isinstance(node.args[0], ast.Name | ast.Attribute | ast.Subscript)
        shared = about == "tuple" and given.about != "list"
        copied = items.text if made or shared or items is not value else f"[...{items.text}]"
        found = given if given.kind == "tuple" else Type("list", (element(items.type),), about)
        return Code(copied, items.level if copied == items.text else Level.ATOM, found)

    def do_set(self, node: ast.Call, wanted: Type) -> Code:
        if not node.args:
            asked = without_none(wanted)
            return self.made_set(Code("", type=Type("list", asked.args or (ANY,), "list")))
        value = self.expression(node.args[0])
        items = array(value) if without_none(value.type).kind == "dict" else value
        return self.made_set(items.typed(Type("list", (element(value.type),), "list")))

    do_frozenset = do_set

    def do_dict(self, node: ast.Call, wanted: Type) -> Code:
        if not node.args:
            asked = without_none(wanted)
            return self.made_dict("", *(asked.args if asked.kind == "dict" else (ANY, ANY)))
        value = self.expression(node.args[0])
        given = without_none(value.type)
        pair = element(given)
        types = given.args if given.kind == "dict" else pair.args
        return self.made_dict(value.text, *(types if len(types) == 2 else (ANY, ANY)))

    def do_int(self, node: ast.Call, wanted: Type) -> Code:
        value = self.expression(node.args[0])
        given = without_none(value.type)
        if given.kind == "bool":
            return Code(f"+{value.within(Level.UNARY)}", Level.UNARY, INT)
        if given.kind == "int":
            return value
        if is_number(given):
            return Code(f"Math.trunc({value.text})", type=INT)
        return Code(f"{self.help('whole')}({value.text})", type=INT)

    def do_float(self, node: ast.Call, wanted: Type) -> Code:
        value = self.expression(node.args[0])
        if is_number(value.type) or value.type == ANY:
            return value.typed(FLOAT)
        return Code(f"{self.help('number')}({value.text})", type=FLOAT)

    def do_bool(self, node: ast.Call, wanted: Type) -> Code:
        test = self.condition(node.args[0])
        return Code(f"Boolean({test.text})", type=BOOL)

    def do_str(self, node: ast.Call, wanted: Type) -> Code:
        value = self.expression(node.args[0])
        if value.type == INT:
            return Code(f"String({value.text})", type=STR)
        return self.written(value)

    def do_repr(self, node: ast.Call, wanted: Type) -> Code:
        return self.written(self.expression(node.args[0]), exact=True)

    def do_abs(self, node: ast.Call, wanted: Type) -> Code:
        value = self.expression(node.args[0])
        return Code(f"Math.abs({value.text})", type=value.type)

    def do_round(self, node: ast.Call, wanted: Type) -> Code:
        return Code(f"{self.help('round')}({self.texts(node.args)})",
                    type=INT if len(node.args) == 1 else FLOAT)  # fmt: skip

    def do_divmod(self, node: ast.Call, wanted: Type) -> Code:
        shown = f"{self.help('divmod')}({self.texts(node.args)})"
        return Code(shown, type=Type("tuple", (INT, INT)))

    def do_bytearray(self, node: ast.Call, wanted: Type) -> Code:
        return Code(f"new Uint8Array({self.texts(node.args)})", type=Type("list", (INT,), "bytes"))

    def do_getattr(self, node: ast.Call, wanted: Type) -> Code:
        value, name = self.expression(node.args[0]), self.expression(node.args[1])
        if len(node.args) > 2:
            raise self.no(node, "an attribute that may be missing")
        given = without_none(value.type)
        if given.kind != "record":
            raise self.no(node, f"an attribute of a value of kind {given.kind}")
        self.member(given.about, "*")
        return Code(f"{value.atom}[{name.text}]", type=wanted)

    def do_isinstance(self, node: ast.Call, wanted: Type) -> Code:
        value = self.expression(node.args[0])
        classes = [self.source.hint(one) for one in self.asked(node.args[1])]
        tests = {
            "int": "Number.isInteger({})", "float": 'typeof {} === "number"',
            "bool": 'typeof {} === "boolean"', "str": 'typeof {} === "string"',
            "list": "Array.isArray({})", "dict": "{} instanceof Map", "set": "{} instanceof Set",
        }  # fmt: skip
        parts = []
        for one in dict.fromkeys(classes):
            if one.kind in tests:
                parts.append(tests[one.kind].format(value.atom))
            elif one.kind == "record" and one.about.__module__ != "numbers":
                place = place_of(one.about.__module__, one.about.__name__)
                if place is None:
                    raise self.no(node, f"an instance of {one.about}")
                parts.append(f"{value.atom} instanceof {self.reference(place, node).text}")
        level = Level.OR if len(parts) > 1 else Level.EQUAL
        return Code(" || ".join(parts), Level.ATOM if "(" in parts[0][:18] and len(parts) == 1
                    else level, BOOL)  # fmt: skip

    def asked(self, node: ast.expr) -> list[ast.expr]:
        """Return the classes in the second argument of `isinstance`."""
        match node:
            case ast.Tuple(elts=parts):
                return [inner for part in parts for inner in self.asked(part)]
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return self.asked(left) + self.asked(right)
        return [node]


def _balanced(text: str) -> bool:
    """Return whether the surplus closing bracket of `text` is its last character."""
    depth = 1
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return at == len(text) - 1
    return False
