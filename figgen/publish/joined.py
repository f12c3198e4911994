"""Join a tool's script and everything that it imports into one file, with short names.

All modules share one scope, so no names are passed between them; unused declarations are left out.
The site's scripts are also published unjoined: names are shortened only here.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import groupby, product

from figgen.errors import InputError
from figgen.publish.scopes import Item, Later, Module, Shorthand, module_of
from figgen.publish.scripts import KEPT_SCRIPTS, lean
from figgen.publish.syntax import RESERVED, Symbol

_IMPORT = re.compile(r'^import (?:\* as (\w+)|\{([^}]*)\}) from "(\.[^"]+)";?\n', re.M)
_AGAIN = re.compile(r'^export \{([^}]*)\} from "(\.[^"]+)";?\n', re.M)
_LATER = re.compile(r'\bimport\("(\.[^"]+)"\)')
_FIRST = "etnaoirsclpdmuhfgbyvxwkqzjETNAOIRSCLPDMUHFGBYVXWKQZJ_$"
_OTHERS = f"{_FIRST}0123456789"


def joined(
    scripts: Mapping[str, str],
    entry: str,
    parts: Sequence[str] = (),
    idle: Collection[str] = (),
) -> dict[str, str]:
    """Return the module `entry` with all that it imports from `scripts` as one minified file, and
    so each of the `parts` that it loads later, by path.

    A part imports what `entry` already contains. A module of `scripts` that is loaded later and is
    not one of the `parts` is included as a promise that is already resolved; a module outside
    `scripts` stays a separate file at the same address. Loading an `idle` module has no effects,
    whatever its declarations call.
    Raises InputError for imports that are missing or circular, and for syntax that isn't
    understood.
    """
    return dict(_joined(tuple(scripts.items()), entry, tuple(parts), frozenset(idle)))


# A server joins again after each change of code, which most tools do not contain.
@lru_cache(maxsize=64)
def _joined(
    sources: tuple[tuple[str, str], ...], entry: str, parts: tuple[str, ...], idle: frozenset[str]
) -> dict[str, str]:
    scripts = dict(sources)
    first = {path: script for path, script in scripts.items() if path not in parts}
    order = _order(first, entry)
    program = Program({path: scripts[path] for path in order}, entry, idle)
    main = Bundle(program=program, order=order, near=frozenset(order))
    own = main.kept()[0]
    later = []
    for path in parts:
        every = _order({**first, path: scripts[path]}, path)
        program.add({one: scripts[one] for one in every}, path)
        near = frozenset((*order, *every))
        part = Bundle(program=program, order=every, near=near, others=frozenset(order))
        later.append(replace(part, lent=frozenset(own)))
    # Items that only one part uses go into that part; items of several parts, into the entry.
    uses = Counter(item for part in later for item in part.kept()[0])
    shared = own | {item for item, count in uses.items() if count > 1 and item in main.items}
    later = [replace(part, lent=frozenset(shared)) for part in later]
    asked = dict.fromkeys(symbol for part in later for symbol in part.kept()[1])
    told = main.exports(asked)
    made = {entry: main.text(told, {}, "")}
    for part in later:
        path = part.order[-1]
        made[path] = part.text(part.exports({}), told, _address(entry, path))
    return made


class Program:
    """Modules by path, and the declaration that each of their names refers to."""

    def __init__(self, scripts: Mapping[str, str], entry: str, idle: Collection[str]) -> None:
        self.idle = idle
        self.modules: dict[str, Module] = {}
        self.wholes: dict[str, Symbol] = {}
        self.path_of: dict[Symbol, str] = {}
        self.add(scripts, entry)

    def add(self, scripts: Mapping[str, str], entry: str) -> None:
        """Read the scripts that are new."""
        for path, script in scripts.items():
            if path != entry and "import.meta" in script:
                raise InputError(
                    path, expected="import.meta only in an entry, whose address is kept"
                )
            if path not in self.modules:
                self.modules[path] = module_of(lean(script), path, path in self.idle)

    def found(self, path: str, name: str) -> Symbol:
        """Return the symbol that a module exports under a name, directly or not; `*` is all."""
        module = self.modules[path]
        if name == "*":
            whole = self.wholes.setdefault(path, Symbol("$all"))
            self.path_of[whole] = path
            return whole
        if name in module.handed_on:
            target, other = module.handed_on[name]
            return self.found(_target(path, target), other)
        if name not in module.exports:
            raise InputError(path, expected=f"an export {name!r}")
        return self.meant(path, module.exports[name])

    def meant(self, path: str, symbol: Symbol) -> Symbol:
        """Return the symbol that a symbol of a module refers to, following imports."""
        given = self.modules[path].imports.get(symbol)
        return self.found(_target(path, given[0]), given[1]) if given else symbol

    def exported(self, path: str) -> dict[str, Symbol]:
        """Return all exports of a module, by name."""
        module = self.modules[path]
        return {name: self.found(path, name) for name in (*module.exports, *module.handed_on)}


@dataclass(frozen=True, eq=False, kw_only=True)
class Bundle:
    """One file: the modules of `order`, the last of which is its entry; `near` are already loaded.

    A part of another file imports the items `lent` from it; statements of `others` run there.
    """

    program: Program
    order: list[str]
    near: frozenset[str]
    others: frozenset[str] = frozenset()
    lent: frozenset[Item] = frozenset()

    @cached_property
    def items(self) -> dict[Item, str]:
        """Items that may go into this file, each with its module."""
        modules = self.program.modules
        every = {item: path for path in self.order for item in modules[path].items}
        return {
            item: path
            for item, path in every.items()
            if item not in self.lent and (item.idle or path not in self.others)
        }

    def later(self, path: str, piece: Later) -> Symbol | None:
        """Return the whole of a script that is loaded later, if it is already loaded here."""
        target = _target(path, piece.target)
        return self.program.found(target, "*") if target in self.near else None

    def needed(self, path: str, item: Item) -> Iterator[Symbol]:
        """Yield the symbols that an item uses, of any module."""
        for symbol in item.uses:
            yield self.program.meant(path, symbol)
        for piece in item.pieces:
            if isinstance(piece, Later) and (whole := self.later(path, piece)):
                yield whole

    def kept(self, asked: Iterable[Symbol] = ()) -> tuple[set[Item], dict[Symbol, None]]:
        """Return the items that have effects or are used, and their symbols from other files."""
        holders = {
            symbol: (path, item) for item, path in self.items.items() for symbol in item.declared
        }
        found, taken, seen = set[Item](), dict[Symbol, None](), set[Symbol]()
        waiting = [*asked, *self.program.exported(self.order[-1]).values()]
        for item, path in self.items.items():
            if not item.idle:
                found.add(item)
                waiting += self.needed(path, item)
        while waiting:
            symbol = waiting.pop()
            if symbol in seen:
                continue
            seen.add(symbol)
            path_of = self.program.path_of.get(symbol)
            if path_of in self.order and path_of not in self.others:
                waiting += self.program.exported(str(path_of)).values()
            elif symbol not in holders:
                taken[symbol] = None
            elif holders[symbol][1] not in found:
                found.add(holders[symbol][1])
                waiting += self.needed(*holders[symbol])
        return found, taken

    def exports(self, asked: Iterable[Symbol]) -> dict[str, Symbol]:
        """Return the file's exports by name: those of its entry, and symbols that parts need."""
        told = dict(self.program.exported(self.order[-1]))
        for symbol in asked:
            name, number = symbol.name, 0
            while name in told:
                number += 1
                name = f"{symbol.name}${number}"
            told[name] = symbol
        return told

    def text(self, told: Mapping[str, Symbol], given: Mapping[str, Symbol], address: str) -> str:
        """Return the file's text; it exports `told` and imports `given` from `address`."""
        kept, taken = self.kept(told.values())
        names, counted = self.names(kept, [*taken, *told.values()])
        known = {symbol: name for name, symbol in given.items()}
        pairs = sorted((known[symbol], names[symbol]) for symbol in taken)
        begun = f'import{{{_listed(pairs)}}}from"{address}";' if taken else ""
        pairs = [(names[symbol], name) for name, symbol in told.items()]
        end = f"export{{{_listed(pairs)}}};" if told else ""
        body = []
        for word, group in groupby(self.lines(kept, names, counted), key=lambda line: line[0]):
            texts = [text for _, text in group]
            body.append(f"{word} {','.join(texts)};" if word else "".join(texts))
        return f"{begun}{''.join(body)}{end}\n"

    def lines(
        self, kept: set[Item], names: Mapping[Symbol, str], counted: Sequence[str]
    ) -> Iterator[tuple[str, str]]:
        """Yield the file's items in order, each as `const`, `let` or "" and the remaining text."""
        for path in self.order:
            for item in self.program.modules[path].items:
                if item in kept:
                    text = self.written(path, item, names, counted)
                    bare = not item.word and not item.declared and not text.endswith(";")
                    yield item.word, f"{text};" if bare else text
            whole = self.program.wholes.get(path)
            if whole and whole in names and path not in self.others:
                own = self.program.exported(path).items()
                yield "const", f"{names[whole]}={{{_keyed((n, names[s]) for n, s in own)}}}"

    def written(
        self, path: str, item: Item, names: Mapping[Symbol, str], counted: Sequence[str]
    ) -> str:
        """Return an item's text with new names; `counted` are the names of inner slots."""

        def new(symbol: Symbol) -> str:
            if symbol.slot >= 0:
                return counted[symbol.slot]
            return names[self.program.meant(path, symbol)]

        parts = []
        for piece in item.pieces:
            match piece:
                case str():
                    parts.append(piece)
                case Symbol():
                    parts.append(new(piece))
                case Shorthand(name, symbol):
                    own = new(symbol)
                    parts.append(own if own == name else f"{name}:{own}")
                case Later(text=text):
                    whole = self.later(path, piece)
                    parts.append(f"Promise.resolve({names[whole]})" if whole else text)
        return "".join(parts)

    def names(
        self, kept: set[Item], others: Iterable[Symbol]
    ) -> tuple[dict[Symbol, str], list[str]]:
        """Return short names of symbols and of inner slots; the most used get the shortest."""
        uses: dict[Symbol | int, int] = dict.fromkeys(others, 1)
        outside = set(RESERVED)
        for path in self.order:
            module = self.program.modules[path]
            if kept.isdisjoint(module.items):
                continue
            outside |= module.outside
            for slot, count in enumerate(module.slots):
                uses[slot] = uses.get(slot, 0) + count
            for item in module.items:
                if item not in kept:
                    continue
                for symbol in item.declared:
                    uses[symbol] = uses.get(symbol, 0) + 1
                for symbol in self.needed(path, item):
                    uses[symbol] = uses.get(symbol, 0) + 1
        ordered = sorted(uses, key=lambda one: -uses[one])
        found: dict[Symbol | int, str] = dict(zip(ordered, _names(outside), strict=False))
        slots = sum(isinstance(one, int) for one in uses)
        return (
            {one: name for one, name in found.items() if isinstance(one, Symbol)},
            [found[slot] for slot in range(slots)],
        )


def _names(taken: set[str]) -> Iterator[str]:
    """Yield every name that is not in `taken`, the shortest first."""
    for length in range(3):
        for letters in product(_FIRST, *[_OTHERS] * length):
            if (name := "".join(letters)) not in taken:
                yield name


def _keyed(pairs: Iterable[tuple[str, str]]) -> str:
    return ",".join(f"{name}:{own}" for name, own in pairs)


def _listed(pairs: Iterable[tuple[str, str]]) -> str:
    return ",".join(name if name == own else f"{name} as {own}" for name, own in pairs)


def _order(scripts: Mapping[str, str], entry: str) -> list[str]:
    """Return the modules that `entry` needs, each after its own imports; `entry` is last."""
    found: list[str] = []
    begun: list[str] = []

    def visit(path: str) -> None:
        if path in found:
            return
        if path in begun:
            raise InputError("circular import of scripts", got=" → ".join([*begun, path]))
        if path not in scripts:
            raise InputError(f"{begun[-1] if begun else 'site'}: missing script {path!r}")
        begun.append(path)
        at_once, later = _imported(scripts[path], path)
        for target in (*at_once, *(target for target in later if target in scripts)):
            visit(target)
        begun.pop()
        found.append(path)

    visit(entry)
    return found


def reached(scripts: Mapping[str, str], entries: Iterable[str]) -> list[str]:
    """Return the scripts that `entries` import, at once or later, sorted."""
    found: set[str] = set()
    waiting = list(entries)
    while waiting:
        path = waiting.pop()
        if path in scripts and path not in found:
            found.add(path)
            at_once, later = _imported(scripts[path], path)
            waiting += [*at_once, *later]
    return sorted(found)


def named_imports(source: str, path: str) -> list[tuple[str, str]]:
    """Return each name that a script imports or re-exports, with the path that it comes from."""
    found = [(match[2], match[3]) for match in _IMPORT.finditer(source) if match[2]]
    found += [(match[1], match[2]) for match in _AGAIN.finditer(source)]
    return [(_target(path, target), name) for names, target in found for name, _ in _pairs(names)]


# A server joins again after each change, and most scripts are part of several tools.
@lru_cache(maxsize=KEPT_SCRIPTS)
def _imported(source: str, path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return two tuples of paths: what a module imports at once, and what it imports later."""
    found = ((_IMPORT, 3), (_AGAIN, 2))
    at_once = [
        _target(path, m[group]) for pattern, group in found for m in pattern.finditer(source)
    ]
    return tuple(at_once), tuple(_target(path, match[1]) for match in _LATER.finditer(source))


def _address(path: str, importer: str) -> str:
    found = posixpath.relpath(path, posixpath.dirname(importer))
    return found if found.startswith(".") else f"./{found}"


def _target(path: str, relative: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), relative))


def _pairs(names: str) -> list[tuple[str, str]]:
    """Parse `a, b as c` to [("a", "a"), ("b", "c")]."""
    words = [name.split(" as ") for name in names.replace("\n", " ").split(",") if name.strip()]
    return [(pair[0].strip(), pair[-1].strip()) for pair in words]
