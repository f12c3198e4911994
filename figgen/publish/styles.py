"""The theme's stylesheets without unused rules and without rules that make changes slow.

Two fifths of the theme's 160 kB style parts that this site doesn't use. A page that starts to use
one of them would lose its style, so the gate compares the classes of all pages with these lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

STYLESHEET = "assets/stylesheets/page.css"

UNUSED_CLASSES = (
    "abstract", "arithmatex", "bug", "critic", "danger", "emojione", "failure", "gemoji",
    "giscus", "grid", "hll", "highlighttable", "info", "linenodiv", "linenos", "md-annotation",
    "md-annotation-list", "md-author", "md-banner", "md-button", "md-clipboard", "md-consent",
    "md-draft", "md-feedback", "md-input", "md-meta", "md-pagination", "md-path", "md-pin",
    "md-post", "md-profile", "md-progress", "md-search", "md-search-result", "md-select",
    "md-sidebar--post", "md-social", "md-source-file", "md-source__fact", "md-source__facts",
    "md-status", "md-tag", "md-tag-icon", "md-tags", "md-tooltip", "md-tooltip2", "md-version",
    "mermaid", "success",
    "summary", "tabbed-alternate", "tabbed-block", "tabbed-button", "tabbed-content",
    "tabbed-control", "tabbed-label", "tabbed-labels", "tabbed-set", "task-list-control",
    "task-list-indicator", "task-list-item", "twemoji",
)  # fmt: skip
"""Unused classes, each with its `__` and `--` variants."""

UNUSED_FILES = tuple(f"assets/javascripts/{name}" for name in ("bundle.", "lunr/", "workers/"))
"""Prefixes of addresses of the theme's files that no page requests."""

_UNUSED = re.compile(
    rf"\.(?:{'|'.join(UNUSED_CLASSES)})(?:(?:__|--)[\w-]+)?(?![\w-])"
    r"|\[data-md-color-(?:primary|accent)=(?!custom)|\[dir=rtl\]"
)
STYLE_REPAIRS: tuple[tuple[str, str], ...] = (
    (r"table:not\(\[class\]\)", "table.plain"),
    (
        r"(\[data-md-color-switching\]) \*,\1 :after,\1 :before",
        r"\1 :is(a,code,form,input,label,pre,tr)",
    ),
)


def replaced(text: str, repairs: tuple[tuple[str, str], ...], unmet: set[str]) -> str:
    """Apply each repair to the text, and remove each one that matched from `unmet`."""
    for pattern, replacement in repairs:
        text, count = re.subn(pattern, replacement, text)
        if count:
            unmet.discard(pattern)
    return text


def lighter(stylesheet: str, unmet: set[str]) -> str:
    """Return a stylesheet without rules for unused classes and without unused icons."""
    return _lighter(replaced(stylesheet, STYLE_REPAIRS, unmet))


@lru_cache(maxsize=4)  # a server asks again after each change
def _lighter(stylesheet: str) -> str:
    kept = "".join(_kept(re.sub(r"/\*.*?\*/", "", stylesheet, flags=re.S)))
    named = set(re.findall(r"var\((--[\w-]+)", kept))
    return re.sub(r'(--md-[\w-]+):url\("[^"]*"\);?', lambda m: m[0] if m[1] in named else "", kept)


def _kept(css: str) -> Iterator[str]:
    for head, body in _rules(css):
        if head.startswith(("@media", "@supports", "@layer")):
            if inner := "".join(_kept(body)):
                yield f"{head}{{{inner}}}"
        elif head.startswith("@") or not body:
            yield f"{head}{{{body}}}" if body else head
        else:
            selectors = [part for part in _selectors(head) if not _UNUSED.search(_bare(part))]
            if selectors:
                yield f"{','.join(selectors)}{{{_tight(body)}}}"


def _tight(body: str) -> str:
    """Remove the spaces around declarations; quoted strings stay as they are."""
    if '"' in body or "'" in body:
        return body.strip()
    return re.sub(r"\s*([;:,])\s+", r"\1", body.strip()).removesuffix(";")


def _bare(selector: str) -> str:
    """Remove from a selector what it excludes."""
    return re.sub(r":not\([^()]*\)", "", selector)


def _rules(css: str) -> Iterator[tuple[str, str]]:
    """Yield each rule as what precedes its braces and their content; a statement has no content."""
    at = 0
    while at < len(css):
        opened = _next(css, at, "{;")
        if opened == len(css) or css[opened] == ";":
            if statement := css[at : opened + 1].strip():
                yield statement, ""
            at = opened + 1
            continue
        depth, end = 1, opened + 1
        while depth:
            end = _next(css, end, "{}")
            depth += 1 if css[end] == "{" else -1
            end += 1
        yield css[at:opened].strip(), css[opened + 1 : end - 1]
        at = end


def _next(css: str, at: int, signs: str) -> int:
    """Return the position of the next of `signs` outside quoted strings, or the end."""
    pattern = rf'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|([{re.escape(signs)}])'
    for match in re.compile(pattern, re.S).finditer(css, at):
        if match[1]:
            return match.start()
    return len(css)


def _selectors(head: str) -> Iterator[str]:
    """Split a rule's selectors at the commas outside parentheses."""
    head = " ".join(head.split())
    depth, begin = 0, 0
    for at, sign in enumerate(head):
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and not depth:
            yield head[begin:at].strip()
            begin = at + 1
    yield head[begin:].strip()
