"""Parse quantities as people write them ("3.35 TB/s", "2h30", "43,5 ms") to numbers in SI.

The fields of the tools use this code too, printed as JavaScript. Prefixes are decimal
(1 GB = 1e9 B); binary ones are written out (1 GiB = 2**30 B). Bits exist only as line rates
("400 Gb/s" or "400 Gbps" is 50e9 B/s). A comma between groups of three digits separates thousands
("1,500 ms"); elsewhere a single comma is a decimal comma ("43,5 ms").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from figgen.errors import InputError, closest
from figgen.quantity_units import (
    AMOUNTS,
    BINARY,
    MEASURED,
    OTHER,
    PLAIN_COUNTS,
    POWERS,
    SHORT_SCALE,
    SUPERSCRIPTS,
    THINGS,
    TIMES,
    is_counted,
)

ALIASES: dict[str, str] = {
    "us": "µs", "μs": "µs", "microbatches": "microbatch", "parameter": "param", "byte": "B",
    "sec": "s", "second": "s", "minute": "min", "hour": "h", "GPU-hour": "GPU-h", "$": "USD",
    "micro-batch": "microbatch",
}  # fmt: skip

SPELLED_OUT: dict[str, str] = {"d": "days", "mo": "months", "hr": "h", "hrs": "h", "m": "min"}
"""Abbreviations that are not read, since they have other meanings too, and what to write."""

MOST_DIGITS, MOST_POWER = 60, 300

_NUMBER = re.compile(
    r"\s*([+\-−]?)(\d[\d,_.]*|\.\d+)(?:[eE]([+\-−]?\d+))?"
    r"(?:\s*×\s*10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?\s*([^\s].*)?"
)
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?")
_DECIMAL_COMMA = re.compile(r"(?:[1-9]\d{0,2}(?:\.\d{3})+|\d+),\d+")
_CLOCK = re.compile(r"\s*(?:(\d+)-)?(\d+):(\d\d):(\d\d)\s*")
"""Hours, minutes and seconds such as "1:30:00", with days as Slurm writes them: "1-06:30:00"."""
_PARTS = re.compile(
    r"\s*(?:(\d+)\s*d(?:ays?)?)?\s*(?:(\d+)\s*h(?:ours?|rs?)?)?"
    r"\s*(?:(\d+)\s*m(?:in(?:ute)?s?)?\s*(?:(\d+)\s*s(?:ec(?:ond)?s?)?)?)?\s*"
)
"""Days, hours, minutes and seconds such as "2 h 30 min" or "1m30s"."""
_BARE_MINUTES = re.compile(r".*h\s*\d+\s*")
"""A time such as "2h30"."""
_SEVERAL = re.compile(r"\d\D+\d")
_COUNTED = re.compile(r"([KMGT]i|[KMBT])\s+(\w+)")
_IN_UNIT = re.compile(r"in(?:\.(\S*))? (.+)")
_LINE_RATE = re.compile(r"([kMGT]?)(?:(?:b|bit)/s|bps)")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in SI and its unit, e.g. `Quantity(3.35e12, "B/s")`."""

    value: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """The conversion of a written unit to SI: `times` / `over` · 10^`power` of `unit`."""

    unit: str
    times: int = 1
    over: int = 1
    power: int = 0

    @property
    def size(self) -> float:
        """How many SI units one written unit is."""
        return self.times / self.over * float(f"1e{self.power}")


@dataclass(frozen=True, slots=True)
class AskedUnit:
    """The unit that a format such as `in.2 km/h` asks for; `digits` are the significant ones."""

    word: str
    factor: Factor
    digits: str


SCALED: dict[str, Factor] = {}
"""Units that a site defines as a multiple of a different unit."""


def read_quantity(text: str) -> Quantity:
    """Parse `text` to a quantity in SI: `read_quantity("25 MiB")` is 26,214,400 B.

    A number alone is dimensionless, "45%" is 0.45 and "8k" is 8000. The product of number and
    prefix is computed exactly: the result is an int if it is whole, else the nearest float.

    Raises InputError for text that is not a number with a known unit.
    """
    seconds = read_time(text) if re.search(_SEVERAL, text) else None
    return read_one(text) if seconds is None else Quantity(seconds, "s")


def read_one(text: str) -> Quantity:
    """Parse a number with at most one unit, so not "2h30".

    Raises InputError as `read_quantity` does.
    """
    match = re.fullmatch(_NUMBER, text)
    if not match:
        raise InputError("not a quantity", expected='a number and a unit, as "3.35 TB/s"', got=text)
    exponent = (match[3] or "0").replace("−", "-")
    raised = lowered(match[4] or "⁰")
    if len(match[2]) > MOST_DIGITS or _is_long(exponent) or _is_long(raised):
        # An exact 10⁹⁹⁹⁹⁹⁹⁹⁹⁹ would take hours.
        raise InputError("not a quantity", expected="at most a few dozen digits", got=text[:40])
    digits = plain_digits(match[2])
    written = (match[5] or "1").strip()
    factor = Factor(unit="1", power=-2) if written == "%" else unit_factor(written)
    value = _value(digits, int(exponent) + int(raised), factor, text)
    return Quantity(-value if match[1] in ("-", "−") else value, factor.unit)


def read_time(text: str) -> int | None:
    """Return the seconds in days, hours, minutes and seconds: 9000 for "2h30"; None for other text.

    "1:30" is refused, since it may be hours or minutes.
    """
    written = f"{text}m" if re.fullmatch(_BARE_MINUTES, text) else text
    match = re.fullmatch(_CLOCK, text) or re.fullmatch(_PARTS, written)
    if not match or not text.strip() or len(text) > MOST_DIGITS:
        return None
    days, hours, minutes, seconds = [int(part or "0") for part in match.groups()]
    if (match[2] and minutes > 59) or (match[3] and seconds > 59):
        return None
    return 86_400 * days + 3600 * hours + 60 * minutes + seconds


def _is_long(power: str) -> bool:
    return len(power.lstrip("+-0")) > 3


def lowered(power: str) -> str:
    """Convert superscript digits to plain digits."""
    return "".join("-" if sign == "⁻" else str(SUPERSCRIPTS.find(sign)) for sign in power)


def plain_digits(digits: str) -> str:
    """Return digits with a decimal point, without separators; InputError if one is misplaced."""
    plain = digits.replace("_", "")
    if re.fullmatch(_THOUSANDS, plain):
        plain = plain.replace(",", "")
    elif re.fullmatch(_DECIMAL_COMMA, plain):
        plain = plain.replace(".", "").replace(",", ".")
    if not re.fullmatch(r"\d+\.?\d*|\.\d+", plain):
        expected = "thousands as 1,234,567.8 and decimals as 43.5 or 43,5"
        raise InputError("not a number", expected=expected, got=digits)
    return plain


def _value(digits: str, exponent: int, factor: Factor, text: str) -> float:
    """Return the product of digits, power of ten and factor, rounded once."""
    whole, _, rest = digits.partition(".")
    figures = f"{whole}{rest}".lstrip("0")
    if figures == "":
        return 0
    power = exponent + factor.power - len(rest)
    size = len(figures) + power
    if not -MOST_POWER < size <= MOST_POWER:
        raise InputError("not a quantity", expected="a number between 1e-300 and 1e300", got=text)
    above = int(figures) * factor.times
    below = factor.over
    if power >= 0:
        above *= 10**power
    else:
        below *= 10**-power
    return above // below if above % below == 0 else above / below


@lru_cache(maxsize=1024)
def unit_factor(text: str) -> Factor:
    """Return the conversion of a written unit to SI. Raises InputError for an unknown unit."""
    counted = re.fullmatch(_COUNTED, text)
    if counted:
        count = base_unit(counted[2])
        if is_counted(count) or count == "USD":
            times = BINARY.get(counted[1], 1)
            return Factor(
                unit=count, times=times, power=0 if times > 1 else SHORT_SCALE[counted[1]]
            )
    line_rate = re.fullmatch(_LINE_RATE, text)
    if line_rate:
        return Factor(unit="B/s", over=8, power=POWERS[line_rate[1]] if line_rate[1] else 0)
    if text in PLAIN_COUNTS and not is_base(text):
        return Factor(unit="1", power=PLAIN_COUNTS[text])
    terms = text.split("/")
    found = _term(terms[0].strip(), text)
    unit, times, over, power = found.unit, found.times, found.over, found.power
    for term in terms[1:]:
        below = _term(term.strip(), text)
        unit = f"{unit}/{below.unit}"
        times, over, power = times * below.over, over * below.times, power - below.power
    return Factor(unit=unit, times=times, over=over, power=power)


def asked_for(spec: str) -> AskedUnit | None:
    """Return the unit that a format such as `in km/h` asks for; None for any other format.

    Raises InputError for an unknown unit.
    """
    found = re.fullmatch(_IN_UNIT, spec)
    if not found:
        return None
    word = found[2].strip()
    return AskedUnit(word, unit_factor(word), found[1] or "3")


def is_base(word: str) -> bool:
    """Return whether `word` is a unit that is not a multiple of a different unit."""
    return word in MEASURED or is_counted(word) or word in OTHER


def base_unit(word: str) -> str:
    """Return the base unit that `word` names, in the singular; "" if it names none."""
    found = ALIASES.get(word, word)
    if is_base(found) or found in TIMES:
        return found
    if not found.endswith("s"):
        return ""
    one = ALIASES.get(found[:-1], found[:-1])
    plural = is_counted(one) or one in OTHER or one == "day" or one != found[:-1]
    return one if plural else ""


def _term(written: str, whole: str) -> Factor:
    word = ALIASES.get(written, written)
    if word in SCALED:
        return SCALED[word]
    base = base_unit(word)
    if base:
        return Factor(unit="s", times=TIMES[base]) if base in TIMES else Factor(unit=base)
    for prefix, times in BINARY.items():
        if word.startswith(prefix) and base_unit(word[len(prefix) :]) == "B":
            return Factor(unit="B", times=times)
    power = POWERS.get(word[:1], 0)
    base = base_unit(word[1:])
    if power and (base in MEASURED or base in ("param", "token")):
        return Factor(unit=base, power=power)
    raise _unknown_unit(whole, written)


def _unknown_unit(whole: str, written: str) -> InputError:
    """Return the error for a unit of which `written` is unknown, with similar units."""
    known = [*MEASURED, *THINGS, *AMOUNTS, *OTHER, *TIMES]
    for prefix, power in POWERS.items():
        if power > 0:
            known += [f"{prefix}{base}" for base in ("B", "B/s", "FLOP", "FLOP/s", "b/s")]
        else:
            known.append(f"{prefix}s")
    known += ["B/s", "FLOP/s", "b/s", *(f"{prefix}B" for prefix in BINARY)]
    meant = whole.lower().replace("flops", "flop/s")
    meant = f"{meant[:-2]}/s" if meant.endswith("ps") else meant
    folded = [unit for unit in sorted(known) if unit.lower() == meant]
    if written in SPELLED_OUT:
        terms = [SPELLED_OUT.get(term.strip(), term) for term in whole.split("/")]
        folded = ["/".join(terms)]
    return InputError(
        f"unknown unit {whole!r}" if written == whole else f"unknown unit {written!r} in {whole!r}",
        expected=None if folded else "a unit such as B, GB/s, TFLOP/s, µs or ranks",
        nearest=folded or closest(whole, sorted(known)),
    )
