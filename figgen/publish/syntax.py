"""Statements and expressions of a script, with the scope that every name stands in."""

from __future__ import annotations

from dataclasses import dataclass, field

from figgen.errors import InputError
from figgen.publish.tokens import PREFIXES, RESERVED, UNKNOWN, Tokens

_VALUES = frozenset(("this", "null", "true", "false", "super"))
_ENDS = frozenset((")", "]", "}", ";", ""))
_COMPARED = frozenset(("==", "===", "!=", "!==", "<=", ">="))
_STATEMENTS = frozenset(
    (
        "if",
        "for",
        "while",
        "do",
        "return",
        "throw",
        "switch",
        "case",
        "try",
        "catch",
        "const",
        "let",
        "export",
    )
)
_IDLE_CLASSES = frozenset(("Map", "Set", "WeakMap", "WeakSet", "RegExp"))
"""Classes whose objects do nothing by being made."""


@dataclass(slots=True, eq=False)
class Symbol:
    """A declared name; `slot` numbers the names that are visible where it is, 0 at the top."""

    name: str
    slot: int = -1
    uses: int = 0


@dataclass(slots=True, eq=False)
class NameScope:
    """Names of a block, function, or module."""

    above: NameScope | None
    names: dict[str, Symbol] = field(default_factory=dict)
    within: list[NameScope] = field(default_factory=list)


class Syntax(Tokens):
    """Reads a module, and notes each use of a name with the scope that it stands in."""

    def __init__(self, source: str, path: str) -> None:
        super().__init__(source, path)
        self.source = source
        self.at = 0
        self.top = NameScope(None)
        self.used: list[tuple[int, NameScope, str]] = []
        self.inside = 0
        self.acts = False
        self.idle_calls: set[int] = set()
        self.later: list[int] = []

    def wrong(self, why: str) -> InputError:
        return self.no(why, self.begins[self.at], self.source)

    @property
    def now(self) -> str:
        return self.text[self.at]

    @property
    def next(self) -> str:
        return self.text[min(self.at + 1, len(self.text) - 1)]

    def is_name(self, at: int) -> bool:
        return self.kind[at] == "name" and self.text[at][0] != "#"

    def eat(self, text: str) -> None:
        if self.now != text or self.kind[self.at] == "string":
            raise self.wrong(f"no {text}")
        self.at += 1

    def ate(self, text: str) -> bool:
        if self.now == text:
            self.at += 1
            return True
        return False

    def declare(self, scope: NameScope, form: str = "") -> Symbol:
        """The declaration of the present name."""
        if not self.is_name(self.at) or self.now in RESERVED - {
            "async",
            "of",
            "get",
            "set",
            "static",
        }:
            raise self.wrong("a name to declare")
        symbol = scope.names.setdefault(self.now, Symbol(self.now))
        self.use(scope, form)
        return symbol

    def use(self, scope: NameScope, form: str = "") -> None:
        """A use of the present name; `form` is what stands between a key and it."""
        self.used.append((self.at, scope, form))
        self.at += 1

    # Statements

    def block(self, scope: NameScope) -> None:
        """Statements in braces; `scope` is already that of the block."""
        self.eat("{")
        while self.now != "}":
            self.statement(scope)
        self.eat("}")

    def inner(self, scope: NameScope) -> NameScope:
        made = NameScope(scope)
        scope.within.append(made)
        return made

    def end(self) -> None:
        """The end of a statement."""
        if not self.ate(";") and self.now not in ("}", ""):
            raise self.wrong("a statement that goes on")

    def parenthesized(self, scope: NameScope) -> None:
        self.eat("(")
        self.expression(scope)
        self.eat(")")

    def statement(self, scope: NameScope) -> None:
        word = self.now
        if self.kind[self.at] != "name" and word != "{" and word != ";":
            self.expression(scope)
            return self.end()
        match word:
            case "{":
                self.block(self.inner(scope))
            case ";":
                self.at += 1
            case "function":
                self.function(scope, declares=True)
            case "async" if self.next == "function":
                self.at += 1
                self.function(scope, declares=True)
            case "class":
                self.class_(scope, declares=True)
            case "let" | "const":
                self.at += 1
                self.declarators(scope)
                self.end()
            case "if":
                self.at += 1
                self.parenthesized(scope)
                self.statement(scope)
                if self.ate("else"):
                    self.statement(scope)
            case "for":
                self.loop(scope)
            case "while":
                self.at += 1
                self.parenthesized(scope)
                self.statement(scope)
            case "do":
                self.at += 1
                self.statement(scope)
                self.eat("while")
                self.parenthesized(scope)
                self.ate(";")
            case "return" | "throw":
                self.at += 1
                self.expression(scope)
                self.end()
            case "break" | "continue":
                self.at += 1 + self.is_name(self.at + 1)
                self.end()
            case "switch":
                self.switch(scope)
            case "try":
                self.attempt(scope)
            case _ if word in UNKNOWN:
                raise self.wrong("a statement")
            case _ if self.next == ":":
                self.at += 2
                self.statement(scope)
            case _:
                self.expression(scope)
                self.end()
        return None

    def switch(self, scope: NameScope) -> None:
        self.at += 1
        self.parenthesized(scope)
        self.eat("{")
        cases = self.inner(scope)
        while not self.ate("}"):
            if self.ate("case"):
                self.expression(cases)
                self.eat(":")
            elif self.ate("default"):
                self.eat(":")
            else:
                self.statement(cases)

    def attempt(self, scope: NameScope) -> None:
        self.at += 1
        self.block(self.inner(scope))
        if self.ate("catch"):
            caught = self.inner(scope)
            if self.ate("("):
                self.pattern(caught)
                self.eat(")")
            self.block(self.inner(caught))
        if self.ate("finally"):
            self.block(self.inner(scope))

    def loop(self, scope: NameScope) -> None:
        self.at += 1
        self.ate("await")
        head = self.inner(scope)
        self.eat("(")
        if self.now in ("let", "const"):
            self.at += 1
            self.declarators(head)
        else:
            self.expression(head)
        if self.now in ("of", "in"):
            self.at += 1
            self.expression(head)
        else:
            for _ in range(2):
                self.eat(";")
                self.expression(head)
        self.eat(")")
        self.statement(head)

    def declarators(self, scope: NameScope) -> None:
        while True:
            self.pattern(scope)
            if self.ate("="):
                self.expression(scope, comma=False)
            if not self.ate(","):
                return

    def pattern(self, scope: NameScope) -> None:
        """Names that a declaration, a parameter or an error gets."""
        if self.ate("["):
            while not self.ate("]"):
                if not self.ate(","):
                    self.ate("...")
                    self.pattern(scope)
                    self.usual(scope)
        elif self.ate("{"):
            while not self.ate("}"):
                if self.ate("..."):
                    self.pattern(scope)
                elif self.is_name(self.at) and self.next in (",", "}", "="):
                    self.declare(scope, ":")
                else:
                    self.key(scope)
                    self.eat(":")
                    self.pattern(scope)
                self.usual(scope)
                self.ate(",")
        else:
            self.declare(scope)

    def usual(self, scope: NameScope) -> None:
        if self.ate("="):
            self.expression(scope, comma=False)

    def key(self, scope: NameScope) -> None:
        """The name of a property."""
        if self.ate("["):
            self.expression(scope)
            self.eat("]")
        elif self.kind[self.at] in ("name", "string", "number"):
            self.at += 1
        else:
            raise self.wrong("a key")

    # Functions and classes

    def function(self, scope: NameScope, *, declares: bool) -> None:
        self.eat("function")
        self.ate("*")
        own = scope
        if self.now != "(":
            own = scope if declares else self.inner(scope)
            self.declare(own)
        self.parameters_and_body(own)

    def parameters_and_body(self, scope: NameScope) -> None:
        own = self.inner(scope)
        self.inside += 1
        self.parameters(own)
        self.block(self.inner(own))
        self.inside -= 1

    def parameters(self, own: NameScope) -> None:
        self.eat("(")
        while not self.ate(")"):
            self.ate("...")
            self.pattern(own)
            self.usual(own)
            self.ate(",")

    def arrow(self, scope: NameScope) -> None:
        own = self.inner(scope)
        self.inside += 1
        if self.now == "(":
            self.parameters(own)
        else:
            self.declare(own)
        self.eat("=>")
        if self.now == "{":
            self.block(self.inner(own))
        else:
            self.expression(own, comma=False)
        self.inside -= 1

    def is_arrow(self, at: int) -> bool:
        if self.text[at] == "(":
            return self.text[self.match[at] + 1] == "=>"
        return self.is_name(at) and self.text[at + 1] == "=>"

    def class_(self, scope: NameScope, *, declares: bool) -> None:
        self.eat("class")
        own = scope
        if self.now not in ("extends", "{"):
            own = scope if declares else self.inner(scope)
            self.declare(own)
        if self.ate("extends"):
            self.expression(own)
        self.eat("{")
        while not self.ate("}"):
            if not self.ate(";"):
                self.member(own)

    def modified(self) -> bool:
        """Whether the present word says how the next is meant; if not, it is a key itself."""
        if self.now == "*" or (
            self.now in ("get", "set", "async") and self.next not in tuple("(,:=;}")
        ):
            self.at += 1
            return True
        return False

    def member(self, scope: NameScope) -> None:
        static = self.now == "static" and self.next not in ("(", "=", ";", "}")
        self.at += static
        if static and self.now == "{":
            raise self.wrong("a static block")
        while self.modified():
            pass
        self.key(scope)
        if self.now == "(":
            self.parameters_and_body(scope)
            return
        if self.ate("="):
            self.acts = self.acts or (static and not self.inside)
            self.inside += 1
            self.expression(scope, comma=False)
            self.inside -= 1
        self.end()

    def object_(self, scope: NameScope) -> None:
        self.eat("{")
        while not self.ate("}"):
            if self.ate("..."):
                self.expression(scope, comma=False)
            elif self.is_name(self.at) and self.next in (",", "}", "="):
                self.use(scope, ":")
                self.usual(scope)
            else:
                while self.modified():
                    pass
                self.key(scope)
                if self.now == "(":
                    self.parameters_and_body(scope)
                else:
                    self.eat(":")
                    self.expression(scope, comma=False)
            self.ate(",")

    # Expressions

    def expression(self, scope: NameScope, *, comma: bool = True) -> None:
        """Everything up to what ends an expression; which operator binds tighter is no matter."""
        value, choices = False, 0
        while True:
            text, kind = self.now, self.kind[self.at]
            if kind == "name":
                if text in ("in", "instanceof"):
                    value = False
                    self.at += 1
                elif text == "of" and value:
                    return
                elif value:
                    raise self.wrong("a name behind a value")
                else:
                    value = self.word(scope)
            elif kind in ("number", "string", "pattern"):
                if value:
                    raise self.wrong("a value behind a value")
                value = True
                self.at += 1
            elif kind in ("text", "head"):
                self.acts = self.acts or (value and not self.inside)
                self.template(scope)
                value = True
            elif text in _ENDS or kind in ("middle", "tail"):
                return
            elif text == "{" and value:
                return  # the body of a class behind what it extends
            elif text == "(" and not value and self.is_arrow(self.at):
                self.arrow(scope)
                value = True
            elif text in ("(", "["):
                if text == "(" and value and not self.inside:
                    self.acts = self.acts or self.at not in self.idle_calls
                self.at += 1
                self.expression(scope)
                self.eat(")" if text == "(" else "]")
                value = True
            elif text == "{":
                self.object_(scope)
                value = True
            elif text in (".", "?."):
                self.at += 1
                self.at += self.kind[self.at] == "name"
            elif (text == "," and not comma) or (text == ":" and not choices):
                return
            else:
                choices += (text == "?") - (text == ":")
                if text in ("++", "--") or (text[-1] == "=" and text not in _COMPARED):
                    self.acts = self.acts or not self.inside
                value = value and text in ("++", "--")
                self.at += 1

    def template(self, scope: NameScope) -> None:
        kind = self.kind[self.at]
        self.at += 1
        while kind in ("head", "middle"):
            self.expression(scope)
            kind = self.kind[self.at]
            if kind not in ("middle", "tail"):
                raise self.wrong("a text that goes on")
            self.at += 1

    def word(self, scope: NameScope) -> bool:
        """A name or a word that begins a value; tells whether it is a whole value."""
        text = self.now
        if text == "function" or (text == "async" and self.next == "function"):
            self.ate("async")
            self.function(scope, declares=False)
        elif text == "class":
            self.class_(scope, declares=False)
        elif text == "async" and self.is_arrow(self.at + 1):
            self.at += 1
            self.arrow(scope)
        elif self.is_arrow(self.at):
            self.arrow(scope)
        elif text == "new" and self.next == ".":
            self.at += 3
        elif text in PREFIXES:
            if text == "new" and (self.at in self.idle or self.next in _IDLE_CLASSES):
                self.idle_calls.add(self.at + 2)
            elif text not in ("typeof", "void"):
                self.acts = self.acts or not self.inside
            self.at += 1
            return False
        elif text in _VALUES or text[0] == "#":
            self.at += 1
        elif text == "import":
            if self.next == "(":
                if (
                    self.kind[self.at + 2] not in ("string", "text")
                    or self.text[self.at + 3] != ")"
                ):
                    raise self.wrong("a script loaded by a name that is computed")
                self.later.append(self.at)
            self.at += 1
        elif text in UNKNOWN or text in _STATEMENTS:
            raise self.wrong("a word in an expression")
        else:
            self.use(scope)
        return True
