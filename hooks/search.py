"""Gives the search its index; while pages are served, in the background: an edit stays quick."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page

pages: dict[str, tuple[str, str, str, Any]] = {}


def on_pre_build(**_: Any) -> None:
    pages.clear()


def on_page_content(html: str, page: Page, **_: Any) -> None:
    # Before pictures and tables are put in, which are not searched.
    pages[page.file.src_uri] = (page.url, str(page.title), html, page.meta)


def on_post_build(config: MkDocsConfig) -> None:
    from figgen import serving
    from figgen.search.publish import Found, publish

    glossary = Path(config.docs_dir, "glossary.toml")
    terms = tomllib.loads(glossary.read_text(encoding="utf-8")) if glossary.exists() else {}
    found, site = [Found(*page) for page in pages.values()], Path(config.site_dir)
    if memory := serving.current():
        memory.later(lambda: publish(site, found, terms))
    else:
        keeper, key = config.mdx_configs["figgen"]["site"].pictures.memory, repr((found, terms))
        publish(site, found, terms, lambda make: keeper.same("search", key, make))
