"""A script with all that it imports, as one file: a browser asks once instead of once a module.

Modules stay apart, each in a function of its own, so that nothing has to be renamed. Only what our
scripts use is understood; anything else is an error, not a guess.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from figgen.errors import InputError

_IMPORT = re.compile(r'^import (?:\* as (\w+)|\{([^}]*)\}) from "(\.[^"]+)";?\n', re.M)
_AGAIN = re.compile(r'^export \{([^}]*)\} from "(\.[^"]+)";?\n', re.M)
_LISTED = re.compile(r"^export \{([^}]*)\};?\n", re.M)
_DECLARED = re.compile(r"^export ((?:async )?function\*? |class |const |let )(\w+)", re.M)
_LEFT = re.compile(r"^(?:import|export)\b.*|\bimport\(.*", re.M)


def can_join(scripts: Mapping[str, str], entry: str) -> bool:
    """Whether no module that `entry` needs is loaded only when something happens."""
    return not any(re.search(r"\bimport\(", scripts[path]) for path in _order(scripts, entry))


def joined(scripts: Mapping[str, str], entry: str) -> str:
    """The module `entry` and everything it imports from `scripts`, by path, as one module.

    Raises InputError for an import of what is not there or imports itself, and for a form of
    import or export that is not understood.
    """
    order = _order(scripts, entry)
    numbers = {path: number for number, path in enumerate(order)}
    parts = [_module(scripts[path], path, numbers) for path in order[:-1]]
    body, exported = _body(scripts[entry], entry, numbers)
    if exported:
        raise InputError(entry, expected="an entry that exports nothing", got=sorted(exported))
    return "".join([*parts, body])


def _order(scripts: Mapping[str, str], entry: str) -> list[str]:
    """The modules that `entry` needs, each after those that it needs itself; `entry` is last."""
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
        for pattern, group in ((_IMPORT, 3), (_AGAIN, 2)):
            for match in pattern.finditer(scripts[path]):
                visit(_target(path, match[group]))
        begun.pop()
        found.append(path)

    visit(entry)
    return found


def _target(path: str, relative: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), relative))


def _module(source: str, path: str, numbers: Mapping[str, int]) -> str:
    if "import.meta" in source:
        raise InputError(path, expected="import.meta only in an entry, whose address is kept")
    body, exported = _body(source, path, numbers)
    names = ", ".join(f"{name}: {value}" for name, value in exported.items())
    return f"const $m{numbers[path]} = (() => {{\n{body}return {{ {names} }};\n}})();\n"


def _body(source: str, path: str, numbers: Mapping[str, int]) -> tuple[str, dict[str, str]]:
    """A module's code without its imports and exports, and what it exports: name → value."""
    exported: dict[str, str] = {}

    def bound(match: re.Match[str]) -> str:
        whole, names, relative = match.groups()
        module = f"$m{numbers[_target(path, relative)]}"
        if whole:
            return f"const {whole} = {module};\n"
        pairs = ", ".join(f"{name}: {own}" for name, own in _pairs(names))
        return f"const {{ {pairs} }} = {module};\n"

    def passed_on(match: re.Match[str]) -> str:
        module = f"$m{numbers[_target(path, match[2])]}"
        exported.update({own: f"{module}.{name}" for name, own in _pairs(match[1])})
        return ""

    def listed(match: re.Match[str]) -> str:
        exported.update({own: name for name, own in _pairs(match[1])})
        return ""

    def declared(match: re.Match[str]) -> str:
        exported[match[2]] = match[2]
        return match[1] + match[2]

    text = _IMPORT.sub(bound, source)
    text = _LISTED.sub(listed, _AGAIN.sub(passed_on, text))
    text = _DECLARED.sub(declared, text)
    if left := _LEFT.search(text):
        raise InputError(
            path, expected="a form of import or export that can be joined", got=left[0]
        )
    return text, exported


def _pairs(names: str) -> list[tuple[str, str]]:
    """`a, b as c` → [("a", "a"), ("b", "c")]."""
    words = [name.split(" as ") for name in names.replace("\n", " ").split(",") if name.strip()]
    return [(pair[0].strip(), pair[-1].strip()) for pair in words]
