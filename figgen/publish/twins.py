"""Pages as Markdown with their numbers filled in, and a list of them for language models.

A twin is the page's own source with inline values as readers see them, and without answer fields,
which need a script. A figure is its number, caption, description and, if it's a table, the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from figgen.charts import Chart, Table
from figgen.markdown.claims import stated
from figgen.markdown.conversion import Page, fences
from figgen.markdown.inline import PATTERN
from figgen.markdown.questions import QUESTION

MOST_ROWS = 120
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.S)
_FIELD = re.compile(rf"{QUESTION}\n*", re.M)
_CODE = re.compile(
    r"(^ *(?:```+|~~~+)[^`\n]*\n.*?^ *(?:```+|~~~+) *$|(?<!`)(?:`[^`\n]+`|``[^\n]+?``)(?!`))",
    re.M | re.S,
)
_FIGURE_LINK = re.compile(r"\[\]\(([^)\s]*)#fig-([^)\s]+)\)")


def figure_twin(number: str, caption: str, alt: str, chart: Chart, tab: str = "") -> str:
    """Describe a figure, or one of its tabs, in words, with its rows if it is a table."""
    lines = [f"**{number}.** {f'*{tab}.* ' if tab else ''}{caption}"]
    lines += [f"Description: {alt}"] if alt and alt != caption else []
    return "\n\n".join([*lines, *([_rows(chart)] if isinstance(chart, Table) else [])])


def _rows(chart: Table) -> str:
    from figgen.renderers import table

    shown = table.shown(chart)
    rules = ["---:" if right else "---" for right in shown.right]
    lines = [shown.headings, rules, *shown.rows[:MOST_ROWS]]
    rows = "\n".join(f"| {' | '.join(cell.replace('|', '¦') for cell in line)} |" for line in lines)
    left = len(shown.rows) - MOST_ROWS
    return f"{rows}\n\n({left:,} more rows are on the page.)" if left > 0 else rows


def twin(page: Page, numbers: Mapping[str, Mapping[str, str]]) -> str:
    """Return the page's source as readers read it; `numbers` are figure numbers by page and id."""
    lines = page.source.splitlines()
    kept: list[str] = []
    after = 0
    for fence in fences(page.source):
        kept += lines[after : fence.line - 1]
        kept.append(page.figure_twins.get(fence.line + 1, ""))
        after = fence.line + len(fence.body.splitlines()) + 1
    text = _FRONT_MATTER.sub("", "\n".join([*kept, *lines[after:]]) + "\n")
    text = stated(_FIELD.sub("", text))

    def link(found: re.Match[str]) -> str:
        path = page.beside(found[1]) if found[1] else page.path
        return numbers.get(path, {}).get(found[2], f"the figure {found[2]}")

    parts = _CODE.split(text)  # an example shows what to write, not what comes of it
    for at in range(0, len(parts), 2):
        plain = re.sub(PATTERN, lambda m: page.shown.get(m[0], m[0]), parts[at])
        parts[at] = _FIGURE_LINK.sub(link, plain)
    return "".join(parts)


def llms_txt(site: str, summary: str, pages: Iterable[tuple[str, str, str]], address: str) -> str:
    """Return the list described by llmstxt.org; `pages` are (address, title, description)."""
    lines = [f"# {site}", "", f"> {summary}", "", "## Pages", ""]
    lines += [
        f"- [{title}]({address}{path}){f': {about}' if about else ''}"
        for path, title, about in pages
    ]
    return "\n".join(lines) + "\n"
