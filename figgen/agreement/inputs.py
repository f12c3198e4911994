"""The inputs of a number, normalized so that numbers from different places can be compared."""

from __future__ import annotations

from dataclasses import dataclass, field

from figgen.subject import subject

Inputs = dict[str, object]


@dataclass(frozen=True, slots=True)
class Same:
    """An input that is not just a number or a name, with its description for messages."""

    key: object
    words: str = field(compare=False)

    def __str__(self) -> str:
        return self.words


def plain(value: object) -> object:
    """Return a value in comparable form: names spelled as in names of values, lists as tuples."""
    if isinstance(value, str):
        return subject().spelled.get(value) or value.replace("-", "_").replace(".", "_")
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    return value
