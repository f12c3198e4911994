"""The plug-in for MkDocs and ProperDocs: `plugins: [figgen: {modules: [my_figures]}]`.

It adds the Markdown extension for fences and values, with styles, scripts and search. The host
keeps one plug-in object as long as it runs, so a server never reloads these modules. Modules that
a server can reload are imported inside functions.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mkdocs.config import config_options
from mkdocs.config.base import Config
from mkdocs.config.config_options import ExtraScriptValue
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import BasePlugin, CombinedEvent, event_priority
from mkdocs.structure.files import File, Files

from figgen.plugin import garbage, host, search, serving

PARTS = (garbage, serving, host, search)
"""Modules whose functions are named after the host's events."""
STYLES, SCRIPTS = "assets/stylesheets", "assets/javascripts"
SEARCH_PAGE = """---
hide: [navigation, toc]
---

# Search

<div class="find-here"></div>
"""


class Options(Config):
    """The settings under `plugins: [figgen: …]`."""

    modules = config_options.ListOfItems(config_options.Type(str), default=[])
    """Modules that register figures, formulas, tables and units, or that have a `SUBJECT`."""
    search = config_options.Type(bool, default=False)
    """Whether to publish figgen's search instead of the host's."""
    formulas = config_options.Type(bool, default=False)
    """Whether to publish a page of all formulas."""


class FiggenPlugin(BasePlugin[Options]):
    """The MkDocs plug-in, for figures and numbers of the modules that the settings name."""

    def __init__(self) -> None:
        handlers = defaultdict[str, list[Callable[..., Any]]](list)
        for part in PARTS:
            for name, function in vars(part).items():
                if name.startswith("on_"):
                    handlers[name].append(function)
        handlers["on_config"].insert(0, self._begin)
        handlers["on_files"].append(self._search_page)
        for name, functions in handlers.items():
            setattr(self, name, CombinedEvent(*functions))

    @event_priority(50)
    def _begin(self, config: MkDocsConfig) -> None:
        """Pass the settings on to the parts, and to the host the styles and scripts of pages."""
        from figgen.serving.code import watched_paths
        from figgen.subject import use

        folder = str(Path(config.config_file_path or "mkdocs.yml").absolute().parent)
        if folder not in sys.path:
            sys.path.insert(0, folder)  # the folder of a site's own modules
        modules = list(self.config.modules)
        use(*modules)
        if "figgen" not in config.markdown_extensions:
            config.markdown_extensions.append("figgen")
        of_pages = config.mdx_configs.setdefault("figgen", {})
        of_pages.setdefault("modules", modules)
        search.wanted = self.config.search
        sheets = ("roles", "figures", *["search"] * self.config.search)
        config.extra_css[:0] = [f"{STYLES}/{name}.css" for name in sheets]
        script = ExtraScriptValue(f"{SCRIPTS}/figures.js")
        script.type = "module"
        config.extra_javascript.insert(0, script)
        config.watch += map(str, watched_paths(modules))

    def _search_page(self, files: Files, config: MkDocsConfig) -> None:
        """Add the search page, for readers who open search by a link."""
        if self.config.search and not files.get_file_from_path("search.md"):
            files.append(File.generated(config, "search.md", content=SEARCH_PAGE))
