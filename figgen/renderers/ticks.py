"""Choose the ticks of an axis, at round values, and format them with engineering units.

An axis whose `spec` is `in UNIT` has its ticks at round values of that unit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace

from figgen.charts import Axis
from figgen.quantity_shown import NAMED, NBSP, format_number, shown
from figgen.quantity_text import asked_for, read_quantity
from figgen.quantity_units import is_counted

MOST_TICKS = 7
# Decades of seconds read badly beyond a minute.
LONG_TIMES = (60.0, 600.0, 3600.0, 36_000.0, 86_400.0, 864_000.0, 8_640_000.0, 86_400_000.0)


def log_ticks(axis: Axis, low: float, high: float) -> tuple[list[float], tuple[float, ...]]:
    """Return powers of the scale's base, thinned out, and the values between them."""
    asked = asked_for(axis.spec)
    if asked:
        size = asked.factor.size
        plain = replace(axis, unit="1", spec="si")
        powers_in_it, between_them = log_ticks(plain, low / size, high / size)
        return [v * size for v in powers_in_it], tuple(v * size for v in between_them)
    slack = 1 + 1e-9
    if axis.scale == "log2":
        powers = range(math.ceil(math.log2(low / slack)), math.floor(math.log2(high * slack)) + 1)
        step = -(-len(powers) // (MOST_TICKS + 4))
        chosen = [p for p in powers if (p - powers[0]) % step == 0]
        if axis.unit == "B" and step > 1:
            chosen = [p for p in powers if p % 10 in ((0, 5) if step < 6 else (0,))]
        return [2.0**p for p in chosen], tuple(2.0**p for p in powers if p not in chosen)
    decades = range(math.floor(math.log10(low / slack)), math.ceil(math.log10(high * slack)) + 1)
    inside = [d for d in decades if low / slack <= float(f"1e{d}") <= high * slack]
    digits: Iterable[int]
    if len(inside) >= 3:
        step = next(s for s in (1, 3, 6, 9, 12, 300) if len(inside) <= s * MOST_TICKS)
        major = [float(f"1e{d}") for d in inside if d % step == 0]
        between = decades if step == 1 else inside
        digits = range(2, 10) if step == 1 else (1,)
    else:
        major = [float(f"{m}e{d}") for d in decades for m in (1, 2, 5)]
        between, digits = decades, range(2, 10)
    if axis.unit == "s" and _spec(axis) == "time" and len(inside) >= 3:
        major = [value for value in major if value < 60] + list(LONG_TIMES)
        digits = ()
    major = [value for value in major if low / slack <= value <= high * slack]
    minor = (float(f"{m}e{d}") for d in between for m in digits)
    if len(major) < 2:
        major = [value for value, _ in linear_ticks(axis, low, high, False)[0] if value > 0]
    return major, tuple(v for v in minor if low <= v <= high and v not in major)


def linear_ticks(
    axis: Axis, low: float, high: float, rounded: bool
) -> tuple[list[tuple[float, str]], str]:
    """Return multiples of 1, 2 or 5 in the unit that suits the largest value, and that unit."""
    largest = max(abs(low), abs(high))
    suffix, factor, own = _display_unit(axis, largest)
    mantissa, exponent = round_step((high - low) / factor / (MOST_TICKS - 1))
    step = float(f"{mantissa}e{exponent}")
    if is_counted(axis.unit) and step < 1:
        mantissa, exponent, step = 1, 0, 1.0
    first, last = math.ceil(low / factor / step - 1e-9), math.floor(high / factor / step + 1e-9)
    if rounded:
        first, last = math.floor(low / factor / step + 1e-9), math.ceil(high / factor / step - 1e-9)
    ticks = []
    for count in range(first, last + 1):
        at = float(f"{count * mantissa}e{exponent}")
        text = format_number(at) if own else _split(tick_text(axis, at))[0]
        ticks.append((at * factor, text))
    return _shortened(ticks), suffix


def round_step(least: float) -> tuple[int, int]:
    """Return mantissa and exponent of the smallest 1, 2 or 5 times a power of ten ≥ `least`."""
    exponent = math.floor(math.log10(least))
    smallest = least / 10.0**exponent * (1 - 1e-9)
    return next(mantissa for mantissa in (1, 2, 5, 10) if mantissa >= smallest), exponent


def _shortened(ticks: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Remove trailing zeros that all labels share: 0.0%, 20.0% become 0% and 20%."""
    parts = [re.fullmatch(r"([^.]*)\.(\d+)(%?)", text) for _, text in ticks]
    found = [part.groups() for part in parts if part]
    if not found or len(found) < len(ticks):
        return ticks
    kept = max(len(digits.rstrip("0")) for _, digits, _ in found)
    texts = [f"{whole}.{digits[:kept]}".rstrip(".") + unit for whole, digits, unit in found]
    return [(value, text) for (value, _), text in zip(ticks, texts, strict=True)]


def _display_unit(axis: Axis, largest: float) -> tuple[str, float, bool]:
    """Return the unit in which ticks are plain numbers, its size, and whether there is one."""
    asked = asked_for(axis.spec)
    if asked:
        return asked.word, asked.factor.size, True
    spec = _spec(axis)
    if not _named(spec) or not largest:
        return _word(axis), 1.0, False
    number, suffix = _split(_text(axis, largest))
    if not re.fullmatch(r"[\d,.]+", number):
        return suffix or _word(axis), 1.0, False
    factor = read_quantity(f"1 {suffix}").value if suffix else 1.0
    return suffix or _word(axis), float(factor), True


def labelled(axis: Axis, values: list[float]) -> tuple[list[tuple[float, str]], str]:
    """Return the labels of ticks; a unit that all of them share moves to the axis label."""
    asked = asked_for(axis.spec)
    if asked:
        return [(value, format_number(value / asked.factor.size)) for value in values], asked.word
    if not _named(_spec(axis)):
        return [(value, tick_text(axis, value)) for value in values], _word(axis)
    texts = [_text(axis, value, max(values)) for value in values]
    parts = [_split(text) for text in texts]
    suffixes = {suffix for _, suffix in parts}
    if len(suffixes) == 1:
        shared = min(suffixes) or _word(axis)
        return [(v, number) for v, (number, _) in zip(values, parts, strict=True)], shared
    return list(zip(values, texts, strict=True)), ""


def tick_text(axis: Axis, value: float) -> str:
    """Format a value as a tick of the axis, with its unit."""
    return shown(value, axis.unit, _spec(axis))


def value_text(axis: Axis, value: float) -> str:
    """Format a value for a label or hover text, with its unit; "–" if it is not finite."""
    if not math.isfinite(value):
        return "–"
    asked = asked_for(axis.spec)
    if asked:
        number = format_number(value / asked.factor.size, int(asked.digits))
        return f"{number}{NBSP}{asked.word}"
    text = _text(axis, value)
    return text if _named(_spec(axis)) or not (word := _word(axis)) else f"{text}{NBSP}{word}"


def _text(axis: Axis, value: float, largest: float | None = None) -> str:
    """Format a value; ratios such as FLOP/B and counts get no prefix while they are readable."""
    above, _, below = axis.unit.partition("/")
    counted = (
        above == "1" or is_counted(above) or (above in ("FLOP", "B") and below not in ("", "s"))
    )
    if counted and _spec(axis) == "si" and max(abs(value), largest or 0.0) < 100_000:
        return shown(value, axis.unit, "unit")
    return tick_text(axis, value)


def _spec(axis: Axis) -> str:
    """Resolve `si`: minutes for long times and, on an axis of powers of two, binary prefixes."""
    if axis.unit == "s" and axis.spec == "si":
        return "time"
    if axis.unit == "B" and axis.scale == "log2" and axis.spec in ("", "si", "bytes"):
        return "gib"
    return axis.spec


def _named(spec: str) -> bool:
    name, dot, _ = spec.partition(".")
    return name in NAMED and (bool(name) or not dot)  # ".3f" is Python's


def _word(axis: Axis) -> str:
    """Return the unit for the axis label if the ticks do not show it."""
    percent = axis.spec.endswith("%")
    return "" if axis.unit in ("1", "") or percent else axis.unit


def _split(text: str) -> tuple[str, str]:
    """Split a formatted quantity into number and unit: `1.5 ms` gives `("1.5", "ms")`."""
    found = re.fullmatch(rf"(.*?)(?:{NBSP}([^\d×{NBSP}][^{NBSP}]*))?", text)
    return (found[1], found[2] or "") if found else (text, "")
