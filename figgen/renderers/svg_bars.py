"""Bars as inline SVG: a key in the order of the segments, and every bar's value at its end."""

from __future__ import annotations

from collections.abc import Sequence

from figgen.charts import Bars
from figgen.renderers.bar_plan import (
    GAP_PX,
    LINE_PX,
    SWATCH_PX,
    BarPlan,
    Part,
    ends,
    parts,
    plan,
    rules,
    thickness,
)
from figgen.renderers.fluid import NARROW, Drawing, fluid
from figgen.renderers.markup import (
    COLUMN,
    TEXT,
    element,
    escape,
    number,
    text_width,
    title,
    words,
    wrapped,
)
from figgen.renderers.placing import Rect
from figgen.renderers.scale import fitting, value_text
from figgen.theme import colour

# Hatching over the fill, for a segment whose color occurs earlier in the bar.
TILE_PX = 8
PATTERNS = (
    "", "M-2 10L10 -2M-2 2L2 -2M6 10L10 6", "M-2 -2L10 10M6 -2L10 2M-2 6L2 10", "M2 0V8", "M0 2H8",
    "M-2 10L10 -2M-2 -2L10 10", "M0 0H8M0 0V8",
)  # fmt: skip
GREYS = dict.fromkeys(("neutral", "reference", "idle", "hidden", "muted"), "grey")
"""Pairs of similar grays; all other pairs of roles differ for all kinds of vision."""


def render_bars(chart: Bars, figure_id: str) -> str:
    """Draw horizontal bars in the order of the labels, from the top, in two shapes."""
    wide, narrow = plan(chart, COLUMN, above=False), plan(chart, NARROW, above=True)
    shared = _patterns(chart, figure_id)
    return fluid("bars", _draw(chart, wide, figure_id), _draw(chart, narrow, figure_id), shared)


def _draw(chart: Bars, made: BarPlan, figure_id: str) -> Drawing:
    body = [_scale(made), _draw_key(chart, made, figure_id), _rules(chart, made)]
    placed = parts(chart, made)
    for index in range(len(chart.segments)):
        body.append(_segment(chart, index, [p for p in placed if p.segment == index], figure_id))
    body += [_zero(chart, made), _labels(chart, made), _values(chart, made)]
    below = wrapped(made.x.label, made.width)
    half = max(map(text_width, below)) / 2
    middle = min(max((made.box.left + made.box.right) / 2, half), made.width - half)
    y = made.box.bottom + 14 + 1.4 * LINE_PX + 0.35 * TEXT
    for line, text in enumerate(below):
        body.append(words(middle, y + LINE_PX * line, text, text_anchor="middle"))
    return Drawing(made.width, y + LINE_PX * len(below) - 4, "".join(body))


def _zero(chart: Bars, made: BarPlan) -> str:
    """Return the line from which bars start, interrupted where labels are above them."""
    x = number(made.pixel(made.x.low if made.x.logarithmic else 0.0))
    spans = [(made.box.top, made.box.bottom)]
    if made.above:
        spans = [(top - 2, top + thickness(chart) + 2) for top in made.tops]
    path = "".join(f"M{x} {number(top)}V{number(bottom)}" for top, bottom in spans)
    return element("path", d=path, stroke=colour("muted"))


def _scale(made: BarPlan) -> str:
    """Draw grid lines down the plot, with their values below it."""
    top, bottom = number(made.box.top), number(made.box.bottom + 5)
    shown = fitting(made.x, made.box.right - made.box.left)
    lines = "".join(f"M{number(made.pixel(value))} {top}V{bottom}" for value, _ in shown)
    y = made.box.bottom + 14 + 0.35 * TEXT
    spans = "".join(
        f'<tspan x="{number(made.pixel(value))}">{escape(text)}</tspan>' for value, text in shown
    )
    ticks = element("text", spans, y=y, text_anchor="middle", fill=colour("muted"))
    return element("path", d=lines, stroke=colour("grid")) + ticks


def _segment(chart: Bars, index: int, placed: Sequence[Part], figure_id: str) -> str:
    """Return the parts of one segment in all bars: plain, then hatched."""
    segment = chart.segments[index]
    rects = []
    for part in placed:
        names = [chart.labels[part.bar], segment.name] if segment.name else [chart.labels[part.bar]]
        said = title(f"{', '.join(names)}: {value_text(chart.axis, part.length)}")
        rects.append(_rect(part.rect, said, data_bar=part.bar))
    outline = "".join(map(_path, (part.rect for part in placed)))
    lined = (
        element("path", d=outline, fill=f"url(#{figure_id}-p{index})")
        if _lined(chart, index)
        else ""
    )
    plain = element("g", "".join(rects), fill=colour(segment.role), stroke=colour("paper"))
    # The hatching covers the bars but must not block their hover text.
    over = element("g", lined, pointer_events="none") if lined and placed else ""
    return element("g", plain + over, class_="segment", data_segment=index) if placed else ""


def _rect(rect: Rect, inner: str = "", **attributes: float | str | None) -> str:
    width, height = rect.right - rect.left, rect.bottom - rect.top
    named = {"x": rect.left, "y": rect.top, "width": width, "height": height}
    return element("rect", inner, **named, **attributes)


def _path(rect: Rect) -> str:
    width, height = number(rect.right - rect.left), number(rect.bottom - rect.top)
    return f"M{number(rect.left)} {number(rect.top)}h{width}v{height}h-{width}z"


def _lined(chart: Bars, index: int) -> str:
    """Return the hatching of a segment; "" for the first one of its color."""
    families = [GREYS.get(segment.role, segment.role) for segment in chart.segments]
    return PATTERNS[families[:index].count(families[index]) % len(PATTERNS)]


def _patterns(chart: Bars, figure_id: str) -> str:
    """Return the hatching patterns of all segments that need one, in the page's color."""
    made = "".join(
        element(
            "pattern",
            element("path", d=_lined(chart, index), stroke=colour("paper"), stroke_width=1.3),
            id=f"{figure_id}-p{index}",
            width=TILE_PX,
            height=TILE_PX,
            patternUnits="userSpaceOnUse",
        )
        for index in range(len(chart.segments))
        if _lined(chart, index)
    )
    return element("defs", made) if made else ""


def _labels(chart: Bars, made: BarPlan) -> str:
    """Draw the name of each bar, left of it or on a line above it, which grid lines may cross."""
    drawn = []
    for lines, top in zip(made.labels, made.tops, strict=True):
        first = top - LINE_PX * (len(lines) - 0.5) - 1
        if not made.above:
            first = top + thickness(chart) / 2 - LINE_PX * (len(lines) - 1) / 2
        x = 0 if made.above else made.box.left - GAP_PX
        drawn += [words(x, first + LINE_PX * at + 0.35 * TEXT, s) for at, s in enumerate(lines)]
    if not made.above:
        return element("g", "".join(drawn), text_anchor="end")
    return element(
        "g",
        "".join(drawn),
        paint_order="stroke",
        stroke=colour("paper"),
        stroke_width=4,
        stroke_linejoin="round",
    )


def _values(chart: Bars, made: BarPlan) -> str:
    """Return numbers just past the bars' ends, moved aside where a rule would cross them."""
    if made.told:
        return ""
    lines = sorted(flag.at for flag in made.flags)
    drawn = []
    for end, value, (bar, down) in ends(chart):
        text = value_text(chart.axis, value)
        at = made.number_at(end)
        wide = text_width(text)
        for line in lines:
            if at - 4 <= line <= at + wide + 2:
                before = line - 5 - wide
                at = before if before >= made.box.left + 5 else line + 5
        drawn.append(words(at, made.tops[bar] + down + 0.35 * TEXT, text))
    return element(
        "g",
        "".join(drawn),
        class_="values",
        paint_order="stroke",
        stroke=colour("paper"),
        stroke_width=4,
        stroke_linejoin="round",
    )


def _draw_key(chart: Bars, made: BarPlan, figure_id: str) -> str:
    drawn = []
    for row, entries in enumerate(made.key):
        middle = LINE_PX * (0.5 + 1.4 * row)
        for at, index in entries:
            top = middle - SWATCH_PX / 2
            swatch = Rect(at, top, at + SWATCH_PX, top + SWATCH_PX)
            drawn.append(_rect(swatch, fill=colour(chart.segments[index].role)))
            if _lined(chart, index):
                drawn.append(_rect(swatch, fill=f"url(#{figure_id}-p{index})"))
            name = chart.segments[index].name
            drawn.append(words(at + SWATCH_PX + 6, middle + 0.35 * TEXT, name))
    return element("g", "".join(drawn), class_="key") if drawn else ""


def _rules(chart: Bars, made: BarPlan) -> str:
    """Draw dashed lines down the plot, each from its label above it."""
    drawn = []
    for rule, flag in zip(rules(chart, made.x), made.flags, strict=True):
        top = made.box.top - LINE_PX * (flag.row + 1)
        path = f"M{number(flag.at)} {number(top)}V{number(made.box.bottom)}"
        drawn.append(
            element(
                "path", d=path, stroke=colour(rule.role), stroke_width=1.2, stroke_dasharray="5 3"
            )
        )
        aside, anchor = (flag.at - 5, "end") if flag.leftwards else (flag.at + 5, None)
        drawn.append(words(aside, top + LINE_PX / 2 + 3, rule.label, text_anchor=anchor))
    return "".join(drawn)
