"""Collect every number that a site shows, with its origin, its inputs and its line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from figgen.charts import Scalar
from figgen.errors import InputError
from figgen.markdown import directive
from figgen.markdown.conversion import Fence, fences
from figgen.markdown.inline import PATTERN
from figgen.registry import build, inputs
from figgen.subject import subject
from figgen.values import compute

Kind = Literal["formula", "lookup", "figure"]
Inputs: TypeAlias = Mapping[str, object]

# Code contains no computed numbers; its replacement keeps the line numbers.
_CODE = re.compile(
    r"(?ms)^[ \t]*(?P<mark>`{3,}|~{3,}).*?^[ \t]*(?P=mark)[ \t]*$"
    r"|(?<!`)(?P<ticks>`+)(?!`)[^\n]+?(?<!`)(?P=ticks)(?!`)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A value in SI with its origin: `source` names a formula, a catalog field or a figure.

    `inputs` are the arguments, or all parameters of the figure; `beside` are all values of the same
    figure, `text` is the source of the line or figure that shows the number.
    """

    kind: Kind
    source: str
    name: str
    value: Scalar
    unit: str
    where: str
    inputs: Inputs
    beside: Mapping[str, Scalar] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True, slots=True)
class Uncomputed:
    """A number or figure that cannot be computed, with the reason."""

    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"


def numbers_of_folder(docs: Path) -> tuple[list[Number], list[Uncomputed]]:
    """Return the numbers of all pages, including generated ones, and what cannot be computed."""
    pages = {
        path.relative_to(docs).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(docs.rglob("*.md"))
    }
    made = subject().pages(docs, {})
    found = [one for page, text in (pages | made).items() for one in numbers(page, text)]
    return (
        [one for one in found if isinstance(one, Number)],
        [one for one in found if isinstance(one, Uncomputed)],
    )


def numbers(page: str, source: str) -> Iterator[Number | Uncomputed]:
    """Yield what one page computes or fails to, first in sentences and then in figures."""
    yield from _in_sentences(page, source)
    for fence in fences(source):
        yield from _in_figure(f"{page}:{fence.line}", fence)


def _in_sentences(page: str, source: str) -> Iterator[Number | Uncomputed]:
    text = _CODE.sub(lambda code: "\n" * code[0].count("\n"), source)
    for line, words in enumerate(text.split("\n"), 1):
        for match in re.finditer(PATTERN, words):
            try:
                found, _ = compute(match[1])
            except InputError as error:
                yield Uncomputed(f"{page}:{line}", str(error))
                continue
            yield Number(
                kind="formula" if found.evaluation else "lookup",
                source=found.quantity,
                name=found.quantity,
                value=found.value,
                unit=found.unit,
                where=f"{page}:{line}",
                inputs=found.inputs,
                text=words,
            )


def _in_figure(where: str, fence: Fence) -> Iterator[Number | Uncomputed]:
    try:
        asked = directive.parse(fence.body)
        for _, _, arguments in asked.variants():
            values = build(asked.figure, arguments).values
            given = inputs(asked.figure, arguments)
            beside = {name: named.value for name, named in values.items()}
            for name, (value, unit) in values.items():
                yield Number(
                    kind="figure",
                    source=asked.figure,
                    name=name,
                    value=value,
                    unit=unit,
                    where=where,
                    inputs=given,
                    beside=beside,
                    text=fence.body,
                )
    except InputError as error:
        yield from (Uncomputed(where, str(fault)) for fault in error.all)
    except Exception as error:  # a bug in a figure's code
        yield Uncomputed(where, f"{type(error).__name__}: {error}")
