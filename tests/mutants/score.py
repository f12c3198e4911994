"""The score of a sample, and what it implies for all mutants."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

Z = 1.959964  # 95 %
REASONS = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One mutant: its place, the line before and after, and the test that fails on it."""

    path: str
    line: int
    operator: str
    before: str
    after: str
    killer: str
    golden: bool = False  # no test but those against our own golden texts fails

    @property
    def survived(self) -> bool:
        return not self.killer


def wilson(killed: int, total: int) -> tuple[float, float]:
    """Return the 95% interval of a share, if `killed` of `total` were seen (Wilson, 1927)."""
    share, tail = killed / total, Z * Z / total
    middle = (share + tail / 2) / (1 + tail)
    half = Z * math.sqrt(share * (1 - share) / total + tail / total / 4) / (1 + tail)
    return middle - half, middle + half


@dataclass(frozen=True, kw_only=True)
class Equivalent:
    """Mutants that no test can detect, with the reason: patterns of the operator and of the two
    lines."""

    reason: str
    operator: str = ""
    path: str = ""
    line: str = ""
    becomes: str = ""

    def covers(self, found: Outcome) -> bool:
        pairs = (
            *((self.operator, found.operator), (self.path, found.path)),
            *((self.line, found.before), (self.becomes, found.after)),
        )
        return all(re.search(pattern, text) for pattern, text in pairs)


def equivalents() -> tuple[Equivalent, ...]:
    entries = tomllib.loads(REASONS.read_text("utf-8"))["equivalent"]
    return tuple(Equivalent(**entry) for entry in entries)


def table(outcomes: Iterable[Outcome]) -> list[str]:
    """Return a line per module, per room and for all; survivors are listed below."""
    found = list(outcomes)
    rooms = sorted({"/".join(each.path.split("/")[:2]) for each in found})
    modules = sorted({each.path for each in found})
    rows = [(name, [each for each in found if each.path == name]) for name in modules]
    rows += [(name, [each for each in found if each.path.startswith(f"{name}/")]) for name in rooms]
    lines = [_row(name, some) for name, some in [*rows, ("all", found)]]
    strict = sum(not each.survived and not each.golden for each in found)
    lines.append(f"without golden texts: {_share(strict, len(found))}")
    return lines


def survivors(outcomes: Iterable[Outcome]) -> list[str]:
    return [
        f"{each.path}:{each.line}: {each.operator.removeprefix('core/')}\n"
        f"  - {each.before.strip()}\n  + {each.after.strip()}"
        for each in sorted(outcomes, key=lambda each: (each.path, each.line))
        if each.survived
    ]


def _row(name: str, found: list[Outcome]) -> str:
    return f"{name:45}{_share(sum(not each.survived for each in found), len(found))}"


def _share(killed: int, total: int) -> str:
    low, high = wilson(killed, total)
    return f"{killed:5} of {total:5} {killed / total:6.1%}  ({low:.1%} to {high:.1%})"
