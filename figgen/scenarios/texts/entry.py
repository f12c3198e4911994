"""One setting as a file writes it: a name and the text of its value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A setting as it is read, before it is interpreted.

    `name` has dots where the file nests it, and keeps the spelling of the file. `value` is the
    first word of the value, and `words` all of it: a list is written with spaces. `origin` says
    where the setting stands: "sbatch", "slurm", "mpi", "launcher", "script", "config", "python" or
    "variable". `quoted` says that JSON has the value as a string.
    """

    name: str
    value: str
    words: str
    origin: str
    quoted: bool = False


def entry(name: str, words: str, origin: str, quoted: bool = False) -> Entry:
    """Return an entry whose value is the first of these words."""
    parts = words.split()
    first = parts[0] if parts else ""
    return Entry(name=name, value=first, words=words.strip(), origin=origin, quoted=quoted)


ASIDE = "aside"
"""The origin of a setting that does not concern the training step and is only listed."""


def aside(one: Entry) -> Entry:
    """Return the same setting as one that is only listed."""
    return entry(one.name, one.words, ASIDE)


def normal(name: str) -> str:
    """Return a name without leading dashes, in lower case and with underscores, for comparison."""
    start = 0
    while start < len(name) and name[start] in "-+~":
        start += 1
    return name[start:].replace("-", "_").lower()


def is_whole(text: str) -> bool:
    """Return whether a text is a whole number without a sign."""
    if not text or len(text) > 15:
        return False
    return all(letter in "0123456789" for letter in text)


def is_name(text: str) -> bool:
    """Return whether a text can be the name of a variable."""
    if not text or text[0] in "0123456789":
        return False
    return all(letter.isalnum() or letter == "_" for letter in text)
