"""Connects `figgen` to MkDocs: shows it the pages, publishes its files, reports its problems."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from mkdocs.commands.build import _populate_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority, get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import CountHandler

log = get_plugin_logger("figgen")
logging.getLogger("mkdocs").addHandler(told := CountHandler(level=logging.INFO))
build = None


def on_config(config: MkDocsConfig) -> None:
    global build
    from figgen.publish.begin import begin_build

    options = config.mdx_configs.setdefault("figgen", {})
    beside = Path(config.config_file_path).with_name(".cache") / "figgen"
    where = Path(config.docs_dir), Path(os.environ.get("FIGGEN_CACHE", beside))
    build = begin_build(*where, config.site_name, config.site_url or "", options.get("modules"))
    options["site"] = build.site


def on_files(files: Files, config: MkDocsConfig) -> None:
    for uri, source in build.pages(config.exclude_docs and config.exclude_docs.match_file).items():
        files.append(File.generated(config, uri, content=source))


def on_nav(nav: Any, config: MkDocsConfig, files: Files) -> None:
    of = build.chapter_numbers(p.file.src_uri for p in nav.pages if not p.is_homepage)
    found = files.documentation_pages()
    sources = ((f.src_uri, of.get(f.src_uri, ""), f.content_string) for f in found)
    build.scan(sources, build.around(config, files))
    pages = {f.src_uri: f.page or Page(None, f, config) for f in found}
    build.share(lambda uri: _populate_page(pages[uri], config, files))


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> None:
    if kept := build.kept(page.file.src_uri):
        page.render = lambda _, files: build.take(page, kept.made, files)
    of = kept.page if kept else build.page(page.file.src_uri, page.url, page.file.content_string)
    config.mdx_configs["figgen"]["page"] = of
    told.counts.clear()


def on_page_content(html: str, page: Any, config: MkDocsConfig, files: Files) -> None:
    build.converted(config.mdx_configs["figgen"]["page"], html, page, keep=not told.counts)


def on_env(env: Any, config: MkDocsConfig, files: Files) -> None:
    env.globals["tool_data"] = build.tools.data
    log.info(build.close(log.warning))
    for uri, content in build.files().items():
        if written := files.get_file_from_path(uri):
            files.remove(written)
        files.append(File.generated(config, uri, content=content))


@event_priority(-50)  # after the repairs, which need not search pictures; before the policy
def on_post_page(output: str, page: Any, config: MkDocsConfig) -> str:
    return build.fill(page.file.src_uri, output)


def on_post_build(config: MkDocsConfig) -> None:
    build.record(Path(config.site_dir))


def on_build_error(error: Exception) -> None:
    if build:
        build.abandon()
