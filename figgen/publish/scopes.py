"""Resolve every name of a script to its declaration, and find what each statement uses.

Supports the syntax of modules without `var`, `with`, decorators and default exports; other syntax
is an error.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache

from tree_sitter import Node

from figgen.errors import InputError
from figgen.publish.syntax import NameScope, Symbol, Syntax, parts

_LOADED = re.compile(r"""import\(\s*(["'`])([^"'`$\\]+)\1\s*\)""")


@dataclass(frozen=True, slots=True)
class Shorthand:
    """A name that is also a key, as in `{ a }`."""

    name: str
    symbol: Symbol


@dataclass(frozen=True, slots=True)
class Later:
    """An `import()` of a script, with its source text."""

    target: str
    text: str


Piece = str | Symbol | Shorthand | Later


@dataclass(slots=True, eq=False, kw_only=True)
class Item:
    """One declaration or statement of a module.

    `word` is `const` or `let` for a declaration. An `idle` item has no effect unless a name that
    it declares is used.
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
    """A script: its items, imports and exports, and the global names that it uses.

    `imports` maps each imported symbol to path and name, with `*` for a whole module; `handed_on`
    does so for re-exports. `slots` counts the uses of its inner names.
    """

    items: list[Item]
    imports: dict[Symbol, tuple[str, str]]
    exports: dict[str, Symbol]
    handed_on: dict[str, tuple[str, str]]
    outside: frozenset[str]
    slots: list[int]


class Reader(Syntax):
    """Reads the declarations and statements of a module, its imports and its exports."""

    def __init__(self, source: str, path: str, idle: bool) -> None:
        super().__init__(source, path)
        self.idle = idle
        self.items: list[Item] = []
        self.imports: dict[Symbol, tuple[str, str]] = {}
        self.exported: list[tuple[str, str]] = []
        self.handed_on: dict[str, tuple[str, str]] = {}

    def module(self) -> Module:
        for node in parts(self.root):
            match node.type:
                case "import_statement":
                    self.imported(node)
                case "export_statement":
                    self.export(node)
                case _:
                    self.item(node)
        outside = self.resolved()
        counts = list[int]()
        for scope in self.top.within:
            _number(scope, 0, counts)
        if unknown := [name for _, name in self.exported if name not in self.top.names]:
            raise InputError(self.path, expected="exports that are declared", got=unknown[0])
        exports = {own: self.top.names[name] for own, name in self.exported}
        return Module(
            items=self.items,
            imports=self.imports,
            exports=exports,
            handed_on=self.handed_on,
            outside=outside,
            slots=counts,
        )

    def item(self, node: Node) -> list[Symbol]:
        """Read a statement of the module; return the symbols that it declares."""
        if node.type != "lexical_declaration":
            return self.keep("", node, idle=node.type.endswith("_declaration"))
        word = node.children[0].type
        return [symbol for part in parts(node) for symbol in self.keep(word, part, idle=True)]

    def keep(self, word: str, node: Node, *, idle: bool) -> list[Symbol]:
        known, self.acts = len(self.top.names), False
        self.read(node, self.top)
        declared = list(self.top.names.values())[known:]
        idle = idle and (self.idle or not self.acts) and bool(declared)
        begin, end = node.byte_range
        self.items.append(Item(word=word, start=begin, end=end, declared=declared, idle=idle))
        return declared

    def imported(self, node: Node) -> None:
        """Read `import * as a from "…"` or `import { a, b as c } from "…"`."""
        clause, *others = parts(node)
        given = parts(clause)
        kinds = [part.type for part in (*given, *others)]
        if kinds == ["namespace_import", "string"]:
            pairs = [("*", self.named(parts(given[0])[0]))]
        elif kinds == ["named_imports", "string"]:
            pairs = self.pairs(given[0])
        else:
            raise self.wrong(node)
        for name, own in pairs:
            symbol = self.top.names.setdefault(own, Symbol(own))
            self.imports[symbol] = (self.unquoted(others[0]), name)

    def export(self, node: Node) -> None:
        kinds = [child.type for child in node.children if child.type not in ("comment", ";")]
        if kinds == ["export", "export_clause"]:
            self.exported += [(own, name) for name, own in self.pairs(parts(node)[0])]
        elif kinds == ["export", "export_clause", "from", "string"]:
            clause, target = parts(node)
            self.handed_on |= {
                own: (self.unquoted(target), name) for name, own in self.pairs(clause)
            }
        elif len(kinds) == 2 and kinds[1].endswith("_declaration"):
            self.exported += [(one.name, one.name) for one in self.item(parts(node)[0])]
        else:
            raise self.wrong(node)

    def pairs(self, node: Node) -> list[tuple[str, str]]:
        """Read `{ a, b as c }` as [("a", "a"), ("b", "c")]."""
        given = [parts(part) for part in parts(node)]
        return [(self.named(part[0]), self.named(part[-1])) for part in given]

    def unquoted(self, node: Node) -> str:
        return self.named(node)[1:-1]

    def resolved(self) -> frozenset[str]:
        """Resolve each name and cut the items into pieces; return the global names."""
        outside = set[str]()
        marks = list[tuple[int, int, Piece]]()
        for node, scope in self.used:
            name = self.named(node)
            if "\\" in name:
                raise self.wrong(node)  # the same name may be written in other ways
            if meant := scope.find(name):
                meant.uses += 1
                short = node.type.startswith("shorthand")
                marks.append((*node.byte_range, Shorthand(name, meant) if short else meant))
            else:
                outside.add(name)
        for node in self.later:
            if not (found := _LOADED.fullmatch(self.named(node))):
                raise self.wrong(node)
            marks.append((*node.byte_range, Later(found[2], found[0])))
        marks.sort(key=lambda mark: mark[0])
        waiting = deque(marks)
        for item in self.items:
            place = item.start
            while waiting and waiting[0][0] < item.end:
                begin, end, piece = waiting.popleft()
                item.pieces += [self.text(place, begin), piece]
                place = end
                symbol = piece.symbol if isinstance(piece, Shorthand) else piece
                if isinstance(symbol, Symbol) and self.top.names.get(symbol.name) is symbol:
                    item.uses[symbol] = None
            item.pieces.append(self.text(place, item.end))
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


# As many as two builds read: more modules than answers would forget them all.
@lru_cache(maxsize=1024)
def module_of(source: str, path: str, idle: bool = False) -> Module:
    """Read a script; declarations of an `idle` script have effects only if they are used.

    Raises InputError for unsupported syntax.
    """
    return Reader(source, path, idle).module()
