"""Parse and format quantities with checked units.

Inside figgen every number is a plain float or int in SI units (bytes, seconds, FLOP, B/s …).
Prefixes, thousands separators and unit words exist only at the boundaries: `quantity_text` parses
them, and `quantity_shown` writes them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from numbers import Real

from figgen.errors import InputError, closest
from figgen.quantity_shown import NAMED, NBSP, format_number, shown
from figgen.quantity_text import (
    ALIASES,
    SCALED,
    Factor,
    Quantity,
    asked_for,
    is_base,
    read_quantity,
    unit_factor,
)
from figgen.quantity_units import ADDED, MEASURED, OTHER, PLAIN_COUNTS, POWERS, is_counted

BASES: Mapping[str, str] = {"bytes": "B", "gib": "B", "time": "s", "flops": "FLOP"}
"""The only unit (per anything) that each of these formats can show."""
A_QUANTITY = "a number and a unit"
_DIGITS = re.compile(r"[1-9]|1\d")
_MORE_PREFIXES = {"c": -2, "d": -1, "h": 2}
"""Prefixes that no unit takes by itself."""


def parse_quantity(text: str, unit: str | None = None) -> Quantity:
    """Parse `text` to a quantity in SI, as `read_quantity` does.

    With `unit`, a different dimension is an error. Raises InputError for text that is not a number
    with a known unit.
    """
    try:
        found = read_quantity(text)
    except InputError as error:
        if error.what == "not a quantity" and str(error.expected).startswith(A_QUANTITY):
            raise _not_a_quantity(text, unit) from None
        raise (_unknown_unit(error) if ADDED else error) from None
    if unit is not None and found.unit != unit:
        raise InputError(f"{text!r} has the wrong unit", expected=unit, got=found.unit)
    return found


def agree(unit: str, other: str) -> bool:
    """Return whether numbers in two canonical units mean the same; a count is a pure number."""
    counts = {unit, other} - {"1"}
    return unit == other or (len(counts) == 1 and all(map(is_counted, counts)))


def add_unit(name: str, *, is_: str = "", prefixes: bool = False) -> None:
    """Define a unit, for a site's own formulas and catalogs: `unit("kg")`.

    With `prefixes` the unit takes the SI prefixes f, p, n, µ, m, k, M, G, T, P, E, Z and Y, as in
    `mPa` and `kPa`, but not c, d or h. `is_` defines it as a multiple of a different unit:
    `unit("Wh", is_="3600 J")`. Raises InputError for a name that already has a different meaning.
    """
    if not re.fullmatch(r"[^\W\d_]\w*[²³]?|°\w+", name) or name in PLAIN_COUNTS.keys() - {"K"}:
        raise InputError("the name of a unit", expected="letters, as in m² or kWh", got=name)
    one = _defined(is_) if is_ else Quantity(1, name)
    exact = Fraction(str(one.value))
    found = Factor(unit=one.unit, times=exact.numerator, over=exact.denominator)
    _check_meaning(name, found)
    if is_:
        powers = POWERS if prefixes else {}
        scaled = {f"{prefix}{name}": replace(found, power=powers[prefix]) for prefix in powers}
        for prefixed, factor in scaled.items():
            _check_meaning(prefixed, factor)
        SCALED.update(scaled | {name: found})
    else:
        (MEASURED if prefixes else OTHER).add(name)
    if name not in ADDED:
        ADDED.append(name)
    unit_factor.cache_clear()


def _defined(text: str) -> Quantity:
    """Return the multiple of a known unit that `text` is; an error lists the site's units."""
    try:
        return parse_quantity(text)
    except InputError as error:
        raise _unknown_unit(error) from None


def _not_a_quantity(text: str, unit: str | None) -> InputError:
    """Return the error for text that doesn't begin with a number, with an example in the unit."""
    expected = "a number" if unit == "1" else f'{A_QUANTITY}, as "3 {unit or "s"}"'
    return InputError("not a quantity", expected=expected, got=text)


def _check_meaning(name: str, wanted: Factor) -> None:
    """Raise InputError if a unit exists and is not `wanted`."""
    try:
        known = unit_factor(name)
    except InputError:
        return
    if name in PLAIN_COUNTS:  # K is a prefix until a site makes it kelvin
        return
    if (known.unit, _size(known)) != (wanted.unit, _size(wanted)):
        is_known = f"{format_number(float(_size(known)), 9)} {known.unit}"
        raise InputError(
            f"unit {name!r} means something else already", expected=is_known.replace(NBSP, " ")
        )


def _size(unit: Factor) -> Fraction:
    """Return how many SI units a unit is, exactly."""
    return Fraction(unit.times, unit.over) * Fraction(10) ** unit.power


def _prefixed(unit: str) -> str:
    """Return the definition of an unknown unit if it is a known one with a prefix, or ""."""
    power = {**POWERS, **_MORE_PREFIXES}.get(unit[:1])
    if power is None or not (is_base(unit[1:]) or unit[1:] in SCALED):
        return ""
    return f'unit("{unit}", is_="{float(f"1e{power}"):.15g} {unit[1:]}")'


def _unknown_unit(error: InputError) -> InputError:
    """Return an error that names the site's units and how to add one, if a unit is unknown."""
    if not error.what.startswith("unknown unit"):
        return error
    wrong = re.sub(r"^unknown unit '([^']*)'.*", r"\1", error.what)
    if definition := _prefixed(wrong):
        return InputError(error.what, expected=f"a unit that the module adds: {definition}")
    return InputError(
        error.what,
        expected=f"{', '.join([*ADDED, *sorted(MEASURED - {*ADDED})])}, 1 for a pure number, "
        f'or a unit that the module adds: unit("{wrong or "m"}")',
        nearest=closest(wrong, _written()) or error.nearest,
    )


def _written() -> list[str]:
    """Return the units of the site as pages may write them, with every prefix."""
    prefixed = [f"{prefix}{unit}" for unit in ADDED if unit in MEASURED for prefix in POWERS]
    return [*ADDED, *sorted(SCALED.keys() - {*ADDED}), *prefixed]


def canonical_unit(text: str) -> str:
    """Return the canonical SI spelling of a unit without prefix: "bytes/s" gives "B/s".

    Raises InputError for an unknown unit, or for one that needs a factor ("GB", "h").
    """
    found = _factor(text)
    if found.power or found.times != found.over:
        what = f"not an SI unit (to show a value in it, a page writes `:in {text}`)"
        raise InputError(what, expected=found.unit, got=text)
    return found.unit


def format_quantity(value: Real | float, unit: str, spec: str = "") -> str:
    """Format `value` (SI, in `unit`) for readers.

    `spec` is a Python format spec (".1%", ".3f", ",": the number alone) or one of

    - `si`: engineering prefix, three significant digits; "405B" for counts
    - `bytes`, `gib`: decimal or binary prefix; only for units that start with B
    - `time`: ns, µs, ms, s, min, h, days; `flops`: GFLOP/s, TFLOP/s and so on
    - `unit`: the number and its own unit, no prefix
    - `in UNIT`: the number in a different unit of the same dimension, such as `in km/h`, or
      `in.2 km/h` to two significant digits
    - an empty string: whichever of these suits the unit

    A unit that a site added has no prefix from 0.1 to 1000, or none at all if it takes none.

    A dot and a number after a name set the significant digits (`si.4`). An exact value is not
    padded (80 GB), a rounded one keeps its zeros (3.00 ms), digits before the point are never
    dropped, whole numbers stay whole.

    Raises InputError for an unknown spec, a unit that the spec cannot show, or a non-number.
    """
    number = _number(value)
    canonical = canonical_unit(unit)
    if asked := asked_unit(spec, canonical):
        wanted, size, significant = asked
        value = float(Fraction(number) / size) if math.isfinite(number) else number
        return f"{format_number(value, significant)}{NBSP}{wanted}"
    name, dot, digits = spec.partition(".")
    if name not in NAMED or (dot and not name):
        return _by_python(number, spec)
    if dot:
        _check_digits(name, digits, spec)
    base = BASES.get(name)
    if base and canonical.partition("/")[0] != base:
        got = f"a unit in {base}"
        raise InputError(f"format {name!r} does not fit", expected=got, got=canonical)
    return shown(number, canonical, spec)


def asked_unit(spec: str, unit: str) -> tuple[str, Fraction, int] | None:
    """Return the unit, its size in SI and the digits of a format `in UNIT`; None for any other.

    Raises InputError if it cannot show numbers in `unit`.
    """
    try:
        found = asked_for(spec)
    except InputError as error:
        raise _unknown_unit(error) from None
    if found is None:
        return None
    _check_digits("in", found.digits, spec)
    if found.factor.unit != unit:
        raise InputError(f"format 'in {found.word}' does not fit", expected=f"a unit of {unit}")
    return found.word, _size(found.factor), int(found.digits)


def check_named(text: str, unit: str, spec: str) -> None:
    """Raise InputError if a format shows a number alone and the text around it names no unit.

    A count may go by any noun, and arithmetic intensities are compared as plain numbers.
    """
    above = unit.partition("/")[0]
    alone = spec.partition(".")[0] not in NAMED or spec.startswith(".")
    if not alone or asked_for(spec) or unit == "FLOP/B" or above == "1" or is_counted(above):
        return
    words = [above, *(word for word, short in ALIASES.items() if short == above)]
    if not re.search(rf"(?<![\w'’])(?:{'|'.join(map(re.escape, words))})(?:e?s)?(?!\w)", text):
        expected = f"{unit} in the text after it, or a format with a unit, such as `in {unit}`"
        raise InputError(f"format {spec!r} shows a number without its unit", expected=expected)


def _check_digits(name: str, digits: str, spec: str) -> None:
    if not _DIGITS.fullmatch(digits):
        expected = f"{name}.1 to {name}.19, for so many significant digits"
        raise InputError("bad number of digits", expected=expected, got=spec)


def _factor(text: str) -> Factor:
    try:
        return unit_factor(text)
    except InputError as error:
        raise _unknown_unit(error) from None


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, Real)) or math.isnan(value):
        raise InputError("not a number", got=value)
    return int(value) if isinstance(value, int) else float(value)


def _by_python(number: float, spec: str) -> str:
    if re.search(r"\d{3}", spec):  # Python would write a billion zeros
        raise InputError("bad format", expected="at most 99 digits or places", got=spec)
    try:
        return shown(number, "1", spec)
    except ValueError:
        names = [name for name in NAMED if name]
        expected = f"a Python format spec or one of {', '.join([*names, 'in UNIT'])}"
        nearest = closest(spec.partition(".")[0], names)
        raise InputError("bad format", expected=expected, got=spec, nearest=nearest) from None
