"""Format numbers in SI for readers: "3.35 TB/s", "2 h", "1.2 × 10²³".

The tools use this code too, printed as JavaScript. An exact value is not padded (80 GB), a rounded
one keeps its zeros (3.00 ms), digits before the point are never dropped, and whole numbers stay
whole.
"""

from __future__ import annotations

import math
import re

from figgen.quantity_units import (
    ADDED,
    BINARY,
    MEASURED,
    POWERS,
    SHORT_SCALE,
    SUPERSCRIPTS,
    TIMES,
    is_counted,
    plural,
)

NBSP = "\u00a0"
NAMED: tuple[str, ...] = ("", "si", "bytes", "gib", "time", "flops", "unit")
"""Formats of quantities that are not Python format specs."""

_ZERO = re.compile(r"[+−]0(\.0+)?%?")
_POWER = re.compile(r"([+−]?)([\d.]+)e([+−]\d+)")


def shown(number: float, unit: str, spec: str = "") -> str:
    """Format `number` (SI, in the canonical `unit`) by one of `NAMED` or a Python format spec.

    A dot and a number after a name set the significant digits (`si.4`); the default is three.
    Raises ValueError for an invalid Python format spec.
    """
    name, dot, digits = spec.partition(".")
    if name not in NAMED or (dot and not name):
        return _by_python(number, spec)
    text = _by_name(abs(number), unit, name, int(digits) if digits else 3)
    return f"−{text}" if number < 0 else text


def _by_name(value: float, unit: str, name: str, digits: int) -> str:
    if name in ("", "si") and needs_no_prefix(unit, value):
        return _plain(value, unit, digits)
    if name == "bytes":
        return _prefixed(value, digits, UP, unit)
    if name == "gib":
        return _prefixed(value, digits, BINARIES, unit)
    if name == "time" or (name == "" and unit == "s"):
        return _time(value, unit, digits)
    # Arithmetic intensities are compared as plain numbers: "2,199 FLOP/B".
    plain = unit.partition("/")[0] not in MEASURED or unit == "FLOP/B"
    if name == "unit" or (name == "" and plain):
        return _plain(value, unit, digits)
    return _si(value, unit, digits)


def needs_no_prefix(unit: str, value: float) -> bool:
    """Return whether a nonnegative number in a unit that a site added is read best without one."""
    above = unit.partition("/")[0]
    return above in ADDED and (above not in MEASURED or 0.1 <= value < 1000)


def _by_python(number: float, spec: str) -> str:
    whole = spec[-1:] in (",", "d") and math.isfinite(number) and number == int(number)
    text = f"{int(number):{spec}}" if whole else f"{number:{spec}}"
    text = text.replace("-", "−")
    # A difference that rounds to zero has no sign.
    if re.fullmatch(_ZERO, text):
        return text[1:]
    # Readers get "× 10⁻⁶" instead of Python's "e−06".
    found = re.fullmatch(_POWER, text)
    if not found:
        return text
    short = _times_ten(found[2], int(found[3].replace("−", "-"))).removeprefix(f"1{NBSP}×{NBSP}")
    return f"{found[1]}{short}" if float(found[2]) else "0"


def format_number(number: float, digits: int = 3) -> str:
    """Format a number alone: at least `digits` significant digits, separators, ×10ⁿ if huge."""
    if number < 0:
        return f"−{format_number(-number, digits)}"
    if number == math.inf:
        return "∞"
    if number and (number >= 1e15 or number < float(f"1e-{digits + 1}")):
        return power_of_ten(number, digits)
    if number == int(number):
        return f"{int(number):,}"
    # Rounding first: 9.996 to three digits is 10.0, not 10.00.
    power = int(f"{number:.{digits - 1}e}".split("e")[1])
    text = f"{number:,.{max(0, digits - 1 - power)}f}"
    read = float(text.replace(",", ""))
    return _unpadded(text) if abs(read - number) <= 1e-9 * max(read, number) else text


def power_of_ten(number: float, digits: int = 3) -> str:
    """Format a number as mantissa and power, such as "3.15 × 10²³"."""
    rounded = f"{number:.{digits - 1}e}"
    mantissa, power = rounded.split("e")
    return _times_ten(_unpadded(mantissa) if float(rounded) == number else mantissa, int(power))


def _times_ten(mantissa: str, power: int) -> str:
    raised = "".join("⁻" if sign == "-" else SUPERSCRIPTS[int(sign)] for sign in f"{power}")
    return f"{mantissa}{NBSP}×{NBSP}10{raised}".replace("-", "−")


def _unpadded(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _ladder(factors: list[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """Return prefixes with their factors in descending order, with "" for no prefix."""
    return tuple(sorted([("", 1.0), *factors], key=lambda pair: -pair[1]))


EVERY: tuple[tuple[str, float], ...] = _ladder(
    [(prefix, float(f"1e{power}")) for prefix, power in POWERS.items()]
)
UP: tuple[tuple[str, float], ...] = tuple(rung for rung in EVERY if rung[1] >= 1)
DOWN: tuple[tuple[str, float], ...] = tuple(rung for rung in EVERY if rung[1] <= 1)
SHORT: tuple[tuple[str, float], ...] = _ladder(
    [(prefix, float(f"1e{power}")) for prefix, power in SHORT_SCALE.items()]
)
BINARIES: tuple[tuple[str, float], ...] = _ladder(
    [(prefix, float(factor)) for prefix, factor in BINARY.items()]
)


def _prefixed(
    value: float, digits: int, prefixes: tuple[tuple[str, float], ...], words: str
) -> str:
    """Format `value` with the largest of `prefixes` (or none) that leaves a number ≥ 1."""
    prefix, factor = prefixes[-1] if 0 < value < 1 else ("", 1.0)
    if math.isfinite(value):
        for name, size in prefixes:
            # After rounding, so that 999.9996 MB becomes 1.00 GB and not 1,000 MB.
            if value >= 0.9 * size and float(f"{value / size:.{digits - 1}e}") >= 1:
                prefix, factor = name, size
                break
    number = format_number(value / factor, digits)
    return f"{number}{NBSP}{prefix}{words}" if words else f"{number}{prefix}"


def _si(value: float, unit: str, digits: int) -> str:
    above, slash, below = unit.partition("/")
    if above in MEASURED:
        # Nobody says a milli-byte or a milli-FLOP.
        return _prefixed(value, digits, UP if above in ("B", "FLOP") else EVERY, unit)
    number = _prefixed(value, digits, SHORT, "") if value >= 1000 else format_number(value, digits)
    return _with_words(number, ("USD" if above == "USD" else "") + slash + below)


def _time(value: float, unit: str, digits: int) -> str:
    if value < 60 or value == math.inf:
        return _prefixed(value, digits, DOWN, unit)
    name, size = [(name, size) for name, size in TIMES.items() if value >= size][-1]
    number = format_number(value / size, digits)
    many = "s" if name == "day" and number != "1" else ""
    return f"{number}{NBSP}{name}{many}{unit[1:]}"


def span_shown(low_s: float, high_s: float) -> str:
    """Two times, in seconds both where they lie on two sides of a second or of a minute."""
    crosses = low_s < 1 <= high_s or low_s < 60 <= high_s
    return " to ".join([shown(end, "s", "unit" if crosses else "") for end in (low_s, high_s)])


def _plain(value: float, unit: str, digits: int) -> str:
    above, slash, below = unit.partition("/")
    counted = is_counted(above) or above in ("month", "nat")
    if counted and value != 1:
        above = plural(above)
    return _with_words(
        format_number(value, digits), ("" if above == "1" else above) + slash + below
    )


def _with_words(number: str, words: str) -> str:
    return f"{number}{NBSP}{words}" if words else number
