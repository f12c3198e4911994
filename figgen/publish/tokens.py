"""The words, signs and texts of a script, as minify-html writes it."""

from __future__ import annotations

import re

from figgen.errors import InputError

_TOKEN = re.compile(
    r"""(?P<space>\s+|/\*.*?\*/|//[^\n]*)
    |(?P<name>\#?(?:[^\W\d]|\$)[\w$]*)
    |(?P<number>0[xXbBoO][\da-fA-F_]+n?|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?n?)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<sign>=>|\.\.\.|\?\.(?!\d)|>>>=|>>>|\*\*=|\?\?=|&&=|\|\|=|<<=|>>=|\*\*|\?\?|&&|\|\||<<|>>
      |===|!==|==|!=|<=|>=|\+\+|--|[-+*/%&|^]=|[{}()\[\];,<>+\-*/%&|^!~?:=.])""",
    re.X | re.S,
)
_PATTERN = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/\w*")
_CHUNK = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*(?:`|\$\{)", re.S)
_CHUNK_KINDS = {
    ("`", False): "text",
    ("`", True): "head",
    ("}", True): "middle",
    ("}", False): "tail",
}
"""Parts of a text between backticks, by what they begin with and whether a value follows."""
_OPENING = {")": "(", "]": "[", "}": "{"}


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split(" "))


PREFIXES = _words("typeof void delete new await yield")
"""Operators that are words and stand before a value."""
UNKNOWN = _words("var with enum debugger default")
"""Words that our scripts do without."""
RESERVED = _words(
    "arguments async await break case catch class const continue debugger default delete do else",
    "enum eval export extends false finally for function get if implements import in instanceof",
    "interface let new null of package private protected public return set static super switch",
    "this throw true try typeof undefined var void while with yield NaN Infinity",
)
"""Names that nothing is renamed to."""
_BEFORE_PATTERN = PREFIXES | _words("return throw case do else in of instanceof")
_BEFORE_TEST = _words("if while for")


class Tokens:
    """The words, signs and texts of a script."""

    def __init__(self, source: str, path: str) -> None:
        self.path = path
        self.text: list[str] = []
        self.kind: list[str] = []
        self.begins: list[int] = []
        self.match: dict[int, int] = {}
        self.idle: set[int] = set()
        self._read(source)
        self._add("end", "", len(source))

    def _add(self, kind: str, text: str, begin: int) -> None:
        self.kind.append(kind)
        self.text.append(text)
        self.begins.append(begin)

    def no(self, why: str, begin: int, source: str) -> InputError:
        return InputError(
            self.path,
            expected="JavaScript as minify-html writes it",
            got=f"{why}: {source[begin : begin + 40]!r}",
        )

    def _read(self, source: str) -> None:
        at, opened = 0, list[int]()
        tests = set[int]()  # parentheses behind which a statement begins
        while at < len(source):
            sign = source[at]
            in_text = bool(opened) and self.kind[opened[-1]] in ("head", "middle")
            if sign == "`" or (sign == "}" and in_text):
                found = _CHUNK.match(source, at + 1)
                goes_on = found is not None and found[0].endswith("${")
                kind = _CHUNK_KINDS[sign, goes_on]
                if sign == "}":
                    self.match[opened.pop()] = len(self.text)
                if goes_on:
                    opened.append(len(self.text))
            elif (
                sign == "/"
                and source[at + 1 : at + 2] not in ("*", "/")
                and self._begins_pattern(tests, source, at)
            ):
                found, kind = _PATTERN.match(source, at), "pattern"
            else:
                found = _TOKEN.match(source, at)
                kind = str(found and found.lastgroup)
            if found is None:
                raise self.no("this", at, source)
            begin, at = at, found.end()
            text = source[begin:at]
            if kind == "space":
                if "PURE" in text:
                    self.idle.add(len(self.text))
                continue
            if text in ("(", "[", "{"):
                opened.append(len(self.text))
            elif text in (")", "]", "}"):
                if not opened or self.text[opened[-1]] != _OPENING[text]:
                    raise self.no("a bracket that nothing opens", begin, source)
                opening = opened.pop()
                self.match[opening] = len(self.text)
                if text == ")" and opening and self.text[opening - 1] in _BEFORE_TEST:
                    tests.add(len(self.text))
            self._add(kind, text, begin)
        if opened:
            raise self.no("a bracket that nothing closes", self.begins[opened[-1]], source)

    def _begins_pattern(self, tests: set[int], source: str, at: int) -> bool:
        """Whether a slash begins a pattern, and doesn't divide what stands before it."""
        if not self.text:
            return True
        before, kind = self.text[-1], self.kind[-1]
        if before == "}" and kind == "sign":
            raise self.no("a slash behind a brace", at, source)
        if kind == "name":
            is_member = self.text[-2:-1] in (["."], ["?."])
            return before in _BEFORE_PATTERN and not is_member
        if kind in ("number", "string", "text", "tail", "pattern") or before == "]":
            return False
        return before != ")" or len(self.text) - 1 in tests
