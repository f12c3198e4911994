"""Premises: quantities that a page may type because it computes with them.

A premise occurs twice, in the text and as an argument of an inline value or a figure in the same
section; if only one of the two is changed, the typed quantity is no longer a premise.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from functools import cache
from typing import TypeAlias

import yaml

from figgen.errors import InputError
from figgen.markdown.conversion import fences
from figgen.markdown.inline import PATTERN
from figgen.prose.lines import without_captions
from figgen.quantity_units import BINARY, is_counted
from figgen.registry import all_formulas, figure_named, unit_of
from figgen.subject import Subject, subject
from figgen.units import parse_quantity

Premises: TypeAlias = frozenset[tuple[float, str]]
"""Values in SI with their units; counts have the unit "1"."""

_NUMBER = r"-?\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?"
_GIVEN = re.compile(r"(\w+)\s*[=:]\s*(\"[^\"\n]*\"|'[^'\n]*'|\[[^\]\n]*\]|[^,)\n]+)")
_SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}


def premises(source: str, *, by_line: bool = False) -> dict[int, Premises]:
    """Return, by line of a page, the quantities that its section (or line) computes with."""
    lines = source.splitlines()
    starts = [1, *(n for n, line in enumerate(lines, 1) if by_line or re.match(r"#{1,6}\s", line))]
    found: dict[int, Premises] = {}
    for start, end in zip(starts, [*starts[1:], len(lines) + 1], strict=True):
        section = "\n".join(lines[start - 1 : end - 1])
        texts = [match[1] for match in re.finditer(PATTERN, section)]
        texts += [without_captions(fence.body) for fence in fences(section)]
        given = frozenset(pair for text in texts for pair in _arguments(text))
        found |= dict.fromkeys(range(start, end), given)
    return found


def parameters(body: str) -> Premises:
    """Return a figure's premises: its parameters, defaults, and the entries that these name.

    The name of a value in its caption may contain the number at which it is computed
    (`idle_16384`).
    """
    written = without_captions(body)
    given = yaml.safe_load(written)
    with contextlib.suppress(InputError):
        for known in figure_named(given["figure"]).parameters:
            if known.name not in given:
                default = known.default
                shown = list(default) if isinstance(default, tuple) else default
                written += f"\n{known.name}: {shown}"
    counted = re.findall(r"_(\d+)(?=[_:\W])", " ".join(re.findall(PATTERN, body)))
    named = (pair for word in re.findall(r"[\w-]+", written) for pair in subject().premises(word))
    return frozenset([*_arguments(written), *((float(n), "1") for n in counted), *named])


@cache
def _units(about: Subject) -> dict[str, str]:
    """Return the unit of every argument of the formulas."""
    return {arg.name: arg.unit for formula in all_formulas().values() for arg in formula.args}


def _arguments(text: str) -> Iterator[tuple[float, str]]:
    """Yield the quantities in the text of a call or of a figure's parameters."""
    units = _units(subject())
    for name, written in _GIVEN.findall(text):
        unit = units.get(name) or unit_of(name)
        scale, unit = (BINARY["Mi"], "B") if name.endswith("_mib") else (1.0, unit)
        quoted = [part for pair in re.findall(r"\"([^\"]*)\"|'([^']*)'", written) for part in pair]
        for word in (*quoted, written.strip(), *re.findall(_NUMBER, written)):
            with contextlib.suppress(InputError, ValueError):
                found = parse_quantity(word)
                yield scale * found.value, _plain(unit if found.unit == "1" else found.unit)


def _plain(unit: str) -> str:
    """Return a unit without counts, so that bytes per parameter are bytes; "1" for a count."""
    above, _, below = unit.partition("/")
    if is_counted(below):
        unit = above
    return "1" if is_counted(unit.partition("/")[0]) else unit


_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def is_premise(typed: str, given: Premises) -> bool:
    """Return whether a typed quantity is an input of a nearby computation."""
    text = re.sub(r"^[~≈]", "", typed).replace("\u00a0", " ")
    multiple = re.match(r"([\w.,]+)(?:×|x$|[ -](?:times|fold))", text)
    if multiple:
        word = multiple[1].replace(",", "")
        factor = str(_WORDS.index(word)) if word in _WORDS else word
        return any(factor == f"{value:g}" for value, _ in given)
    number, _, word = text.partition(" ")
    scale = _SCALES.get(word.rstrip("s"))
    with contextlib.suppress(InputError, ValueError):
        if scale is not None:
            value = parse_quantity(number).value * scale
            return any(abs(value - other) <= 1e-9 * abs(value) for other, _ in given)
        found = parse_quantity(text.replace("TFLOPS", "TFLOP/s").replace("FLOPs", "FLOP"))
        return (found.value, _plain(found.unit)) in given
    return False
