"""Scripts as they are published: without what only the readers of the source need."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from figgen.errors import InputError

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


_TOKEN = re.compile(
    r"""(?P<gap>(?:\s+|//[^\n]*|/\*.*?\*/)+)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<word>[\w$\#]+)
    |(?P<mark>\+\+|--|=>|.)""",
    re.S | re.X,
)
_PATTERN = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
# To the end of a text in backticks, or to the next value in it.
_TEMPLATE = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*(?:`|\$\{)", re.S)
_BEFORE_PATTERN = {*"(,=:[!&|?{;+-*%<>~^", "=>", "return", "typeof", "case", "in", "of", ""}


# A server asks again whenever one script changed.
@lru_cache(maxsize=512)
def lean(source: str) -> str:
    """A script without comments, and without the spaces and ends of lines that mean nothing.

    A third of what a reader would download. Statements at the top keep their lines, as `joined`
    reads them. Raises InputError for a slash behind a closing brace, which may divide or begin a
    pattern.
    """
    made: list[str] = []
    depth = 0
    last, gap = "", ""
    for token, depth in _tokens(source):
        if token in "\n ":
            gap = token
            continue
        if gap and _needed(last, token, gap, depth):
            made.append(gap)
        made.append(token)
        last, gap = token, ""
    return "".join(made) + "\n"


def _needed(last: str, token: str, gap: str, depth: int) -> bool:
    """Whether something must stand between two tokens, the second at this depth of braces."""
    if not last:
        return False
    if gap == "\n":
        # Elsewhere the end of a line may end a statement.
        return not (last in "([{," or token in ")]}" or (last == ";" and depth))
    a, b = last[-1], token[0]
    if a in "+-/" and a == b:
        return True
    # A word, or a pattern, whose letters behind it are its flags.
    ends = a.isalnum() or a in "_$" or (a == "/" and len(last) > 1)
    return ends and (b.isalnum() or b in "_$#")


def _tokens(source: str) -> Iterator[tuple[str, int]]:
    """Tokens of a script with the braces around them; comments as the space that they stand for."""
    at, last = 0, ""
    open_braces: list[str] = []
    while match := _TOKEN.match(source, at):
        token = match[0]
        if match.lastgroup == "gap":
            at = match.end()
            yield ("\n" if "\n" in token else " "), len(open_braces)
            continue
        if token == "/":
            if last == "}":
                line = source.count("\n", 0, at) + 1
                raise InputError(f"line {line} of a script", expected="no slash behind a brace")
            if last in _BEFORE_PATTERN and (pattern := _PATTERN.match(source, at)):
                token = pattern[0]
        elif token == "`" or (token == "}" and open_braces and open_braces.pop() == "`"):
            text = _TEMPLATE.match(source, at + 1)
            if not text:
                raise InputError("a text in backticks", expected="its end")
            token += text[0]
            if token.endswith("{"):
                open_braces.append("`")
        elif token == "{":
            open_braces.append("{")
        at += len(token)
        last = token
        yield token, len(open_braces)
