"""The frozen test points of the formula catalog, as evaluations."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ORACLE = json.loads(
    (Path(__file__).parents[2] / "figgen" / "formulas" / "points.json").read_text(encoding="utf-8")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A formula at `arguments`, and the value that was computed independently."""

    catalogue_id: str | None
    formula: str
    arguments: dict[str, float]
    value: float

    def __str__(self) -> str:
        given = ",".join(f"{key}={value:g}" for key, value in self.arguments.items())
        return f"{self.formula}({given})"


def _point(row: dict[str, Any]) -> Point:
    return Point(
        catalogue_id=row.get("id"),
        formula=row["formula"],
        arguments=row["arguments"],
        value=row["value"] * row.get("per", 1),
    )


CATALOGUE_IDS: tuple[str, ...] = tuple(ORACLE["ids"])
POINTS: tuple[Point, ...] = tuple(_point(row) for row in ORACLE["points"])
# One point of every formula that has any; the first is as good as another.
FIRST: dict[str, Point] = {point.formula: point for point in reversed(POINTS)}
