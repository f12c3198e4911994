"""The site's feed of changes, with an entry for the numbers that a publication moved."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from figgen.cache import digest
from figgen.changes.causes import Cause
from figgen.changes.compare import Changes
from figgen.changes.report import summary, verdict

ATOM = "http://www.w3.org/2005/Atom"
MARK = "#moved-"
"""Follows the address of the changelog page in the ids of these entries."""

MOST_ENTRIES = 50


def with_moved(feed: str, before: str, changes: Changes, found: Sequence[Cause], day: str) -> str:
    """Return `feed` with the entries of `before` and a new first entry for `changes`.

    No entry is added if no number that readers see moved.  `before` may be empty; `day` is an ISO
    date.  Raises ElementTree.ParseError if a text is not XML.
    """
    ElementTree.register_namespace("", ATOM)
    root = ElementTree.fromstring(feed)
    kept = ElementTree.fromstring(before).findall(f"{{{ATOM}}}entry") if before else []
    entries = [entry for entry in kept if MARK in entry.findtext(f"{{{ATOM}}}id", "")]
    if changes.counts["numbers"]:
        page = root.findtext(f"{{{ATOM}}}id", "")
        entries.insert(0, _entry(page, verdict(changes), summary(changes, found), day))
    root.extend(entries[:MOST_ENTRIES])
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _entry(page: str, title: str, text: str, day: str) -> ElementTree.Element:
    entry = ElementTree.Element(f"{{{ATOM}}}entry")
    for tag, content in (
        ("title", title),
        ("id", f"{page}{MARK}{day}-{digest(text)[:8]}"),
        ("updated", f"{day}T00:00:00Z"),
        ("content", text),
    ):
        ElementTree.SubElement(entry, f"{{{ATOM}}}{tag}").text = content
    ElementTree.SubElement(entry, f"{{{ATOM}}}link", href=page)
    return entry
