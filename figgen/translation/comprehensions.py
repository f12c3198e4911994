"""Print comprehensions, lambdas, and the targets of loops and assignments."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from figgen.translation.code import (
    Code,
    Level,
    array,
    identifier,
    listed,
)
from figgen.translation.operators import Operators
from figgen.translation.types import (
    ANY,
    Type,
    element,
    without_none,
)


class Comprehensions(Operators):
    """Prints comprehensions and lambdas."""

    def on_lambda(self, node: ast.Lambda, wanted: Type) -> Code:
        given = [argument.arg for argument in node.args.args]
        types = wanted.args[: len(given)] if wanted.kind == "function" else ()
        types = types if len(types) == len(given) else (ANY,) * len(given)
        with self.names(dict(zip(given, types, strict=True))):
            body = self.expression(node.body)
        text = f"({listed(map(identifier, given))}) => {body.within(Level.CHOICE)}"
        return Code(text, Level.ARROW, Type("function", (*types, body.type)))

    def on_generatorexp(self, node: ast.GeneratorExp, wanted: Type) -> Code:
        return self.comprehension(node.generators, self.element_of(node.elt, wanted))

    def on_listcomp(self, node: ast.ListComp, wanted: Type) -> Code:
        return self.comprehension(node.generators, self.element_of(node.elt, wanted))

    def on_setcomp(self, node: ast.SetComp, wanted: Type) -> Code:
        return self.made_set(self.comprehension(node.generators, self.element_of(node.elt, wanted)))

    def element_of(self, node: ast.expr, wanted: Type) -> Callable[[], Code]:
        return lambda: self.expression(node, element(wanted))

    def on_dictcomp(self, node: ast.DictComp, wanted: Type) -> Code:
        types: list[Type] = []
        inner = without_none(wanted).args[1] if without_none(wanted).kind == "dict" else ANY

        def pair() -> Code:
            key, value = self.expression(node.key), self.expression(node.value, inner)
            types[:] = [key.type, value.type]
            return Code(f"[{key.text}, {value.text}]", type=Type("tuple", (key.type, value.type)))

        pairs = self.comprehension(node.generators, pair)
        return self.made_dict(pairs.text, types[0], inner if inner != ANY else types[1])

    def comprehension(self, loops: Sequence[ast.comprehension], inner: Callable[[], Code]) -> Code:
        """Print a comprehension as `map`, `filter` and `flatMap`."""
        first = loops[0]
        items = array(self.expression(first.iter))
        types: dict[str, Type] = {}
        target = self.target(first.target, element(items.type), types)
        with self.names(types):
            tests = [self.condition(test) for test in first.ifs]
            found = {k: t for test in first.ifs for k, t in self.narrowing(test, True).items()}
            with self.names(found):
                more = len(loops) > 1
                body = self.comprehension(loops[1:], inner) if more else inner()
        item = body.type.args[0] if more else body.type
        made = Type("list", (item,), "list")
        shown = body.within(Level.CHOICE)
        shown = f"({shown})" if shown.startswith("{") else shown
        assigns = any(isinstance(n, ast.NamedExpr) for test in first.ifs for n in ast.walk(test))
        if tests and (more or assigns):
            test = " && ".join(t.within(Level.AND) for t in tests)
            kept = shown if more else f"[{shown}]"
            return Code(f"{items.atom}.flatMap(({target}) => {test} ? {kept} : [])", type=made)
        text = items.atom
        if tests:
            test = " && ".join(t.within(Level.AND) for t in tests)
            text += f".filter(({target}) => {test})"
        if more:
            return Code(f"{text}.flatMap(({target}) => {shown})", type=made)
        if tests and shown == target:
            return Code(text, type=made)
        return Code(f"{text}.map(({target}) => {shown})", type=made)

    def target(self, node: ast.expr, given: Type, types: dict[str, Type]) -> str:
        """Print the target of a loop or assignment as a pattern; add its names to `types`."""
        match node:
            case ast.Name(id=name):
                types[name] = given
                return identifier(name)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return self.pattern(parts, without_none(given), types, node)
        raise self.no(node, "this target")

    def pattern(
        self, parts: Sequence[ast.expr], given: Type, types: dict[str, Type], node: ast.AST
    ) -> str:
        if given.kind == "record" and hasattr(given.about, "_fields"):
            shown = []
            for part, name in zip(parts, given.about._fields, strict=True):
                told = self.target(part, self.member_type(given.about, name, node), types)
                if told != "_":
                    shown.append(name if told == name else f"{name}: {told}")
            return f"{{ {listed(shown)} }}"
        shown = []
        for at, part in enumerate(parts):
            if isinstance(part, ast.Starred):
                rest = Type("list", (element(given),), "list")
                shown.append(f"...{self.target(part.value, rest, types)}")
                if at < len(parts) - 1:
                    raise self.no(node, "a star before other targets")
                continue
            fixed = given.kind == "tuple" and len(given.args) > at
            told = self.target(part, given.args[at] if fixed else element(given), types)
            shown.append("" if told == "_" else told)
        while shown and not shown[-1]:
            shown.pop()
        return f"[{listed(shown)}]"
