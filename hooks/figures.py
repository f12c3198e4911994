"""Connects `figgen` to MkDocs: shows it the pages, publishes its files, reports its problems."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jinja2 import Environment
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority, get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

log = get_plugin_logger("figgen")
build = None


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    global build
    # `mkdocs serve` keeps modules between builds; an edited model has to be imported again.
    if build:
        for name in [name for name in sys.modules if name.partition(".")[0] == "figgen"]:
            del sys.modules[name]
    from figgen.publish.build import begin_build

    beside = Path(config.config_file_path).with_name(".cache") / "figgen"
    build = begin_build(
        docs=Path(config.docs_dir),
        cache=Path(os.environ.get("FIGGEN_CACHE", beside)),
        name=config.site_name,
        address=config.site_url or "",
        tell=log.info,
    )
    config.mdx_configs["figgen"] = {"site": build.site}
    return config


def on_files(files: Files, config: MkDocsConfig) -> None:
    for uri, source in build.pages().items():
        files.append(File.generated(config, uri, content=source))


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> None:
    inner = [page.file.src_uri for page in nav.pages if not page.is_homepage]
    chapters = {uri: str(number) for number, uri in enumerate(inner, 1)}
    pages = files.documentation_pages()
    build.scan((f.src_uri, chapters.get(f.src_uri, ""), f.content_string) for f in pages)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> None:
    begun = build.page(page.file.src_uri, page.url, page.file.content_string)
    config.mdx_configs["figgen"]["page"] = begun


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> None:
    # MkDocs looks for anchors before fences are put back.
    page.present_anchor_ids |= config.mdx_configs["figgen"]["page"].anchors()


def on_env(env: Environment, config: MkDocsConfig, files: Files) -> None:
    env.globals["tool_data"] = build.tool_data
    log.info(build.close())
    for uri, content in build.files().items():
        files.append(File.generated(config, uri, content=content))
    build.report(log.warning)


@event_priority(-50)
def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    # After the repairs, which need not search pictures and tables, and before the policy.
    return build.site.fill(output)


def on_build_error(error: Exception) -> None:
    if build:
        build.site.pictures.abandon()
