"""Builds the search index in the background; only the end of a build waits for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

pages: dict[str, tuple[str, str, str, Any]] = {}
files: Callable[[], dict[str, str]] = dict
wanted = False
"""Whether the settings enable search."""


def on_pre_build(**_: Any) -> None:
    pages.clear()


def on_page_content(html: str, page: Page, **_: Any) -> None:
    # Before pictures and tables are inserted, which are not searched.
    if wanted:
        pages[page.file.src_uri] = (page.url, str(page.title), html, page.meta)


def on_env(env: Any, config: MkDocsConfig, **_: Any) -> None:
    global files
    from figgen import serving
    from figgen.markdown.lists import TERM, read_list
    from figgen.search.publish import Found, search_files
    from figgen.serving.others import beside

    files = dict
    if not wanted:
        return
    terms = read_list(Path(config.docs_dir, "glossary.toml"), TERM, "means")
    found = [Found(*page) for page in pages.values()]
    files = make = partial(search_files, found, terms)
    if not serving.current():
        keeper, key = config.mdx_configs["figgen"]["site"].pictures.memory, repr((found, terms))
        files = beside(lambda: keeper.same("search", key, make))


def on_post_build(config: MkDocsConfig) -> None:
    from figgen import serving
    from figgen.search.publish import publish

    site, made = Path(config.site_dir), files
    if memory := serving.current():
        if not memory.is_partial:
            memory.later(lambda: publish(site, made()))
    else:
        publish(site, made())


def on_shutdown() -> None:
    from figgen import serving

    if memory := serving.current():
        memory.settle()  # MkDocs removes a server's folder, and fails if files are still written
