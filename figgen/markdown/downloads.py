"""The files that a figure offers for download: its picture, its numbers, and its Plotly form.

They are made late and cached like pictures, so that a build without changes makes none of them.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from figgen.cache import digest
from figgen.charts import Chart, Film, RankGrid, Table
from figgen.markdown.conversion import Asset, Page, Site
from figgen.markdown.directive import Directive
from figgen.pictures import Evaluated, Pictures
from figgen.policy import with_security_policy
from figgen.registry import build, controls, figure_named

MOST_ROWS = 120
LONGEST_TABLE = 6000
"""Characters of a table that a page contains itself; a longer one is loaded when opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One tab of a figure, or its only view; `text` is the caption as Markdown."""

    label: str
    figure: Evaluated
    caption: str
    text: str
    alt: str
    arguments: Mapping[str, object]


def register(
    directive: Directive, line: int, variant: Variant, page: Page, site: Site
) -> dict[str, str]:
    """Register the files of one variant with the site; return links to them from the page.

    `line` is the line of the figure's fence, for problems with a file. A page without an address
    (Markdown alone) has nowhere to put files and gets no links.
    """
    if page.url is None:
        return {}
    figure, pictures = variant.figure, site.pictures
    made: dict[str, tuple[str, Callable[[], str]]] = {
        "SVG": ("svg", lambda: _standalone(pictures.picture(figure))),
        "CSV": ("csv", lambda: _csv(directive, variant, site)),
        "JSON": ("json", lambda: figure.json),
    }
    if directive.form == "plotly" or figure_named(directive.figure).recomputed:
        made["Plotly"] = ("plotly.json", lambda: _explored(directive.figure, variant, pictures))
    if isinstance(figure.chart, Film):
        made["Film"] = ("film.json", lambda: pictures.derived(figure, "film", _film))
    folder = _folder(page)
    links = {}
    for kind, (suffix, make) in made.items():
        path = f"{folder}/{figure.figure_id}.{suffix}"
        page.assets[path] = Asset(make, page.path, line)
        links[kind] = page.to(path)
    return links


def _explored(name: str, variant: Variant, pictures: Pictures) -> str:
    """Return the figure as Plotly JSON, with its parameters if the page can recompute it."""
    made = pictures.derived(variant.figure, "plotly", _plotly)
    found = controls(name, variant.arguments)
    if found is None:
        return made
    more = json.dumps({"figure": name, "parameters": found}, separators=(",", ":"))
    return f"{made[:-1]},{more[1:]}"


def table_html(figure: Evaluated, site: Site, label: str = "") -> str:
    """Return the table behind a chart, cached because writing it takes longer than all else.

    A page contains at most `MOST_ROWS` of the data behind a picture; the table says that the rest
    is in the CSV. A grid of GPUs is written in full: its table is the grid to some readers.
    """

    def make(chart: Chart) -> str:
        from figgen.renderers import table

        whole = table.data_table(chart)
        if isinstance(chart, RankGrid | Table) or len(whole.rows) <= MOST_ROWS:
            return table.html(whole, label)
        shown = table.html(replace(whole, rows=whole.rows[:MOST_ROWS]), label)
        return (
            f"{shown}<p>The first {MOST_ROWS} of {len(whole.rows):,} rows; all are in the CSV.</p>"
        )

    return site.pictures.derived(figure, f"table-{digest(label + str(MOST_ROWS))[:8]}", make)


def late_table(table: str, title: str, variant: Variant, page: Page, line: int, site: Site) -> str:
    """Return a link to a table on a separate page, which a script inserts here when opened."""
    path = f"{_folder(page)}/{variant.figure.figure_id}.html"
    folder = posixpath.dirname(path)
    links = (posixpath.relpath(sheet, folder) for sheet in site.styles)
    styles = "".join(f'<link rel="stylesheet" href="{link}">' for link in links)
    back = posixpath.relpath(page.url or ".", folder) + "/"
    whole = with_security_policy(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><meta name="robots" content="noindex">'
        f'{styles}</head><body class="md-typeset fig-data">'
        f'<h1>{title}</h1><p><a href="{back}">Back to the page</a></p>{table}</body></html>\n'
    )
    page.assets[path] = Asset(lambda: whole, page.path, line)
    return f'<a class="fig-late" href="{page.to(path)}">The numbers as a table</a>'


def _folder(page: Page) -> str:
    return f"assets/figures/{(page.url or '').rstrip('/') or 'index'}"


def _csv(directive: Directive, variant: Variant, site: Site) -> str:
    """Return a chart's numbers; for a grid that shows one block of many, those of all GPUs."""
    chart = variant.figure.chart
    if isinstance(chart, RankGrid) and chart.multiplicity > 1:
        # The cache key of the block does not cover the other GPUs, so no file caches this.
        whole = {**variant.arguments, "whole": True}
        return site.pictures.remembered(
            "csv", directive.figure, whole, lambda: _table_csv(build(directive.figure, whole))
        )
    return site.pictures.derived(variant.figure, "csv", _table_csv)


def _table_csv(chart: Chart) -> str:
    from figgen.renderers import table

    return table.csv(table.data_table(chart))


def _standalone(picture: str) -> str:
    from figgen.renderers import svg

    return svg.standalone(picture)


def _film(chart: Chart) -> str:
    from figgen.renderers.film import film_json

    if not isinstance(chart, Film):
        raise TypeError(type(chart).__name__)
    return film_json(chart)


def _plotly(chart: Chart) -> str:
    from figgen.renderers import plotly

    return plotly.render(chart)
