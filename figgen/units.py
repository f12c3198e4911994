"""Quantities as people write them ("3.35 TB/s") to SI numbers, and SI numbers back to text.

Inside figgen every number is a plain float or int in SI units (bytes, seconds, FLOP, B/s …).
Prefixes, thousands separators and unit words exist only at the two edges: `quantity_text` reads
them, and this module writes them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from numbers import Real
from typing import TypeAlias

from figgen.errors import InputError, closest
from figgen.quantity_text import (
    ALIASES,
    AMOUNTS,
    BINARY,
    MEASURED,
    OTHER,
    PLAIN_COUNTS,
    POWERS,
    SCALED,
    SHORT_SCALE,
    THINGS,
    TIMES,
    Factor,
    Quantity,
    is_base,
    read_quantity,
    unit_factor,
)

NBSP = "\N{NO-BREAK SPACE}"
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

COUNTS = THINGS | AMOUNTS


def parse_quantity(text: str, unit: str | None = None) -> Quantity:
    """The quantity written in `text`, in SI, as `read_quantity` reads it.

    With `unit`, another dimension is an error. Raises InputError for text that is not a number
    with a known unit.
    """
    found = read_quantity(text)
    if unit is not None and found.unit != unit:
        raise InputError(f"{text!r} has the wrong unit", expected=unit, got=found.unit)
    return found


def add_unit(name: str, *, is_: str = "", prefixes: bool = False) -> None:
    """Let quantities be written in a further unit, for a site's own formulas and catalogs.

    With `prefixes` the unit takes SI prefixes, as in `mPa` and `kPa`. `is_` defines it as a
    multiple of another unit: `add_unit("kWh", is_="3.6 MJ")`. Raises InputError for a name that
    already means something else.
    """
    if not re.fullmatch(r"[^\W\d_]\w*[²³]?|°\w+", name) or name in PLAIN_COUNTS.keys() - {"K"}:
        raise InputError("the name of a unit", expected="letters, as in m² or kWh", got=name)
    if is_:
        one = parse_quantity(is_)
        exact = Fraction(str(one.value))
        found = Factor(unit=one.unit, times=exact.numerator, over=exact.denominator)
        if is_base(name) or SCALED.get(name, found) != found:
            raise InputError(f"unit {name!r} means something else already")
        SCALED[name] = found
    else:
        if name in SCALED or name in TIMES or name in ALIASES:
            raise InputError(f"unit {name!r} means something else already")
        (MEASURED if prefixes else OTHER).add(name)
    unit_factor.cache_clear()


def canonical_unit(text: str) -> str:
    """The canonical SI spelling of a unit without prefix: "bytes/s" is "B/s".

    Raises InputError for an unknown unit, or for one that needs a factor ("GB", "h").
    """
    found = unit_factor(text)
    if found.power or found.times != found.over:
        raise InputError("not an SI unit", expected=found.unit, got=text)
    return found.unit


def format_quantity(value: Real | float, unit: str, spec: str = "") -> str:
    """`value` (SI, in `unit`) as text for a reader.

    `spec` is a Python format spec (".1%", ".3f", ",": the number alone) or one of

    - `si`: engineering prefix, three significant digits; "405B" for counts
    - `bytes`, `gib`: decimal or binary prefix; only for units that start with B
    - `time`: ns, µs, ms, s, min, h, days; `flops`: TFLOP/s and the like
    - `unit`: the number and its own unit, no prefix
    - nothing: whatever of these suits the unit

    A dot and a number after a name set the significant digits (`si.4`). An exact value is not
    padded (80 GB), a rounded one keeps its zeros (3.00 ms), digits before the point are never
    dropped, whole numbers stay whole.

    Raises InputError for an unknown spec, a unit that the spec cannot show, or no number.
    """
    number = _number(value)
    name, dot, digits = spec.partition(".")
    if name not in SPECS or (dot and not name):
        return _format_python(number, spec)
    if dot and not re.fullmatch(r"[1-9]|1\d", digits):
        raise InputError("bad number of digits", expected=f"{name}.1 to {name}.19", got=spec)
    shown = SPECS[name](abs(number), canonical_unit(unit), int(digits or 3))
    return f"−{shown}" if number < 0 else shown


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, Real)) or math.isnan(value):
        raise InputError("not a number", got=value)
    return int(value) if isinstance(value, int) else float(value)


def _format_python(number: float, spec: str) -> str:
    if re.search(r"\d{3}", spec):  # Python would write a billion zeros
        raise InputError("bad format", expected="at most 99 digits or places", got=spec)
    whole = isinstance(number, float) and number.is_integer() and spec[-1:] in (",", "d")
    try:
        shown = format(int(number) if whole else number, spec).replace("-", "−")
    except ValueError:
        names = [name for name in SPECS if name]
        expected = f"a Python format spec or one of {', '.join(names)}"
        nearest = closest(spec.partition(".")[0], names)
        raise InputError("bad format", expected=expected, got=spec, nearest=nearest) from None
    # Nothing is neither more nor less: a difference that rounds to zero has no sign.
    shown = re.sub(r"^[+−](?=0(\.0+)?%?$)", "", shown)
    # Python's "e−06" is a program's way of writing, "× 10⁻⁶" a reader's.
    found = re.fullmatch(r"([+−]?)([\d.]+)e([+−]\d+)", shown)
    if not found:
        return shown
    sign, mantissa, exponent = found.groups()
    short = _times_ten(mantissa, exponent).removeprefix(f"1{NBSP}×{NBSP}")
    return f"{sign}{short}" if float(mantissa) else "0"


def _times_ten(mantissa: str, exponent: str) -> str:
    """A mantissa and Python's exponent as readers write them."""
    power = str(int(exponent.replace("−", "-"))).translate(SUPERSCRIPT)
    return f"{mantissa}{NBSP}×{NBSP}10{power}"


def format_number(number: float, digits: int = 3) -> str:
    """A number by itself: at least `digits` significant ones, separators, ×10ⁿ when it is huge."""
    if math.isinf(number) or number < 0:
        return f"−{format_number(-number, digits)}" if number < 0 else "∞"
    if number and (number >= 1e15 or number < 10.0 ** -(digits + 1)):
        return power_of_ten(number, digits)
    if number == int(number):
        return f"{int(number):,}"
    # Rounding first: 9.996 to three digits is 10.0, not 10.00.
    rounded = float(f"{number:.{digits - 1}e}")
    shown = f"{number:,.{max(0, digits - 1 - math.floor(math.log10(rounded)))}f}"
    return _unpadded(shown) if math.isclose(float(shown.replace(",", "")), number) else shown


def power_of_ten(number: float, digits: int = 3) -> str:
    """A number as mantissa and power, "3.15 × 10²³"."""
    mantissa, exponent = f"{number:.{digits - 1}e}".split("e")
    shown = _unpadded(mantissa) if float(f"{mantissa}e{exponent}") == number else mantissa
    return _times_ten(shown, exponent)


def _unpadded(shown: str) -> str:
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


Ladder: TypeAlias = tuple[tuple[str, float], ...]
"""Prefixes with their factors from the largest down, none among them."""


def _ladder(factors: Iterable[tuple[str, float]]) -> Ladder:
    return tuple(sorted([("", 1.0), *factors], key=lambda pair: -pair[1]))


def _decimal(powers: Mapping[str, int]) -> Ladder:
    return _ladder((prefix, float(f"1e{power}")) for prefix, power in powers.items())


EVERY, SHORT = _decimal(POWERS), _decimal(SHORT_SCALE)
UP, DOWN = (
    _decimal({prefix: power for prefix, power in POWERS.items() if (power > 0) == up})
    for up in (True, False)
)
BINARIES = _ladder((prefix, float(factor)) for prefix, factor in BINARY.items())


def _with_prefix(value: float, digits: int, prefixes: Ladder, words: str) -> str:
    """`value` under the largest of `prefixes` (or none) that leaves at least 1 before the point."""
    prefix, factor = prefixes[-1] if 0 < value < 1 else ("", 1.0)
    if math.isfinite(value):
        # After rounding, so that 999.9996 MB becomes 1.00 GB and not 1,000 MB.
        fitting = (
            rung
            for rung in prefixes
            if value >= 0.9 * rung[1] and float(f"{value / rung[1]:.{digits - 1}e}") >= 1
        )
        prefix, factor = next(fitting, (prefix, factor))
    number = format_number(value / factor, digits)
    return f"{number}{NBSP}{prefix}{words}" if words else f"{number}{prefix}"


def _si(value: float, unit: str, digits: int) -> str:
    above, slash, below = unit.partition("/")
    if above in MEASURED:
        # Nobody says a milli-byte or a milli-FLOP.
        whole = above in ("B", "FLOP")
        return _with_prefix(value, digits, UP if whole else EVERY, unit)
    number = _with_prefix(value, digits, SHORT, "") if value >= 1000 else None
    words = ("USD" if above == "USD" else "") + slash + below
    number = number or format_number(value, digits)
    return f"{number}{NBSP}{words}" if words else number


def _bytes(value: float, unit: str, digits: int) -> str:
    _require("bytes", unit, "B")
    return _with_prefix(value, digits, UP, unit)


def _gib(value: float, unit: str, digits: int) -> str:
    _require("gib", unit, "B")
    return _with_prefix(value, digits, BINARIES, unit)


def _flops(value: float, unit: str, digits: int) -> str:
    _require("flops", unit, "FLOP")
    return _si(value, unit, digits)


def _time(value: float, unit: str, digits: int) -> str:
    _require("time", unit, "s")
    if value < 60 or math.isinf(value):
        return _with_prefix(value, digits, DOWN, unit)
    name = next(name for name, size in reversed(TIMES.items()) if value >= size)
    number = format_number(value / TIMES[name], digits)
    return f"{number}{NBSP}{name}{'s' * (name == 'day' and number != '1')}{unit.removeprefix('s')}"


def _unit(value: float, unit: str, digits: int) -> str:
    number = format_number(value, digits)
    above, slash, below = unit.partition("/")
    if above in COUNTS | {"month", "nat"} and value != 1:
        above += "es" if above.endswith("ch") else "s"
    words = ("" if above == "1" else above) + slash + below
    return f"{number}{NBSP}{words}" if words else number


def _natural(value: float, unit: str, digits: int) -> str:
    above = unit.partition("/")[0]
    if unit == "s":
        return _time(value, unit, digits)
    # Arithmetic intensity and its kin are compared as plain numbers: "2,199 FLOP/B".
    prefixed = above in MEASURED and unit != "FLOP/B"
    return _si(value, unit, digits) if prefixed else _unit(value, unit, digits)


def _require(spec: str, unit: str, base: str) -> None:
    if unit.partition("/")[0] != base:
        raise InputError(f"format {spec!r} does not fit", expected=f"a unit in {base}", got=unit)


SPECS: dict[str, Callable[[float, str, int], str]] = {
    "": _natural, "si": _si, "bytes": _bytes, "gib": _gib, "time": _time, "flops": _flops,
    "unit": _unit,
}  # fmt: skip
