"""Draw marks with matplotlib.

This module imports nothing of figgen, since the scripts that people take home carry it along.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D

EM = 0.9
"""The scale of DejaVu Sans, which is wider than the fonts of a page."""
SETTINGS: Any = {
    "pdf.fonttype": 42, "font.family": "DejaVu Sans", "text.parse_math": False,
    "path.simplify": False,
}  # fmt: skip
ANCHORS = {"start": "left", "middle": "center", "end": "right"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaintedPath:
    """A path with its inks; `None` for no fill or no outline.  Lengths are in px."""

    path: Path
    fill: str | None = None
    fill_opacity: float = 1.0
    stroke: str | None = None
    opacity: float = 1.0
    width: float = 1.0
    dashes: tuple[float, ...] = ()
    join: str = "miter"
    within: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaintedText:
    """One line of text; `x` is its start, middle or end by its anchor, `y` its baseline.

    `halo` is the color and the width of a line around its letters.
    """

    text: str
    x: float
    y: float
    anchor: str
    size: float
    bold: bool
    ink: str
    opacity: float = 1.0
    halo: tuple[str, float] | None = None


Mark: TypeAlias = PaintedPath | PaintedText


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperDrawing:
    """All marks of a drawing and its size in px."""

    width: float
    height: float
    marks: tuple[Mark, ...]


def drawn(drawing: PaperDrawing, width_in: float) -> Figure:
    """Return a drawing as a matplotlib figure `width_in` inches wide, with one artist per mark.

    A label with a halo has two, its letters' outline and the label itself.
    """
    points_per_px = 72 * width_in / drawing.width
    figure = Figure(figsize=(width_in, width_in * drawing.height / drawing.width))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, drawing.width)
    axes.set_ylim(drawing.height, 0)
    for order, mark in enumerate(drawing.marks):
        if isinstance(mark, PaintedPath):
            _shape(axes, mark, points_per_px, order)
        else:
            _label(axes, mark, points_per_px, order)
    return figure


def _shape(axes: Axes, mark: PaintedPath, points_per_px: float, order: float) -> None:
    width = mark.width * points_per_px
    patch = PathPatch(
        mark.path,
        facecolor=(mark.fill, mark.opacity * mark.fill_opacity) if mark.fill else "none",
        edgecolor=(mark.stroke, mark.opacity) if mark.stroke else "none",
        linewidth=width if mark.stroke else 0,
        joinstyle="round" if mark.join == "round" else "miter",
        zorder=order,
    )
    if mark.dashes and mark.stroke:
        # matplotlib counts dashes in line widths.
        patch.set_linestyle((0, [dash / mark.width for dash in mark.dashes]))
    axes.add_patch(patch)
    if mark.within is not None:
        patch.set_clip_path(mark.within, axes.transData)


def _label(axes: Axes, mark: PaintedText, points_per_px: float, order: float) -> None:
    weight = "bold" if mark.bold else "normal"
    if mark.halo:
        _halo(axes, mark, weight, points_per_px, order)
    axes.text(
        mark.x,
        mark.y,
        mark.text,
        ha=ANCHORS[mark.anchor],
        va="baseline",
        fontsize=mark.size * EM * points_per_px,
        fontweight=weight,
        color=mark.ink,
        alpha=mark.opacity,
        zorder=order,
    )


def _halo(axes: Axes, mark: PaintedText, weight: str, points_per_px: float, order: float) -> None:
    """Draw the outline of a label's letters behind it."""
    if mark.halo is None:
        return
    colour, width = mark.halo
    letters = TextPath(
        (0, 0),
        mark.text,
        size=mark.size * EM,
        prop=FontProperties(weight=weight),
    )
    wide = letters.get_extents().x1
    shift = {"start": 0.0, "middle": wide / 2, "end": wide}[mark.anchor]
    placed = Affine2D().scale(1, -1).translate(mark.x - shift, mark.y).transform_path(letters)
    outline = PaintedPath(path=placed, stroke=colour, width=width, join="round")
    _shape(axes, outline, points_per_px, order)
