"""An option of a training job: its kind, its range, and the words for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from figgen.errors import InputError, unknown
from figgen.scenarios.options.typed import typed_amount, typed_count
from figgen.units import parse_quantity

Value: TypeAlias = "int | float | str | bool | tuple[int, ...] | None"
"""What an option can be set to; None leaves it to follow from the others."""

Choices: TypeAlias = Mapping[str, Any]
"""Options by name, each a `Value`, in the form of keyword arguments."""

Kind: TypeAlias = Literal["whole", "number", "quantity", "switch", "choice", "text", "counts"]

QUESTIONS = ("layout", "memory", "step")
"""Questions about a job: which rank is where, how much memory it needs, how long it takes."""

SWITCH = {"on": True, "off": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option of a training job, under the name that all Python code uses.

    `asked_by` names the `QUESTIONS` for which it matters, memory and time if it leaves this out. If
    `default` is None, the value follows from other options, as `hint` says, unless the option is
    `required`. Numbers lie between `low` and `high`. A "quantity" is in the SI `unit`; a form shows
    it in `form_unit`, which is `scale` times that unit. `choices` gives the names that a form
    offers, with their titles; a "choice" accepts no other name, a "text" whatever `check` accepts.
    `spelled` turns another spelling of a name into the usual one. `left_out` says which value a
    command uses if the option is left out and other options decide it. `key` is the name in
    addresses. `flag` is the name on the command line; a switch that is on by default has the
    opposite flag. `former` maps each option that this one replaced to the current names of its
    values.
    """

    name: str
    kind: Kind
    group: str
    label: str
    asked_by: tuple[str, ...] = QUESTIONS[1:]
    default: Value = None
    hint: str = ""
    low: float = 0
    high: float = 0
    unit: str = "1"
    form_unit: str = ""
    scale: float = 1
    choices: Callable[[], Mapping[str, str]] | None = None
    check: Callable[[str], object] | None = None
    spelled: Callable[[str], str] | None = None
    required: bool = False
    left_out: str = ""
    key: str = ""
    flag: str = ""
    former: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def address_key(self) -> str:
        return self.key or self.name

    @property
    def command_flag(self) -> str:
        name = self.flag or self.name.replace("_", "-")
        return f"--no-{name}" if self.default is True else f"--{name}"

    @property
    def expected(self) -> str:
        """Return in words what a value must be."""
        if self.kind == "switch":
            return "on or off"
        if self.kind == "whole":
            return f"a whole number from {self.low:,.0f} to {self.high:,.0f}"
        if self.kind in ("number", "quantity"):
            unit = "" if self.unit == "1" else f" {self.unit}"
            return f"a number from {self.low:g} to {self.high:g}{unit}"
        return "counts such as 8,9,9,6" if self.kind == "counts" else "text"

    def checked(self, value: object) -> Value:
        """Return `value` if it is allowed, else raise InputError with the option's name as key."""
        if self.kind == "switch":
            return self._switched(value)
        if self.kind in ("choice", "text"):
            return self._named(value)
        if self.kind == "counts":
            return self._counts(value)
        return self._counted(value)

    def _switched(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise InputError(self.name, expected=self.expected, got=value, key=self.name)
        return value

    def _named(self, value: object) -> str:
        if not isinstance(value, str) or not value:
            raise InputError(self.name, expected=self.expected, got=value, key=self.name)
        try:
            if self.check is not None:
                self.check(value)
            elif self.choices is not None and value not in self.choices():
                raise unknown(self.name, value, self.choices())
        except InputError as error:
            raise error.about(self.name) from None
        return value if self.spelled is None else self.spelled(value)

    def _counts(self, value: object) -> tuple[int, ...]:
        found = tuple(value) if isinstance(value, list | tuple) else (None,)
        if not all(type(count) is int and count >= 0 for count in found):
            raise InputError(self.name, expected=self.expected, got=value, key=self.name)
        return found

    def _counted(self, value: object) -> int | float:
        fits = isinstance(value, int) or (isinstance(value, float) and self.kind != "whole")
        if not fits or isinstance(value, bool) or not self.low <= value <= self.high:  # type: ignore[operator]
            raise InputError(self.name, expected=self.expected, got=value, key=self.name)
        return value  # type: ignore[return-value]

    def read(self, text: str) -> Value:
        """Return the value that a text denotes.

        Raises InputError for a text of a different kind.
        """
        return self.checked(self._plain(text))

    def _plain(self, text: str) -> object:
        try:
            if self.kind == "switch":
                return SWITCH[text]
            if self.kind == "whole":
                return typed_count(self.name, text)
            if self.kind == "counts":
                return tuple(typed_count(self.name, part) for part in text.split(","))
            if self.kind == "number":
                return float(typed_amount(self.name, text, "1", 1))
            if self.kind == "quantity":
                return parse_quantity(text, self.unit).value
        except (ValueError, KeyError) as error:
            near = error.nearest if isinstance(error, InputError) else ()
            blamed = isinstance(error, InputError) and error.key == self.name
            expected = error.expected if blamed else self.expected  # type: ignore[union-attr]
            raise InputError(
                self.name, expected=expected, got=text, nearest=near, key=self.name
            ) from None
        return text
