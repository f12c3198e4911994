"""The cells of a collective's frames: which ranks have contributed to which chunk."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.charts import Frame, Steps
from figgen.renderers.fluid import moved
from figgen.renderers.markup import arrow, element, number, text_width, words
from figgen.theme import colour, soft

TITLE = 20
PART, DONE = colour("series-3"), colour("series-1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSizes:
    """Measures of one frame in px; `stub` is room for arrows around a ring, `arcs` for others."""

    cell: float
    height: float
    gap: float
    label: float
    stub: float
    arcs: float
    ranks: int
    chunks: int

    def x(self, rank: int) -> float:
        return self.label + self.stub + rank * (self.cell + self.gap)

    def y(self, chunk: int) -> float:
        return TITLE + self.arcs + 18 + chunk * (self.height + 4)

    @property
    def width(self) -> float:
        return self.x(self.ranks - 1) + self.cell + self.stub

    @property
    def frame_height(self) -> float:
        return self.y(self.chunks) + 10


def final_values(chart: Steps) -> tuple[frozenset[int], ...]:
    """Return each chunk's final contributions: the largest set that any rank ends with."""
    last = chart.frames[-1].contents
    return tuple(
        max((frozenset(rank[chunk]) for rank in last), key=len)
        for chunk in range(chart.chunk_count)
    )


def cells(frame: Frame, sizes: ChunkSizes, final: tuple[frozenset[int], ...]) -> str:
    """Return all cells of a frame as five paths: empty, held, contributions, final, ticks."""
    empty, held, marks, done, centres = [], [], [], [], []
    for rank, chunks in enumerate(frame.contents):
        for chunk, content in enumerate(chunks):
            box = box_path(sizes, rank, chunk)
            if not content:
                empty.append(box)
            elif set(content) == final[chunk]:
                done.append(box)
                centre = (sizes.x(rank) + sizes.cell / 2, sizes.y(chunk) + sizes.height / 2)
                centres.append(centre)
            else:
                held.append(box)
                marks += _marks(sizes, rank, chunk, content)
    return (
        outline(empty, "reference", 1, dash="2 2")
        + _filled(held, soft("neutral"))
        + _filled(marks, PART)
        + outline(held, "reference", 1)
        + _filled(done, DONE)
        + _ticks(centres)
    )


def _ticks(centres: list[tuple[float, float]]) -> str:
    path = "".join(f"M{number(x - 4)} {number(y)}l3 3 5-6" for x, y in centres)
    if not path:
        return ""
    return element("path", d=path, fill="none", stroke=colour("paper"), stroke_width=1.7)


def _marks(sizes: ChunkSizes, rank: int, chunk: int, content: tuple[int, ...]) -> list[str]:
    """Draw one vertical mark per contributing rank, at that rank's x; neighbors merge."""
    share, marks = sizes.cell / sizes.ranks, list[str]()
    top, height = number(sizes.y(chunk)), number(sizes.height)
    there = set(content)
    for first in sorted(who for who in there if who - 1 not in there):
        end = next(who for who in range(first, sizes.ranks + 1) if who not in there)
        left, wide = sizes.x(rank) + first * share, (end - first) * share
        marks.append(f"M{number(left)} {top}h{number(wide)}v{height}h{number(-wide)}z")
    return marks


def box_path(sizes: ChunkSizes, rank: int, chunk: int) -> str:
    corner = f"M{number(sizes.x(rank))} {number(sizes.y(chunk))}"
    return f"{corner}h{number(sizes.cell)}v{number(sizes.height)}h-{number(sizes.cell)}z"


def _filled(paths: list[str], fill: str) -> str:
    return element("path", d="".join(paths), fill=fill) if paths else ""


def outline(paths: list[str], role: str, width: float, dash: str | None = None) -> str:
    if not paths:
        return ""
    return element(
        "path",
        d="".join(paths),
        fill="none",
        stroke=colour(role),
        stroke_width=width,
        stroke_dasharray=dash,
    )


def arrows(lines: list[str], heads: list[str], reduces: bool) -> str:
    ink = colour("ink")
    shaft = element("path", d="".join(lines), fill="none", stroke=ink, stroke_width=1.3)
    fill = ink if reduces else colour("paper")
    return shaft + element("path", d="".join(heads), fill=fill, stroke=ink)


def key(
    chart: Steps,
    final: tuple[frozenset[int], ...],
    tops: tuple[float, float],
    widths: tuple[float, float],
) -> tuple[str, tuple[float, float]]:
    """Return the key of the marks that occur, and where its last line ends.

    Tops, widths and ends are those of the wide shape and of the narrow one.
    """
    shown = _entries(chart, final)
    sizes = [24 + text_width(text) for _, text in shown]
    wide, narrow = (_in_lines(sizes, top, width) for top, width in zip(tops, widths, strict=True))
    parts = [
        moved(_sample(kind) + words(24, 12, text), *at)
        for (kind, text), *at in zip(shown, wide, narrow, strict=True)
    ]
    drawn = element("g", "".join(parts), class_="key", fill=colour("muted"))
    return drawn, (wide[-1][1] + 18, narrow[-1][1] + 18)


def _entries(chart: Steps, final: tuple[frozenset[int], ...]) -> list[tuple[str, str]]:
    contents = [
        (content, set(content) == final[chunk])
        for frame in chart.frames
        for rank in frame.contents
        for chunk, content in enumerate(rank)
    ]
    sends = [transfer for frame in chart.frames for transfer in frame.transfers]
    partial = any(content and not full for content, full in contents)
    entries = [
        (partial, "part", "sum so far, a bar for each rank in it"),
        (True, "done", "final value"),
        (any(not content for content, _ in contents), "empty", "nothing yet"),
        (bool(sends), "sent", "sent in this step"),
        (any(send.reduces for send in sends), "adds", "arrives and is added"),
        (any(not send.reduces for send in sends), "copies", "arrives and is kept"),
    ]
    return [(kind, text) for occurs, kind, text in entries if occurs]


def _in_lines(sizes: list[float], y: float, width: float) -> list[tuple[float, float]]:
    """Return positions side by side, wrapped into lines."""
    places, x = list[tuple[float, float]](), 0.0
    for size in sizes:
        if x and x + size > width:
            x, y = 0.0, y + 20
        places.append((x, y))
        x += size + 16
    return places


def _sample(kind: str) -> str:
    box = "M0 1h18v14h-18z"
    if kind in ("adds", "copies"):
        return arrows(["M0 8H12"], [arrow(0, 8, 18, 8)], kind == "adds")
    if kind == "done":
        return _filled([box], DONE) + _ticks([(9, 8)])
    if kind == "part":
        marks = [f"M{3 * who} 1h3v14h-3z" for who in (1, 2)]
        return (
            _filled([box], soft("neutral")) + _filled(marks, PART) + outline([box], "reference", 1)
        )
    return outline([box], "ink", 2) if kind == "sent" else outline([box], "reference", 1, "2 2")
