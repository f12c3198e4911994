"""Reads the YAML that configurations of training jobs use.

It covers mappings, lists, scalars, block scalars, anchors with their aliases and merges, and
comments, but no multi-line keys. The page and the command line share this code, so neither needs a
library.
"""

from __future__ import annotations

from dataclasses import dataclass

from figgen.errors import InputError
from figgen.scenarios.texts.entry import Entry, entry, is_whole
from figgen.scenarios.texts.flow import open_brackets, read_flow, scalar_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line with content: its indentation, its text, and its number from 0.

    `block` is the block scalar that follows it after `|` or `>`.
    """

    indent: int
    text: str
    number: int
    block: str = ""


def read_yaml(text: str) -> list[Entry]:
    """Return all settings of a document, in order, under dotted names.

    Raises InputError for a line that is neither a setting nor part of a list.
    """
    lines = _lines(text)
    entries: list[Entry] = []
    at = 0
    while at < len(lines):
        at = _block(lines, at, lines[at].indent, "", entries)
    return [_as_option(one) for one in _interpolated(_aliased(entries))]


def read_documents(text: str) -> list[list[Entry]]:
    """Return the settings of each document of a text, which lines of three dashes separate."""
    lines = text.split("\n")
    starts = [at for at, line in enumerate(lines) if line.startswith("---")]
    begins = [0, *starts]
    ends = [*starts, len(lines)]
    # Blank lines before a document keep the numbers of its lines.
    return [
        read_yaml("\n" * begin + "\n".join(lines[begin:end]))
        for begin, end in zip(begins, ends, strict=True)
    ]


def _as_option(one: Entry) -> Entry:
    """Return a setting whose key is an option, as in `MODEL_ARGS: {--num-layers: 32}`."""
    _, found, option = one.name.partition("--")
    return entry("--" + option, one.words, "script") if found and option else one


def key_end(text: str) -> int:
    """Return the position of the colon that ends the key of a line, or -1."""
    if text[:1] in ("'", '"'):
        close = text.find(text[0], 1)
        after = text[close + 1 :].lstrip() if close > 0 else ""
        return text.find(":", close) if after.startswith(":") else -1
    at = text.find(":")
    while at >= 0:
        if at + 1 == len(text) or text[at + 1] in " \t":
            return at
        at = text.find(":", at + 1)
    return -1


def _lines(text: str) -> list[Line]:
    """Return lines without comments, joining block scalars and brackets to their keys."""
    found: list[Line] = []
    raw = text.replace("\r\n", "\n").replace("\t", "    ").split("\n")
    at = 0
    while at < len(raw):
        said = uncommented(raw[at])
        at += 1
        if not said.strip() or said.startswith(("---", "...", "%")):
            continue
        indent = len(said) - len(said.lstrip())
        number = at - 1
        depth = _open_brackets(said)
        while depth > 0 and at < len(raw):
            more = uncommented(raw[at])
            depth += _open_brackets(more)
            said += " " + more.strip()
            at += 1
        block: list[str] = []
        if _opens_block(said):
            while at < len(raw) and (not raw[at].strip() or _indent(raw[at]) > indent):
                block.append(raw[at].strip())
                at += 1
            said = said.rstrip("-+0123456789").rstrip("|>") + "|"
        text = "\n".join(block).strip()
        found.append(Line(indent=indent, text=said.strip(), number=number, block=text))
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _opens_block(said: str) -> bool:
    end = said.rstrip().rstrip("-+0123456789")
    return end.endswith((": |", ": >", "- |", "- >"))


def uncommented(line: str) -> str:
    """Return a line without its comment: a # at its beginning or after a blank, outside quotes."""
    quote = ""
    before = " "
    for at in range(len(line)):
        letter = line[at]
        if quote:
            if letter == quote:
                quote = ""
        elif letter in "'\"" and before in " [{,:":
            quote = letter
        elif letter == "#" and before in " \t":
            return line[:at].rstrip()
        before = letter
    return line.rstrip()


def _open_brackets(line: str) -> int:
    """Return how many brackets of a value a line leaves open."""
    colon = key_end(line.strip())
    value = line.strip()[colon + 1 :].strip() if colon >= 0 else line.strip().lstrip("- ")
    if not value or (value[0] not in "[{" and colon >= 0):
        return 0
    return open_brackets(value)


def _block(lines: list[Line], at: int, indent: int, name: str, entries: list[Entry]) -> int:
    """Read the lines of this indentation; return the index of the first other line."""
    if lines[at].text == "-" or lines[at].text.startswith("- "):
        return _sequence(lines, at, indent, name, entries)
    while at < len(lines) and lines[at].indent >= indent:
        line = lines[at]
        if line.indent > indent or line.text.startswith("- "):
            raise _unlike(line)
        colon = key_end(line.text)
        if colon < 0:
            if line.text[:1] in ("{", "["):
                entries.extend(_flow(line.text, name))
                at += 1
                continue
            raise _unlike(line)
        key = scalar_text(line.text[:colon])
        at = _setting(lines, at, line.text[colon + 1 :].strip(), _path(name, key), entries)
    return at


def _setting(lines: list[Line], at: int, value: str, path: str, entries: list[Entry]) -> int:
    """Read the value of a key, on its line or indented below."""
    indent = lines[at].indent
    value = _unmarked(value, path, entries)
    if value == "|":
        entries.append(entry(path, lines[at].block, "config"))
        return at + 1
    if value:
        entries.extend(_scalar_or_flow(value, path))
        at += 1
        # A plain scalar may continue on lines that are indented further.
        while at < len(lines) and lines[at].indent > indent:
            at += 1
        return at
    at += 1
    if at < len(lines) and lines[at].indent > indent:
        if _is_scalar(lines[at].text):
            return _scalar_below(lines, at, path, entries)
        return _block(lines, at, lines[at].indent, path, entries)
    if at < len(lines) and lines[at].indent == indent and lines[at].text.startswith("-"):
        return _sequence(lines, at, indent, path, entries)
    entries.append(entry(path, "", "config"))
    return at


def _is_scalar(text: str) -> bool:
    """Return whether a line is only a value: no key, no list item and no bracket."""
    return key_end(text) < 0 and text != "-" and not text.startswith(("- ", "{", "[", "&", "*"))


def _scalar_below(lines: list[Line], at: int, path: str, entries: list[Entry]) -> int:
    """Read a value on the lines below its key."""
    indent = lines[at].indent
    words: list[str] = []
    while at < len(lines) and lines[at].indent >= indent:
        words.append(lines[at].text)
        at += 1
    entries.append(entry(path, scalar_text(" ".join(words)), "config"))
    return at


def _unmarked(value: str, path: str, entries: list[Entry]) -> str:
    """Return a value without its tag and its anchor, which becomes an entry of its own."""
    while value.startswith(("&", "!!")):
        mark, _, rest = value.partition(" ")
        if mark.startswith("&"):
            entries.append(entry(mark[1:], path, ANCHOR))
        value = rest.strip()
    return value


ANCHOR = "anchor"
"""The origin of an entry that names a place, which is its words."""


def _aliased(entries: list[Entry]) -> list[Entry]:
    """Return the entries with aliases resolved; a setting overrides one merged by `<<: *name`."""
    if not any(one.origin == ANCHOR for one in entries):
        return entries
    places: dict[str, str] = {}
    found: list[Entry] = []
    for one in entries:
        if one.origin == ANCHOR:
            places[one.name] = one.words
            continue
        under, _, last = one.name.rpartition(".")
        target = under if last == "<<" else one.name
        names = [word[1:] for word in one.words.split() if word.startswith("*")]
        if not names or any(name not in places for name in names):
            found.append(one)
            continue
        own = [other.name for other in entries] if last == "<<" else []
        for name in names:
            found.extend(_copied(found, places[name], target, own))
    return found


def _copied(entries: list[Entry], place: str, target: str, own: list[str]) -> list[Entry]:
    """Return the entries of one mapping for another, which keeps the keys that it already has."""
    found: list[Entry] = []
    for one in entries:
        if one.name != place and not one.name.startswith(place + "."):
            continue
        rest = one.name[len(place) :]
        name = target + rest if target else rest[1:]
        if name not in own:
            found.append(entry(name, one.words, one.origin))
    return found


def _sequence(lines: list[Line], at: int, indent: int, name: str, entries: list[Entry]) -> int:
    """Read a list: one entry for all scalars together, one for each leaf of anything else."""
    words: list[str] = []
    number = 0
    while at < len(lines) and lines[at].indent == indent and lines[at].text[:1] == "-":
        line = lines[at]
        inner = line.text[1:].strip()
        path = name + "." + str(number)
        number += 1
        inner = _unmarked(inner, path, entries)
        if inner == "|":
            entries.append(entry(path, line.block, "config"))
            at += 1
        elif not inner:
            at += 1
            if at < len(lines) and lines[at].indent > indent:
                at = _block(lines, at, lines[at].indent, path, entries)
        elif inner[0] in "{[":
            entries.extend(_flow(inner, path))
            at += 1
        elif key_end(inner) >= 0 or inner.startswith("- "):
            # The rest of the item has the indentation of its first key.
            offset = len(line.text) - len(inner)
            lines[at] = Line(
                indent=indent + offset, text=inner, number=line.number, block=line.block
            )
            at = _block(lines, at, indent + offset, path, entries)
        else:
            at += 1
            while at < len(lines) and lines[at].indent > indent:
                inner += " " + lines[at].text  # a plain text goes on further in
                at += 1
            words.append(scalar_text(inner))
    if words:
        commands = any(" " in word for word in words)
        entries.append(entry(name, ("\n" if commands else " ").join(words), "config"))
    return at


def _flow(value: str, path: str) -> list[Entry]:
    """Return settings in braces or brackets. Raises InputError for anything after them."""
    entries, end = read_flow(value, path)
    behind = value[end:].strip()
    if behind and not behind.startswith("#"):
        raise InputError("the text", expected="nothing behind a closing bracket", got=behind[:40])
    return entries


def _scalar_or_flow(value: str, path: str) -> list[Entry]:
    if value[0] in "{[":
        return _flow(value, path)
    text = scalar_text(value)
    return [entry(path, "" if text in ("null", "~") else text, "config")]


def _path(name: str, key: str) -> str:
    return name + "." + key if name else key


def _unlike(line: Line) -> InputError:
    return InputError(
        f"line {line.number + 1} of the YAML", expected="a key and a colon", got=line.text[:60]
    )


def _interpolated(entries: list[Entry]) -> list[Entry]:
    """Return the entries with `${…}` resolved, innermost first, as far as the text allows."""
    if not any("${" in one.words for one in entries):
        return entries
    values = {one.name: one.words for one in entries}
    found: list[Entry] = []
    for one in entries:
        text = one.words
        for _ in range(MOST_REFERENCES):
            start = text.rfind("${")
            end = text.find("}", start)
            if start < 0 or end < 0:
                break
            value = _stands_for(text[start + 2 : end], one.name, values)
            if value == "":
                break
            text = text[:start] + value + text[end + 1 :]
        found.append(entry(one.name, text, one.origin))
    return found


MOST_REFERENCES = 8


def _stands_for(inner: str, place: str, values: dict[str, str]) -> str:
    """Return the value of `${…}`: another setting or a default; "" if unknown.

    OmegaConf has resolvers, as in `${oc.env:TP,4}` and NeMo's `${multiply:4,2}`; Primus has
    defaults of variables, as in `${TP:4}`. A leading dot means a setting in the same section.
    """
    name = inner.strip()
    if name.startswith(".") and "." in place:
        name = place.rpartition(".")[0] + name
    if name in values:
        return values[name]
    resolver, sign, rest = inner.partition(":")
    if not sign:
        return ""
    parts = [part.strip() for part in rest.split(",")]
    if resolver == "multiply" and len(parts) == 2 and is_whole(parts[0]) and is_whole(parts[1]):
        return str(int(parts[0]) * int(parts[1]))
    if resolver == "oc.env":
        return parts[1] if len(parts) == 2 else ""
    return rest.strip().lstrip("-=") if resolver.upper() == resolver else ""
