"""Drives `figgen.publish.site.build_site` by the events of MkDocs or ProperDocs."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority, get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import CountHandler

from figgen.plugin import search
from figgen.plugin.steps import step

HOST = File.__module__.partition(".")[0]
"""`mkdocs` or `properdocs`: the name of the host's logger."""
log = get_plugin_logger("figgen")
logging.getLogger(HOST).addHandler(messages := CountHandler(level=logging.INFO))
steps: Iterator[Any] = iter(())
build: Any = None
host: Any = None


class MkDocsHost:
    """Implements `figgen.publish.site.Host` for MkDocs."""

    def __init__(self, config: MkDocsConfig) -> None:
        beside = Path(config.config_file_path).with_name(".cache") / "figgen"
        self.config, self.docs, self.folder = config, Path(config.docs_dir), Path(config.site_dir)
        self.cache = Path(os.environ.get("FIGGEN_CACHE", beside))
        self.name, self.address = config.site_name, config.site_url or ""
        self.modules, self.search = config.mdx_configs["figgen"].get("modules"), search.wanted
        self.formulas = bool(config.plugins["figgen"].config.formulas)
        self.root_px = 20 if config.theme.name == "material" else 16  # as of most themes
        excluded = config.exclude_docs
        self.excludes = (lambda path: bool(excluded.match_file(path))) if excluded else None
        self.files: Any = Files([])
        self.nav: Any = None

    def warn(self, message: str) -> None:
        # The host counts what it logs, and `--quiet` logs no warnings.
        (log.error if self.config.strict else log.warning)(message)

    def say(self, message: str) -> None:
        log.info(message)

    def add(self, files: Mapping[str, Any]) -> None:
        for uri, content in files.items():
            known = self.files.get_file_from_path(uri)
            if known and not known.is_documentation_page():
                self.files.remove(known)
            self.files.append(File.generated(self.config, uri, content=content))

    def chapters(self) -> list[str]:
        return [page.file.src_uri for page in self.nav.pages if not page.is_homepage]

    def sources(self) -> list[tuple[str, str]]:
        return [(f.src_uri, f.content_string) for f in self.files.documentation_pages()]

    def settings(self) -> Iterator[str]:
        found: Iterator[str] = build.settings(self.config, self.files)
        return found

    def convert(self, path: str) -> None:
        file, events = self.files.get_file_from_path(path), self.config.plugins
        both: dict[str, Any] = {"config": self.config, "files": self.files}
        page: Any = events.on_pre_page(file.page or Page(None, file, self.config), **both)
        page.read_source(self.config)
        page.markdown = events.on_page_markdown(page.markdown, page=page, **both)
        page.render(self.config, self.files)
        page.content = events.on_page_content(page.content, page=page, **both)


def on_config(config: MkDocsConfig) -> None:
    global steps, host, build
    from figgen.publish.site import build_site

    steps = build_site(host := MkDocsHost(config))
    build = step(steps)
    config.mdx_configs["figgen"]["site"] = build.site


def on_files(files: Files, config: MkDocsConfig) -> None:
    host.files = files
    step(steps)


def on_nav(nav: Any, config: MkDocsConfig, files: Files) -> None:
    host.nav, host.files = nav, files
    step(steps)


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> None:
    if kept := build.kept(page.file.src_uri):
        page.render = lambda _, files: build.take(page, kept.made, files)
    of = kept.page if kept else build.page(page.file.src_uri, page.url, page.file.content_string)
    config.mdx_configs["figgen"]["page"] = of
    messages.counts.clear()


def on_page_content(html: str, page: Any, config: MkDocsConfig, files: Files) -> None:
    build.converted(config.mdx_configs["figgen"]["page"], html, page, keep=not messages.counts)


def on_env(env: Any, config: MkDocsConfig, files: Files) -> None:
    env.globals["tool_data"] = build.tools.data
    build.excuse(file.page for file in files.documentation_pages())
    host.files = files
    step(steps)


@event_priority(-50)  # after the repairs, so that they don't scan pictures; before the policy
def on_post_page(output: str, page: Any, config: MkDocsConfig) -> str:
    filled: str = build.fill(page.file.src_uri, output)
    return filled


def on_post_build(config: MkDocsConfig) -> None:
    step(steps)


def on_build_error(error: Exception) -> None:
    if build:
        build.abandon()
