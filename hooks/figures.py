"""Connects `figgen` to MkDocs: shows it the pages, publishes its files, reports its problems."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority, get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.utils import CountHandler

log = get_plugin_logger("figgen")
told = CountHandler(level=logging.INFO)
logging.getLogger("mkdocs").addHandler(told)
build = None


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    global build
    from figgen.publish.build import begin_build

    beside = Path(config.config_file_path).with_name(".cache") / "figgen"
    cache = Path(os.environ.get("FIGGEN_CACHE", beside))
    docs, address = Path(config.docs_dir), config.site_url or ""
    build = begin_build(docs, cache, config.site_name, address, tell=log.info)
    config.mdx_configs["figgen"] = {"site": build.site}
    return config


def on_files(files: Files, config: MkDocsConfig) -> None:
    for uri, source in build.pages(config.exclude_docs and config.exclude_docs.match_file).items():
        files.append(File.generated(config, uri, content=source))


def on_nav(nav: Any, config: MkDocsConfig, files: Files) -> None:
    inner = (page.file.src_uri for page in nav.pages if not page.is_homepage)
    chapters = build.chapter_numbers(inner)
    pages = files.documentation_pages()
    sources = ((f.src_uri, chapters.get(f.src_uri, ""), f.content_string) for f in pages)
    build.scan(sources, build.around(config, files))


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> None:
    if kept := build.kept(page.file.src_uri):
        page.render = lambda _, files: build.take(page, kept.made, files)
    of = kept.page if kept else build.page(page.file.src_uri, page.url, page.file.content_string)
    config.mdx_configs["figgen"]["page"] = of
    told.counts.clear()


def on_page_content(html: str, page: Any, config: MkDocsConfig, files: Files) -> None:
    # What there is to tell of a page is told by every build.
    build.converted(config.mdx_configs["figgen"]["page"], html, page, keep=not told.counts)


def on_env(env: Any, config: MkDocsConfig, files: Files) -> None:
    env.globals["tool_data"] = build.tool_data
    log.info(build.close())
    for uri, content in build.files().items():
        files.append(File.generated(config, uri, content=content))
    build.report(log.warning)


@event_priority(-50)
def on_post_page(output: str, page: Any, config: MkDocsConfig) -> str:
    # After the repairs, which need not search pictures and tables, and before the policy.
    return build.fill(page.file.src_uri, output)


def on_post_build(config: MkDocsConfig) -> None:
    build.record(Path(config.site_dir))


def on_build_error(error: Exception) -> None:
    if build:
        build.site.pictures.abandon()
