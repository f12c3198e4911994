"""The page that lists where every planned figure and table of the guide is shown."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from figgen.errors import InputError
from figgen.generated.fences import figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A planned figure: what it was to show and in which form, and its places on the site.

    `at` are pages with anchors, `guide/page.md#fig-id`; empty only with a `note` that says why.
    """

    key: str
    shows: str
    form: str
    at: tuple[str, ...]
    note: str

    @property
    def settled(self) -> bool:
        """Whether the entry has a place or a reason for having none."""
        return bool(self.at or self.note)


def planned_figures(path: Path) -> tuple[Planned, ...]:
    """Return the entries of `docs/appendix/figures.toml`, none if there is no such file.

    Raises InputError for an entry that lacks a key.
    """
    if not path.exists():
        return ()
    found = []
    for key, entry in tomllib.loads(path.read_text(encoding="utf-8")).items():
        if entry.keys() != {"shows", "form", "at", "note"}:
            raise InputError(f"figures.toml: [{key}]", expected="shows, form, at and note")
        found.append(
            Planned(
                key=key,
                shows=entry["shows"],
                form=entry["form"],
                at=tuple(entry["at"]),
                note=entry["note"],
            )
        )
    return tuple(found)


def figure_coverage_page(entries: tuple[Planned, ...], titles: Mapping[str, str]) -> str:
    """Return the page: every entry with links to its places; `titles` are page titles by path."""
    shown = sum(bool(entry.at) for entry in entries)
    reasons = sum(bool(entry.note) and not entry.at for entry in entries)
    rows = "\n".join(
        f"| {escape(entry.shows).replace('|', '&#124;')} | {_places(entry, titles)} "
        f"| {entry.note} |"
        for entry in entries
    )
    return (
        "---\ndescription: Where every figure and table of the guide's plan is shown, and why some "
        "are not.\n---\n\n# Figure coverage\n\n"
        f"The guide was planned with {len(entries)} figures and tables.\n"
        f"{shown} of them are shown at the places named here, some of them merged or replaced by "
        f"something better{f', and {reasons} were dropped' if reasons else ''}; the last column "
        "says why.\n"
        f"[](#fig-coverage-counts) counts them.\n\n{_counts(entries)}\n"
        f"| planned | shown at | note |\n|---|---|---|\n{rows}\n"
        "{: data-search-exclude }\n"
    )


FORMS = {"table": "table", "interactive": "plot to explore", "SVG": "picture"}
"""Words in a planned form with the category they mean; the first that occurs decides."""


def _counts(entries: tuple[Planned, ...]) -> str:
    states: dict[str, list[int]] = {}
    for entry in entries:
        form = next((label for word, label in FORMS.items() if word in entry.form), "formula")
        state = 2 if not entry.at else 1 if entry.note else 0
        states.setdefault(form, [0, 0, 0])[state] += 1
    names = sorted(states, key=lambda form: -sum(states[form]))
    columns = zip(
        ("as_planned", "changed", "dropped"), zip(*map(states.get, names), strict=True), strict=True
    )
    return figure(
        "coverage-counts",
        "\n".join([f"forms: {names}", *(f"{name}: {list(counts)}" for name, counts in columns)]),
        caption="{{ shown }} entries are shown as planned, {{ shown_with_a_note }} merged or "
        "replaced with a note, {{ dropped }} dropped. By the form that was planned.",
        alt="Bars of planned entries by form; {{ largest }} is the most frequent with {{ most }} "
        "of {{ count }}.",
    )


def _places(entry: Planned, titles: Mapping[str, str]) -> str:
    links = []
    for place in entry.at:
        path, _, anchor = place.partition("#")
        title = titles.get(path, path.rpartition("/")[2].removesuffix(".md"))
        text = "" if anchor.startswith("fig-") else title
        where = f" of {title}" if anchor.startswith("fig-") else ""
        links.append(f"[{text}](../{place}){where}")
    return "; ".join(links) or "–"
