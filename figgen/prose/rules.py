"""Rules for prose: every quantity computed or cited, one sentence per line, one spelling.

`lint(page, source, terms)` checks one page; each finding has a line, the rule, the expected and the
actual text. CONTRIBUTING.md explains the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from figgen.charts import Table
from figgen.errors import InputError
from figgen.markdown import directive
from figgen.markdown.conversion import fences
from figgen.markdown.lists import TERM, read_list, read_references
from figgen.prose.caption_names import misnamed
from figgen.prose.density import MOST_IN_JOURNEY, in_text
from figgen.prose.idiom import mannered, spoken
from figgen.prose.lines import CITED, COMPUTED, MATH, ProseLine, figure_lines, prose_lines
from figgen.prose.premises import is_premise, parameters, premises
from figgen.prose.symbols import clashes
from figgen.prose.unparsed import uncited, unparsed
from figgen.quantity_text import SCALED
from figgen.quantity_units import ADDED, MEASURED, POWERS, TIMES
from figgen.registry import all_figures, figure_named
from figgen.subject import Subject, subject

Terms = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Finding:
    """Something to correct on a line of a page."""

    page: str
    line: int
    what: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.what}: expected {self.expected}, got {self.got!r}"


_NUMBER = r"(?<![\w.,/#-])[~≈−]?\d[\d.,]*(?:\s?[–-]\s?\d[\d.,]*)?"
_PREFIXED = r"(?:[kKMGTPE]i?)?(?:B|FLOPs?|FLOPS)(?:/s)?"
_TIME = r"(?:[mµμun]s|s|min|h|seconds?|minutes?|hours?|days?|weeks?|months?|years?)"
_OTHER = r"(?:k|M|G)?(?:W|Hz)|bytes?|tokens?/s|°C"
_SCALE = r"(?:million|billion|trillion|thousand)s?"
COUNTED: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a percentage", re.compile(rf"{_NUMBER}\s?%|{_NUMBER} per ?cent\b")),
    (
        "a multiple",
        re.compile(
            rf"{_NUMBER}×(?!\s?\d)|{_NUMBER}x\b|{_NUMBER}(?: |-)(?:times|fold)\b"
            r"|\b(?:two|three|four|five|six|seven|eight|nine|ten|twelve|sixteen|hundred|thousand)"
            r" times (?:as|more|less|faster|slower|longer|shorter|larger|smaller|higher|lower"
            r"|the)\b"
        ),
    ),
)
"""Patterns of shares and multiples; a small count of things is neither."""
_QUANTITY = (
    rf"{_NUMBER}[ \u00a0-]?(?:{_PREFIXED}|{_OTHER})(?![\w/])"
    rf"|{_NUMBER}[ \u00a0-]{_TIME}(?![\w/])|{_NUMBER}(?:[mµμun]s)\b"
    rf"|{_NUMBER}[ \u00a0-]{_SCALE}\b"
)

_EXPLAINED = r"\"[^\"]*\"|“[^”]*”|\b1 \w+(?= is | = )"
"""Quotations, and units that are being explained."""
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|et al|cf|vs|Fig|Eq|No|[A-Z])\.$")
_LEAD_IN = re.compile(r"\s*(\*\*?|_)(?:(?!\1).)+\1")
_END = re.compile(r"[.!?…][\"”’)*_\]]*(?=\s+[\"“(\[*_]*[A-ZΑ-Ω])")


def lint_folder(docs: Path) -> list[Finding]:
    """Return the findings on every page of a folder, in the order of pages and lines."""
    terms: Terms = read_list(docs / "glossary.toml", TERM, "means")
    references = read_references(docs)
    found: list[Finding] = []
    for path in sorted(docs.rglob("*.md")):
        name = (Path(docs.name) / path.relative_to(docs)).as_posix()
        source = path.read_text(encoding="utf-8")
        found += sorted([*lint(name, source, terms), *_citations(name, source, references)])
    found += _idioms_elsewhere(docs, terms)
    changelog = docs.parent / "CHANGELOG.md"
    if changelog.exists():
        found += lint_changelog(changelog.name, changelog.read_text(encoding="utf-8"))
    return found


def _idioms_elsewhere(docs: Path, terms: Terms) -> Iterator[Finding]:
    """Yield mannered phrases in the glossary and in the strings of the tools' scripts."""
    glossary = docs / "glossary.toml"
    lines = glossary.read_text(encoding="utf-8").split("\n") if glossary.exists() else []
    for term, entry in terms.items():
        at = next(n for n, line in enumerate(lines, 1) if line.startswith(f'["{term}"]'))
        yield from _idioms(f"{docs.name}/{glossary.name}", at, entry["means"])
    for script in sorted((docs / "assets" / "javascripts" / "tools").glob("*.js")):
        name = (Path(docs.name) / script.relative_to(docs)).as_posix()
        for at, words in spoken(script.read_text(encoding="utf-8")):
            yield from _idioms(name, at, words)


def _dense(page: str, source: str) -> Iterator[Finding]:
    """Limit the numbers on a page of the journey, which is read from top to bottom."""
    found = in_text(source)
    if "/journey/" in page and found > MOST_IN_JOURNEY:
        expected = f"at most {MOST_IN_JOURNEY:g}"
        yield Finding(
            page=page,
            line=1,
            what="numbers in 100 words of text",
            expected=expected,
            got=f"{found:.1f}",
        )


def _idioms(page: str, line: int, text: str) -> Iterator[Finding]:
    for got, expected in mannered(text):
        yield Finding(page=page, line=line, what="a mannered phrase", expected=expected, got=got)


_LINK = re.compile(
    r"\[[^\]]*\]\((?!https?://)[^)]*\)|^\[[^\]]+\]:\s*(?!https?://).*|\[@[^\]]+\]", re.M
)


def lint_changelog(name: str, source: str) -> list[Finding]:
    """Report links within the site, which break where the changelog is shown elsewhere."""
    return [
        Finding(
            page=name,
            line=source.count("\n", 0, link.start()) + 1,
            what="a link",
            expected="the page's name",
            got=link[0],
        )
        for link in _LINK.finditer(source)
    ]


def lint(page: str, source: str, terms: Terms) -> list[Finding]:
    """Return the problems in a page's prose; if a figure cannot be parsed, only those."""
    if unread := list(_unread(page, source)):
        return unread
    lines = prose_lines(source)
    found = [
        *_quantities(page, [*lines, *figure_lines(source)], source),
        *_sentences(page, lines),
        *_headings(page, lines),
        *_opening(page, lines),
        *_pictured(page, source, lines),
        *_spellings(page, lines, terms),
        *(
            f
            for line in [*lines, *figure_lines(source)]
            for f in _idioms(page, line.number, line.text)
        ),
        *_dense(page, source),
        *_values(page, source),
        *_captions(page, source),
        *_figures(page, source),
        *_symbols(page, source),
    ]
    return sorted(found)


def _unread(page: str, source: str) -> Iterator[Finding]:
    """Yield figures whose YAML, names or sizes are invalid, which would fail a build."""
    for fence in fences(source):
        try:
            directive.parse(fence.body)
        except InputError as error:
            for fault in error.all:
                line = fence.line + 1 + directive.line_of_key(fence.body, fault.key)
                yield Finding(
                    page=page,
                    line=line,
                    what="a figure",
                    expected="a valid figure",
                    got=str(fault),
                )


def _values(page: str, source: str) -> Iterator[Finding]:
    """Yield inline values that cannot be parsed."""
    for line, expected, got in unparsed(source):
        yield Finding(page=page, line=line, what="an inline value", expected=expected, got=got)


def _citations(page: str, source: str, references: Mapping[str, object]) -> Iterator[Finding]:
    """Yield citations of references that the site doesn't have."""
    for line, expected, got in uncited(source, references):
        yield Finding(page=page, line=line, what="a citation", expected=expected, got=got)


def _captions(page: str, source: str) -> Iterator[Finding]:
    """Yield names in the texts of figures that are no values of theirs."""
    for line, error in misnamed(source):
        yield Finding(
            page=page,
            line=line,
            what="a value in a caption",
            expected=f"{', '.join(error.nearest)}" if error.nearest else "a value of the figure",
            got=error.what,
        )


def _symbols(page: str, source: str) -> Iterator[Finding]:
    """Require one meaning per symbol in the formulas of a page's numbers."""
    for line, symbol, known, other in clashes(source):
        yield Finding(
            page=page, line=line, what=f"two meanings of {symbol}", expected=known, got=other
        )


@cache
def _of_the_subject(
    about: Subject,
) -> tuple[re.Pattern[str], tuple[tuple[str, re.Pattern[str]], ...]]:
    """Return a pattern of exempt text, such as names with numbers, and patterns of large counts."""
    named = re.compile("|".join(filter(None, (about.names, _EXPLAINED))))
    if not about.counted:
        return named, ()
    large = r"(?<![\w.,/#-])(?:\d{1,3}(?:,\d{3})+|\d{4,})[ \u00a0]"
    return named, (("a large count", re.compile(rf"{large}(?:{'|'.join(about.counted)})\b")),)


@cache
def _in_units(added: tuple[str, ...]) -> re.Pattern[str]:
    """Match a number in a unit that a site `added`, or in one that is composed with it."""
    if not added:
        return re.compile(_QUANTITY)
    prefix = f"(?:{'|'.join(POWERS)})?"
    names = sorted({*added, *MEASURED, *TIMES}, key=len, reverse=True)
    terms = [f"{prefix if name in MEASURED else ''}{re.escape(name)}" for name in names]
    term = f"(?:{'|'.join(terms)})(?!\\w)"
    return re.compile(rf"{_NUMBER}[ \u00a0-]{term}(?:/{term})*(?!/)|{_QUANTITY}")


def _quantities(page: str, lines: list[ProseLine], source: str) -> Iterator[Finding]:
    given, beside = premises(source), premises(source, by_line=True)
    named, counts = _of_the_subject(subject())
    patterns = (*COUNTED, ("a quantity", _in_units((*ADDED, *SCALED))), *counts)
    for line in lines:
        if line.kind == "caption":
            own = parameters(next(f.body for f in fences(source) if f.line == line.of))
            given[line.number], beside[line.number] = given[line.number] | own, own
        for sentence in [line.text] if line.kind == "row" else sentences(line.text):
            if CITED in sentence:
                continue
            plain = named.sub("", sentence)
            for what, pattern in patterns:
                if line.kind == "heading" and what == "a large count":
                    continue  # "MegaScale on 12,288 GPUs" is the name of a run
                for match in pattern.finditer(plain):
                    typed = match[0].strip()
                    near = beside if what == "a multiple" else given
                    if is_premise(typed, near.get(line.number, frozenset())):
                        continue
                    expected = "{{ a computed value }}, an argument of one, or a [@source]"
                    yield Finding(
                        page=page,
                        line=line.number,
                        what=f"{what} is typed",
                        expected=expected,
                        got=typed,
                    )


def sentences(text: str) -> list[str]:
    """Split a line into sentences; abbreviations and lead-ins in bold don't end one."""
    found, start = [], 0
    for match in _END.finditer(text):
        end = match.end()
        if _ABBREVIATED.search(text[start : match.start() + 1]) or _LEAD_IN.fullmatch(text[:end]):
            continue
        found.append(text[start:end].strip())
        start = end
    return [*found, text[start:].strip()] if text[start:].strip() else found


def _sentences(page: str, lines: list[ProseLine]) -> Iterator[Finding]:
    """Require one sentence per line: neither two on a line nor one on two lines."""
    for before, line in zip([None, *lines], lines, strict=False):
        if line.kind != "text":
            continue
        several = sentences(line.text)
        if len(several) > 1:
            yield Finding(
                page=page,
                line=line.number,
                what="sentences on a line",
                expected="one",
                got=_short(several[1]),
            )
        if line.joined and before and before.kind == "text" and not _ended(before.text):
            expected = "the end of a sentence at the end of its line"
            got = _short(before.text, end=True)
            yield Finding(
                page=page,
                line=before.number,
                what="a sentence on two lines",
                expected=expected,
                got=got,
            )


def _ended(text: str) -> bool:
    return bool(re.search(rf"[.!?:;…{COMPUTED}][\"”’)*_\]{CITED}]*$", text))


def _headings(page: str, lines: list[ProseLine]) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for line in lines:
        if line.kind != "heading":
            continue
        key = line.text.casefold()
        if key in seen:
            expected = f"a different text than on line {seen[key]}"
            yield Finding(
                page=page,
                line=line.number,
                what="a duplicate heading",
                expected=expected,
                got=line.text,
            )
        seen.setdefault(key, line.number)


def _answers(text: str) -> bool:
    return text.startswith("In one sentence")


_OPENING = (
    ("a question in bold", r"\*\*.+\?\*\*"),
    ("what you want to do or decide, in one to three sentences", r"(?!In one sentence).+"),
    ("'In one sentence: …' without symbols", rf"In one sentence: [^{MATH}]+"),
)


def _opening(page: str, lines: list[ProseLine]) -> Iterator[Finding]:
    """Require that a chapter begins with its question, the reader's goal, and a plain answer.

    Rules of thumb must follow the terms that they use. A tool begins with its question.
    """
    if "/guide/" not in page and "/tools/" not in page:
        return
    wanted = _OPENING if "/guide/" in page else _OPENING[:1]
    heads = [at for at, line in enumerate(lines) if line.kind == "heading"]
    first = lines[heads[0] + 1 : heads[1] if len(heads) > 1 else None] if heads else []
    shown = [line for line in first if line.text]
    answer = next((at for at, line in enumerate(shown[:5]) if at and _answers(line.text)), 2)
    for at, (expected, form) in zip((0, 1, answer), wanted, strict=False):
        got = (
            shown[at]
            if at < len(shown)
            else ProseLine(number=1, kind="text", text="", joined=False)
        )
        if not re.fullmatch(form, got.text):
            yield Finding(
                page=page,
                line=got.number,
                what="an opening",
                expected=expected,
                got=_short(got.text),
            )
    for line in shown if "/guide/" in page else ():
        if line.text.startswith("Rule of thumb"):
            expected = "after the terms that it uses, below the first heading"
            yield Finding(
                page=page,
                line=line.number,
                what="a rule of thumb",
                expected=expected,
                got=_short(line.text),
            )


def _pictured(page: str, source: str, lines: list[ProseLine]) -> Iterator[Finding]:
    """Require that a picture is a chapter's first element other than text."""
    if "/guide/" not in page:
        return
    figures = {fence.line for fence in fences(source)}
    blocks = [line.number for line in lines if line.kind == "row"]
    blocks += [n for n, text in enumerate(source.split("\n"), 1) if text.startswith("```")]
    first = min(blocks, default=1)
    if first not in figures:
        yield Finding(
            page=page,
            line=first,
            what="a first picture",
            expected="a figure",
            got=source.split("\n")[first - 1],
        )
        return
    (name,) = (_named(fence.body) for fence in fences(source) if fence.line == first)
    if name in all_figures() and _kind(name) is Table:
        yield Finding(
            page=page,
            line=first,
            what="a first picture",
            expected="a figure that is not a table",
            got=name,
        )


def _named(body: str) -> str:
    found = re.search(r"^\s*figure:\s*(\S+)", body, re.M)
    return found[1].strip('"') if found else ""


def _kind(name: str) -> object:
    """Return the class of chart that a figure draws."""
    return get_type_hints(figure_named(name).function)["return"]


def _spellings(page: str, lines: list[ProseLine], terms: Terms) -> Iterator[Finding]:
    wrong = {other: term for term, entry in terms.items() for other in entry.get("never", ())}
    if not wrong:
        return
    longest = sorted(map(re.escape, wrong), key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(longest)})(?![\w-])")
    for line in lines:
        for match in pattern.finditer(line.text):
            yield Finding(
                page=page,
                line=line.number,
                what="a spelling",
                expected=wrong[match[0]],
                got=match[0],
            )


def _figures(page: str, source: str) -> Iterator[Finding]:
    for fence in fences(source):
        named = re.search(r"^\s*id:\s*(\S+)", fence.body, re.M)
        found = named[1].strip('"') if named else _named(fence.body)
        if found and f"](#fig-{found})" not in source:
            expected = f"[](#fig-{found}) in the text"
            yield Finding(
                page=page,
                line=fence.line,
                what="a figure that no text refers to",
                expected=expected,
                got=found,
            )


def _short(text: str, *, end: bool = False) -> str:
    if len(text) <= 50:
        return text
    return f"… {text[-48:]}" if end else f"{text[:48]} …"
