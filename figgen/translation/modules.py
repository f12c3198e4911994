"""Print everything that entry functions need, from all modules, as ES modules."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from pathlib import Path

from figgen.translation.answers import with_fields
from figgen.translation.code import identifier, listed, quoted
from figgen.translation.definitions import (
    MEMBERS,
    Printer,
    alias,
    at_once,
    definition,
    forget_definitions,
    methods_of,
)
from figgen.translation.sources import Place, is_printed, source_of

FOLDER = "assets/javascripts"
RUNTIME, MORE = "runtime", "runtime_more"
SELDOM = (
    "DefaultMap", "accumulate", "setdefault", "lstrip", "rstrip", "strip", "partition",
    "rpartition", "removeprefix", "removesuffix", "finditer", "findall", "stored",
)  # fmt: skip
"""Functions in `engine/runtime_more.js`, which most tools do not need."""
HEADER = "// Printed from the Python module of the same name.\n\n"


def script_of(module: str) -> str:
    """Return the path of a printed module within the site."""
    return f"{FOLDER}/{module.removeprefix('figgen.').replace('.', '/')}.js"


def module_of(path: str) -> str | None:
    """Return the module that a script is printed from; None if the script is hand-written.

    No script is printed from a package itself.
    """
    inner = path.removeprefix(f"{FOLDER}/").removesuffix(".js")
    name = "figgen." + inner.replace("/", ".")
    is_module = is_printed(name) and not (Path(__file__).parents[1] / inner).is_dir()
    return name if path.startswith(f"{FOLDER}/") and is_module else None


_seen: dict[str, int] = {}


def _look() -> None:
    """Clear all caches if any source or data has changed; types depend on other modules too."""
    folder = Path(__file__).parents[1]
    files = (path for kind in ("py", "toml") for path in folder.rglob(f"*.{kind}"))
    now = {str(path): path.stat().st_mtime_ns for path in files}
    if now != _seen:
        _seen.clear()
        _seen.update(now)
        forget()


def forget() -> None:
    """Clear the caches, so that everything is read and printed again."""
    forget_definitions()
    source_of.cache_clear()


def closure(
    entries: Iterable[Place], members: Collection[str] | None = None
) -> dict[str, set[str]]:
    """Return the entries and everything they need: by module, names (`Class` and `Class.member`).

    `members` are the properties and methods that hand-written scripts use, and the fields of stored
    answers that they read, each with a dot; without them, records keep all of theirs.
    """
    found: dict[str, set[str]] = {}
    waiting = list(entries)
    _look()
    while waiting:
        place = waiting.pop()
        name, _, member = place.name.partition(".")
        names = found.setdefault(place.module, set())
        if place.name in names:
            continue
        names.add(place.name)
        if member == "*":
            waiting += [Place(place.module, name), *_asked(Place(place.module, name), None)]
            continue
        waiting += definition(place).uses
        waiting += [] if member else _asked(place, members)
        waiting += [Place(place.module, name)] if member else []
    return found


def _asked(place: Place, members: Collection[str] | None) -> list[Place]:
    """Return the properties and methods of a class that hand-written scripts use."""
    node = source_of(place.module).definitions[place.name]
    if not isinstance(node, ast.ClassDef):
        return []
    names = [one.name for one in methods_of(node)]
    return [
        Place(place.module, f"{place.name}.{name}")
        for name in names
        if members is None or name in members
    ]


def printed(entries: Iterable[Place], members: Collection[str] | None = None) -> dict[str, str]:
    """Return ES modules by path, with only what the entries need; see `closure`."""
    found = closure(entries, members)
    return {
        script_of(module): with_fields(_module(module, names), found, members)
        for module, names in found.items()
    }


def _module(module: str, names: set[str]) -> str:
    source = source_of(module)
    parts, imports = [], dict[str, dict[str, str]]()
    helpers: dict[str, None] = {}

    def text_of(name: str) -> str:
        made = definition(Place(module, name))
        helpers.update(dict.fromkeys(made.helpers))
        for place in made.uses:
            if place.module != module and "." not in place.name:
                target = _relative(module, script_of(place.module))
                imports.setdefault(target, {})[place.name] = alias(place, source)
        return made.text

    for name in source.definitions:
        if name not in names:
            continue
        text, node = text_of(name), source.definitions[name]
        if isinstance(node, ast.ClassDef):
            members = [m.name for m in methods_of(node) if f"{name}.{m.name}" in names]
            inner = "".join(text_of(f"{name}.{one}") for one in members)
            printer = Printer(source)
            kept = [one for one in members if printer.is_kept(node, one)]
            if kept:
                helpers["lazily"] = None
                inner += at_once(f"$lazily(this, {quoted(' '.join(kept))});")
            text = text.replace(MEMBERS, inner)
        parts.append(text)
    for helper in sorted(helpers):
        room, _, own = helper.rpartition(".")
        script = room or (MORE if own in SELDOM else RUNTIME)
        target = _relative(module, f"{FOLDER}/engine/{script}.js")
        imports.setdefault(target, {})[own] = own if room else f"${own}"
    lines = [
        f"import {{ {listed(_renamed(name, own) for name, own in sorted(found.items()))} }} "
        f'from "{target}";\n'
        for target, found in sorted(imports.items())
    ]
    return f"{HEADER}{''.join(lines)}\n{''.join(parts)}"


def _renamed(name: str, own: str) -> str:
    shown = identifier(name)
    return shown if shown == own else f"{shown} as {own}"


def _relative(module: str, path: str) -> str:
    depth = script_of(module).count("/") - FOLDER.count("/") - 1
    return ("../" * depth if depth else "./") + path.removeprefix(f"{FOLDER}/")
