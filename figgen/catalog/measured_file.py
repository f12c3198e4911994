"""Reads what `measure.py` writes on a reader's machine: JSON in, checked tables out.

The program is `docs/tools/measure/measure.py`. A reader's file is not part of the catalog, but it
must state as much as an entry of it: what was measured, at which sizes, in how many seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeAlias

from figgen.errors import InputError, closest
from figgen.json_text import read_json

FORMAT, VERSION = "parallelism-computed/measured", 2
VERSIONS = (1, VERSION)
"""Supported versions. The first timed a matmul including its launch, and had fewer tables."""

LONGEST = 2**24
"""Most characters of a file; the program writes some ten thousand."""

Row: TypeAlias = Mapping[str, Any]

COUNT, SECONDS, BYTES = "a whole number from 1 on", "seconds above 0", "bytes from 0 on"
FORMATS, PASSES = ("bf16", "fp16", "fp8", "fp4", "tf32"), ("forward", "backward")
SIDES, MASKS = ("forward", "input", "weight"), ("causal", "explicit")
PLAIN_KERNELS = ("copy", "add", "norm", "softmax")
KERNELS = (*PLAIN_KERNELS, "broadcast", "mixed", "strided", "reduce", "gate")
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
MODES, STATES = ("eager", "compiled"), ("autocast", "bf16")

Keys: TypeAlias = Mapping[str, str | tuple[str, ...]]

_LAYER = dict.fromkeys(("hidden", "ffn", "heads", "sequence", "batch"), COUNT)
_MEMORY = dict.fromkeys(("state_bytes", "peak_allocated_bytes", "peak_reserved_bytes"), BYTES)
TABLES: Mapping[str, Keys] = {
    "products": {
        "format": FORMATS,
        "side": SIDES,
        **dict.fromkeys(("m", "n", "k"), COUNT),
        "seconds": SECONDS,
    },
    "grouped": {
        "format": FORMATS,
        "way": ("grouped", "loop"),
        **dict.fromkeys(("experts", "tokens", "n", "k"), COUNT),
        "seconds": SECONDS,
    },
    "attention": {
        "format": FORMATS,
        "mask": MASKS,
        **dict.fromkeys(("batch", "heads", "head_dim", "sequence"), COUNT),
        "pass": PASSES,
        "seconds": SECONDS,
    },
    "kernels": {"kernel": KERNELS, "bytes": COUNT, "seconds": SECONDS},
    "host": {"what": ("forward", "both", "gap"), "kernels": COUNT, "seconds": SECONDS},
    "optimizer": {
        "format": ("fp32", "bf16"),
        "parameters": COUNT,
        "update_s": SECONDS,
        "clip_s": SECONDS,
    },
    "loss": {"mode": MODES, "tokens": COUNT, "vocab": COUNT, "seconds": SECONDS},
    "layers": {"format": FORMATS, **_LAYER, "forward_s": SECONDS, "both_s": SECONDS},
    "steps": {**_LAYER, "layers": COUNT, "parameters": COUNT, **_MEMORY},
    "training": {
        "mode": MODES,
        "state": STATES,
        "mask": MASKS,
        **_LAYER,
        **dict.fromkeys(("layers", "kv_heads", "vocab", "parameters"), COUNT),
        "seconds": SECONDS,
        **_MEMORY,
    },
    "collectives": {
        "collective": COLLECTIVES,
        "ranks": COUNT,
        "nodes": COUNT,
        "message_bytes": COUNT,
        "seconds": SECONDS,
    },
}
"""The tables of a file with the keys of their rows, and the type or the allowed words of each
value.

The first version has `steps`, memory without time; the second has `training` in its place.
"""

USUAL: Mapping[str, Mapping[str, str]] = {
    "products": {"side": "forward"}, "attention": {"mask": "causal"},
}  # fmt: skip
"""Keys that a row may omit, as in the first version, with the values that they then have."""

MACHINE = ("date", "device", "kind", "memory_bytes", "nodes", "ranks", "runtime", "torch")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFile:
    """The description of a machine, and the rows of each table, which may be empty."""

    version: int
    device: str
    kind: str
    memory_bytes: float
    ranks: int
    nodes: int
    torch: str
    date: str
    tables: Mapping[str, tuple[Row, ...]]


def read_measured(text: str) -> MeasuredFile:
    """Return the content of a file.

    Raises InputError, naming table, row and key, for other files and for impossible values.
    """
    return measured_file(text, read_json)


def measured_file(text: str, read: Callable[[str], Any]) -> MeasuredFile:
    """Return the content, parsed by `read`.

    `read` parses JSON and raises ValueError if it is invalid; pages use a different one.
    """
    if len(text) > LONGEST:
        raise InputError("measured file", expected=f"at most {LONGEST:,} characters", got=len(text))
    try:
        content = read(text)
    except ValueError:
        raise InputError("measured file", expected="the JSON of measure.py") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError("measured file", expected=f'"format": "{FORMAT}"')
    version = content.get("version")
    if version not in VERSIONS or isinstance(version, bool):
        expected = " or ".join(map(str, VERSIONS))
        raise InputError("measured file: version", expected=expected, got=version)
    machine = content.get("machine")
    if not isinstance(machine, dict) or any(key not in machine for key in MACHINE):
        raise InputError("measured file: machine", expected=", ".join(MACHINE))
    counts = {key: _number(f"machine.{key}", machine[key], COUNT) for key in ("ranks", "nodes")}
    return MeasuredFile(
        version=int(version),
        device=str(machine["device"])[:100],
        kind=str(machine["kind"])[:20],
        memory_bytes=_number("machine.memory_bytes", machine["memory_bytes"], BYTES),
        ranks=int(counts["ranks"]),
        nodes=int(counts["nodes"]),
        torch=str(machine["torch"])[:40],
        date=str(machine["date"])[:20],
        tables={name: _rows(name, content.get(name), USUAL.get(name, {})) for name in TABLES},
    )


def _rows(name: str, listed: object, usual: Mapping[str, str]) -> tuple[Row, ...]:
    """Return the rows of a table, none if the file lacks it."""
    if listed is None:
        return ()
    if not isinstance(listed, list):
        raise InputError(f"measured file: {name}", expected="a list")
    return tuple(_row(f"{name}[{at}]", row, TABLES[name], usual) for at, row in enumerate(listed))


def _row(where: str, row: object, keys: Keys, usual: Mapping[str, str]) -> Row:
    if not isinstance(row, dict):
        raise InputError(f"measured file: {where}", expected="an object")
    given: Row = {**usual, **row}
    for key in given:
        if key not in keys:
            raise InputError(f"measured file: {where}.{key}", nearest=closest(key, keys))
    found: dict[str, Any] = {}
    for key, wanted in keys.items():
        place = f"{where}.{key}"
        if isinstance(wanted, tuple):
            if given.get(key) not in wanted:
                raise _refused(place, " or ".join(wanted), given.get(key))
            found[key] = given[key]
        else:
            found[key] = _number(place, given.get(key), wanted)
    return found


def _number(place: str, value: object, wanted: str) -> float:
    number = float("nan")
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
    bad = not isfinite(number) or number < 0 or (wanted != BYTES and number == 0)
    if bad or (wanted == COUNT and number != int(number)):
        raise _refused(place, wanted, value)
    return number


def _refused(place: str, expected: str, value: object) -> InputError:
    got = "missing" if value is None else value
    return InputError(f"measured file: {place}", expected=expected, got=got)
