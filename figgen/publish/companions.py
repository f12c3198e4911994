"""Files published next to the pages: Markdown twins, their list, the feed and link cards."""

from __future__ import annotations

import re
from dataclasses import dataclass

from figgen.charts import Table
from figgen.markdown.conversion import Page, Site
from figgen.publish.cards import card
from figgen.publish.changelog import FEED, PAGE, feed
from figgen.publish.twins import figure_twin, llms_txt, twin

LOCAL = ("http://127.0.0.1", "http://localhost", "http://[::1]")
_TITLE = re.compile(r"^# (.+?)\s*$", re.M)
_ABOUT = re.compile(r"^description: (.+?)\s*$", re.M)


@dataclass(frozen=True, slots=True)
class Titled:
    """A page with the title and description from its source."""

    page: Page
    title: str
    about: str

    @property
    def url(self) -> str:
        """Return a page's folder with a trailing slash; empty for the home page."""
        return (self.page.url or "").removeprefix("./")


def titled(page: Page) -> Titled:
    """Return a page's title and description, read from its source."""
    title, about = _TITLE.search(page.source), _ABOUT.search(page.source)
    return Titled(page, title[1] if title else page.path, about[1].strip("\"'") if about else "")


def card_path(page: Page) -> str:
    """Return the path of a page's link card, relative to the site's root."""
    return f"assets/cards/{page.path.removesuffix('.md')}.png"


def has_card(page: Page, site: Site) -> bool:
    """Return whether a page gets a card: a written page with a picture and shareable links."""
    return not site.address.startswith(LOCAL) and bool(page.picture)


def first_picture(page: Page) -> str:
    """Return the id of an unsettled page's first figure that is a picture."""
    for line in sorted(page.placed):
        for variant in page.placed[line]:
            if not isinstance(variant.figure.chart, Table):
                return str(variant.figure.figure_id)
    return ""


def companions(site: Site, summary: str, changed: str) -> dict[str, str | bytes]:
    """Return all companion files by path.

    `summary` describes the site, `changed` is its ISO date.
    """
    pages = [titled(page) for page in site.pages if page.path != "LICENSE.md"]
    made: dict[str, str | bytes] = {}
    for one in pages:
        made[f"{one.url}index.md"] = twin(one.page, site.numbers)
        if has_card(one.page, site):
            made[card_path(one.page)] = card(site.name, one.title, one.page.picture)
    listed = sorted((f"{one.url}index.md", one.title, one.about) for one in pages)
    made["llms.txt"] = llms_txt(site.name, summary, listed, site.address)
    sources = {one.page.path: one.page.source for one in pages}
    if PAGE in sources:
        made[FEED] = feed(sources, site.name, site.address, changed)
    return made


def figures_in_words(page: Page) -> dict[int, str]:
    """Return the twins of a page's figures by line, before the page is settled."""
    numbers = {entry["where"]: str(entry["number"]) for entry in page.entries if "figure" in entry}
    found = {}
    for line, variants in page.placed.items():
        number = numbers[f"{page.path}:{line}"]
        tabs = [v.label if len(variants) > 1 else "" for v in variants]
        found[line] = "\n\n".join(
            figure_twin(number, v.text, v.alt, v.figure.chart, tab)
            for v, tab in zip(variants, tabs, strict=True)
        )
    return found
