"""Scripts as they are published: without what only the readers of the source need."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = "assets/javascripts"


def lean_scripts(docs: Path) -> dict[str, str]:
    """Every script of the site's sources by its path, lean."""
    return {
        path.relative_to(docs).as_posix(): lean(path.read_text(encoding="utf-8"))
        for path in sorted((docs / FOLDER).rglob("*.js"))
    }


def imported_names(docs: Path, module: str) -> tuple[str, ...]:
    """What the site's scripts import by name from the script called `module`, sorted."""
    found: set[str] = set()
    for path in (docs / FOLDER).rglob("*.js"):
        source = path.read_text(encoding="utf-8")
        for names in re.findall(rf'import \{{([^}}]*)\}} from "[./]*/{re.escape(module)}"', source):
            found.update(name.split()[0] for name in names.split(",") if name.strip())
    return tuple(sorted(found))


def lean(source: str) -> str:
    """A script without empty lines, comments that have lines of their own, and indentation.

    A quarter of what a reader would download. Texts in backticks that run over several lines are
    left as they are; a comment behind code stays.
    """
    kept: list[str] = []
    comment = text = False
    for line in source.splitlines():
        bare = line.strip()
        if text:
            kept.append(line)
        elif comment or bare.startswith("/*"):
            comment = not bare.endswith("*/")
            continue
        elif not bare or bare.startswith("//"):
            continue
        else:
            kept.append(bare)
        # An odd number of backticks opens or closes a text that goes on in the next line.
        text ^= len(re.findall(r"(?<!\\)`", line)) % 2 == 1
    return "\n".join(kept) + "\n"


_TEXTS = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/""", re.S)
_PATTERN = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"[\w$.]+")


def tight(source: str) -> str:
    """A script without the comments and spaces that mean nothing; its texts stay as they are.

    A line ends where a statement might: after what neither opens nor goes on, and before what
    neither closes nor goes on.
    """
    kept = [""]
    at, space = 0, ""
    while at < len(source):
        token = _token(source, at, kept[-1])
        at += len(token)
        if token.isspace() or token.startswith(("//", "/*")):
            space += "\n" if "\n" in token else " "
            continue
        kept.append(_between(kept[-1][-1:], space, token[0]) + token)
        space = ""
    return "".join(kept) + "\n"


def _token(source: str, at: int, before: str) -> str:
    """The text, pattern, word, space or sign that begins at `at`, after the token `before`."""
    if source[at] == "`":
        return source[at : _template_end(source, at)]
    # A slash divides a value that comes before it, or else begins a pattern.
    begins = before.strip() in ("return", "typeof", "case") or not re.search(
        r"[\w$)\]\"'`]$", before
    )
    for form in (_TEXTS, _PATTERN, _SPACE, _WORD):
        if (form is not _PATTERN or begins) and (match := form.match(source, at)):
            return match[0]
    return source[at]


def _template_end(source: str, at: int) -> int:
    """Where the template that begins at `at` ends, with the templates in its expressions."""
    at += 1
    while source[at] != "`":
        if source[at] == "\\":
            at += 1
        elif source.startswith("${", at):
            at, depth, before = at + 2, 1, "{"
            while depth:
                token = _token(source, at, before)
                depth += (token == "{") - (token == "}")
                at, before = at + len(token), before if token.isspace() else token
            continue
        at += 1
    return at + 1


def _between(last: str, space: str, first: str) -> str:
    """What has to stay of the space between two tokens, by the signs that it stands between."""
    words = bool(_WORD.match(last) and _WORD.match(first))
    if "\n" in space:
        return "" if last in "{([,;:=?&|+*<>" or first in "})].,;:?&|" else "\n"
    return (
        " " if space and (words or (last == first and last in "+-") or "/" in last + first) else ""
    )
