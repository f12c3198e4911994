"""What the gate measured on each page, by kind, as a table; tests record it as properties."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

NAME = "measured"
"""The property's name; its value is (page, {quantity: number})."""

KINDS = {
    "chapter": ("/guide/",),
    "tool": ("/tools/",),
    "reference": ("/reference/", "/appendix/"),
    "validation": ("/validation/",),
    "other": ("/",),
}
LIMIT_KB = {"chapter": 120, "tool": 155, "reference": 90, "other": 90, "validation": 90}
"""Limit in kB, as sent, on what a first visit fetches before its reader does anything."""

PUBLISHED_KB = 0.9
"""Additional kB of a published page, which has an address, a repository and a card."""

LIMIT_TBT_MS = 200
"""Total blocking time on a slow phone."""

FORMATS = {
    "kB": "{:.0f}", "requests": "{:.0f}", "CLS": "{:.3f}", "CLS phone": "{:.3f}",
    "TBT ms": "{:.0f}", "no-JS %": "{:.0f}", "axe": "{:.0f}", "sideways px": "{:.0f}",
    "off anchor px": "{:.0f}", "invalid": "{:.0f}", "performance": "{:.0f}",
}  # fmt: skip
LEAST = ("no-JS %", "performance")
"""Quantities of which smaller values are worse."""


def kind_of(path: str) -> str:
    return next(kind for kind, starts in KINDS.items() if path.startswith(starts))


def table(told: Iterable[tuple[str, Mapping[str, float]]]) -> list[str]:
    """Return the lines of two tables, for all pages and for the worst by kind, and the
    worst pages."""
    pages: dict[str, dict[str, float]] = {}
    for page, values in told:
        pages.setdefault(page, {}).update(values)
    if not pages:
        return []
    names = [name for name in FORMATS if any(name in values for values in pages.values())]
    rows = [["kind", "pages", "median kB", *names]]
    each = [["page", *names]]
    for kind in KINDS:
        own = {page: values for page, values in pages.items() if kind_of(page) == kind}
        if own:
            weights = [values["kB"] for values in own.values() if "kB" in values]
            middle = f"{median(weights):.0f}" if weights else ""
            rows.append([kind, str(len(own)), middle, *(_worst(own, name)[1] for name in names)])
        for page in sorted(own):
            each.append([page, *(_worst({page: own[page]}, name)[1] for name in names)])
    worst = ["{}: worst {} on {}".format(name, *_worst(pages, name)[::-1]) for name in names]
    return [*_aligned(each), "", *_aligned(rows), *worst]


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in rows]


def _worst(pages: Mapping[str, Mapping[str, Any]], name: str) -> tuple[str, str]:
    having = {page: values[name] for page, values in pages.items() if name in values}
    if not having:
        return "", ""
    page = (min if name in LEAST else max)(having, key=lambda page: having[page])
    return page, FORMATS[name].format(having[page])
