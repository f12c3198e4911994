"""The changelog as a page of the site and as a feed that readers can subscribe to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

PAGE, FEED = "about/changelog.md", "changes.xml"
_RELEASE = re.compile(r"^## \[?([^\]\n]+?)\]?(?: - (\d{4}-\d{2}-\d{2}))?\s*$", re.M)


@dataclass(frozen=True, slots=True)
class Release:
    """A section of the changelog: its name, its ISO date if it has one, and its Markdown."""

    name: str
    date: str
    text: str


def releases(changelog: str) -> Iterator[Release]:
    """Return the sections of a keepachangelog.com changelog, newest first."""
    found = list(_RELEASE.finditer(changelog))
    ends = [match.start() for match in found[1:]] + [len(changelog)]
    for match, end in zip(found, ends, strict=False):
        yield Release(match[1], match[2] or "", changelog[match.end() : end].strip())


def changelog_page(changelog: str) -> str:
    """Return the changelog as a page, with a description and the address of its feed."""
    return (
        "---\ndescription: What changed on this site, and every number that moved, with the "
        f"reason.\n---\n\n{changelog.rstrip()}\n\n"
        "Readers of feeds can follow these changes, and the numbers that each publication moves, "
        f'at <a href="../../{FEED}">{FEED}</a>.\n'
    )


def feed(changelog: str, site: str, address: str, changed: str) -> str:
    """Return the changelog as Atom; `changed` is the ISO date of sections without a date."""
    page = f"{address}about/changelog/"
    entries = "".join(_entry(release, page, changed) for release in releases(changelog))
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<title>{escape(site)}: changes</title><id>{escape(page)}</id>"
        f'<link href="{escape(page, quote=True)}"/>'
        f'<link rel="self" href="{escape(address + FEED, quote=True)}"/>'
        f"<updated>{_instant(changed)}</updated>"
        f"<author><name>The figgen authors</name></author>\n{entries}</feed>\n"
    )


def _entry(release: Release, page: str, changed: str) -> str:
    date = release.date or changed
    name = escape(release.name)
    return (
        f"<entry><title>{name}</title><id>{escape(page)}#{name.lower().replace(' ', '-')}</id>"
        f'<link href="{escape(page, quote=True)}"/><updated>{_instant(date)}</updated>'
        f'<content type="text">{escape(release.text)}</content></entry>\n'
    )


def _instant(date: str) -> str:
    return f"{date or '1970-01-01'}T00:00:00Z"
