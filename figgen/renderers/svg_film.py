"""The stills of a film, for readers without scripts and for paper."""

from __future__ import annotations

import math

from figgen.charts import Film, Scene, Thing
from figgen.renderers.fluid import NARROW, moved, reflowing
from figgen.renderers.markup import COLUMN, arrow, element, number, words, wrapped
from figgen.theme import colour

GUTTER, LINE, MOST_PATHS = 24, 16, 8


def render_film(chart: Film) -> str:
    """Draw stills side by side, each below its text; things with an origin get an arrow."""
    stills = [(at, chart.scenes[at]) for at in chart.stills]
    said = [wrapped(f"{at}  {scene.says}", chart.width - 6) for at, scene in stills]
    head = max(map(len, said)) * LINE + 6
    across = max(1, int((COLUMN + GUTTER) // (chart.width + GUTTER)))
    if 1 < across < len(stills):
        across = 2  # four stills in two rows
    step = head + chart.height + GUTTER
    parts = []
    for place, ((_, scene), lines) in enumerate(zip(stills, said, strict=True)):
        top = "".join(words(0, 13 + LINE * i, line) for i, line in enumerate(lines))
        drawn = element("g", _drawn(scene), transform=f"translate(0 {number(head)})")
        wide = (place % across * (chart.width + GUTTER), place // across * step)
        parts.append(moved(top + drawn, wide, (0.0, place * step), class_="still"))
    columns = min(across, len(stills))
    width = columns * (chart.width + GUTTER) - GUTTER
    rows = math.ceil(len(stills) / across)
    slim = max(chart.width, NARROW)
    return reflowing("film", (width, rows * step), (slim, len(stills) * step), "".join(parts))


def _drawn(scene: Scene) -> str:
    moving = [thing for thing in scene.things if thing.origin]
    # More arrows would be illegible.
    paths = map(_path, moving) if len(moving) <= MOST_PATHS else ()
    return "".join(map(_thing, scene.things)) + "".join(paths)


def _thing(thing: Thing) -> str:
    box = ""
    if thing.role:
        box = element(
            "rect",
            class_=f"r-{thing.role}",
            x=thing.x,
            y=thing.y,
            width=thing.width,
            height=thing.height,
            stroke_width=2.5 if thing.strong else None,
        )
    if not thing.text:
        return box
    middle = {"text_anchor": "middle"} if thing.role else {}
    x = thing.x + thing.width / 2 if thing.role else thing.x
    weight = {"font_weight": "600"} if thing.strong else {}
    return box + words(x, thing.y + thing.height / 2 + 4, thing.text, **middle, **weight)


def _path(thing: Thing) -> str:
    """Return the arrow of a thing, from the edge of its box at the origin to its box here."""
    if thing.origin is None or thing.origin == (thing.x, thing.y):
        return ""
    half = thing.width / 2, thing.height / 2
    x0, y0 = thing.origin[0] + half[0], thing.origin[1] + half[1]
    x1, y1 = thing.x + half[0], thing.y + half[1]
    across, down = x1 - x0, y1 - y0
    part = min(half[0] / abs(across) if across else 1.0, half[1] / abs(down) if down else 1.0)
    if part >= 0.5:
        return ""
    x0, y0 = x0 + across * part, y0 + down * part
    x1, y1 = x1 - across * part, y1 - down * part
    line = element(
        "path",
        d=f"M{number(x0)} {number(y0)}L{number(x1)} {number(y1)}",
        fill="none",
        stroke=colour("ink"),
        stroke_width=1,
    )
    head = element("path", d=arrow(x0, y0, x1, y1), fill=colour("ink"))
    # Arrows over other boxes must not hide their text.
    far = math.hypot(x1 - x0, y1 - y0) > 2 * max(thing.width, thing.height)
    return element("g", line + head, opacity=0.45 if far else None)
