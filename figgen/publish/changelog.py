"""The changelog as pages of the site and as a feed that readers can subscribe to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape

PAGE, FEED = "about/changelog.md", "changes.xml"
_OLDER = "about/releases/"
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


def changelog_pages(changelog: str) -> dict[str, str]:
    """Return the changelog as pages by path, so that no page grows with the age of the site.

    `PAGE` has the newest release and what changed since; every older release has a page of its own,
    to which `PAGE` links.
    """
    sections = list(releases(changelog))
    shown = 1 + next((at for at, section in enumerate(sections) if section.date), len(sections))
    newest, older = sections[:shown], sections[shown:]
    about = _RELEASE.split(changelog, maxsplit=1)[0].strip()
    links = ", ".join(f"[{section.name}](releases/{section.name}.md)" for section in older)
    parts = [
        _described("What changed on this site, and every number that moved, with the reason."),
        f"{about}\nReaders of feeds can follow these changes, and the numbers that each "
        f'publication moves, at <a href="../../{FEED}">{FEED}</a>.'
        + (f"\nOlder releases have their own pages: {links}." if older else ""),
        *map(_section, newest),
    ]
    return {
        PAGE: "\n\n".join(parts) + "\n",
        **{f"{_OLDER}{section.name}.md": _older_page(section) for section in older},
    }


def _older_page(release: Release) -> str:
    about = _described(f"What changed on this site with release {release.name}.")
    newer = "Newer changes are in the [changelog](../changelog.md)."
    return f"{about}\n\n# Release {release.name}\n\n{newer}\n\n{_section(release)}\n"


def _described(description: str) -> str:
    return f"---\ndescription: {description}\n---"


def _section(release: Release) -> str:
    date = f" - {release.date}" if release.date else ""
    return f"## [{release.name}]{date}\n\n{release.text}"


def feed(pages: Mapping[str, str], site: str, address: str, changed: str) -> str:
    """Return the releases on `pages` (Markdown by path) as Atom, newest first.

    `changed` is the ISO date of sections without a date.  Pages other than those of
    `changelog_pages` are ignored.
    """
    page = f"{address}{_url(PAGE)}"
    found = [
        (release, f"{address}{_url(path)}")
        for path, text in pages.items()
        if path == PAGE or path.startswith(_OLDER)
        for release in releases(text)
    ]
    found.sort(key=lambda one: one[0].date or "9999", reverse=True)
    entries = "".join(_entry(release, page, link, changed) for release, link in found)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<title>{escape(site)}: changes</title><id>{escape(page)}</id>"
        f'<link href="{escape(page, quote=True)}"/>'
        f'<link rel="self" href="{escape(address + FEED, quote=True)}"/>'
        f"<updated>{_instant(changed)}</updated>"
        f"<author><name>The figgen authors</name></author>\n{entries}</feed>\n"
    )


def _url(path: str) -> str:
    return f"{path.removesuffix('.md')}/"


def _entry(release: Release, page: str, link: str, changed: str) -> str:
    # An id never changes, so it names the changelog, not the page that a release is moved to.
    date = release.date or changed
    name = escape(release.name)
    return (
        f"<entry><title>{name}</title><id>{escape(page)}#{name.lower().replace(' ', '-')}</id>"
        f'<link href="{escape(link, quote=True)}"/><updated>{_instant(date)}</updated>'
        f'<content type="text">{escape(release.text)}</content></entry>\n'
    )


def _instant(date: str) -> str:
    return f"{date or '1970-01-01'}T00:00:00Z"
