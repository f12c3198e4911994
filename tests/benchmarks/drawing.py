"""The drawing module shared by all contenders: every kind of chart with matplotlib, from JSON.

Margins are fixed (a layout engine would double the time of each figure), and cells and slots are
one collection. Everything that readers see in this site's own picture is drawn: ranks in the
squares of a grid, one panel per communicator, labels on slots, names at the ends of lines. Tables
have no picture, since all contenders show them as HTML.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

Data: TypeAlias = dict[str, Any]

WIDTH_IN = 7.2
TITLE_IN = 0.25
COLOURS = tuple(matplotlib.colormaps["tab20"].colors)
SETTINGS = {"svg.fonttype": "none", "font.size": 8}


def svg(data: Data, name: str) -> str:
    """Return the picture as an `<svg>` element."""
    out = io.StringIO()
    with matplotlib.rc_context({**SETTINGS, "svg.hashsalt": name}):
        figure = Figure()
        draw(data, figure)
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue().partition("<svg")[1] + out.getvalue().partition("<svg")[2]


def svg_file(path: str) -> str:
    """Return what a markdown-exec page prints for a figure."""
    return svg(json.loads(Path(path).read_text(encoding="utf-8")), Path(path).stem)


def svg_computed(figure: str, arguments: dict[str, Any], name: str) -> str:
    """Return what such a page prints for a computed figure, for which it calls this
    site's models."""
    from figgen.charts import payload
    from figgen.registry import build

    return svg(payload(build(figure, arguments)), name)


def plot_file(path: str) -> None:
    """Draw a figure as a gallery script does; the gallery's scraper takes it from pyplot."""
    import matplotlib.pyplot as plt

    matplotlib.rcParams.update(SETTINGS)
    draw(json.loads(Path(path).read_text(encoding="utf-8")), plt.figure())


def draw(data: Data, figure: Figure) -> None:
    """Draw the payload of a chart (`figgen.charts.payload`) on an empty figure."""
    DRAWN[data["kind"]](data, figure)


def _axes(figure: Figure, left: float, top: float, right: float, bottom: float) -> Axes:
    """Add axes with fixed margins in inches."""
    width, height = figure.get_size_inches()
    box = (left / width, bottom / height, 1 - (left + right) / width, 1 - (top + bottom) / height)
    return figure.add_axes(box)


def _panel(figure: Figure, at: int, across: int, down: int, title: str) -> Axes:
    """Add one of several equal panels, filled from the top left, without axes and with a title
    above."""
    row, column = divmod(at, across)
    width, height = 1 / across, 1 / down
    room = TITLE_IN / figure.get_figheight()
    ax = figure.add_axes(
        (column * width + 0.01, 1 - (row + 1) * height, width - 0.02, height - room)
    )
    ax.set_title(title, fontsize=8, pad=3)
    ax.set_axis_off()
    return ax


def _boxes(ax: Axes, boxes: Sequence[tuple[float, float, float, float]], colours: Any) -> None:
    """Draw rectangles (left, low, width, height) as one collection."""
    corners = [((x, y), (x + w, y), (x + w, y + h), (x, y + h)) for x, y, w, h in boxes]
    ax.add_collection(PolyCollection(corners, facecolors=colours, edgecolors="white"))


def _words(ax: Axes, x: float, y: float, text: str, size: float = 6) -> None:
    ax.text(x, y, text, ha="center", va="center", fontsize=size)


def _palette(roles: Sequence[str]) -> dict[str, Any]:
    return {role: COLOURS[i % len(COLOURS)] for i, role in enumerate(dict.fromkeys(roles))}


def _rank_grid(data: Data, figure: Figure) -> None:
    cells, views = data["cells"], data["communicators"]
    nodes = {node: i for i, node in enumerate(dict.fromkeys(cell["node"] for cell in cells))}
    down = (len(views) + 1) // 2
    figure.set_size_inches(WIDTH_IN, down * (TITLE_IN + 0.2 * len(nodes)))
    places = [(cell["local_rank"], -nodes[cell["node"]], 0.95, 0.95) for cell in cells]
    for at, view in enumerate(views):
        ax = _panel(figure, at, 2, down, f"{view['label']}: {view['group_count']} groups")
        _boxes(ax, places, [COLOURS[g % len(COLOURS)] for g in view["group_of_cell"]])
        for cell, (x, y, _, _) in zip(cells, places, strict=True):
            _words(ax, x + 0.5, y + 0.5, str(cell["rank"]), 5)
        ax.set_xlim(0, data["gpus_per_node"])
        ax.set_ylim(1 - len(nodes), 1)


def _timeline(data: Data, figure: Figure, above_in: float = 0.0) -> None:
    lanes, slots = data["lanes"], data["slots"]
    figure.set_size_inches(WIDTH_IN, 0.8 + 0.3 * len(lanes) + above_in)
    ax = _axes(figure, 0.7, 0.2 + above_in, 0.1, 0.5)
    boxes = [(s["start"], s["lane"] - 0.45, s["end"] - s["start"], 0.9) for s in slots]
    colours = _palette([slot["role"] for slot in slots])
    _boxes(ax, boxes, [colours[slot["role"]] for slot in slots])
    for slot in slots:
        _words(ax, (slot["start"] + slot["end"]) / 2, slot["lane"], slot["label"], 5)
    ax.set_yticks(range(len(lanes)), lanes)
    ax.set_xlim(0, data["end"])
    ax.set_ylim(len(lanes) - 0.5, -0.5)
    ax.set_xlabel(data["time_label"])
    for at, (role, colour) in enumerate(colours.items()):
        ax.text(at * 0.2, 1.03, role, color=colour, transform=ax.transAxes)


def _steps(data: Data, figure: Figure) -> None:
    ranks, chunks, frames = data["ranks"], data["chunk_count"], data["frames"]
    across = 4
    down = (len(frames) + across - 1) // across
    figure.set_size_inches(WIDTH_IN, down * (TITLE_IN + 0.2 * chunks))
    for at, frame in enumerate(frames):
        ax = _panel(figure, at, across, down, frame["title"])
        table = [
            (rank, chunk, who)
            for rank, row in enumerate(frame["contents"])
            for chunk, who in enumerate(row)
        ]
        _boxes(
            ax,
            [(rank, -chunk, 0.9, 0.9) for rank, chunk, _ in table],
            [COLOURS[len(who) % len(COLOURS)] for _, _, who in table],
        )
        for rank, chunk, who in table:
            summed = "+".join(map(str, who)) if len(who) < 3 else f"Σ{len(who)}"
            _words(ax, rank + 0.45, 0.45 - chunk, summed, 5)
        for sent in frame["transfers"]:
            y = 0.45 - sent["chunks"][0]
            ends = (sent["target"] + 0.45, y), (sent["source"] + 0.45, y)
            ax.annotate("", *ends, arrowprops={"arrowstyle": "->"})
        ax.set_xlim(0, ranks)
        ax.set_ylim(1 - chunks, 1)


def _scale(ax: Axes, axis: str, spec: Data) -> None:
    scale = spec["scale"]
    if scale != "linear":
        getattr(ax, f"set_{axis}scale")("log", base=int(scale.removeprefix("log")))
    label = spec["label"] + (f" ({spec['unit']})" if spec["unit"] != "1" else "")
    getattr(ax, f"set_{axis}label")(label)


def _curves(data: Data, figure: Figure) -> None:
    figure.set_size_inches(WIDTH_IN, 3.8)
    ax = _axes(figure, 0.8, 0.2, 1.8, 0.5)
    _scale(ax, "x", data["x"])
    _scale(ax, "y", data["y"])
    looks = {"dashed": "--", "points": "", "line": "-", "steps": "-"}
    for series in data["series"]:
        steps = "steps-post" if series["style"] == "steps" else "default"
        look = {"linestyle": looks[series["style"]], "drawstyle": steps, "marker": "o"}
        (line,) = ax.plot(series["x"], series["y"], markersize=4, **look)
        if series["x"]:
            end = (series["x"][-1], series["y"][-1])
            ax.text(*end, f" {series['name']}", color=line.get_color(), va="center")
    for rule in data["rules"]:
        (ax.axvline if rule["axis"] == "x" else ax.axhline)(rule["at"], color="grey", ls=":")
        at = (rule["at"], 1.0) if rule["axis"] == "x" else (1.0, rule["at"])
        blend = ax.get_xaxis_transform() if rule["axis"] == "x" else ax.get_yaxis_transform()
        ax.text(*at, rule["label"], transform=blend)
    for mark in data["marks"]:
        ax.plot([mark["x"]], [mark["y"]], "o", markerfacecolor="white")
        ax.text(mark["x"], mark["y"], mark["label"])
    ax.grid(True, color="#dddddd")
    ax.set_xlim(data["x"]["low"], data["x"]["high"])
    ax.set_ylim(data["y"]["low"], data["y"]["high"])


def _bars(data: Data, figure: Figure) -> None:
    labels, segments = data["labels"], data["segments"]
    figure.set_size_inches(WIDTH_IN, 1.0 + 0.3 * len(labels))
    ax = _axes(figure, 1.8, 0.3, 0.2, 0.5)
    height = 0.8 if data["stacked"] else 0.8 / len(segments)
    ends = [0.0] * len(labels)
    for at, segment in enumerate(segments):
        shift = 0.0 if data["stacked"] else at * height
        ax.barh(
            [y + shift for y in range(len(labels))],
            segment["lengths"],
            height,
            left=ends,
            label=segment["name"],
        )
        if data["stacked"]:
            ends = [end + more for end, more in zip(ends, segment["lengths"], strict=True)]
    for rule in data["rules"]:
        ax.axvline(rule["at"], color="grey", ls=":")
        ax.text(rule["at"], -0.6, rule["label"])
    _scale(ax, "x", data["axis"])
    ax.set_yticks(range(len(labels)), labels)
    ax.invert_yaxis()
    ax.legend(loc="lower right")


def _diagram(data: Data, figure: Figure) -> None:
    figure.set_size_inches(WIDTH_IN, WIDTH_IN * data["height"] / data["width"])
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    boxes = data["boxes"]
    colours = _palette([box["role"] for box in boxes])
    faces = ["none" if box["frame"] else (*colours[box["role"]], 0.4) for box in boxes]
    _boxes(ax, [(b["x"], b["y"], b["width"], b["height"]) for b in boxes], faces)
    centre = {b["name"]: (b["x"] + b["width"] / 2, b["y"] + b["height"] / 2) for b in boxes}
    for box in boxes:
        x, y = centre[box["name"]]
        _words(ax, x, box["y"] + 0.1 if box["frame"] else y, "\n".join(box["lines"]))
    for link in data["links"]:
        ends = centre[link["target"]], centre[link["source"]]
        style = {"arrowstyle": "<->" if link["both_ways"] else "->"}
        ax.annotate("", *ends, arrowprops=style)
        if link["label"]:
            _words(ax, *((a + b) / 2 for a, b in zip(*ends, strict=True)), link["label"])
    ax.set_xlim(0, data["width"])
    ax.set_ylim(data["height"], 0)


def _film(data: Data, figure: Figure) -> None:
    """Draw the stills of a film one below the other, as in the site's picture of it."""
    width, height = data["width"], data["height"] + 20
    figure.set_size_inches(WIDTH_IN, WIDTH_IN * height * len(data["stills"]) / width)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    for place, at in enumerate(data["stills"]):
        scene, top = data["scenes"][at], place * height
        _words(ax, width / 2, top + 10, f"{at}  {scene['says']}")
        boxes = [thing for thing in scene["things"] if thing["role"]]
        colours = _palette([thing["role"] for thing in boxes])
        places = [(t["x"], top + 20 + t["y"], t["width"], t["height"]) for t in boxes]
        _boxes(ax, places, [(*colours[thing["role"]], 0.4) for thing in boxes])
        for thing in scene["things"]:
            middle = top + 20 + thing["y"] + thing["height"] / 2
            _words(ax, thing["x"] + thing["width"] / 2, middle, thing["text"])
    ax.set_xlim(0, width)
    ax.set_ylim(height * len(data["stills"]), 0)


def _overview(data: Data, figure: Figure) -> None:
    """Draw eight nodes in a row of ranks, colored along the first axis, above the lanes."""
    cells, wide = data["room"]["cells"], data["room"]["gpus_per_node"]
    places = [
        (cell["node"] % 8 * (wide + 1) + cell["local_rank"], -(cell["node"] // 8), 0.95, 0.8)
        for cell in cells
    ]
    lines = 1 - min(low for _, low, _, _ in places)
    _timeline(data["step"], figure, 0.2 * lines)
    ax = _axes(figure, 0.7, 0, 0.1, figure.get_figheight() - 0.2 * lines)
    ax.set_axis_off()
    _boxes(ax, places, [COLOURS[cell["coordinates"][0] % len(COLOURS)] for cell in cells])
    ax.set_xlim(0, 8 * (wide + 1))
    ax.set_ylim(1 - lines, 1)


DRAWN = {
    "RankGrid": _rank_grid,
    "Timeline": _timeline,
    "Steps": _steps,
    "Curves": _curves,
    "Bars": _bars,
    "Diagram": _diagram,
    "Film": _film,
    "Overview": _overview,
}
