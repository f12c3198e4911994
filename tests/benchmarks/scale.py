"""Makes pages with any number of figures, all with different data, of the guide's kinds."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import yaml

from figgen.cache import digest
from figgen.charts import canonical_json
from figgen.errors import InputError
from figgen.markdown import directive
from figgen.markdown.captions import plain
from figgen.markdown.conversion import Fence, fences
from figgen.prose.lines import ProseLine, prose_lines
from figgen.registry import build, figure_named
from tests.benchmarks.contenders import keep_pages

Fields: TypeAlias = Mapping[str, object]
EACH = 4
"""Figures per page."""


def rewrite(root: Path, figures: int) -> None:
    """Replace a snapshot's pages by pages of `EACH` figures, and remove the tools."""
    docs = root / "docs"
    found = list(itertools.islice(_figures(docs), figures))
    names = []
    for number, start in enumerate(range(0, len(found), EACH), 1):
        name = f"scale/page-{number:04}.md"
        names.append(name)
        path = docs / name
        path.parent.mkdir(exist_ok=True)
        body = "\n\n".join(found[start : start + EACH])
        path.write_text(f"# Page {number}\n\n{body}\n", encoding="utf-8")
    (docs / "scale" / "index.md").write_text("# Scale\n\nA sentence.\n", encoding="utf-8")
    keep_pages(root, ["scale/index.md", *names])


def _figures(docs: Path) -> Iterator[str]:
    """Return sections with one figure each, all with new data, cycling through the
    guide's figures."""
    kinds = []
    for path in sorted(docs.glob("*/*.md")):
        source = path.read_text(encoding="utf-8")
        prose = prose_lines(source)
        kinds += [_variants(fence, _beside(source, prose, fence)) for fence in fences(source)]
    seen: set[str] = set()
    numbers = itertools.count(1)
    while kinds:
        left = []
        for kind in kinds:
            for chart, fields, text in kind:
                if (key := digest(chart)) not in seen:
                    seen.add(key)
                    yield _section(next(numbers), fields, text)
                    left.append(kind)
                    break
        kinds = left


def _beside(source: str, prose: list[ProseLine], fence: Fence) -> str:
    """Return up to five self-contained sentences of the figure's section."""
    lines = source.splitlines()
    before = [n for n in range(fence.line) if lines[n].startswith("#")]
    start = before[-1] if before else 0
    own = (line for line in prose if start < line.number < fence.line + 20)
    texts = (lines[line.number - 1] for line in own if line.kind == "text" and not line.joined)
    plain = [text for text in texts if not re.search(r"\]\(|^\s|^[-*+>!?:\d]|[#`<]", text)]
    return "\n".join(plain[:5])


def _variants(fence: Fence, text: str) -> Iterator[tuple[str, Fields, str]]:
    """Yield the figure as it is, then with one number changed: its data, its fields, its text."""
    asked = directive.parse(fence.body)
    for given in _arguments(asked.figure, asked.arguments):
        try:
            chart = build(asked.figure, {**given, **_preset(asked)})
            said = {k: t for k in ("caption", "alt") if "](" not in (t := getattr(asked, k))}
            for words in said.values():
                plain(words, chart.values)
        except (InputError, ArithmeticError, ValueError):
            continue  # there, or a caption that tells of values that are not there then
        fields = {"figure": asked.figure, "caption": "A figure.", "alt": "A figure.", **said}
        fields |= {"as": asked.form, **_plain({**given, **_preset(asked)})}
        yield canonical_json(chart), fields, text


def _section(number: int, fields: Fields, text: str) -> str:
    named = {"id": f"figure-{number}", **fields}
    body = yaml.safe_dump(named, sort_keys=False, allow_unicode=True, width=10**6)
    return f"## Section {number}\n\n{text}\n\n```figure\n{body}```\n"


def _preset(asked: directive.Directive) -> dict[str, object]:
    return {"preset": asked.presets[0]} if asked.presets else {}


def _arguments(name: str, given: Mapping[str, object]) -> Iterator[dict[str, object]]:
    yield dict(given)
    for parameter in figure_named(name).parameters:
        value = given.get(parameter.name, parameter.default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        for other in (
            (value + 1, 2 * value, 4 * value) if isinstance(value, int) else (1.25 * value,)
        ):
            yield {**given, parameter.name: other}


def _plain(given: Mapping[str, object]) -> dict[str, object]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in given.items()}
