"""A script and everything that it imports as one file, so that a browser makes one request.

Each module becomes a function, so nothing has to be renamed. Only the syntax that our scripts use
is understood; anything else is an error, never a guess.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from figgen.errors import InputError

_IMPORT = re.compile(r'^import (?:\* as (\w+)|\{([^}]*)\}) from "(\.[^"]+)";?\n', re.M)
_AGAIN = re.compile(r'^export \{([^}]*)\} from "(\.[^"]+)";?\n', re.M)
_LISTED = re.compile(r"^export \{([^}]*)\};?\n", re.M)
_DECLARED = re.compile(r"^export ((?:async )?function\*? |class |const |let )(\w+)", re.M)
_TAKEN_APART = re.compile(r"^export (const|let) ([\[{])([^=]*?)[\]}] =", re.M)
_LATER = re.compile(r'\bimport\("(\.[^"]+)"\)')
_LEFT = re.compile(r"^(?:import|export)\b.*|\bimport\(.*", re.M)


def joined(scripts: Mapping[str, str], entry: str, beside: str = "") -> str:
    """Join the module `entry` and everything that it imports from `scripts`, by path.

    Modules loaded later are included as promises that are already resolved; those not in `scripts`
    stay files of their own at the same address, so `entry` must lie beside the page that reads it.
    Modules that the joined module `beside` contains, in the same folder, are taken from there.
    Raises InputError for imports that are missing or circular, and for forms of import or export
    that aren't understood.
    """
    order = _order(scripts, entry)
    shared = _order({k: v for k, v in scripts.items() if k != entry}, beside) if beside else []
    names = {path: f"$m{number}" for number, path in enumerate(shared)}
    known = [names[path] for path in order if path in names]
    parts = []
    if known:
        parts.append(f'import {{ {", ".join(known)} }} from "./{posixpath.basename(beside)}";\n')
    own = [path for path in order if path not in names]
    names |= {path: f"$m{len(shared) + number}" for number, path in enumerate(own)}
    parts += [_module(scripts[path], path, names) for path in own[:-1]]
    body, exported = _body(scripts[entry], entry, names)
    # What is handed on is a member of another module, which `export {…}` cannot name.
    handed_on = {name: value for name, value in exported.items() if "." in value}
    for number, (name, value) in enumerate(handed_on.items()):
        body += f"const $again{number} = {value};\n"
        exported[name] = f"$again{number}"
    exported |= {names[path]: names[path] for path in own[:-1]}
    told = ", ".join(_renamed(value, name, " as ") for name, value in exported.items())
    return "".join([*parts, body, f"export {{ {told} }};\n" if told else ""])


def _order(scripts: Mapping[str, str], entry: str) -> list[str]:
    """Return the modules that `entry` needs, each after its own imports; `entry` is last."""
    found: list[str] = []
    begun: list[str] = []

    def visit(path: str) -> None:
        if path in found:
            return
        if path in begun:
            raise InputError("scripts that import each other", got=" → ".join([*begun, path]))
        if path not in scripts:
            raise InputError(f"{begun[-1] if begun else 'site'}: no script {path!r}")
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


# A server joins again whenever one script changed, and most are part of several tools.
@lru_cache(maxsize=512)
def _imported(source: str, path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return two tuples of paths: what a module imports at once, and what it imports later."""
    found = ((_IMPORT, 3), (_AGAIN, 2))
    at_once = [
        _target(path, m[group]) for pattern, group in found for m in pattern.finditer(source)
    ]
    return tuple(at_once), tuple(_target(path, match[1]) for match in _LATER.finditer(source))


def _target(path: str, relative: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), relative))


def _module(source: str, path: str, names: Mapping[str, str]) -> str:
    if "import.meta" in source:
        raise InputError(path, expected="import.meta only in an entry, whose address is kept")
    body, exported = _body(source, path, names)
    told = ", ".join(_renamed(name, value, ": ") for name, value in exported.items())
    return f"const {names[path]} = (() => {{\n{body}return {{ {told} }};\n}})();\n"


def _body(source: str, path: str, names: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return a module's code without imports and exports, and its exports as name → value."""
    needed = {name for targets in _imported(source, path) for name in targets} & names.keys()
    text, exported = _converted(source, path, tuple((name, names[name]) for name in sorted(needed)))
    return text, dict(exported)


@lru_cache(maxsize=512)
def _converted(
    source: str, path: str, needed: tuple[tuple[str, str], ...]
) -> tuple[str, tuple[tuple[str, str], ...]]:
    names = dict(needed)
    exported: dict[str, str] = {}

    def bound(match: re.Match[str]) -> str:
        whole, wanted, relative = match.groups()
        module = names[_target(path, relative)]
        if whole:
            return f"const {whole} = {module};\n"
        pairs = ", ".join(_renamed(name, own, ": ") for name, own in _pairs(wanted))
        return f"const {{ {pairs} }} = {module};\n"

    def passed_on(match: re.Match[str]) -> str:
        module = names[_target(path, match[2])]
        exported.update({own: f"{module}.{name}" for name, own in _pairs(match[1])})
        return ""

    def listed(match: re.Match[str]) -> str:
        exported.update({own: name for name, own in _pairs(match[1])})
        return ""

    def declared(match: re.Match[str]) -> str:
        exported[match[2]] = match[2]
        return match[1] + match[2]

    def taken_apart(match: re.Match[str]) -> str:
        """`export const [a, b] = …` or `{ a, b: c }`: names alone, without defaults or nesting."""
        _, bracket, written = match.groups()
        parts = [part.strip() for part in written.split(",") if part.strip()]
        own = [part.partition(":")[2].strip() or part if bracket == "{" else part for part in parts]
        if wrong := [name for name in own if not re.fullmatch(r"[A-Za-z_$][\w$]*", name)]:
            raise InputError(path, expected="names alone in an export", got=wrong[0])
        exported.update({name: name for name in own})
        return match[0].removeprefix("export ")

    apart: list[str] = []

    def later(match: re.Match[str]) -> str:
        module = names.get(_target(path, match[1]))
        if module is None:
            apart.append(match[0])
            return f"$apart{len(apart) - 1}"
        return f"Promise.resolve({module})"

    text = _LATER.sub(later, _IMPORT.sub(bound, source))
    text = _LISTED.sub(listed, _AGAIN.sub(passed_on, text))
    text = _TAKEN_APART.sub(taken_apart, _DECLARED.sub(declared, text))
    if left := _LEFT.search(text):
        raise InputError(
            path, expected="a form of import or export that can be joined", got=left[0]
        )
    for number, form in enumerate(apart):
        text = text.replace(f"$apart{number}", form)
    return text, tuple(exported.items())


def _renamed(name: str, other: str, by: str) -> str:
    return name if name == other else f"{name}{by}{other}"


def _pairs(names: str) -> list[tuple[str, str]]:
    """`a, b as c` → [("a", "a"), ("b", "c")]."""
    words = [name.split(" as ") for name in names.replace("\n", " ").split(",") if name.strip()]
    return [(pair[0].strip(), pair[-1].strip()) for pair in words]
