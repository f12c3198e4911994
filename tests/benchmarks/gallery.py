"""Writes pages as gallery scripts: comments with the text, and a line of code per picture."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.benchmarks.content import Content, Shown

CODE = 'plot_file("{path}")\n'
FIRST = "from tests.benchmarks.drawing import plot_file\n\n"


def script(page: Content, data: Path, prose: Callable[[str], str], table: str) -> str:
    """Return a script that shows `page`; `prose` converts its Markdown, `table` a table's HTML."""
    heading = prose(f"# {page.title}").strip()
    blocks, first = [f'r"""\n{heading}\n"""\n'], FIRST
    for text, shown in _sections(page):
        blocks.append(_comment(prose(text)))
        if shown:
            extra = f"{table.format(html=shown.tables)}\n\n" if shown.tables else ""
            blocks[-1] += _comment(extra + prose(shown.caption), begin="#\n")
            calls = [CODE.format(path=data / f"{d.name}.json") for d in shown.drawings]
            if calls:
                blocks.append(first + "".join(calls))
                first = ""
    return "\n".join(blocks)


def _sections(page: Content) -> Iterator[tuple[str, Shown | None]]:
    """Return each text with the figure that follows it."""
    waiting = ""
    for part in page.parts:
        if isinstance(part, str):
            waiting = re.sub(r"(?m)\A\s*^# .*$", "", part, count=1) if part else part
        else:
            yield waiting, part
            waiting = ""
    yield waiting, None


def _comment(text: str, begin: str = "# %%\n") -> str:
    lines = text.strip().splitlines()
    return begin + "".join(f"# {line}".rstrip() + "\n" for line in lines)


def rst(markdown: str) -> str:
    """Convert enough Markdown to give Sphinx the same work: headings, code, lines of plain text."""
    fenced = re.split(r"(?ms)^(```.*?^```)$", markdown)
    parts = [_literal(part) if i % 2 else _blocks(part) for i, part in enumerate(fenced)]
    return "\n\n".join(filter(None, parts))


def _literal(fence: str) -> str:
    lines = fence.splitlines()[1:-1]
    return "::\n\n" + "\n".join(f"   {line}" for line in lines or ["(empty)"])


def _blocks(text: str) -> str:
    return "\n\n".join(_block(block) for block in re.split(r"\n\s*\n", text) if block.strip())


def _block(block: str) -> str:
    heading = re.match(r"\s*(#+) (.*?)(?: \{.*\})?$", block)
    if heading:
        title, level = _escaped(heading[2]), len(heading[1])
        return f"{title}\n{'=-~^'[min(level, 4) - 1] * (len(title) + 1)}"
    lines = [_escaped(line.strip()) for line in block.strip().splitlines()]
    # Every line as a line of its own, so that tables and lists keep their shape.
    return "\n".join(f"| {line}" for line in lines)


def _escaped(text: str) -> str:
    return re.sub(r"([\\*`_|])", r"\\\1", text)
