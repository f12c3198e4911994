"""Shared parts of validation figures: the runs of a side, and the diagonal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol, TypeVar

from figgen.charts import Column, Series
from figgen.errors import InputError

SIDES: Mapping[str, tuple[bool, ...]] = {
    "all": (False, True), "test": (True,), "calibration": (False,),
}  # fmt: skip


class JudgedSide(Protocol):
    """A measured and a modeled value of a run, and whether the run was part of a fit."""

    @property
    def tested(self) -> bool: ...


Kind = TypeVar("Kind", bound=JudgedSide)


def on_side(side: str, judged: list[Kind]) -> list[Kind]:
    """Return the runs of a side. Raises InputError for an unknown side."""
    if side not in SIDES:
        raise InputError("side", expected=" or ".join(SIDES), got=side)
    return [one for one in judged if one.tested in SIDES[side]]


def diagonal(low: float, high: float, beside: Mapping[str, float]) -> Iterator[Series]:
    """Yield the line of equality, and dashed lines a factor `beside` it, by their names."""
    yield Series(name="as measured", x=(low, high), y=(low, high), role="reference")
    for name, factor in beside.items():
        ends = (factor * low, factor * high)
        yield Series(name=name, x=(low, high), y=ends, role="reference", style="dashed")


def error_columns(within: str, *before: str) -> tuple[Column, ...]:
    """Return columns of signed and worst errors after those of sizes, and the share `within`."""
    return (
        *(Column(label=name, spec=".1%") for name in before),
        Column(label="median, signed", spec="+.1%"),
        Column(label="worst", spec="+.0%"),
        Column(label=f"within a {within}", spec=".0%"),
    )
