"""The command line: what the pages show, without the pages."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path

from figgen.commands import OneLineParser, one_line
from figgen.errors import InputError
from figgen.project import modules_of
from figgen.subject import use

SUBJECTS = (
    "figures", "ranks", "schedules", "collectives", "convert", "costs", "memory", "snapshot",
    "step", "verdict", "take", "write", "plan", "trace", "profile", "measured", "calibrate",
    "validate", "prose", "agreement", "changes", "paper", "new", "start",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; 0 when it worked, 1 when it found faults, 2 with one line for bad input."""
    if isinstance(sys.stdout, TextIOWrapper):
        # A terminal without Greek letters, or bytes that are no text.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        _use_modules_here()
        parser = _parser()
    except InputError as error:
        return _refuse(str(error))
    options = parser.parse_args(arguments)
    try:
        answer = options.run(options)
        text = answer.text
        if options.json:
            text = json.dumps(answer.data, ensure_ascii=False, allow_nan=False)
    except InputError as error:
        return _refuse(str(error))
    except ValueError as error:
        if "JSON compliant" in str(error):
            return _refuse("the answer is not a finite number")
        raise
    _say(text)
    return int(answer.status)


def _use_modules_here() -> None:
    """Answer about the site in this folder, and about this package's subject elsewhere."""
    folder = Path.cwd()
    modules = modules_of(folder)
    if modules is not None and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    use(*(("figgen.guide",) if modules is None else modules))


@cache
def _parser() -> OneLineParser:
    """All verbs. Imported here, since a fault in the catalog is bad input as well."""
    parser = OneLineParser(prog="figgen", description=__doc__)
    verbs = parser.add_subparsers(required=True, metavar="VERB", parser_class=OneLineParser)
    for name in SUBJECTS:
        import_module(f"figgen.commands.{name}").add(verbs)
    return parser


def _refuse(message: str) -> int:
    print(one_line(f"figgen: {message}"), file=sys.stderr)
    return 2


def _say(text: str) -> None:
    try:
        print(text)
    except BrokenPipeError:
        sys.stderr.close()


if __name__ == "__main__":
    sys.exit(main())
