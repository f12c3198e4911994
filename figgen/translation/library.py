"""Print calls of the standard library, of errors, and of the operators of formulas."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Sequence

from figgen.translation.code import Code, Level, array, is_plain, listed, quoted
from figgen.translation.expressions import Expressions
from figgen.translation.sources import Place, place_of
from figgen.translation.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    NONE,
    STR,
    Type,
    compared,
    element,
    kinds,
    union,
    without_none,
)

MATH = {
    "ceil": INT, "floor": INT, "trunc": INT, "log2": FLOAT, "log": FLOAT, "log1p": FLOAT,
    "exp": FLOAT, "expm1": FLOAT, "sqrt": FLOAT, "log10": FLOAT, "sin": FLOAT, "cos": FLOAT,
}  # fmt: skip

OPS = {
    "minimum": "Math.min", "maximum": "Math.max", "ceil": "Math.ceil", "floor": "Math.floor",
    "log2": "Math.log2", "log": "Math.log", "sin": "Math.sin", "cos": "Math.cos",
    "sqrt": "Math.sqrt", "exp": "Math.exp", "power": "Math.pow",
}  # fmt: skip
MANY = 6
"""With at least so many unchanged fields, the runtime's `replaced` copies a record."""

ERRORS = "figgen.errors"


class Library(Expressions):
    """Prints calls of functions that are not printed themselves."""

    def library(self, place: Place, node: ast.Call, wanted: Type) -> Code:
        """Print a call of a function of the standard library, of errors, or of `ops`."""
        name, arguments = str(place), node.args
        if place.module == "figgen.equations.ops":
            return self.operator(place.name, node)
        if place.module == ERRORS:
            return self.error(place.name, node)
        if place.module == "math":
            return self.of_math(place.name, arguments, node)
        match name, arguments:
            case ("typing.cast", [_, value]):
                return self.expression(value).typed(self.source.hint(arguments[0]))
            case ("types.MappingProxyType", [value]):
                return self.expression(value, wanted)
            case ("dataclasses.replace", [value]):
                return self.replaced(value, node)
            case ("figgen.json_text.record_of", [cls, values]):
                named = self.expression(cls)
                shown = f"{self.help('record_of')}({named.text}, {self.expression(values).text})"
                return Code(shown, type=Type("record", about=named.type.about))
            case ("dataclasses.asdict", [value]):
                shown = f"{self.help('asdict')}({self.expression(value).text})"
                return Code(shown, type=Type("dict", (STR, ANY)))
            case ("itertools.pairwise", [value]):
                items = array(self.expression(value))
                pair = Type("tuple", (element(items.type),) * 2)
                shown = f"{self.help('pairwise')}({items.text})"
                return Code(shown, type=Type("list", (pair,), "list"))
            case ("itertools.accumulate", [value]):
                items = array(self.expression(value))
                shown = f"{self.help('accumulate')}({items.text})"
                return Code(shown, type=Type("list", items.type.args, "list"))
            case ("itertools.chain.from_iterable", [value]):
                items = array(self.expression(value))
                return Code(f"{items.atom}.flatMap((one) => [...one])",
                            type=Type("list", (element(element(items.type)),), "list"))  # fmt: skip
            case ("itertools.chain", _):
                parts = [self.expression(one) for one in arguments]
                item = union(element(one.type) for one in parts)
                shown = listed(f"...{array(one).text}" for one in parts)
                return Code(f"[{shown}]", type=Type("list", (item,), "list"))
            case ("collections.Counter" | "collections.defaultdict", _):
                kind = without_none(wanted)
                kind = kind if kind.kind == "dict" else Type("dict", (ANY, INT))
                return self.counting(place.name, arguments, kind, node)
            case ("collections.deque", _):
                return self.built_in("list", node, wanted)
            case ("dict.fromkeys", [keys, *value]):
                items = array(self.expression(keys))
                start = self.expression(value[0]) if value else Code("null", type=NONE)
                pairs = f"{items.atom}.map(($part) => [$part, {start.text}])"
                return self.made_dict(pairs, element(items.type), start.type)
            case ("object.__setattr__", [ast.Name(), ast.Constant(value=str() as field), value]):
                return Code(f"this.{field} = {self.expression(value).text}", Level.ARROW, NONE)
        if name.startswith("re."):
            return self.pattern_call(place.name, node)
        raise self.no(node, f"a call of {name}")

    def of_math(self, name: str, arguments: Sequence[ast.expr], node: ast.Call) -> Code:
        """Print a call of a function of Python's `math`."""
        if name in MATH:
            return Code(f"Math.{name}({self.texts(arguments)})", type=MATH[name])
        match name, arguments:
            case "fsum" | "prod", [one]:
                items = self.passed(one, Type("iterator", (FLOAT,)))
                result = FLOAT if name == "fsum" else element(items.type)
                return Code(f"{self.help(name)}({items.text})", type=result)
            case "isfinite" | "isnan", [one]:
                asked = {"isfinite": "isFinite", "isnan": "isNaN"}[name]
                return Code(f"Number.{asked}({self.expression(one).text})", type=BOOL)
            case "erf", [one]:
                return Code(f"{self.help(name)}({self.expression(one).text})", type=FLOAT)
            case "isqrt", [one]:
                return Code(f"Math.floor(Math.sqrt({self.expression(one).text}))", type=INT)
        raise self.no(node, f"a call of math.{name}")

    def counting(self, name: str, arguments: Sequence[ast.expr], kind: Type, node: ast.AST) -> Code:
        """Print a `Counter` or a `defaultdict`."""
        if name == "Counter":
            made = self.made_dict("", kind.args[0], INT)
            if arguments:
                items = array(self.expression(arguments[0]))
                plain = quoted("Map") if is_plain(element(items.type)) else quoted("KeyMap")
                made = Code(f"{self.help('counted')}({items.text}, {plain})",
                            type=Type("dict", (element(items.type), INT)))  # fmt: skip
            return made.typed(dataclasses.replace(made.type, about="counter"))
        if len(arguments) != 1 or not isinstance(arguments[0], ast.Name):
            raise self.no(node, "this defaultdict")
        start = {"int": "0", "float": "0", "list": "[]", "set": "new Set()"}.get(arguments[0].id)
        if start is None or not is_plain(kind.args[0]):
            raise self.no(node, "this defaultdict")
        return Code(f"new {self.help('DefaultMap')}(() => {start})", type=kind)

    def operator(self, name: str, node: ast.Call) -> Code:
        """Print a call of an operator of formulas (`figgen.equations.ops`)."""
        parts = [self.expression(one) for one in node.args]
        if name == "where":
            _, yes, no = (one.within(Level.CHOICE) for one in parts)
            return Code(f"{parts[0].within(Level.OR)} ? {yes} : {no}", Level.CHOICE,
                        union(one.type for one in parts[1:]))  # fmt: skip
        return Code(f"{OPS[name]}({listed(one.text for one in parts)})", type=FLOAT)

    def error(self, name: str, node: ast.Call) -> Code:
        """Print an InputError or a check of a value; both are in `errors.js`."""
        self.helpers[f"errors.{name}"] = None
        parts = [self.passed(one, ANY).text for one in node.args]
        named = []
        for keyword in node.keywords:
            value = self.expression(keyword.value)
            shown = value.text
            if keyword.arg == "got" and (value.type.kind != "list" or value.type.about == "list"):
                listing = value.type.kind in ("list", "dict", "set")
                shown = self.shown(value).text if listing else shown
            if keyword.arg == "nearest":
                shown = array(value).text
            named.append(shown if keyword.arg == shown else f"{keyword.arg}: {shown}")
        if named:
            parts.append(f"{{ {listed(named)} }}")
        else:
            parts = [array(self.expression(one)).text if kinds(self.expression(one).type) & {"dict"}
                     else text for one, text in zip(node.args, parts, strict=True)]  # fmt: skip
        new = "new " if inspect.isclass(getattr(__import__(ERRORS, fromlist=[name]), name)) else ""
        result = Type("record", about=Place(ERRORS, "InputError").value)
        if name.startswith("check_"):
            result = INT if name == "check_size" else NONE
        if name == "closest":
            result = Type("list", (STR,), "tuple")
        return Code(f"{new}{name}({listed(parts)})", type=result)

    def shown(self, value: Code) -> Code:
        """Print a list as a message shows it; JavaScript cannot tell a list from a tuple."""
        self.helpers["errors.Shown"] = None
        return Code(f"new Shown({self.written(array(value), exact=True).text})")

    def replaced(self, value: ast.expr, node: ast.Call) -> Code:
        """Print `dataclasses.replace`."""
        code = self.expression(value)
        given = without_none(code.type)
        if given.kind != "record":
            raise self.no(node, "replace of a value that is not a record")
        changed = {keyword.arg: keyword.value for keyword in node.keywords}
        if None in changed:
            raise self.no(node, "keywords from a dictionary")
        place = place_of(given.about.__module__, given.about.__name__)
        assert place is not None
        fields = self.fields(given.about, node)
        kept = [name for name, same in compared(given.about) if same]
        if len(fields) >= len(changed) + MANY and kept == [name for name, _ in fields]:
            pairs = [
                f"{field}: {self.passed(changed[field], hint).text}"
                for field, hint in fields
                if field in changed
            ]
            shown = f"{self.help('replaced')}({code.text}, {{ {listed(pairs)} }})"
            return Code(shown, type=given)
        name = self.reference(place, node).text
        simple = isinstance(value, ast.Name)
        held = code.text if simple else "kept"
        parts = [
            self.passed(changed[field], hint).text if field in changed else f"{held}.{field}"
            for field, hint in fields
        ]
        made = f"new {name}({listed(parts)})"
        if simple:
            return Code(made, type=given)
        return Code(f"((kept) => {made})({code.text})", type=given)

    def pattern_call(self, name: str, node: ast.Call) -> Code:
        """Print a call of `re` whose pattern means the same in JavaScript."""
        match name, node.args:
            case ("compile", [pattern, *flags]):
                return Code(self.regular(pattern, flags, node), type=Type("pattern"))
            case ("fullmatch" | "search" | "findall" | "finditer" | "split", [p, text]):
                known = isinstance(p, ast.Constant) and re.compile(str(p.value)).groups < 2
                if name == "findall" and not known:
                    raise self.no(
                        node,
                        "findall with several groups or a pattern from elsewhere; use finditer",
                    )
                value = self.expression(text).text
                return self.matched(name, Code(self.regular(p, [], node)), value)
            case ("sub", [p, by, text]):
                shown = f"{self.regular(p, [], node)}g"
                return Code(f"{self.expression(text).atom}.replace({shown}, "
                            f"{self.expression(by).text})", type=STR)  # fmt: skip
        raise self.no(node, f"re.{name}")

    def regular(self, node: ast.expr, flags: Sequence[ast.expr], call: ast.AST) -> str:
        """Print a regular expression; raise if the two languages read it differently."""
        try:
            text = ast.literal_eval(node)
        except ValueError:
            value = self.expression(node)
            return f"new RegExp({value.text})"
        marks = {"re.IGNORECASE": "i", "re.I": "i", "re.MULTILINE": "m", "re.M": "m"}
        shown = "".join(marks[ast.unparse(flag)] for flag in flags)
        if any(part in text for part in ("(?P", "\\Z", "\\A", "(?i)", "(?x)", "\\N")):
            raise self.no(call, "a pattern that JavaScript reads differently")
        return f"/{text.replace('/', chr(92) + '/')}/{shown}"

    def matched(self, name: str, pattern: Code, text: str) -> Code:
        """Print the use of a pattern; the groups of a match are numbered, not named."""
        found = union((Type("match"), NONE))
        if name == "search":
            return Code(f"{pattern.atom}.exec({text})", type=found)
        if name == "fullmatch":
            return Code(f"{self.help(name)}({pattern.text}, {text})", type=found)
        if name == "split":
            return Code(f"{text}.split({pattern.text})", type=Type("list", (STR,), "list"))
        item = Type("match") if name == "finditer" else STR
        shown = f"{self.help(name)}({pattern.text}, {text})"
        return Code(shown, type=Type("list", (item,), "list"))
