"""The pages of this site in a form that other tools can use: text with typed numbers, and figures.

Run as a program in a checkout's root folder, it prints that checkout's pages as JSON. It is a
separate program because an edited copy of the site must be read with that copy's code.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from figgen.charts import Table
from figgen.errors import InputError
from figgen.markdown import directive as directives
from figgen.markdown import figure as figures
from figgen.markdown.captions import Captions, plain
from figgen.markdown.conversion import Fence, Page, Site, fences, figure_numbers
from figgen.markdown.references import cited_html
from figgen.publish.begin import begin_build
from figgen.renderers import table
from figgen.values import compute

# Code in a page is left alone; then a value, a citation, and a link to a figure without a text.
TOKEN = re.compile(
    r"(?ms)^(?P<mark>`{3,}|~{3,}).*?^(?P=mark)\s*?$|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
    r"|\{\{(?P<value>(?:[^{}\"']|\"[^\"\n]*\"|'[^'\n]*')*)\}\}"
    r"|\[@(?P<key>[\w:.-]+)(?:,\s*(?P<place>[^\]]+))?\]"
    r"|\[\]\((?P<link>[^)]*#fig-[^)]*)\)"
)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture to draw, with a name that is unique among all pages;

    `data` is the chart as JSON.

    `call` is the name of its figure and the arguments, in Python's syntax.
    """

    name: str
    data: str
    call: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A figure of a page: `html` is all that this site prints for it, `tables` the part without
    picture.

    `caption` is Markdown with its values filled in.
    """

    caption: str
    html: str
    drawings: tuple[Drawing, ...]
    tables: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A page: its Markdown and figures in alternation, and its front matter."""

    path: str
    title: str
    front: str
    parts: tuple[str | Shown, ...]

    @property
    def drawings(self) -> tuple[Drawing, ...]:
        return tuple(d for part in self.parts if isinstance(part, Shown) for d in part.drawings)

    def markdown(self, show: Callable[[Shown], str]) -> str:
        """Return the page with every figure as written by `show`."""
        parts = [part if isinstance(part, str) else f"\n{show(part)}\n" for part in self.parts]
        return self.front + "\n".join(parts)


def contents(
    root: Path, cache: Path, excluded: Callable[[str], bool] = lambda path: False
) -> list[Content]:
    """Return every page of the site in `root`, including generated ones, except `excluded` ones."""
    docs = root / "docs"
    name, address = "Parallelism, Computed", "http://127.0.0.1:8000/"
    building = begin_build(docs, cache, name, address, ["figgen.guide"])
    site = building.site
    site.late = False
    files = [file for file in sorted(docs.rglob("*.md")) if file.name != "LICENSE.md"]
    sources = {file.relative_to(docs).as_posix(): file.read_text("utf-8") for file in files}
    sources |= building.pages(excluded)
    sources = {path: source for path, source in sources.items() if not excluded(path)}
    site.numbers = {path: figure_numbers(source) for path, source in sources.items()}
    return [_content(path, source, site) for path, source in sources.items()]


def _content(path: str, source: str, site: Site) -> Content:
    page = Page(path=path, url=path.removesuffix(".md").removesuffix("index"))
    page.begin(source)
    front, body = re.match(r"(?s)(---\n.*?\n---\n)?(.*)", source).groups("")
    title = re.search(r"(?m)^# (.+?)(?: \{.*\})?$", body)
    parts = tuple(_parts(body, page, site))
    end = cited_html(page, site)
    parts += (f"\n\n{end}\n",) if end else ()
    return Content(path=path, title=title[1] if title else path, front=front, parts=parts)


def _parts(body: str, page: Page, site: Site) -> Iterator[str | Shown]:
    lines, done = body.splitlines(), 0
    captions = Captions(site, page)
    for fence in fences(body):
        yield _filled("\n".join(lines[done : fence.line - 1]), page, site)
        yield _shown(fence, page, site, captions)
        done = fence.line + len(fence.body.splitlines()) + 1
    yield _filled("\n".join(lines[done:]), page, site)


def _shown(fence: Fence, page: Page, site: Site, captions: Captions) -> Shown:
    directive = directives.parse(fence.body)
    variants = figures.evaluate(directive, site, captions.html, plain)
    placed = figures.Placed(directive, page.number_of(directive.id), fence.line)
    charts = [(variant.figure, variant.figure.chart) for variant in variants]
    stem = Path(page.path).stem
    asked = [f"{directive.figure!r}, {given!r}" for _, _, given in directive.variants()]
    drawn = [
        Drawing(f"{stem}-{figure.figure_id}", figure.json, call)
        for (figure, chart), call in zip(charts, asked, strict=True)
        if not isinstance(chart, Table)
    ]
    tables = [table.html(chart) for _, chart in charts if isinstance(chart, Table)]
    caption = _filled(plain(directive.caption, charts[0][1].values), page, site)
    html = figures.html(placed, variants, page, site)
    return Shown(
        caption=f"**{placed.number}** {caption}",
        html=_one_line(html),
        drawings=tuple(drawn),
        tables=_one_line("".join(tables)),
    )


def _one_line(html: str) -> str:
    """Return HTML that Markdown treats as one block wherever it occurs."""
    return html.replace("\n", "&#10;" if "<pre" in html else " ")


def _filled(text: str, page: Page, site: Site) -> str:
    """Return `text` with every value, citation and figure number as an author would type it."""

    def fill(match: re.Match[str]) -> str:
        if match["value"] is not None:
            return _value(match["value"]) or match[0]
        if match["key"] in site.references:
            label = site.references[match["key"]].get("label", match["key"])
            if match["key"] not in page.cited:
                page.cited.append(match["key"])
            shown = f"{label}, {match['place']}" if match["place"] else label
            return f'<a href="#ref-{match["key"]}">{escape(shown)}</a>'
        if match["link"] is not None:
            return f"[{_number(match['link'], page, site)}]({match['link']})"
        return match[0]

    return TOKEN.sub(fill, text)


def _value(text: str) -> str:
    try:
        computed, spec = compute(text)
        return computed.text(spec)
    except InputError:
        return ""


def _number(link: str, page: Page, site: Site) -> str:
    target, _, anchor = link.partition("#fig-")
    name = Path(page.path).parent.joinpath(target).as_posix() if target else page.path
    numbers = {Path(path).name: found for path, found in site.numbers.items()}
    return numbers.get(Path(name).name, {}).get(anchor, "the figure")


def parse(text: str) -> list[Content]:
    """Parse the output of this program."""
    return [
        Content(
            path=page["path"],
            title=page["title"],
            front=page["front"],
            parts=tuple(map(_part, page["parts"])),
        )
        for page in json.loads(text)
    ]


def _part(part: str | dict[str, Any]) -> str | Shown:
    if isinstance(part, str):
        return part
    return Shown(**part | {"drawings": tuple(Drawing(**drawing) for drawing in part["drawings"])})


if __name__ == "__main__":
    pages = contents(Path.cwd(), Path(sys.argv[1]))
    json.dump([asdict(page) for page in pages], sys.stdout)
