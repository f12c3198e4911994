"""The verbs of the command line, one module per subject.

Each module has `add(verbs)`, which registers its verbs.  A verb is a function from parsed options
to an `Answer`: data for `--json`, and text for people.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar

from figgen.errors import InputError

Verbs: TypeAlias = "argparse._SubParsersAction[OneLineParser]"
Number = TypeVar("Number", int, float)
LONGEST_LINE = 500


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a verb, as plain data and as text; `status` is 1 if the verb found faults."""

    data: object
    text: str
    status: int = 0


class OneLineParser(argparse.ArgumentParser):
    """A parser that reports bad usage in one line with status 2, like any other bad input.

    An option that is given twice is bad usage too.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.given: set[str] = set()
        self.register("action", None, _Once)
        self.register("action", "store", _Once)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as `argparse` does, after forgetting which options an earlier command line gave."""
        self.given.clear()
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        line = one_line(f"{self.prog}: {message}")
        print(f"{line} (try {self.prog} --help)", file=sys.stderr)
        raise SystemExit(2)


class _Once(argparse.Action):
    """Stores an option's value and refuses a second one, which `argparse` would silently accept."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        if option_string is not None and isinstance(parser, OneLineParser):
            if self.dest in parser.given:
                raise argparse.ArgumentError(self, "expected one value, got several")
            parser.given.add(self.dest)
        setattr(namespace, self.dest, values)


def one_line(message: str) -> str:
    """Return `message` without line breaks, cut to a length that people will read."""
    line = " ".join(message.split())
    return line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 1] + "…"


def file_text(path: str, what: str, most_bytes: int | None = None) -> str:
    """Return the text of a user's file. Raises InputError, naming `what`, if it cannot be read."""
    file = Path(path)
    try:
        if most_bytes is not None and file.stat().st_size > most_bytes:
            raise InputError(what, expected=f"at most {most_bytes:,} bytes")
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(what, expected="a readable text file", got=str(error)) from None


def add_verb(
    verbs: Verbs,
    name: str,
    run: Callable[[argparse.Namespace], Answer],
    summary: str,
    *examples: str,
) -> OneLineParser:
    """Register a verb with its help and examples; every verb takes `--json`."""
    parser = verbs.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog="examples:\n" + "\n".join(f"  figgen {name} {example}" for example in examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return a reader of whole numbers for options that count, up to `high` to bound the time."""
    return _between(int, low, high, f"a whole number from {low:,} to {high:,}")


def number(low: float, high: float, read: Callable[[str], float] = float) -> Callable[[str], float]:
    """Return a reader of numbers for options in a unit that the user chooses."""
    return _between(read, low, high, f"a number from {low:g} to {high:g}")


def _between(
    kind: Callable[[str], Number], low: Number, high: Number, expected: str
) -> Callable[[str], Number]:
    def read(text: str) -> Number:
        try:
            value: Number | None = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            raise argparse.ArgumentTypeError(f"expected {expected}, got {_short(text)!r}")
        return value

    return read


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"
