"""Compare all ways of computing each quantity at every point that the site shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from figgen.agreement.numbers import Number
from figgen.agreement.ways import ComparedQuantity, Way
from figgen.charts import Scalar
from figgen.equations.evaluation import evaluate
from figgen.errors import InputError
from figgen.quantity_units import is_counted

SAME = 1e-9  # relative: allows a different order of sums, but not a different convention


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A number that differs from what a different way gives for the same inputs."""

    where: str
    quantity: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.where}: {self.quantity}: expected {self.expected}, got {self.got}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a comparison: disagreements, and the numbers of values and points covered.

    `unused` lists ways of the table that produced no number; part of a site leaves many unused.
    """

    disagreements: tuple[Disagreement, ...]
    numbers: int
    identified: int
    points: int
    unused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Shown:
    way: Way
    value: Scalar
    where: str


Point = frozenset[tuple[str, object]]


def compared(numbers: Sequence[Number], quantities: Iterable[ComparedQuantity]) -> Outcome:
    """Compare every number with other numbers of the same quantity and with its closed forms."""
    found: list[Disagreement] = []
    unused: list[str] = []
    identified = points = 0
    by_source: dict[tuple[str, str], list[Number]] = {}
    for number in numbers:
        by_source.setdefault((number.kind, number.source), []).append(number)
    for quantity in quantities:
        at: dict[tuple[str, Point], list[_Shown]] = {}
        for way in quantity.ways:
            used = False
            for number in by_source.get((way.kind, way.source), ()):
                inputs = way.inputs(number)
                if inputs is None:
                    continue
                used = True
                identified += 1
                shown = _Shown(way, number.value, number.where)
                at.setdefault((way.convention, frozenset(inputs.items())), []).append(shown)
                found += _unnamed(quantity, way, number)
                if _uncounted(number.unit) != _uncounted(quantity.unit):
                    found.append(
                        Disagreement(
                            where=number.where,
                            quantity=str(way),
                            expected=f"unit {quantity.unit}",
                            got=number.unit,
                        )
                    )
            if not used and way.kind != "formula":
                unused.append(f"{quantity.name} by {way}")
        for (convention, point), shown_there in at.items():
            everything = [*shown_there, *_closed_forms(quantity, convention, point)]
            points += len({str(shown.way) for shown in everything}) > 1
            found += _differing(quantity, point, everything)
    return Outcome(
        disagreements=tuple(found),
        numbers=len(numbers),
        identified=identified,
        points=points,
        unused=tuple(unused),
    )


def _uncounted(unit: str) -> str:
    """Return a unit, or "1" if it is a count of anything."""
    return "1" if is_counted(unit) else unit


def _unnamed(quantity: ComparedQuantity, way: Way, number: Number) -> Iterator[Disagreement]:
    """Report a number in an unusual convention that its text does not name."""
    if way.words and not any(word in number.text for word in way.words):
        expected = f"“{'” or “'.join(way.words)}” in its text"
        what = f"{quantity.name}, not {quantity.convention} but {way.convention}"
        yield Disagreement(where=number.where, quantity=what, expected=expected, got="no such word")


def _closed_forms(quantity: ComparedQuantity, convention: str, point: Point) -> Iterator[_Shown]:
    """Yield the values of a quantity's formulas at a point for which the site shows a number."""
    for way in quantity.ways:
        if way.kind != "formula" or way.convention != convention:
            continue
        rest = dict(point)
        if any(rest.pop(name, None) != value for name, value in way.given.items()):
            continue
        back = {canonical: own for own, canonical in way.names.items()}
        try:
            arguments = {back.get(name, name): value for name, value in rest.items()}
            value = evaluate(way.source, **arguments).value
        except InputError:  # different inputs, or outside the formula's domain
            continue
        yield _Shown(way, value, f"formula {way.source}")


def _differing(
    quantity: ComparedQuantity, point: Point, everything: Sequence[_Shown]
) -> Iterator[Disagreement]:
    """Yield each way whose value differs from the first, once."""
    first = max(everything, key=lambda shown: shown.way.kind == "formula")
    told = set()
    for shown in everything:
        if _same(first.value, shown.value) or (str(shown.way), shown.value) in told:
            continue
        told.add((str(shown.way), shown.value))
        inputs = ", ".join(f"{name}={value}" for name, value in sorted(point, key=str))
        yield Disagreement(
            where=shown.where,
            quantity=f"{quantity.name} ({quantity.convention}) at {inputs}",
            expected=f"{first.value!r} as {first.way} says, {first.where}",
            got=f"{shown.value!r} by {shown.way}",
        )


def _same(one: Scalar, other: Scalar) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return one == other or math.isclose(one, other, rel_tol=SAME) or (one != one and other != other)
