"""`{= formula :: question :: vary =}` below a fold: a field for the answer to a question.

The answer is a value in the fold: the first value of that formula, or the second with `#2`. A
script grades a reader's answer by the same formula, and can vary the `vary` arguments. If the fold
shows numbers of the reader's own cluster, the answer is graded against those.

    {= ring_all_reduce_time#2 :: How long does the ring take? :: ranks message_bytes =}
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from html import escape

from markdown.preprocessors import Preprocessor

from figgen.cache import digest
from figgen.equations.call_data import CallData, number_of, varied
from figgen.equations.notation import Argument
from figgen.errors import InputError, unknown
from figgen.json_text import compact_json
from figgen.markdown.conversion import Page
from figgen.markdown.inline import PATTERN
from figgen.quantity_units import THINGS
from figgen.registry import all_formulas
from figgen.serving import current
from figgen.units import format_quantity
from figgen.values import call_data, compute, evaluated, parse, split_spec

QUESTION = (
    r"^\{=[ ]*(?P<name>[\w.]+)(?:#(?P<nth>\d+))?[ ]*::"
    r"[ ]*(?P<asked>[^\n]+?)[ ]*(?:::[ ]*(?P<vary>[\w ]*?)[ ]*)?=\}[ ]*$"
)
SCRIPT = "assets/javascripts/tools/answers.js"
MOST_CASES = 6
_FOLD = re.compile(r"^\?\?\?\+? ")
_DRAWS = 80
_WHOLE = (0.25, 0.5, 2.0, 4.0)
_FACTORS = (0.25, 0.5, 0.75, 1.5, 2.0, 2.5, 3.0, 5.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredQuestion:
    """A question below a fold: the call that answers it, its format, and its varying arguments."""

    line: int
    call: str
    spec: str
    asked: str
    vary: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The same question with different numbers: the changed arguments, also in words."""

    changes: dict[str, float]
    words: str


def questions(source: str) -> Iterator[AnsweredQuestion]:
    """Yield the questions of a page. Raises InputError if the fold above lacks the value."""
    lines = source.split("\n")
    for at, line in enumerate(lines):
        if found := re.match(QUESTION, line):
            yield _question(lines, at, found)


def _question(lines: list[str], at: int, found: re.Match[str]) -> AnsweredQuestion:
    begin = next((k for k in range(at, -1, -1) if _FOLD.match(lines[k])), None)
    if begin is None:
        raise InputError("a question", expected="a fold (???) above it", got=found[0])
    values = [match[1] for match in re.finditer(PATTERN, "\n".join(lines[begin:at]))]
    named = [text for text in values if _name(text) == found["name"]]
    place = int(found["nth"] or 1)
    if not 1 <= place <= len(named):
        names = dict.fromkeys(_name(text) for text in values)
        raise unknown("value of the fold above", found["name"], names)
    call, spec = split_spec(named[place - 1])
    vary = tuple((found["vary"] or "").split())
    return AnsweredQuestion(line=at + 1, call=call, spec=spec, asked=found["asked"], vary=vary)


def _name(text: str) -> str:
    call = parse(split_spec(text)[0])
    return f"{call.name}.{call.field}" if call.field else call.name


def cases(asked: AnsweredQuestion) -> tuple[Case, ...]:
    """Return variants of a question, always the same, each in the domain of its formulas."""
    first, unit = call_data(parse(asked.call)), compute(asked.call)[0].unit
    known = _arguments(first)
    for name in asked.vary:
        if name not in known:
            raise unknown("argument to vary", name, known)
    draw = random.Random(digest(asked.call))
    found: dict[str, Case] = {}
    for _ in range(_DRAWS if asked.vary else 0):
        new = {name: _drawn(draw, known[name], number_of(first, name)) for name in asked.vary}
        changed = varied(first, new)
        if changed != first and _sensible(changed, evaluated(first), unit):
            words = "; ".join(_words(known[name], value) for name, value in new.items())
            found[words] = Case(changes=new, words=words)
    return tuple(found.values())[:MOST_CASES]


def _arguments(found: CallData) -> dict[str, Argument]:
    """Return the numeric arguments of a formula and of the formulas inside it, by name."""
    if not isinstance(found, list):
        return {}
    name, given = found
    known = {argument.name: argument for argument in all_formulas()[name].args}
    inner = {k: v for one in given.values() for k, v in _arguments(one).items()}
    return inner | {k: known[k] for k, v in given.items() if not isinstance(v, list)}


def _drawn(draw: random.Random, argument: Argument, value: float) -> float:
    new = value * draw.choice(_WHOLE if argument.whole else _FACTORS)
    if argument.whole:
        return max(1, int(new))
    # Readers compute with the number shown, which is rounded if it has a prefix.
    return int(new) if new == int(new) and new < 1e6 else float(f"{new:.3g}")


def _sensible(found: CallData, before: float, unit: str) -> bool:
    try:
        value = evaluated(found)
    except InputError:
        return False
    whole = unit not in THINGS or abs(value - round(value)) < 1e-6
    return value > 0 and abs(value / before - 1) > 0.05 and whole


def _words(argument: Argument, value: float) -> str:
    large = value >= 1e6 and argument.unit not in THINGS
    return f"{argument.meaning}: {format_quantity(value, argument.unit, 'si' if large else '')}"


class QuestionBlocks(Preprocessor):
    """Turns each question into a form, which is hidden unless a script runs."""

    def __init__(self, md: object, page: Page) -> None:
        super().__init__(md)
        self.page = page

    def run(self, lines: list[str]) -> list[str]:
        if not any(line.startswith("{=") for line in lines):
            return lines
        kept = list(lines)
        try:
            for asked in questions("\n".join(lines)):
                kept[asked.line - 1] = self.md.htmlStash.store(_kept_form(asked, self._script()))
        except InputError as error:
            at = next(k for k, line in enumerate(kept) if line.startswith("{="))
            kept[at] = self.md.htmlStash.store(
                f"<p>{escape(self.page.report(error, kept[at]))}</p>"
            )
        return kept

    def _script(self) -> str:
        return SCRIPT if self.page.url is None else self.page.to(SCRIPT).rstrip("/")


def _kept_form(asked: AnsweredQuestion, script: str) -> str:
    """Return the form, which a server makes again only if code or catalog have changed."""
    memory = current()
    name = repr((asked.call, asked.spec, asked.asked, asked.vary, script))
    make = partial(form, asked, script)
    return memory.same(f"question {name}", "", make) if memory else make()


def form(asked: AnsweredQuestion, script: str) -> str:
    """Return a question as an HTML form."""
    computed, _ = compute(asked.call)
    unit = computed.unit
    if not isinstance(computed.value, int | float) or computed.value <= 0:
        raise InputError("a question", expected="an answer above 0", got=computed.value)
    given = {
        "call": call_data(parse(asked.call)),
        "unit": unit,
        "spec": asked.spec,
        "cases": [[case.changes, case.words] for case in cases(asked)],
    }
    if computed.follows is not None:
        given["follows"] = computed.follows
    data = escape(compact_json(given), quote=True)
    other = '<button name="act" value="other">Other numbers</button>' if given["cases"] else ""
    return (
        f'<form class="fig-ask" data-script="{escape(script, quote=True)}" data-ask="{data}">'
        f'<label><span>{escape(asked.asked)}</span> <em aria-live="polite"></em>'
        '<input type="text" name="answer" autocomplete="off" spellcheck="false"></label>'
        f'<button name="act" value="check">Check</button>{other}'
        '<p class="fig-verdict" role="status"></p></form>'
    )
