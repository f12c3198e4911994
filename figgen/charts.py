"""The nine kinds of charts, as data.

A chart contains everything that a renderer needs in absolute data coordinates: a renderer scales to
the page and does no other arithmetic, so that SVG, Plotly and text agree. `role` names a meaning
(`"tp"`, `"forward"`, `"series-1"`), never a color: `figgen.theme` decides how a role looks.
`values` are the figure's named results, which its caption and its alternative text may quote as
`{{ name:spec }}`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, NamedTuple, Protocol, TypeAlias

Scalar: TypeAlias = float | int | str


class Named(NamedTuple):
    """One named result of a figure, in SI, with its unit (`"1"` for a pure number)."""

    value: Scalar
    unit: str = "1"


Values: TypeAlias = Mapping[str, Named]

PREDICTED = "predicted_of"
"""The name of a value of each chart with predicted times; its caption ends with their interval."""


class Interval(Protocol):
    """The interval of measured over predicted time that contains eight in ten runs of a class."""

    @property
    def name(self) -> str: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def interval_values(*classes: Interval) -> dict[str, Named]:
    """Return the values `predicted_*`: the interval of eight in ten runs of each of `classes`.

    The widest bounds if there are several classes, and nothing if there are none.
    """
    if not classes:
        return {}
    kinds: dict[str, list[str]] = {}
    for name in dict.fromkeys(each.name for each in classes):
        software, _, kind = name.partition(", ")
        kinds.setdefault(software, []).append(kind)
    said = [", ".join(filter(None, (one, " and ".join(of)))) for one, of in kinds.items()]
    return {
        PREDICTED: Named("; ".join(said)),
        "predicted_low": Named(min(each.low for each in classes)),
        "predicted_high": Named(max(each.high for each in classes)),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RankCell:
    """One GPU: its global rank, its node, its local rank, and its index along each axis."""

    rank: int
    node: int
    local_rank: int
    coordinates: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunicatorView:
    """One way to color a grid: the group of each cell."""

    name: str
    label: str
    size: int
    group_count: int
    group_of_cell: tuple[int, ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGrid:
    """GPUs drawn node by node; `cells` may be one block of a world `multiplicity` times larger."""

    axes: tuple[str, ...]
    cells: tuple[RankCell, ...]
    communicators: tuple[CommunicatorView, ...]
    gpus_per_node: int
    world_size: int
    multiplicity: int = 1
    values: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One action on one lane.  `chunk` counts the lane's virtual stages from 0."""

    lane: int
    start: float
    end: float
    role: str
    label: str
    chunk: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Lanes over time, from 0 to `end`; time that no slot covers is idle.

    `ends` are the times at which the lanes finish, if they differ.
    """

    lanes: tuple[str, ...]
    slots: tuple[Slot, ...]
    end: float
    time_label: str
    time_unit: str = "1"
    ends: tuple[float, ...] = ()
    values: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """One message of a step: `source` sends `chunks` to `target`, which adds or copies them."""

    source: int
    target: int
    chunks: tuple[int, ...]
    reduces: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The state before a step's transfers: `contents[rank][chunk]` lists who has contributed.

    The last frame of a trace has no transfers: it shows the result.
    """

    title: str
    phase: str
    transfers: tuple[Transfer, ...]
    contents: tuple[tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """A collective, step by step."""

    ranks: int
    chunk_count: int
    frames: tuple[Frame, ...]
    values: Values = field(default_factory=dict)


Scale: TypeAlias = Literal["linear", "log10", "log2"]
Style: TypeAlias = Literal["line", "dashed", "points", "steps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis: `unit` is SI (`"B"`, `"s"`, `"1"`), and `spec` formats the ticks (`in min`)."""

    label: str
    unit: str = "1"
    scale: Scale = "linear"
    low: float | None = None
    high: float | None = None
    spec: str = "si"


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line or set of points, labeled directly at its end."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    role: str
    style: Style = "line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A labeled point that the text refers to."""

    x: float
    y: float
    label: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A labeled reference line across the plot at a value of one axis."""

    axis: Literal["x", "y"]
    at: float
    label: str
    role: str = "reference"


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Lines and points over two axes."""

    x: Axis
    y: Axis
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    rules: tuple[Rule, ...] = ()
    values: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One part of every bar: `lengths[i]` belongs to bar `i`."""

    name: str
    role: str
    lengths: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Horizontal bars, one per label, made of stacked (or grouped) segments."""

    labels: tuple[str, ...]
    segments: tuple[Segment, ...]
    axis: Axis
    stacked: bool = True
    rules: tuple[Rule, ...] = ()
    values: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A rectangle in grid units (x right, y down) with lines of text.

    A box without a role shows only text, which wraps to the width of the box.
    """

    name: str
    lines: tuple[str, ...]
    x: float
    y: float
    width: float
    height: float
    role: str = "neutral"
    frame: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagramLink:
    """An arrow from one box to another."""

    source: str
    target: str
    label: str = ""
    role: str = "neutral"
    both_ways: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """Boxes and arrows; a `frame` box surrounds others and has its text at the top."""

    boxes: tuple[Box, ...]
    links: tuple[DiagramLink, ...]
    width: float
    height: float
    values: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A table column: numbers are formatted with `spec` and aligned right."""

    label: str
    unit: str = ""
    spec: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of scalars, raw and in SI; formatting is the renderer's."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Scalar, ...], ...]
    values: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """A box of a scene, in px. The same `name` in the next scene means the same thing.

    `origin` is the position from which it moves when the scene begins; a `strong` thing is
    emphasized; a thing without a role is only text.
    """

    name: str
    x: float
    y: float
    width: float
    height: float
    text: str = ""
    role: str = ""
    origin: tuple[float, float] | None = None
    strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question that readers answer before a scene; `right` is the index of the right choice."""

    text: str
    choices: tuple[str, ...]
    right: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One state of a film: its caption, its contents and, optionally, a question before it."""

    says: str
    things: tuple[Thing, ...]
    asks: Question | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Film:
    """Scenes that a reader plays or steps through; on paper, only the `stills`.

    The player shows scene `opens` until it is used, and then starts with the first.
    """

    width: float
    height: float
    scenes: tuple[Scene, ...]
    stills: tuple[int, ...]
    opens: int = 0
    values: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """A whole job: all ranks in their nodes, and the timeline of a step on some of them.

    Lane i of `step` shows the ranks `marked[i]`, which share a node; `stage_of_cell` maps each cell
    of `room` to its lane. Cells are colored along the first axis of `room`.
    """

    room: RankGrid
    step: Timeline
    stage_of_cell: tuple[int, ...]
    marked: tuple[tuple[int, ...], ...]
    values: Values = field(default_factory=dict)


Chart: TypeAlias = RankGrid | Timeline | Steps | Curves | Bars | Diagram | Table | Film | Overview
CHARTS: tuple[type, ...] = (
    RankGrid, Timeline, Steps, Curves, Bars, Diagram, Table, Film, Overview,
)  # fmt: skip


def payload(chart: Chart) -> dict[str, object]:
    """Return a chart as plain data for JSON, with its kind."""
    plain = dataclasses.asdict(chart)
    plain["values"] = {name: tuple(named) for name, named in chart.values.items()}
    return {"kind": type(chart).__name__, **plain}


def canonical_json(chart: Chart) -> str:
    """Return `payload(chart)` as JSON that is equal if and only if the data are equal."""
    # As `payload`, but without its deep copy, which takes longer than the encoding.
    plain = {"kind": type(chart).__name__, **_fields(chart), "values": dict(chart.values)}
    return json.dumps(
        plain, default=_fields, sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )


def _fields(part: object) -> dict[str, object]:
    """Return the fields of a chart or of a part of it. Raises TypeError for anything else."""
    kind: type = type(part)
    return {name: getattr(part, name) for name in _names(kind)}


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))
