"""One setting as a file writes it: a name and the text of its value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A setting before anybody knows what it means.

    `name` is dotted where the file nests it, and keeps the spelling of the file. `value` is the
    first word of the value, `words` all of it: a list is written with spaces. `origin` says where
    it stands: "sbatch", "slurm", "mpi", "launcher", "script", "config", "python" or "variable".
    `quoted` says that JSON has the value as a string.
    """

    name: str
    value: str
    words: str
    origin: str
    quoted: bool = False


def entry(name: str, words: str, origin: str, quoted: bool = False) -> Entry:
    """An entry whose value is the first of these words."""
    parts = words.split()
    first = parts[0] if parts else ""
    return Entry(name=name, value=first, words=words.strip(), origin=origin, quoted=quoted)


ASIDE = "aside"
"""The origin of a setting of something else than the step of training, which is only listed."""


def aside(one: Entry) -> Entry:
    """The same setting, which goes into nothing."""
    return entry(one.name, one.words, ASIDE)


def normal(name: str) -> str:
    """A name without dashes and case, as names are compared: `--micro-batch-size` has dashes."""
    start = 0
    while start < len(name) and name[start] in "-+~":
        start += 1
    return name[start:].replace("-", "_").lower()


def is_whole(text: str) -> bool:
    """Whether a text is a whole number without a sign."""
    if not text or len(text) > 15:
        return False
    return all(letter in "0123456789" for letter in text)


def is_name(text: str) -> bool:
    """Whether a text can be the name of a variable."""
    if not text or text[0] in "0123456789":
        return False
    return all(letter.isalnum() or letter == "_" for letter in text)
