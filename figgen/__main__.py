"""Compute on the command line what the pages show."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from io import TextIOWrapper

from figgen.commands import OneLineParser, one_line
from figgen.errors import InputError
from figgen.project import in_guide, use_site_here

VERBS = {
    "list": "figures", "show": "figures", "eval": "figures", "stats": "figures", "ranks": "ranks",
    "schedule": "schedules", "trace": "collectives", "convert": "convert", "cost": "costs",
    "memory": "memory", "memory-snapshot": "snapshot", "step": "step", "verdict": "verdict",
    "take": "take", "write": "write", "plan": "plan", "trace-export": "trace",
    "profile": "profile", "measured": "measured", "calibrate": "calibrate",
    "validate": "validate", "lint": "prose", "agree": "agreement", "diff": "changes",
    "paper": "paper", "paper-figures": "paper", "new": "new", "start": "start",
    "serve-tools": "serve_tools",
}  # fmt: skip
"""The module of `figgen.commands` that adds each verb, in the order of the help."""
ANY_SITE = ("figures", "prose", "agreement", "changes", "paper", "start", "serve_tools")
"""Modules of verbs about a site whatever its subject; the others are about the guide's."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; return 0 on success, 1 if it found faults, 2 (with one line) for bad input."""
    if isinstance(sys.stdout, TextIOWrapper):
        # For terminals without Greek letters, and for bytes that are not valid text.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        use_site_here()
        words = sys.argv[1:] if arguments is None else arguments
        parser = parser_of(words)
    except InputError as error:
        return _refuse(str(error))
    except ImportError as error:
        return _refuse_fault(error)
    options = parser.parse_args(words)
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
    except Exception as error:
        return _refuse_fault(error)
    _say(text)
    return int(answer.status)


def _refuse_fault(error: Exception) -> int:
    """Refuse with one line for a fault of the site's modules; raise any other error again."""
    from figgen.serving.code import own_fault

    if fault := own_fault(error):
        return _refuse(fault)
    raise error


def parser_of(words: Sequence[str]) -> OneLineParser:
    """Return the parser for a command line: for its verb only, or for all verbs if it has none.

    Without a verb, only the guide's own folder has them all; elsewhere they are those for any site.
    """
    if words and words[0] in VERBS:
        return _parser((VERBS[words[0]],))
    return _parser(tuple(dict.fromkeys(VERBS.values())) if in_guide() else ANY_SITE)


@cache
def _parser(subjects: tuple[str, ...]) -> OneLineParser:
    """Return a parser for the verbs of some modules; to import all of them takes two seconds.

    Modules are imported here because a fault in the catalog is reported as bad input too.
    """
    others = ", ".join(verb for verb, module in VERBS.items() if module not in ANY_SITE)
    after = f"about distributed training: {others}" if subjects == ANY_SITE else None
    parser = OneLineParser(prog="figgen", description=__doc__, epilog=after)
    verbs = parser.add_subparsers(required=True, metavar="VERB", parser_class=OneLineParser)
    for name in subjects:
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
