"""Quantities as people write them ("3.35 TB/s") to SI numbers, and SI numbers back to text.

Inside figgen every number is a plain float or int in SI units (bytes, seconds, FLOP, B/s …).
Prefixes, thousands separators and unit words exist only here, at the two edges. Prefixes are
decimal (1 GB = 1e9 B); binary ones are written out (1 GiB = 2**30 B). Bits exist only as line
rates ("400 Gb/s" or "400 Gbps" is 50e9 B/s). A comma between groups of three digits separates
thousands ("1,500 ms"); elsewhere a single comma is a decimal comma ("43,5 ms").
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from typing import TypeAlias

from figgen.errors import InputError, closest

NBSP = "\N{NO-BREAK SPACE}"
PLAIN = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

SMALL = {"f": -15, "p": -12, "n": -9, "µ": -6, "m": -3}
LARGE = {"k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18, "Z": 21, "Y": 24}
DECIMAL = {prefix: Fraction(10) ** power for prefix, power in (SMALL | LARGE).items()}
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
SHORT_SCALE = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
PLAIN_COUNTS = {"k": 10**3, "K": 10**3, "M": 10**6, "T": 10**12}
"""Prefixes that may stand alone after a number; a lone B is bytes."""
TIMES = {"min": 60, "h": 3600, "day": 86_400}

MEASURED = {"B", "s", "FLOP", "W", "J", "Hz"}
# Whole things that are counted: a value in one of them is an integer.
THINGS = frozenset({
    "rank", "GPU", "node", "stage", "microbatch", "chunk", "layer", "head", "expert", "sequence",
    "sample", "step", "bucket", "segment", "link", "port", "slot", "group", "replica", "message",
})  # fmt: skip
# Counted too, but met as averages and in billions: "405B" parameters, "15.6T" tokens.
COUNTS = THINGS | {"param", "token", "element"}
OTHER = {"1", "nat", "month", "GPU-h", "USD"}
BASES = MEASURED | COUNTS | OTHER
SCALED: dict[str, tuple[Fraction, str]] = {}
"""Units that a site defines as a multiple of another unit."""

ALIASES = {"us": "µs", "μs": "µs", "microbatches": "microbatch"} | {
    word + plural: base
    for plural in ("", "s")
    for word, base in {
        "parameter": "param", "byte": "B", "sec": "s", "second": "s", "minute": "min",
        "hour": "h", "GPU-hour": "GPU-h", "$": "USD", "micro-batch": "microbatch",
    }.items()
}  # fmt: skip

MOST_DIGITS, MOST = 60, Fraction(10) ** 300

_NUMBER = re.compile(
    r"\s*([+\-−]?)((?:\d[\d,_.]*|\.\d+)(?:[eE][+\-−]?\d+)?)"
    r"(?:\s*×\s*10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?\s*(.*?)\s*",
    re.S,
)
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?")
_DECIMAL_COMMA = re.compile(r"(?:[1-9]\d{0,2}(?:\.\d{3})+|\d+),\d+")
_CLOCK = re.compile(r"\s*(\d+)\s*h\s*([0-5]?\d)\s*(?:m|min|minutes?)?\s*")
"""A time such as "2h30" or "2 h 30 min"."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in SI and its unit, e.g. `Quantity(3.35e12, "B/s")`."""

    value: float
    unit: str


def parse_quantity(text: str, unit: str | None = None) -> Quantity:
    """The quantity written in `text`, in SI: `parse_quantity("25 MiB")` is 26,214,400 B.

    A number alone is dimensionless, "45%" is 0.45 and "8k" is 8000. The product of number and
    prefix is exact: an int where it is whole, else the nearest float. With `unit`, another
    dimension is an error.

    Raises InputError for text that is not a number with a known unit.
    """
    clock = _CLOCK.fullmatch(text)
    if clock is not None and len(text) <= MOST_DIGITS:
        text = f"{60 * int(clock[1]) + int(clock[2])} min"
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise InputError("not a quantity", expected='a number and a unit, as "3.35 TB/s"', got=text)
    sign, mantissa, power, written = match.groups()
    digits, _, exponent = mantissa.lower().partition("e")
    powers = (exponent, (power or "").translate(PLAIN))
    if len(mantissa) > MOST_DIGITS or any(len(power.lstrip("+-−0")) > 3 for power in powers):
        # An exact 10⁹⁹⁹⁹⁹⁹⁹⁹⁹ would take hours.
        raise InputError("not a quantity", expected="at most a few dozen digits", got=text[:40])
    number = Fraction(f"{_plain_digits(digits)}e{exponent or 0}".replace("−", "-"))
    number *= (-1 if sign in ("-", "−") else 1) * Fraction(10) ** int(powers[1] or 0)
    factor, parsed = (Fraction(1, 100), "1") if written == "%" else _parse_unit(written or "1")
    if unit is not None and parsed != unit:
        raise InputError(f"{text!r} has the wrong unit", expected=unit, got=parsed)
    value = number * factor
    if value and not 1 / MOST <= abs(value) <= MOST:
        raise InputError("not a quantity", expected="a number between 1e-300 and 1e300", got=text)
    return Quantity(value.numerator if value.denominator == 1 else float(value), parsed)


def _plain_digits(digits: str) -> str:
    """Digits with a decimal point and no separators.  Raises InputError for misplaced ones."""
    plain = digits.replace("_", "")
    if _THOUSANDS.fullmatch(plain):
        plain = plain.replace(",", "")
    elif _DECIMAL_COMMA.fullmatch(plain):
        plain = plain.replace(".", "").replace(",", ".")
    if not re.fullmatch(r"\d+\.?\d*|\.\d+", plain):
        expected = "thousands as 1,234,567.8 and decimals as 43.5 or 43,5"
        raise InputError("not a number", expected=expected, got=digits)
    return plain


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
        found = Fraction(str(one.value)), one.unit
        if name in BASES or SCALED.get(name, found) != found:
            raise InputError(f"unit {name!r} means something else already")
        SCALED[name] = found
    else:
        if name in SCALED or name in TIMES or name in ALIASES:
            raise InputError(f"unit {name!r} means something else already")
        (MEASURED if prefixes else OTHER).add(name)
        BASES.add(name)
    _parse_unit.cache_clear()


def canonical_unit(text: str) -> str:
    """The canonical SI spelling of a unit without prefix: "bytes/s" is "B/s".

    Raises InputError for an unknown unit, or for one that needs a factor ("GB", "h").
    """
    factor, unit = _parse_unit(text)
    if factor != 1:
        raise InputError("not an SI unit", expected=unit, got=text)
    return unit


@lru_cache(maxsize=1024)
def _parse_unit(text: str) -> tuple[Fraction, str]:
    counted = re.fullmatch(r"([KMBT])\s+(\w+)", text)
    if counted and (count := _base(counted[2])) in COUNTS:
        return Fraction(SHORT_SCALE[counted[1]]), str(count)
    line_rate = re.fullmatch(r"([kMGT]?)(?:(?:b|bit)/s|bps)", text)
    if line_rate:
        return DECIMAL.get(line_rate[1], Fraction(1)) / 8, "B/s"
    if text in PLAIN_COUNTS and text not in BASES:
        return Fraction(PLAIN_COUNTS[text]), "1"
    above, *below = [_parse_term(term.strip(), text) for term in text.split("/")]
    factor = above[0] / math.prod(term[0] for term in below)
    return Fraction(factor), "/".join([above[1], *(term[1] for term in below)])


def _base(word: str) -> str | None:
    """The base unit that `word` names, singular; None if it is none."""
    word = ALIASES.get(word, word)
    singular = word[:-1] if word[:-1] in COUNTS | OTHER | {"day"} and word[-1] == "s" else word
    return singular if singular in BASES or singular in TIMES else None


def _parse_term(word: str, whole: str) -> tuple[Fraction, str]:
    word = ALIASES.get(word, word)
    if word in SCALED:
        return SCALED[word]
    base = _base(word)
    if base is not None:
        return (Fraction(TIMES[base]), "s") if base in TIMES else (Fraction(1), base)
    prefixed: tuple[tuple[Mapping[str, float | Fraction], set[str]], ...]
    prefixed = ((BINARY, {"B"}), (DECIMAL, MEASURED | {"param", "token"}))
    for prefixes, bases in prefixed:
        for prefix, factor in prefixes.items():
            base = _base(word.removeprefix(prefix)) if word.startswith(prefix) else None
            if base in bases:
                return Fraction(factor), str(base)
    rates = {f"{p}{base}" for p in ["", *LARGE] for base in ("B", "B/s", "FLOP", "FLOP/s", "b/s")}
    known = BASES | TIMES.keys() | rates | {f"{p}B" for p in BINARY} | {f"{p}s" for p in SMALL}
    meant = re.sub(r"ps$", "/s", whole.lower().replace("flops", "flop/s"))
    folded = [unit for unit in sorted(known) if unit.lower() == meant]
    raise InputError(
        f"unknown unit {whole!r}",
        expected=None if folded else "a unit such as B, GB/s, TFLOP/s, µs or ranks",
        nearest=folded or closest(whole, sorted(known)),
    )


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


def _ladder(prefixes: Mapping[str, float | Fraction]) -> Ladder:
    factors = {"": 1.0} | {prefix: float(factor) for prefix, factor in prefixes.items()}
    return tuple(sorted(factors.items(), key=lambda pair: -pair[1]))


EVERY, BINARIES, SHORT = _ladder(DECIMAL), _ladder(BINARY), _ladder(SHORT_SCALE)
UP, DOWN = (_ladder({prefix: DECIMAL[prefix] for prefix in some}) for some in (LARGE, SMALL))


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
