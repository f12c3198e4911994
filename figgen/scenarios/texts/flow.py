"""Reads JSON and the flow style of YAML and TOML: `{"a": [1, 2]}`, `{a: 1}`, `{ a = 1 }`.

It accepts comments, trailing commas, `Infinity` and `NaN`, since programs write them.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.errors import InputError
from figgen.scenarios.texts.entry import Entry, entry

DEEPEST = 60
PRINTED = (
    " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    "[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"
)
"""The printable letters of ASCII, from 32 on."""


@dataclass(slots=True, kw_only=True)
class Flow:
    """A text, how far it has been read, and its entries so far; one of `marks` follows a key."""

    text: str
    at: int
    entries: list[Entry]
    marks: str = ":="


def read_flow(text: str, name: str, at: int = 0) -> tuple[list[Entry], int]:
    """Return the settings of the mapping or list at `at` under `name`, and the place after it.

    Raises InputError for a bracket that is not closed, and for a text that is not a mapping.
    """
    flow = Flow(text=text, at=at, entries=[])
    _skip(flow)
    _value(flow, name, 0)
    return flow.entries, flow.at


def read_documents(text: str) -> tuple[list[list[Entry]], str]:
    """Return the settings of each of the mappings in braces in a text, and the text after them.

    Raises InputError for a bracket that is not closed, and for a text that is not a mapping.
    """
    flow = Flow(text=text, at=0, entries=[])
    found: list[list[Entry]] = []
    _skip(flow)
    while not found or flow.text[flow.at : flow.at + 1] == "{":
        flow.entries = []
        _value(flow, "", 0)
        found.append(flow.entries)
        _skip(flow)
    return found, flow.text[flow.at :].strip()


def scalar_text(text: str) -> str:
    """Return the text of a scalar without its quotes."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


def _value(flow: Flow, name: str, depth: int) -> None:
    if depth > DEEPEST:
        raise InputError("the text", expected=f"at most {DEEPEST} nested brackets")
    letter = flow.text[flow.at : flow.at + 1]
    if letter == "{":
        flow.at += 1
        _mapping(flow, name, depth)
    elif letter == "[":
        flow.at += 1
        _list(flow, name, depth)
    else:
        quoted = letter == '"'
        flow.entries.append(entry(name, _scalar(flow, ""), "config", quoted))


def _mapping(flow: Flow, name: str, depth: int) -> None:
    while True:
        _skip(flow)
        letter = flow.text[flow.at : flow.at + 1]
        if letter == "}":
            flow.at += 1
            return
        if letter == ",":
            flow.at += 1
            continue
        if letter == "" or letter in "[]{":
            raise InputError("the text", expected="a key or } in braces", got=letter or "its end")
        key = _scalar(flow, flow.marks)
        _skip(flow)
        mark = flow.text[flow.at : flow.at + 1]
        path = name + "." + key if name else key
        if mark == "" or mark not in flow.marks:
            flow.entries.append(entry(path, "", "config"))
            if mark not in (",", "}"):
                raise InputError("the text", expected=f"a colon after {key!r}", got=mark)
            continue
        flow.at += 1
        _skip(flow)
        if flow.text[flow.at : flow.at + 1] in (",", "}"):
            flow.entries.append(entry(path, "", "config"))
        else:
            _value(flow, path, depth + 1)


def _list(flow: Flow, name: str, depth: int) -> None:
    """Read a list: scalars make one entry; other items make one for every leaf, with its number."""
    words: list[str] = []
    number = 0
    plain = True
    while True:
        _skip(flow)
        letter = flow.text[flow.at : flow.at + 1]
        if letter == "]":
            flow.at += 1
            break
        if letter == ",":
            flow.at += 1
            continue
        if letter == "" or letter == "}":
            raise InputError("the text", expected="a closing ]", got=letter or "its end")
        if letter in "{[":
            plain = False
            _value(flow, name + "." + str(number), depth + 1)
        else:
            words.append(_scalar(flow, ""))
        number += 1
    if plain or words:
        flow.entries.append(entry(name, " ".join(words), "config"))


def _scalar(flow: Flow, marks: str) -> str:
    """Return the quoted or plain scalar that starts here; `marks` end a plain one that is a key."""
    text = flow.text
    letter = text[flow.at : flow.at + 1]
    if letter in ("'", '"'):
        end = flow.at + 1
        out = ""
        while end < len(text) and text[end] != letter:
            if text[end] == "\\" and letter == '"':
                out += _escaped(text[end + 1 : end + 6])
                end += 6 if text[end + 1 : end + 2] == "u" else 2
            else:
                out += text[end]
                end += 1
        if end >= len(text):
            raise InputError("the text", expected=f"a closing {letter}", got="its end")
        flow.at = end + 1
        return out
    start = flow.at
    depth = 0
    while flow.at < len(text):
        here = text[flow.at]
        if here == "$" and text.startswith("${", flow.at):
            depth += 1
        elif here == "}" and depth > 0:
            depth -= 1
        elif depth == 0 and _ends_scalar(flow, marks):
            break
        flow.at += 1
    return text[start : flow.at].strip()


def _ends_scalar(flow: Flow, marks: str) -> bool:
    """Return whether a plain scalar ends here: at a bracket, a comma, a comment or a key's mark."""
    here = flow.text[flow.at]
    if here in ",[]{}\n":
        return True
    if here == "#":
        return flow.text[flow.at - 1] in " \t"
    return here in marks and _ends_key(flow.text, flow.at)


def _ends_key(text: str, at: int) -> bool:
    """Return whether the mark at `at` ends a key: `a: 1` and `a = 1` do, a time of day doesn't."""
    follows = text[at + 1 : at + 2]
    return text[at] == "=" or follows in (" ", "\t", "\n", "", "{", "[", '"')


def _escaped(letters: str) -> str:
    """Return the letter that an escape stands for, or a blank if it is not in ASCII."""
    letter = letters[:1]
    if letter == "n":
        return "\n"
    if letter == "t":
        return "\t"
    if letter != "u":
        return letter
    place = 0
    for digit in letters[1:].lower():
        place = 16 * place + "0123456789abcdef".find(digit)
    return PRINTED[place - 32] if 32 <= place < 127 else " "


def _skip(flow: Flow) -> None:
    """Skip blanks and comments."""
    text = flow.text
    while flow.at < len(text):
        if text[flow.at] in " \t\r\n":
            flow.at += 1
        elif text[flow.at] == "#" or text.startswith("//", flow.at):
            end = text.find("\n", flow.at)
            flow.at = len(text) if end < 0 else end
        else:
            return


def open_brackets(value: str) -> int:
    """Return how many square brackets and braces of a text are open at its end, outside quotes."""
    depth = 0
    quote = ""
    for letter in value:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "[{":
            depth += 1
        elif letter in "]}":
            depth -= 1
    return depth
