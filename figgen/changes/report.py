"""Report changes as one self-contained HTML file, a Markdown summary, and JSON.

All content from a build is escaped, and pictures are shown as images, which run no scripts and load
nothing.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path

from figgen.changes.builds import Build, ManifestFigure, ManifestNumber
from figgen.changes.causes import Cause
from figgen.changes.compare import Changes, Moved

MOST_PICTURES = 100
MOST_ROWS_OF_SUMMARY = 25
MOST_NAMED = 12
"""Figures of a kind that the summary names."""
LONGEST_CALL = 60

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
STYLE = """
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{max-width:72rem;margin:0 auto;padding:1rem}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #8886;vertical-align:top}
td{font-variant-numeric:tabular-nums}
td:first-child{width:60%}
td small{opacity:.8}
td b{white-space:nowrap}
td summary{list-style-position:outside;margin-left:1em}
code,h3,li{overflow-wrap:anywhere}
.wide{overflow-x:auto}
.pair{display:flex;flex-wrap:wrap;gap:1rem}
.pair figure{flex:1 1 20rem;margin:0;min-width:0}
.pair label{flex:0 0 100%}
.pair:has(:checked){display:grid}
.pair:has(:checked) figure{grid-area:2/1}
.pair:has(:checked) figure+figure{mix-blend-mode:difference}
.pair:has(:checked) figcaption{visibility:hidden}
img{max-width:100%;background:#fff}
ins{background:#2a82;text-decoration:none}
del{background:#d332}
.verdict{font-size:1.25rem}
"""


def verdict(changes: Changes) -> str:
    """Return a sentence that summarizes the changes."""
    counts = changes.counts
    unseen = counts.pop("digits")
    said = [
        f"{count:,} {what.removesuffix('s') if count == 1 else what}"
        for what, count in counts.items()
        if count
    ]
    below = f"{unseen:,} number{'s' * (unseen != 1)} in digits that no page shows"
    if said:
        return f"Changed: {', '.join(said)}{f'; and {below}' if unseen else ''}."
    if unseen:
        return f"Nothing that a reader sees changed, but {below}."
    if changes.inputs:
        return "No number, figure or text changed, although some of their inputs did."
    return "Nothing changed."


def as_json(changes: Changes, found: Sequence[Cause]) -> str:
    """Return counts and numbers as JSON for other programs."""
    ranked = [cause for cause, _ in _ranked(changes, found)]
    return (
        json.dumps(
            {
                "counts": changes.counts,
                "causes": [{"what": cause.what, "numbers": len(cause.keys)} for cause in ranked],
                "numbers": [
                    {
                        "where": f"{m.after.page}:{m.after.line}",
                        "name": m.after.name,
                        "before": m.before.value,
                        "after": m.after.value,
                        "unit": m.after.unit,
                        "seen": m.is_seen,
                    }
                    for m in changes.numbers
                ],
                "figures": [f"{new.page}#{new.id}" for _, new in changes.figures],
            },
            indent=1,
            ensure_ascii=False,
        )
        + "\n"
    )


def summary(changes: Changes, found: Sequence[Cause]) -> str:
    """Return Markdown for a comment: verdict, causes, the numbers that moved furthest, figures."""
    lines = [f"**{verdict(changes)}**", ""]
    for cause, moved in _ranked(changes, found):
        furthest = f", by up to {_percent(moved[0])}" if moved and _percent(moved[0]) else ""
        lines.append(f"- {_plain(cause.what)}: {_count(moved)}{furthest}")
    seen = [m for m in changes.numbers if m.is_seen]
    rows = seen[:MOST_ROWS_OF_SUMMARY]
    if rows:
        lines += ["", "| number | before | after | by | where |", "|---|---:|---:|---:|---|"]
        lines += [
            f"| {_plain(m.after.name)} | {_plain(m.before.shown)} | {_plain(m.after.shown)} "
            f"| {_percent(m)} | {_plain(f'{m.after.page}:{m.after.line}')} |"
            for m in rows
        ]
    if len(seen) > len(rows):
        lines += ["", f"{len(seen) - len(rows):,} more are in the report."]
    for what, figures in {
        "Figures whose data changed": [new for _, new in changes.figures],
        "Figures that only look different": [new for _, new in changes.redrawn],
        "Added figures": [one for one in changes.added if isinstance(one, ManifestFigure)],
        "Removed figures": [one for one in changes.removed if isinstance(one, ManifestFigure)],
    }.items():
        if figures:
            more = f" and {len(figures) - MOST_NAMED:,} more" if figures[MOST_NAMED:] else ""
            named = ", ".join(_plain(f"{f.page}#{f.id}") for f in figures[:MOST_NAMED])
            lines += ["", f"{what}: {named}{more}."]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Return text as inline code that fits a line and a table cell and mentions nobody."""
    line = " ".join(text.split()).replace("`", "'").replace("|", "¦")
    return f"`{line[:120]}`" if line else ""


def _ranked(changes: Changes, found: Sequence[Cause]) -> list[tuple[Cause, list[Moved]]]:
    """Return causes with their displayed numbers; the cause of the largest move comes first."""
    pairs = [(c, [m for m in changes.numbers if m.is_seen and m.key in c.keys]) for c in found]
    return sorted(pairs, key=lambda pair: pair[1][0].size if pair[1] else -1.0, reverse=True)


def _count(rows: Sequence[Moved]) -> str:
    return f"{len(rows):,} number{'s' * (len(rows) != 1)}" if rows else "no number that is shown"


def _percent(m: Moved) -> str:
    if math.isnan(m.relative):
        return ""
    if math.isinf(m.relative):
        return "from 0"
    return f"{m.relative:+.2%}" if abs(m.relative) >= 1e-4 else f"{m.relative:+.0e}"


def html(base: Build, head: Build, changes: Changes, found: Sequence[Cause]) -> str:
    """Return the whole report as one HTML page."""
    between = f"{escape(base.name)} → {escape(head.name)}"
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width"><meta name="robots" content="noindex">',
        f"<title>What changed: {between}</title><style>{STYLE}</style>",
        f'<h1>What changed</h1><p>{between}</p><p class="verdict">{escape(verdict(changes))}</p>',
    ]
    sections = [
        _causes(changes, found),
        _section(
            "Figures whose data changed",
            len(changes.figures),
            _pictures(base, head, changes.figures),
        ),
        _section(
            "Figures that only look different",
            len(changes.redrawn),
            _pictures(base, head, changes.redrawn),
        ),
        _section(
            "Text",
            len(changes.texts),
            map(_text, *zip(*changes.texts.items(), strict=True)) if changes.texts else (),
        ),
        _section("Added", len(changes.added), [_list(changes.added)]),
        _section("Removed", len(changes.removed), [_list(changes.removed)]),
        _inputs(changes),
    ]
    titles = re.findall(r'<h2 id="(.*?)">(.*?)</h2>', "".join(sections))
    links = " · ".join(f'<a href="#{place}">{title}</a>' for place, title in titles)
    return "\n".join(part for part in (*parts, f"<nav>{links}</nav>", *sections) if part) + "\n"


def _section(title: str, count: int, content: Iterable[str]) -> str:
    place = title.replace(" ", "-").lower()
    return f'<h2 id="{place}">{title} ({count:,})</h2>{"".join(content)}' if count else ""


def _causes(changes: Changes, found: Sequence[Cause]) -> str:
    content = "".join(
        f"<h3>Moved by <code>{escape(cause.what)}</code>: {_count(rows)}</h3>"
        + (_numbers(rows) if rows else "")
        for cause, rows in _ranked(changes, found)
    )
    unseen = [m for m in changes.numbers if not m.is_seen]
    if unseen:
        about = f"In digits that no page shows: {_count(unseen)}"
        content += f"<details><summary>{about}</summary>{_numbers(unseen, exact=True)}</details>"
    return _section("Numbers", len(changes.numbers), [content])


def _numbers(rows: Sequence[Moved], exact: bool = False) -> str:
    """Return a table of numbers, as displayed or with all digits.

    A row has one call with all its lines, or all values of a figure, folded.
    """

    def written(number: ManifestNumber) -> str:
        return escape(f"{number.value} {number.unit}" if exact else number.shown)

    alike: dict[tuple[str, ...], list[Moved]] = {}
    for m in rows:
        figure = _figure_of(m)
        one = (
            (m.after.page, figure)
            if figure
            else (m.after.name, written(m.before), written(m.after))
        )
        alike.setdefault(one, []).append(m)
    body = ""
    for same in alike.values():
        m, places = same[0], {f"{m.after.page}:{m.after.line}": None for m in same}
        moved = f"{written(m.before)} → {written(m.after)} "
        if figure := _figure_of(m):
            values = "".join(
                f"<li><code>{escape(m.after.name.removeprefix(figure + ': '))}</code> "
                f"{written(m.before)} → {written(m.after)} {_percent(m)}</li>"
                for m in same
            )
            named = f"<code>#{escape(figure)}</code>: {_count(same)}"
            if same[1:]:
                named, moved = _folded(named, f"<ul>{values}</ul>"), "up to "
            else:
                named = f"<code>#{escape(m.after.name)}</code>"
        else:
            named = _named(m.after)
        where = f"<small>{escape(', '.join(places))}</small>"
        body += f"<tr><td>{named} {where}</td><td>{moved}<b>{_percent(m)}</b></td></tr>"
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("Number", "Before → after, by"))
    return f'<div class="wide"><table><thead><tr>{heads}</tr></thead>{body}</table></div>'


def _figure_of(m: Moved) -> str:
    """Return the id of the figure that a value belongs to; "" for an inline number."""
    return m.after.name.partition(": ")[0] if m.key.startswith(f"{m.after.page}#") else ""


def _named(number: ManifestNumber) -> str:
    """Return a number's call, shortened if long; it unfolds to the whole call and the formula."""
    name = number.name
    shown = name if len(name) <= LONGEST_CALL else f"{name.partition('(')[0][:LONGEST_CALL]}(…)"
    formula = f"<br>= <code>{escape(number.formula)}</code>" if number.formula else ""
    if shown == name and not formula:
        return f"<code>{escape(name)}</code>"
    return _folded(f"<code>{escape(shown)}</code>", f"<code>{escape(name)}</code>{formula}")


def _folded(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>{content}</details>"


def _pictures(
    base: Build, head: Build, pairs: Sequence[tuple[ManifestFigure, ManifestFigure]]
) -> Iterable[str]:
    for place, (old, new) in enumerate(pairs):
        name = escape(f"{new.number}, {new.function} ({new.page}:{new.line}, #{new.id})")
        yield f"<h3>{name}</h3>"
        before, after = (_picture(old, base.folder, "before"), _picture(new, head.folder, "after"))
        if not before or not after:
            yield "<p>One of the builds is a manifest without its pictures.</p>"
        elif old.picture == new.picture:
            yield "<p>Its picture is the same: only digits that it does not show changed.</p>"
        elif place >= MOST_PICTURES:
            yield "<p>Not shown: the report has reached its limit of pictures.</p>"
        else:
            yield (
                '<div class="pair"><label><input type="checkbox"> Overlay: equal parts are black'
                f"</label><figure>{before}<figcaption>Before</figcaption></figure>"
                f"<figure>{after}<figcaption>After</figcaption></figure></div>"
            )


def _picture(figure: ManifestFigure, folder: Path | None, when: str) -> str:
    if folder is None or not figure.file:
        return ""
    data = base64.b64encode((folder / figure.file).read_bytes()).decode()
    alt = escape(f"{figure.number} {when}", quote=True)
    return f'<img alt="{alt}" loading="lazy" src="data:image/svg+xml;base64,{data}">'


def _text(page: str, lines: Sequence[str]) -> str:
    tags: Callable[[str], str] = lambda line: "ins" if line[0] == "+" else "del"  # noqa: E731
    items = "".join(f"<li><{tags(line)}>{escape(line[1:])}</{tags(line)}></li>" for line in lines)
    return f"<h3>{escape(page)}</h3><ul>{items or '<li>added or removed</li>'}</ul>"


def _list(things: Sequence[ManifestNumber | ManifestFigure]) -> str:
    items = "".join(
        f"<li>{escape(thing.page)}:{thing.line} <code>"
        f"{escape(thing.name if isinstance(thing, ManifestNumber) else f'#{thing.id}')}</code>"
        f"{escape(' = ' + thing.shown) if isinstance(thing, ManifestNumber) else ''}</li>"
        for thing in things
    )
    return f"<ul>{items}</ul>"


def _inputs(changes: Changes) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(old[:60])}</td>"
        f"<td>{escape(new[:60])}</td></tr>"
        for name, (old, new) in changes.inputs.items()
    )
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("Input", "Before", "After"))
    table = f'<div class="wide"><table><thead><tr>{heads}</tr></thead>{rows}</table></div>'
    count = len(changes.inputs)
    return _section(
        "Inputs of the builds",
        count,
        [f"<details><summary>Show</summary>{table}</details>"],
    )
