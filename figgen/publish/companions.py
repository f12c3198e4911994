"""The files beside the pages of a published site: Markdown twins, their list, feed, link cards."""

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
    """A page with its title and description, as its source gives them."""

    page: Page
    title: str
    about: str

    @property
    def url(self) -> str:
        """The page's folder, with a slash at its end; nothing for the home page."""
        return (self.page.url or "").removeprefix("./")


def titled(page: Page) -> Titled:
    """What the source says of itself."""
    title, about = _TITLE.search(page.source), _ABOUT.search(page.source)
    return Titled(page, title[1] if title else page.path, about[1].strip("\"'") if about else "")


def card_path(page: Page) -> str:
    """Where the picture of a link to the page is, from the site's root."""
    return f"assets/cards/{page.path.removesuffix('.md')}.png"


def has_card(page: Page, site: Site) -> bool:
    """Only written pages with a picture, and only where links to them can be shared."""
    return not site.address.startswith(LOCAL) and bool(page.picture)


def first_picture(page: Page) -> str:
    """The id of the first figure of the page that is a picture; of a page that is not settled."""
    for line in sorted(page.placed):
        for variant in page.placed[line]:
            if not isinstance(variant.figure.chart, Table):
                return str(variant.figure.figure_id)
    return ""


def companions(site: Site, summary: str, changed: str) -> dict[str, str | bytes]:
    """Everything by its path; `summary` is a sentence about the site, `changed` its ISO date."""
    pages = [titled(page) for page in site.pages if page.path != "LICENSE.md"]
    made: dict[str, str | bytes] = {}
    for one in pages:
        made[f"{one.url}index.md"] = twin(one.page, site.numbers)
        if has_card(one.page, site):
            made[card_path(one.page)] = card(site.name, one.title, one.page.picture)
    listed = sorted((f"{one.url}index.md", one.title, one.about) for one in pages)
    made["llms.txt"] = llms_txt(site.name, summary, listed, site.address)
    for one in pages:
        if one.page.path == PAGE:
            made[FEED] = feed(one.page.source, site.name, site.address, changed)
    return made


def figures_in_words(page: Page) -> dict[int, str]:
    """The twins of a page's figures by their lines, before the page is settled."""
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
