"""Numbers as people type them in a field or after an option: `8k`, `4M tokens`, `43,5 ms`.

The fields of the tools use the same code, printed as JavaScript.
"""

from __future__ import annotations

import re

from figgen.errors import InputError
from figgen.quantity_text import Quantity, plain_digits, read_quantity, read_time
from figgen.quantity_units import plural

COUNTED: dict[str, tuple[str, ...]] = {
    "sequence": ("token",),
    "document_tokens": ("token",),
    "global_batch": ("sequence", "sample"),
    "microbatch_size": ("sequence", "sample"),
    "microbatches": ("microbatch",),
    "nodes": ("node",),
    "gpus_per_node": ("GPU",),
    "stages": ("stage", "rank"),
    "chunks": ("chunk",),
    "buckets": ("bucket",),
}
"""Units that may follow the number of an option that counts something."""

MOST = 1e30
"""The largest quantity that a field accepts; larger ones might overflow arithmetic."""

A_TIME = "a time, such as 43.5 ms, 2h30 or 1:30:00 (hours, minutes, seconds)"

_GERMAN = re.compile(r"\s*\d{1,3}(?:\.\d{3})+\s*")
_PREFIXED = re.compile(r"\s*[\d.,]+\s*[kKMGBT]\s*")
_SMALL_M = re.compile(r"(.*\d)\s*m\s*tok(?:en)?s?\s*")
_BINARY = re.compile(r"\s*([\d.,]+)\s*([kKM])i?\s*(?:tokens?|tok)?\s*")


def typed_count(name: str, text: str) -> int:
    """Return the whole number, of any size, in the `text` for the option `name`.

    For a sequence, 8k tokens are 8,192. Raises InputError for a text that is not a whole number,
    for a wrong unit, and for "1.000", which some readers take for 1 and others for 1,000.
    """
    if re.fullmatch(_GERMAN, text):
        many = text.strip().replace(".", ",")
        one = text.strip().partition(".")[0]
        raise InputError(name, expected="a whole number", got=text, nearest=(many, one), key=name)
    if name in ("sequence", "document_tokens"):
        tokens = _binary_tokens(text)
        if tokens is not None:
            return _whole(name, tokens, text)
    found = read_quantity(text)
    if found.unit != "1" and found.unit not in COUNTED.get(name, ()):
        units = COUNTED.get(name, ())
        expected = f"a number of {plural(units[0])}" if units else "a number without a unit"
        raise InputError(name, expected=expected, got=text, key=name)
    return _whole(name, found.value, text)


def _whole(name: str, value: float, text: str) -> int:
    if value % 1:
        raise InputError(name, expected="a whole number", got=text, key=name)
    return int(value)


def _binary_tokens(text: str) -> float | None:
    """Return tokens with k = 1,024 and M = 1,024², as in sequences and batches, or None."""
    match = re.fullmatch(_BINARY, text)
    if not match:
        return None
    return float(plain_digits(match[1])) * (2**20 if match[2] == "M" else 1024)


def typed_amount(name: str, text: str, unit: str, scale: float) -> float:
    """Return the number in `text`, of any size, in units of `scale` times the SI `unit`.

    A bare number is in these units; a number with a unit is converted, and "45%" is 0.45. Tokens
    need no unit after a prefix: "1T" and "500B" count the tokens of a training. A price or budget
    may have a currency's sign. Raises InputError for a text that is not a number, and for a wrong
    unit.
    """
    counted = unit == "token" and re.fullmatch(_PREFIXED, text) is not None
    plain = re.sub(r"[$€£¥]", "", text) if name in ("price", "budget", "money") else text
    found = _quantity(name, f"{text} tokens" if counted else plain, unit)
    if found.unit == "1":
        return found.value
    if found.unit != unit:
        expected = "a number without a unit" if unit == "1" else f"a quantity in {unit}"
        raise InputError(name, expected=expected, got=text, key=name)
    return found.value / scale


def _quantity(name: str, text: str, unit: str) -> Quantity:
    """Return the quantity in the text of a field in the SI `unit`.

    In the field of a time, "3 d" and "5m" have one meaning only. Raises InputError for a text that
    is none.
    """
    if unit != "s":
        return read_quantity(text)
    seconds = read_time(text)
    if seconds is not None:
        return Quantity(seconds, "s")
    try:
        return read_quantity(text)
    except InputError as error:
        near = error.nearest
        raise InputError(name, expected=A_TIME, got=text, nearest=near, key=name) from None


def work_rate(text: str) -> str:
    """Return `text` with FLOPS or FLOPs at its end, as datasheets write a rate, as FLOP/s."""
    return re.sub(r"FLOP[sS]\s*$", "FLOP/s", text)


def typed_measure(name: str, text: str, unit: str) -> float:
    """Return the quantity in `text` in the SI `unit`; bytes need no unit.

    Raises InputError, naming `name`, for any other text, and for a value that is negative or
    implausible.
    """
    try:
        found = _quantity(name, work_rate(text) if unit == "FLOP/s" else text, unit)
    except InputError as error:
        if error.key:
            raise
        raise InputError(
            f"{name}: {error.what}", expected=error.expected, got=error.got, nearest=error.nearest
        ) from None
    value, given = found.value, found.unit
    if given == "1" and unit == "B" and text.strip()[-1:].isdigit():
        given = "B"
    if given != unit:
        raise InputError(name, expected=f"a quantity in {unit}", got=text)
    if not 0 <= value <= MOST:
        raise InputError(name, expected=f"0 to 1e+30 {unit}", got=text)
    return value


def bare_bytes(text: str) -> str:
    """Return what a number of bytes without a unit was taken for, or "" for any other text."""
    plain = text.strip()
    return f"{plain} has no unit: read as bytes" if plain[-1:].isdigit() else ""


def typed_batch(text: str, sequence: int, share: int) -> int:
    """Return the sequences of a global batch, typed as sequences ("512") or tokens ("4M tokens").

    `share` is the number of sequences in one microbatch of all replicas. "M" means a million tokens
    if that gives a whole number of shares, and 2**20 otherwise: 4M tokens are 512 sequences of
    8,192, and so are 4m, 4e6 and 4,000,000 tokens.

    Raises InputError for a text that is not such a batch, with the nearest batches.
    """
    name = "global_batch"
    if re.search(r"\d\s*[MBT]\s*$", text):
        expected = "a unit, as in 512 sequences or 4M tokens"
        raise InputError(name, expected=expected, got=text, key=name)
    if not re.search(r"tok", text):
        sequences = typed_count(name, text)
        if sequences < 1:
            raise InputError(name, expected="at least 1 sequence", got=text, key=name)
        if sequences % share == 0:
            return sequences
        expected = f"a multiple of {share} (replicas × sequences of a microbatch)"
        raise _no_multiple(expected, text, [sequences], share)
    small = re.fullmatch(_SMALL_M, text)
    tokens = read_quantity(f"{small[1]}M tokens" if small else re.sub(r"tok\s*$", "tokens", text))
    if tokens.unit != "token" or tokens.value <= 0:
        expected = "sequences or tokens, such as 512 or 4M tokens"
        raise InputError(name, expected=expected, got=text, key=name)
    millions = tokens.value / 1e6
    binary = _binary_tokens(text) if millions % 1 else millions * 2**20
    counts = [count / sequence for count in (tokens.value, binary) if count is not None]
    for count in counts:
        if count % share == 0:
            return int(count)
    expected = f"a multiple of {share} sequences of {sequence:,} tokens"
    raise _no_multiple(expected, text, counts, share)


def _no_multiple(expected: str, text: str, counts: list[float], share: int) -> InputError:
    """Return the error for a batch that replicas can't share evenly, with the nearest ones."""
    nearest: list[str] = []
    for count in counts:
        for below in (count // share, count // share + 1):
            near = str(int(below) * share)
            if below >= 1 and near not in nearest:
                nearest.append(near)
    return InputError(
        "global_batch", expected=expected, got=text, nearest=nearest, key="global_batch"
    )
