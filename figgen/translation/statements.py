"""Print statements; each name is declared in the innermost block that has all its uses."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from figgen.errors import InputError
from figgen.translation.assignments import Assignments
from figgen.translation.base import Scope
from figgen.translation.code import identifier, listed, loop
from figgen.translation.names import (
    arguments_of,
    count_of,
    declares,
    defaults_of,
    generates,
    handled,
    indented,
    leaves,
    names_of,
    stores_of,
    uses_of,
    within,
)
from figgen.translation.types import (
    ANY,
    Type,
    element,
    of_hint,
    without_none,
)


class Statements(Assignments):
    """Prints the bodies of functions."""

    def body(self, nodes: Sequence[ast.stmt], declared: set[str]) -> list[str]:
        """Print a block's statements as lines; `declared` are the names of enclosing blocks."""
        known, lines = set(declared), list[str]()
        own = self.declarations(nodes, known)
        late = sorted(name for name, first in own.items() if not first)
        if late:
            lines.append(f"let {listed(map(identifier, late))};")
            known |= set(late)
        with self.left() as narrow:
            for node in nodes:
                new = {name for name, first in own.items() if node in first}
                lines += self.statement(node, known | new, new)
                known |= {name for name in new if len(own[name]) == 1}
                narrow(node)
        return lines

    @contextmanager
    def left(self) -> Iterator[Callable[[ast.stmt], None]]:
        """Narrow types for the rest of a block after an `if` whose body always leaves the block."""
        before = self.scope

        def narrow(node: ast.stmt) -> None:
            if isinstance(node, ast.If) and not node.orelse and leaves(node.body):
                found = self.narrowing(node.test, False)
                if found and self.scope is not None:
                    inner = Scope(types=found, above=self.scope)
                    for name in found:
                        around = self.scope.find(name)
                        if around:
                            inner.shown[name] = around.shown.get(name, identifier(name))
                    self.scope = inner

        yield narrow
        self.scope = before

    def declarations(
        self, nodes: Sequence[ast.stmt], declared: set[str]
    ) -> dict[str, list[ast.stmt]]:
        """Return the names this block declares, each with its declaring statements, if any."""
        found: dict[str, list[ast.stmt]] = {}
        uses = [(node, names_of(node)) for node in nodes]
        total: dict[str, int] = {}
        for _, names in uses:
            for name, count in names.all.items():
                total[name] = total.get(name, 0) + count
        for node, names in uses:
            for name in sorted(names.assigned - declared - found.keys()):
                if total[name] < self.uses_by_name.get(name, 0):
                    continue  # used outside of this block too
                holders = [other for other, used in uses if name in used.all]
                if all(isinstance(one, ast.For) and declares(one, name) for one in holders):
                    found[name] = holders
                elif (
                    declares(node, name)
                    and node is holders[0]
                    and (len(holders) == 1 or not isinstance(node, ast.For))
                ):
                    found[name] = [node]
                elif len(holders) > 1 or not self.fits(node, name):
                    found[name] = []
        return found

    @classmethod
    def fits(cls, node: ast.stmt, name: str) -> bool:
        """Return whether one block of a statement has all uses of a name.

        `else` with only an `if` in it is printed as `else if`, which is not a block of its own.
        """
        blocks = [getattr(node, part, []) for part in ("body", "orelse", "finalbody")]
        blocks += [handler.body for handler in getattr(node, "handlers", [])]
        total = count_of(node, name)
        for block in blocks:
            if block and sum(count_of(one, name) for one in block) == total:
                match node:
                    case ast.If(orelse=[ast.If() as inner]) if block is node.orelse:
                        return cls.fits(inner, name)
                return True
        return False

    def statement(self, node: ast.stmt, known: set[str], new: set[str]) -> list[str]:
        """Print one statement as lines; it declares the names in `new`."""
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return []
            case ast.Expr(value=ast.Yield(value=value)):
                return [f"yield {self.expression(value).text};"] if value else ["yield null;"]
            case ast.Expr(value=ast.YieldFrom(value=value)):
                return [f"yield* {loop(self.expression(value))};"]
            case ast.Expr(value=value):
                return [f"{self.expression(value).text};"]
            case ast.Return(value=None):
                return ["return null;" if not self.generates else "return;"]
            case ast.Return(value=ast.expr() as value):
                return [f"return {self.passed(value, self.result).text};"]
            case ast.Assign(targets=targets, value=value):
                return self.assigned(targets, value, new, node)
            case ast.AnnAssign(target=ast.Name(id=name) as target, value=value, annotation=hint):
                wanted = self.source.hint(hint)
                self.note(name, wanted)
                if value is None:
                    return []
                shown = self.expression(value, wanted)
                self.note(name, wanted if wanted != ANY else shown.type)
                word = self.word(name, new)
                return [f"{word}{identifier(target.id)} = {shown.text};"]
            case ast.AnnAssign(target=ast.Attribute() as target, value=ast.expr() as value):
                wanted = self.source.hint(node.annotation)
                return [f"{self.place(target)} = {self.expression(value, wanted).text};"]
            case ast.AugAssign():
                return [self.augmented(node)]
            case ast.If():
                return self.condition_block(node, known)
            case ast.For():
                return self.loop_block(node, known, new)
            case ast.While(test=test, body=body, orelse=[]):
                head = f"while ({self.condition(test).text}) {{"
                with self.narrowed(test, True):
                    return [head, *indented(self.body(body, known)), "}"]
            case ast.Continue():
                return ["continue;"]
            case ast.Break():
                return ["break;"]
            case ast.Raise(exc=ast.expr() as error):
                return [f"throw {self.expression(error).text};"]
            case ast.Raise(exc=None):
                return [f"throw {self.caught};"]
            case ast.Delete(targets=[ast.Subscript(value=owner, slice=key)]):
                held = self.expression(owner)
                if without_none(held.type).kind == "dict":
                    return [f"{held.atom}.delete({self.expression(key).text});"]
                return [f"{held.atom}.splice({self.expression(key).text}, 1);"]
            case ast.FunctionDef():
                return self.inner_function(node)
            case ast.Try(orelse=[], finalbody=[]):
                return self.attempt(node, known)
            case ast.Nonlocal():
                return []
        raise self.no(node, type(node).__name__)

    generates = False
    result = ANY
    caught = "error"

    def condition_block(self, node: ast.If, known: set[str]) -> list[str]:
        lines = [f"if ({self.condition(node.test).text}) {{"]
        with self.narrowed(node.test, True):
            lines += indented(self.body(node.body, known))
        if not node.orelse:
            return [*lines, "}"]
        with self.narrowed(node.test, False):
            match node.orelse:
                case [ast.If() as inner]:
                    rest = self.condition_block(inner, known)
                    return [*lines, f"}} else {rest[0]}", *rest[1:]]
            return [*lines, "} else {", *indented(self.body(node.orelse, known)), "}"]

    def loop_block(self, node: ast.For, known: set[str], new: set[str]) -> list[str]:
        """Print a `for` loop."""
        if node.orelse:
            raise self.no(node, "else of a loop")
        types: dict[str, Type] = {}
        items = self.expression(node.iter)
        pattern = self.target(node.target, element(items.type), types)
        names = set(types) - {"_"}
        for name, given in types.items():
            self.note(name, given)
        outside = names & known - new
        begun = list[str]()
        head = self.counted(node, names, outside)
        if head is None:
            word = ""
            if not outside:
                once = all(self.stores.get(name, 2) == 1 for name in names)
                word = "const " if once else "let "
            elif outside != names:
                begun = [f"let {listed(sorted(names - outside))};"]
            over = items.text
            text = ast.unparse(node.iter)
            if without_none(items.type).kind == "dict":
                over = loop(items)
            elif text.endswith(".items()"):
                over = items.text.removesuffix(".entries()")
            pattern = "_" if pattern == "" else pattern
            head = f"for ({word}{pattern} of {over}) {{"
        return [*begun, head, *indented(self.body(node.body, known | names)), "}"]

    def counted(self, node: ast.For, names: set[str], outside: set[str]) -> str | None:
        """Print the head of a counting loop over `range`; return None for other loops."""
        match node.iter, node.target:
            case ast.Call(func=ast.Name(id="range"), args=given, keywords=[]), ast.Name(
                id=name
            ) if len(given) < 3 and not outside and self.stores.get(name, 2) == 1:
                start = self.expression(given[0]).text if len(given) > 1 else "0"
                end = self.expression(given[-1])
                shown = identifier(name)
                if isinstance(given[-1], ast.Name | ast.Constant):
                    return f"for (let {shown} = {start}; {shown} < {end.text}; {shown}++) {{"
                bound = f"{shown}_end"
                return (f"for (let {shown} = {start}, {bound} = {end.text}; "
                        f"{shown} < {bound}; {shown}++) {{")  # fmt: skip
        return None

    def attempt(self, node: ast.Try, known: set[str]) -> list[str]:
        """Print `try` with handlers of InputError and ValueError."""
        lines = ["try {", *indented(self.body(node.body, known)), "} catch (error) {"]
        parts: list[str] = []
        for handler in node.handlers:
            names = handled(handler.type)
            if not names <= {"InputError", "ValueError"}:
                raise self.no(handler, f"a handler of {sorted(names)}")
            name = "InputError" if names == {"InputError"} else "ValueFault"
            self.helpers[f"errors.{name}"] = None
            with self.names({handler.name or "_": of_hint(InputError)}) as scope:
                scope.shown[handler.name or "_"] = "error"
                inner = self.body(handler.body, known)
            parts += [f"if (error instanceof {name}) {{", *indented(inner), "} else "]
        text = "\n".join(parts).replace("} else \n", "} else ").split("\n")
        return [*lines, *indented([*text[:-1], "} else throw error;"]), "}"]

    def inner_function(self, node: ast.FunctionDef) -> list[str]:
        """Print a nested function: as an arrow, or as `function*` if it yields."""
        hints = [self.source.hint(one.annotation) for one in arguments_of(node)]
        result = self.source.hint(node.returns)
        self.note(node.name, Type("function", (*hints, result)))
        given, lines = self.function_parts(node, method=False, inner=True)
        if self.made_generator:
            if any(isinstance(n, ast.Name) and n.id == "self" for n in within([node])):
                raise self.no(node, "a generator within a method")
            return [f"function* {identifier(node.name)}({given}) {{", *indented(lines), "}"]
        return [f"const {identifier(node.name)} = ({given}) => {{", *indented(lines), "};"]

    made_generator = False

    def function_parts(
        self, node: ast.FunctionDef, *, method: bool, first: Type | None = None, inner: bool = False
    ) -> tuple[str, list[str]]:
        """Print the parameters and lines of a function; `first` is the type of a method's `self`.

        `*args` is passed as one array, since browsers limit the number of arguments; only a nested
        function, into which no list is spread, takes them one by one.
        """
        types, shown = dict[str, Type](), list[str]()
        arguments = arguments_of(node)
        defaults = defaults_of(node)
        for one in arguments[1:] if method else arguments:
            types[one.arg] = self.source.hint(one.annotation)
            name = identifier(one.arg)
            if one.arg in defaults:
                default = self.expression(defaults[one.arg], types[one.arg]).text
                if default == name:
                    raise self.no(one, "a parameter whose default is an outer name like its own")
                name += f" = {default}"
            shown.append(name)
        if node.args.vararg:
            rest = node.args.vararg
            types[rest.arg] = Type("list", (self.source.hint(rest.annotation),), "tuple")
            name = identifier(rest.arg)
            shown.append(f"...{name}" if inner else f"{name} = []")
        if method and first is not None:
            types[arguments[0].arg] = first
        saved = (
            self.stores, self.generates, self.result, getattr(self, "uses_by_name", {}),
            getattr(self, "function_scope", None),
        )  # fmt: skip
        with self.names(types) as scope:
            if method:
                scope.shown[arguments[0].arg] = "this"
            scope.whole = True
            self.function_scope = scope
            inside = within(node.body)
            self.stores = stores_of(inside)
            yields = any(isinstance(one, ast.Yield | ast.YieldFrom) for one in inside)
            self.generates = yields and generates(node)
            self.result = self.source.hint(node.returns)
            self.uses_by_name = uses_of(node)
            self.guess(inside)
            lines = self.body(node.body, set(types))
            made = self.generates
        self.stores, self.generates, self.result, self.uses_by_name, before = saved
        if before is not None:
            self.function_scope = before
        self.made_generator = made
        return listed(shown), lines

    def guess(self, nodes: Sequence[ast.AST]) -> None:
        """Give each name that is assigned an empty list the type of a list of anything."""
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.List(elts=[])) if (
                    self.local(name) is None
                ):
                    self.function_scope.types.setdefault(name, Type("list", (ANY,), "list"))

    uses_by_name: dict[str, int]
