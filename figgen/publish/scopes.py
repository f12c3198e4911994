"""Which declaration every name of a script means, and what each part of a script uses.

It reads the JavaScript that minify-html writes, in which every statement ends with `;` or `}`. It
knows the syntax of modules without `var`, `with`, static blocks and default exports, and refuses
what it doesn't know.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from figgen.publish.syntax import NameScope, Symbol, Syntax


@dataclass(frozen=True, slots=True)
class Shorthand:
    """A name that stands for a key too, and what to write between the key and another name."""

    name: str
    between: str
    symbol: Symbol


@dataclass(frozen=True, slots=True)
class Later:
    """`import()` of a script, as it is written."""

    target: str
    text: str


Piece = str | Symbol | Shorthand | Later


@dataclass(slots=True, eq=False, kw_only=True)
class Item:
    """One declaration or statement of a module.

    `word` is `const` or `let` for a declaration. An item that is `idle` does nothing unless
    somebody uses what it declares.
    """

    word: str
    start: int
    end: int
    declared: list[Symbol]
    idle: bool
    pieces: list[Piece] = field(default_factory=list)
    uses: dict[Symbol, None] = field(default_factory=dict)


@dataclass(slots=True, eq=False, kw_only=True)
class Module:
    """A script: its items, what it imports and exports, and names that it takes from outside.

    `imports` has path and name of each imported symbol, with `*` for a whole module; `handed_on`
    the same of exports that come from elsewhere. `slots` counts the uses of its inner names.
    """

    items: list[Item]
    imports: dict[Symbol, tuple[str, str]]
    exports: dict[str, Symbol]
    handed_on: dict[str, tuple[str, str]]
    outside: frozenset[str]
    slots: list[int]


class Reader(Syntax):
    """Reads the declarations and statements of a module, its imports and its exports."""

    def __init__(self, source: str, path: str) -> None:
        super().__init__(source, path)
        self.items: list[Item] = []
        self.imports: dict[Symbol, tuple[str, str]] = {}
        self.exported: list[tuple[str, str]] = []
        self.handed_on: dict[str, tuple[str, str]] = {}

    def module(self) -> Module:
        while self.kind[self.at] != "end":
            if self.now == "import" and self.next not in ("(", "."):
                self.imported()
            elif self.now == "export":
                self.export()
            else:
                self.item()
        outside = self.resolved()
        counts = list[int]()
        for scope in self.top.within:
            _number(scope, 0, counts)
        exports = {own: self.top.names[name] for own, name in self.exported}
        return Module(
            items=self.items,
            imports=self.imports,
            exports=exports,
            handed_on=self.handed_on,
            outside=outside,
            slots=counts,
        )

    def item(self) -> list[Symbol]:
        """A statement of the module; returns what it declares."""
        word = self.now
        if word not in ("const", "let"):
            start, known, self.acts = self.at, set(self.top.names), False
            idle = word in ("function", "class") or (word == "async" and self.next == "function")
            self.statement(self.top)
            declared = [one for name, one in self.top.names.items() if name not in known]
            self.keep("", start, declared, idle)
            return declared
        found = list[Symbol]()
        self.at += 1
        while True:
            start, known, self.acts = self.at, set(self.top.names), False
            self.pattern(self.top)
            if self.ate("="):
                self.expression(self.top, comma=False)
            declared = [one for name, one in self.top.names.items() if name not in known]
            self.keep(word, start, declared, True)
            found += declared
            if not self.ate(","):
                self.end()
                return found

    def keep(self, word: str, start: int, declared: list[Symbol], idle: bool) -> None:
        idle = idle and not self.acts and bool(declared)
        if start < self.at:
            item = Item(word=word, start=start, end=self.at, declared=declared, idle=idle)
            self.items.append(item)

    def imported(self) -> None:
        self.eat("import")
        if self.ate("*"):
            self.eat("as")
            symbol = self.top.names.setdefault(self.now, Symbol(self.now))
            self.at += 1
            self.eat("from")
            self.imports[symbol] = (self.address(), "*")
            return
        pairs = self.pairs()
        self.eat("from")
        target = self.address()
        for name, own in pairs:
            symbol = self.top.names.setdefault(own, Symbol(own))
            self.imports[symbol] = (target, name)

    def export(self) -> None:
        self.eat("export")
        if self.now in ("*", "default"):
            raise self.wrong("an export of this form")
        if self.now != "{":
            self.exported += [(one.name, one.name) for one in self.item()]
            return
        pairs = self.pairs()
        if self.ate("from"):
            target = self.address()
            self.handed_on |= {own: (target, name) for name, own in pairs}
            return
        self.exported += [(own, name) for name, own in pairs]
        self.end()

    def pairs(self) -> list[tuple[str, str]]:
        """`{ a, b as c }` → [("a", "a"), ("b", "c")]."""
        found = []
        self.eat("{")
        while not self.ate("}"):
            name = own = self.now
            self.at += 1
            if self.ate("as"):
                own = self.now
                self.at += 1
            self.ate(",")
            found.append((name, own))
        return found

    def address(self) -> str:
        if self.kind[self.at] != "string":
            raise self.wrong("the address of a script")
        self.at += 1
        found = _unquoted(self.text[self.at - 1])
        self.end()
        return found

    def resolved(self) -> frozenset[str]:
        """Find what each name means, and cut the items into pieces; returns names from outside."""
        outside = set[str]()
        marks: list[tuple[int, Piece, int]] = []
        for at, scope, between in self.used:
            name, above = self.text[at], scope
            while name not in above.names and above.above is not None:
                above = above.above
            if name not in above.names:
                outside.add(name)
                continue
            meant = above.names[name]
            meant.uses += 1
            marks.append((at, Shorthand(name, between, meant) if between else meant, at + 1))
        for at in self.later:
            text = self.source[self.begins[at] : self.begins[at + 3] + 1]
            marks.append((at, Later(_unquoted(self.text[at + 2]), text), at + 4))
        marks.sort(key=lambda mark: mark[0])
        position = 0
        for item in self.items:
            place = self.begins[item.start]
            while position < len(marks) and marks[position][0] < item.end:
                at, piece, behind = marks[position]
                item.pieces += [self.source[place : self.begins[at]], piece]
                place = self.begins[behind - 1] + len(self.text[behind - 1])
                symbol = piece.symbol if isinstance(piece, Shorthand) else piece
                if isinstance(symbol, Symbol) and self.top.names.get(symbol.name) is symbol:
                    item.uses[symbol] = None
                position += 1
            last = item.end - 1
            item.pieces.append(self.source[place : self.begins[last] + len(self.text[last])])
        return frozenset(outside)


def _number(scope: NameScope, first: int, counts: list[int]) -> None:
    """Number the names of a scope from `first` on, and count the uses of each number."""
    for symbol in scope.names.values():
        symbol.slot = first
        counts += [0] * (first + 1 - len(counts))
        counts[first] += symbol.uses
        first += 1
    for inner in scope.within:
        _number(inner, first, counts)


def _unquoted(text: str) -> str:
    return text[1:-1]


@lru_cache(maxsize=512)
def module_of(source: str, path: str) -> Module:
    """Read a script that minify-html wrote. Raises InputError for what is not understood."""
    return Reader(source, path).module()
