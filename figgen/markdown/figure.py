"""Convert a directive to HTML: the picture, its caption, its data, and its downloads."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

from figgen.cache import digest
from figgen.charts import PREDICTED, Chart, Film, Named, RankGrid, Table
from figgen.markdown import downloads
from figgen.markdown.conversion import Page, Site
from figgen.markdown.directive import Directive
from figgen.markdown.downloads import Variant
from figgen.markdown.errors import error_box, place_of
from figgen.markdown.yaml_text import yaml_line
from figgen.registry import follows, inputs, is_of_reference
from figgen.subject import title_of_preset

LONGEST_COMMAND = 300
"""Longest command in a citation, in characters; generated figures take whole tables."""
MOST_FRAME_PX, FRAME_GROWTH = 640, 1.8
"""The player's largest frame in px, and as a multiple of its film's own width."""

# Fills in `{{ name }}` in a caption or an alternative text; returns HTML or plain text.
Fill: TypeAlias = Callable[[str, Mapping[str, Named]], str]


@dataclass(frozen=True, slots=True)
class Placed:
    """A directive on its page, with its figure number and its first line."""

    directive: Directive
    number: str
    line: int


INTERVAL = (
    " Predicted times: about 80% of real runs take {{ predicted_low:.2f}} to "
    "{{ predicted_high:.2f}} times as long ({{ predicted_of }})."
)
"""Ends the caption of each figure that shows a predicted time."""


def evaluate(directive: Directive, site: Site, to_html: Fill, to_text: Fill) -> tuple[Variant, ...]:
    """Compute each variant of a directive. Raises InputError if one cannot be computed."""
    variants = []
    for preset, picture_id, arguments in directive.variants():
        figure = site.pictures.evaluated(directive.figure, arguments, picture_id)
        values = figure.chart.values
        said = directive.caption + (INTERVAL if PREDICTED in values else "")
        caption, text = (fill(said, values) for fill in (to_html, to_text))
        alt = to_text(directive.alt, values)
        variants.append(
            Variant(
                label=title_of_preset(preset),
                figure=figure,
                caption=caption,
                text=text,
                alt=alt,
                arguments=arguments,
            )
        )
    return tuple(variants)


def html(placed: Placed, variants: tuple[Variant, ...], page: Page, site: Site) -> str:
    """Return the `<figure>`: readable without scripts, its numbers in a table, parts labeled."""
    anchor = placed.directive.anchor
    bodies = [_body(placed, variant, page, site) for variant in variants]
    tabs = _tabs(anchor, [v.label for v in variants]) if len(variants) > 1 else ""
    panels = (
        "".join(
            f'<div class="fig-panel fig-{i}"><p class="fig-print">{escape(variant.label)}</p>'
            f"{body}</div>"
            for i, (variant, body) in enumerate(zip(variants, bodies, strict=True), 1)
        )
        if tabs
        else bodies[0]
    )
    captions = _captions([variant.caption for variant in variants])
    return (
        f'<figure class="figgen" id="{anchor}"{_given(placed.directive)}>{tabs}{panels}<figcaption>'
        f'<a class="fig-number" href="#{anchor}">{placed.number}</a> {captions}</figcaption>'
        f"</figure>"
    )


def _given(directive: Directive) -> str:
    """Return attributes for the script that recomputes the page for a different machine."""
    if is_of_reference(directive.figure):
        return " data-reference"
    if not follows(directive.figure):
        return ""
    given = escape(json.dumps(dict(directive.arguments)), quote=True)
    return f' data-chart="{directive.figure}" data-given="{given}"'


def _body(placed: Placed, variant: Variant, page: Page, site: Site) -> str:
    """Return the picture and tools of one variant; large parts are made late and once.

    A renderer that fails leaves a red box and a problem.
    """
    links = downloads.register(placed.directive, placed.line, variant, page, site)

    def make() -> str:
        try:
            picture = _picture(placed, variant, site, links.get("Film", ""))
            return picture + _tools(placed, variant, links, page, site)
        except Exception as error:
            what = f"{type(error).__name__} while drawing this figure: {error}{place_of(error)}"
            return error_box(page.note(placed.line, what))

    return page.hold(make, site.late)


def _picture(placed: Placed, variant: Variant, site: Site, film: str) -> str:
    directive, number = placed.directive, placed.number
    chart, alt = variant.figure.chart, escape(variant.alt, quote=True)
    if isinstance(chart, Table):
        return _scroll(downloads.table_html(variant.figure, site, variant.alt), f"{number}, table")
    if directive.form == "text":
        from figgen.renderers import text

        return _scroll(f'<pre aria-label="{alt}">{escape(text.render(chart))}</pre>', number)
    svg = site.pictures.picture(variant.figure)
    controls = ""
    if isinstance(chart, RankGrid):
        from figgen.renderers import svg_grid

        controls = svg_grid.controls(chart, variant.figure.figure_id)
    labelled = svg.replace("<svg ", f'<svg role="img" aria-label="{alt}" ', 1)
    played = f' data-film="{escape(film)}" style="{film_room(chart)}"' if film else ""
    return f'<div class="fig-picture"{played}>{controls}{_scroll(labelled, number)}</div>'


def film_room(chart: Chart) -> str:
    """Return the player's widest frame in px and its height over its width, as CSS variables.

    With scripts, the stills take no more room than the player that replaces them.
    """
    if not isinstance(chart, Film):
        raise TypeError(type(chart).__name__)
    widest = min(MOST_FRAME_PX, round(FRAME_GROWTH * chart.width))
    return f"--film-wide:{widest}px;--film-tall:{(chart.height + 4) / (chart.width + 4):.4f}"


def _scroll(content: str, label: str) -> str:
    """Return a box that scrolls independently and is reachable by keyboard."""
    return (
        f'<div class="fig-scroll" tabindex="0" role="group" aria-label="{escape(label)}">'
        f"{content}</div>"
    )


def _tools(
    placed: Placed, variant: Variant, links: Mapping[str, str], page: Page, site: Site
) -> str:
    chart = variant.figure.chart
    files = " · ".join(
        f'<a href="{escape(link)}" download>{kind}</a>'
        for kind, link in links.items()
        if kind not in ("Plotly", "Film")
    )
    behind = "" if isinstance(chart, Table) else downloads.table_html(variant.figure, site)
    explore = (
        f'<button type="button" class="fig-explore" data-plotly="{escape(links["Plotly"])}" hidden>'
        f"Explore</button>"
        if "Plotly" in links
        else ""
    )
    label = f" of {escape(variant.label)}" if variant.label else ""
    # A grid's table is the grid to some readers, so it stays.
    if links and len(behind) > downloads.LONGEST_TABLE and not isinstance(chart, RankGrid):
        title = f"{placed.number}, data{label}"
        behind = downloads.late_table(behind, title, variant, page, placed.line, site)
    citation = _citation(placed, variant, page, site)
    data = f"<p>{files}</p>{_scroll(behind, f'{placed.number}, data{label}') if behind else ''}"
    summary = f"<summary>Data, files and citation{label}</summary>"
    return f'<div class="fig-tools">{explore}<details>{summary}{data}{citation}</details></div>'


def _citation(placed: Placed, variant: Variant, page: Page, site: Site) -> str:
    """Return a citation: site, number, address, and the command that prints the figure."""
    anchor = placed.directive.anchor
    address = f"{site.address}{page.url or ''}#{anchor}"
    link = f'<a href="#{anchor}">{escape(address)}</a>'
    command = command_of(placed.directive.figure, variant.arguments)
    inputs = (
        f"Computed with <code>{escape(command)}</code>. " if len(command) <= LONGEST_COMMAND else ""
    )
    return f'<p class="fig-cite">{escape(site.name)}, {placed.number}. {inputs}{link}</p>'


def command_of(figure: str, arguments: Mapping[str, object]) -> str:
    """Return the command line that shows a figure with these arguments."""
    given = (f"{name}={yaml_line(value)}" for name, value in arguments.items())
    return shlex.join(["figgen", "show", figure, *given])


def _tabs(anchor: str, labels: list[str]) -> str:
    """Return radio buttons that each show one panel, with CSS only."""
    buttons = "".join(
        f'<label><input type="radio" name="{anchor}-tab" class="fig-tab-{i}"'
        f"{' checked' if i == 1 else ''}> {escape(label)}</label>"
        for i, label in enumerate(labels, 1)
    )
    return f'<fieldset class="fig-tabs"><legend>Configuration</legend>{buttons}</fieldset>'


def _captions(captions: list[str]) -> str:
    """Return one caption if all are equal, else one for each tab."""
    if len(set(captions)) == 1:
        return captions[0]
    return "".join(
        f'<span class="fig-panel fig-{i}">{caption}</span>' for i, caption in enumerate(captions, 1)
    )


def entry(placed: Placed, variant: Variant, page: Page) -> dict[str, object]:
    """Return a figure's entry in `figures.json`, enough for a review to see what changed."""
    return {
        "id": variant.figure.figure_id,
        "number": placed.number,
        "where": f"{page.path}:{placed.line}",
        "figure": placed.directive.figure,
        "arguments": dict(placed.directive.arguments),
        "inputs": inputs(placed.directive.figure, variant.arguments),
        "preset": variant.label,
        "kind": type(variant.figure.chart).__name__,
        "data_sha256": digest(variant.figure.json),
        "values": {name: list(named) for name, named in variant.figure.chart.values.items()},
    }
