"""Pages that need no conversion because nothing that they were made from has changed.

A server keeps them in memory; other builds find them among the answers of earlier builds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from figgen.cache import digest
from figgen.errors import InputError
from figgen.markdown import directive
from figgen.markdown.claims import CLAIM, holds
from figgen.markdown.conversion import Page, Site, fences
from figgen.markdown.inline import PATTERN
from figgen.serving.answers import Answers
from figgen.serving.code import SourceCode
from figgen.serving.memory import Memory
from figgen.subject import title_of_preset
from figgen.values import compute


@dataclass(slots=True, kw_only=True)
class KeptPage:
    """A converted page: `key` identifies its inputs, `made` is what the host made of it.

    `computed` is the digest of its figures and numbers, which a server checks when code or catalog
    have changed since `version`; in other builds the key covers the code. No two pages of a server
    share a `serial`. `files` lie next to the page, `listed` is its part of the manifest.
    """

    page: Page
    key: str
    computed: str = ""
    version: int = 0
    serial: int = 0
    made: Any = None
    files: dict[str, str] = field(default_factory=dict)
    listed: str | None = None


Given: TypeAlias = KeptPage | Literal[True]


@dataclass(kw_only=True)
class KeptPages:
    """The pages of one build that `keeper` has from earlier builds, or keeps for later ones."""

    site: Site
    keeper: Memory | Answers | None = None
    pages: dict[str, KeptPage] = field(default_factory=dict)
    _keys: dict[str, str] = field(default_factory=dict)
    _doubtful: dict[str, KeptPage] = field(default_factory=dict)
    _fresh: set[str] = field(default_factory=set)

    def look(self, sources: Mapping[str, tuple[str, str]], others: Iterable[str]) -> None:
        """Find the kept pages, except those whose numbers have to be checked first.

        `sources` are (chapter, source) by path; `others` is what any page may depend on in the
        host.
        """
        around = ground(self.site, others) if self.keeper else ""
        for path, (chapter, source) in sources.items():
            key = self._keys[path] = key_of(source, chapter, around)
            match self.keeper:
                case Answers() as answers:
                    answer = answers.stored(_name(path), key)
                    if isinstance(answer, KeptPage):
                        self.pages[path] = answer
                case Memory() as memory:
                    known = memory.pages.get(path)
                    if known is None or known.page.problems:
                        continue
                    same = known.key == key and known.version == memory.code.version
                    if same or memory.postpones(known.page.url, known.page.assets):
                        self.pages[path] = known
                    elif known.key == key:
                        self._doubtful[path] = known

    def open(self) -> list[str]:
        """Return the pages to be converted or checked."""
        return [path for path in self._keys if path not in self.pages]

    def of(self, path: str) -> KeptPage | None:
        """Return a kept page if converting it now would give the same."""
        if isinstance(self.keeper, Memory):
            self.keeper.go_on()
        known = self._doubtful.pop(path, None)
        if known and isinstance(self.keeper, Memory):
            code = self.keeper.code
            if known.computed == (computed(known.page, self.site, code) or None):
                known.version = code.version
                self.pages[path] = known
        return self.pages.get(path)

    def converted(self, page: Page, made: Any, keep: bool) -> None:
        """Keep a converted page with what the host `made` of it, or forget it."""
        memory = self.keeper if isinstance(self.keeper, Memory) else None
        if not keep:
            if memory:
                memory.pages.pop(page.path, None)
            return
        kept = KeptPage(page=page, key=self._keys[page.path], made=made)
        if memory:
            kept.computed = computed(page, self.site, memory.code)
            kept.version, kept.serial = memory.code.version, next(memory.serials)
            memory.pages[page.path] = kept
        self.pages[page.path] = kept
        self._fresh.add(page.path)

    def given(self, path: str) -> Given | None:
        """Return a page for the first process: True if it is unchanged, None if it must be
        converted there because it has problems."""
        kept = self.pages.get(path)
        if kept is None or kept.page.problems:
            return None
        return kept if path in self._fresh else True

    def take_over(self, path: str, given: Given) -> None:
        """Keep a page that another process converted."""
        kept = self._doubtful.pop(path) if given is True else given
        if isinstance(self.keeper, Memory):
            if given is not True:
                kept.serial = next(self.keeper.serials)
            kept.version = self.keeper.code.version
            self.keeper.pages[path] = kept
        self.pages[path] = kept

    def write(self) -> None:
        """Write what later builds may reuse, unless a server remembers it."""
        if isinstance(self.keeper, Answers):
            for kept in map(self.pages.__getitem__, sorted(self._fresh)):
                if not kept.page.problems:
                    self.keeper.put(_name(kept.page.path), kept.key, kept)
            self._fresh.clear()


def _name(path: str) -> str:
    return f"page {path}"


def ground(site: Site, others: Iterable[str]) -> str:
    """Return what any page may depend on besides its own text; only the host knows `others`."""
    written = (site.references, site.glossary, site.shorts, site.numbers)
    return digest(repr((site.name, site.address, site.styles, *written, *others)))


def settings(config: Any, files: Any) -> Iterator[str]:
    """Return what any page may depend on in the host: files, settings, its hooks' code."""
    yield from files.src_uris
    markdown = {name: given for name, given in config.mdx_configs.items() if name != "figgen"}
    given = config.markdown_extensions, markdown, config.use_directory_urls, config.validation
    yield repr((*given, list(config.plugins)))
    for hook in config.hooks.values():
        yield Path(hook.__file__).read_text(encoding="utf-8")


def key_of(source: str, chapter: str, ground: str) -> str:
    """Return a key that changes with anything a page is made from, except code and catalog."""
    return digest("\0".join((source, chapter, ground)))


def computed(page: Page, site: Site, code: SourceCode) -> str:
    """Return the digest of a page's numbers and figures and of the code that writes them as HTML.

    Empty if something can't be computed: such a page is always converted.
    """
    parts = [code.shell()]
    try:
        for fence in fences(page.source):
            asked = directive.parse(fence.body)
            for preset, anchor, given in asked.variants():
                found = site.pictures.evaluated(asked.figure, given, anchor)
                parts += [found.key, asked.figure, title_of_preset(preset)]
    except Exception:
        return ""
    for claim in re.finditer(CLAIM, page.source):
        try:
            parts.append(repr(holds(claim["condition"])))
        except InputError:
            return ""
    for text in re.findall(PATTERN, page.source):
        try:
            value, spec = compute(text)
        except InputError:  # a figure's own value, or a mistake: then the page has a problem
            continue
        evaluation = value.evaluation
        of = code.fingerprint(evaluation.formula.module) if evaluation else ""
        shown = (value.value, value.unit, value.source, value.low, value.high, value.inputs)
        parts.append(repr((text, shown, spec, of)))
    return digest("\0".join(parts))


def made_of(page: Any, html: str) -> tuple[Any, ...]:
    """Return what the host's conversion left on its page, without the page."""
    links = {file.src_uri: found for file, found in (page.links_to_anchors or {}).items()}
    return html, page.toc, page._title_from_render, frozenset(page.present_anchor_ids), links


def take(page: Any, made: tuple[Any, ...], files: Any) -> None:
    """Put the `made_of` of an earlier conversion on the host's page, instead of rendering it."""
    page.content, page.toc, page._title_from_render, anchors, links = made
    page.present_anchor_ids = set(anchors)
    page.links_to_anchors = {files.src_uris[uri]: found for uri, found in links.items()}
