"""Changes told: one HTML file that needs nothing else, a Markdown summary, and numbers as JSON.

Everything that comes out of a build is escaped, and pictures are shown as images, in which no
script runs and from which nothing is loaded.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path

from figgen.changes.builds import Build, Figure, Number
from figgen.changes.causes import Cause
from figgen.changes.compare import Changes, Moved

MOST_PICTURES = 100
MOST_ROWS_OF_SUMMARY = 25

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
STYLE = """
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{max-width:72rem;margin:0 auto;padding:1rem}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #8886;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
code{overflow-wrap:anywhere}
.wide{overflow-x:auto}
.pair{display:flex;flex-wrap:wrap;gap:1rem}
.pair figure{flex:1 1 20rem;margin:0;min-width:0}
.over{display:grid}
.over img{grid-area:1/1}
.over img+img{mix-blend-mode:difference}
img{max-width:100%;background:#fff}
ins{background:#2a82;text-decoration:none}
del{background:#d332}
.verdict{font-size:1.25rem}
"""


def verdict(changes: Changes) -> str:
    """One sentence, also when nothing changed."""
    said = [
        f"{count:,} {what.removesuffix('s') if count == 1 else what}"
        for what, count in changes.counts.items()
        if count
    ]
    if said:
        return f"Changed: {', '.join(said)}."
    if changes.inputs:
        return "No number, figure or text changed, though something that they are made from did."
    return "Nothing changed."


def as_json(changes: Changes, found: Sequence[Cause]) -> str:
    """Counts and numbers for other programs."""
    return json.dumps(
        {
            "counts": changes.counts,
            "causes": [{"what": cause.what, "numbers": len(cause.keys)} for cause in found],
            "numbers": [
                {
                    "where": f"{m.after.page}:{m.after.line}", "name": m.after.name,
                    "before": m.before.value, "after": m.after.value, "unit": m.after.unit,
                }
                for m in changes.numbers
            ],
            "figures": [f"{new.page}#{new.id}" for _, new in changes.figures],
        },
        indent=1, ensure_ascii=False,
    ) + "\n"  # fmt: skip


def summary(changes: Changes, found: Sequence[Cause]) -> str:
    """Markdown for a comment: the verdict, the causes, the numbers that moved furthest."""
    lines = [f"**{verdict(changes)}**", ""]
    lines += [f"- {_plain(cause.what)}: {len(cause.keys):,} numbers" for cause in found]
    rows = sorted(changes.numbers, key=_size, reverse=True)[:MOST_ROWS_OF_SUMMARY]
    if rows:
        lines += ["", "| number | before | after | by | where |", "|---|---:|---:|---:|---|"]
        lines += [
            f"| {_plain(m.after.name)} | {_plain(m.before.shown)} | {_plain(m.after.shown)} "
            f"| {_percent(m)} | {_plain(f'{m.after.page}:{m.after.line}')} |"
            for m in rows
        ]
    if len(changes.numbers) > len(rows):
        lines += ["", f"{len(changes.numbers) - len(rows):,} more are in the report."]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Text that Markdown shows as it is: as code, in one line and one cell, without a mention."""
    line = " ".join(text.split()).replace("`", "'").replace("|", "¦")
    return f"`{line[:120]}`" if line else ""


def _size(m: Moved) -> float:
    return -1.0 if math.isnan(m.relative) else abs(m.relative)


def _percent(m: Moved) -> str:
    if math.isnan(m.relative):
        return ""
    return "from 0" if math.isinf(m.relative) else f"{m.relative:+.2%}"


def html(base: Build, head: Build, changes: Changes, found: Sequence[Cause]) -> str:
    """The whole report as one page."""
    between = f"{escape(base.name)} → {escape(head.name)}"
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width"><meta name="robots" content="noindex">',
        f"<title>What changed: {between}</title><style>{STYLE}</style>",
        f'<h1>What changed</h1><p>{between}</p><p class="verdict">{escape(verdict(changes))}</p>',
        _causes(changes, found),
        _section("Figures whose data changed", len(changes.figures),
                 _pictures(base, head, changes.figures)),
        _section("Figures that only look different", len(changes.redrawn),
                 _pictures(base, head, changes.redrawn)),
        _section("Text", len(changes.texts), map(_text, *zip(*changes.texts.items(), strict=True))
                 if changes.texts else ()),
        _section("Added", len(changes.added), [_list(changes.added)]),
        _section("Removed", len(changes.removed), [_list(changes.removed)]),
        _inputs(changes),
    ]  # fmt: skip
    return "\n".join(part for part in parts if part) + "\n"


def _section(title: str, count: int, content: Iterable[str]) -> str:
    return f"<h2>{title} ({count:,})</h2>{''.join(content)}" if count else ""


def _causes(changes: Changes, found: Sequence[Cause]) -> str:
    by_key = {m.key: m for m in changes.numbers}
    content = "".join(
        f"<h3>Moved by <code>{escape(cause.what)}</code>: {len(cause.keys):,}</h3>"
        + _numbers([m for key, m in by_key.items() if key in cause.keys])
        for cause in found
    )
    return _section("Numbers", len(changes.numbers), [content])


def _numbers(rows: Sequence[Moved]) -> str:
    head = ("Number", "Before", "After", "By", "Where")
    body = "".join(
        f"<tr><td><code>{escape(m.after.name)}</code></td><td class=n>{escape(m.before.shown)}</td>"
        f"<td class=n>{escape(m.after.shown)}</td><td class=n>{_percent(m)}</td>"
        f"<td>{escape(m.after.page)}:{m.after.line}</td></tr>"
        for m in rows
    )
    heads = "".join(f'<th scope="col">{name}</th>' for name in head)
    return f'<div class="wide"><table><thead><tr>{heads}</tr></thead>{body}</table></div>'


def _pictures(base: Build, head: Build, pairs: Sequence[tuple[Figure, Figure]]) -> Iterable[str]:
    for place, (old, new) in enumerate(pairs):
        name = escape(f"{new.number}, {new.function} ({new.page}:{new.line}, #{new.id})")
        yield f"<h3>{name}</h3>"
        before, after = (_picture(old, base.folder, "before"), _picture(new, head.folder, "after"))
        if not before or not after:
            yield "<p>One of the builds is a manifest without its pictures.</p>"
        elif place >= MOST_PICTURES:
            yield "<p>Not shown here: the report holds no more pictures.</p>"
        else:
            yield (
                f'<div class="pair"><figure>{before}<figcaption>Before</figcaption></figure>'
                f"<figure>{after}<figcaption>After</figcaption></figure></div>"
                f"<details><summary>One over the other: what is equal is black</summary>"
                f'<div class="over">{before}{after}</div></details>'
            )


def _picture(figure: Figure, folder: Path | None, when: str) -> str:
    if folder is None or not figure.file:
        return ""
    data = base64.b64encode((folder / figure.file).read_bytes()).decode()
    alt = escape(f"{figure.number} {when}", quote=True)
    return f'<img alt="{alt}" loading="lazy" src="data:image/svg+xml;base64,{data}">'


def _text(page: str, lines: Sequence[str]) -> str:
    tags: Callable[[str], str] = lambda line: "ins" if line[0] == "+" else "del"  # noqa: E731
    items = "".join(f"<li><{tags(line)}>{escape(line[1:])}</{tags(line)}></li>" for line in lines)
    return f"<h3>{escape(page)}</h3><ul>{items or '<li>added or removed</li>'}</ul>"


def _list(things: Sequence[Number | Figure]) -> str:
    items = "".join(
        f"<li>{escape(thing.page)}:{thing.line} <code>"
        f"{escape(thing.name if isinstance(thing, Number) else f'#{thing.id}')}</code>"
        f"{escape(' = ' + thing.shown) if isinstance(thing, Number) else ''}</li>"
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
        "What the builds were made from",
        count,
        [f"<details><summary>Show</summary>{table}</details>"],
    )
