"""Adds the last change and the citation to each page, and publishes files that accompany pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

serving = False
changed: dict[str, str] = {}


def on_startup(command: str, **_: Any) -> None:
    global serving
    serving = command == "serve"


def on_files(files: Files, config: MkDocsConfig) -> None:
    global changed
    from figgen.publish.history import last_changes

    changed = {} if serving else last_changes(Path(config.docs_dir))


def on_page_context(
    context: dict[str, Any], page: Page, config: MkDocsConfig, nav: Any
) -> dict[str, Any]:
    from figgen.publish.about import about
    from figgen.publish.companions import card_path, has_card

    site, path = config.mdx_configs["figgen"]["site"], page.file.src_uri
    known = next((known for known in site.pages if known.path == path), None)
    card = f"{site.address}{card_path(known)}" if known and has_card(known, site) else ""
    page.update_date = changed.get(path, "")
    context["about"] = about(
        config.site_name,
        str(page.title),
        str(page.meta.get("description", config.site_description)),
        page.canonical_url or "",
        page.file.content_string,
        page.update_date,
        card,
    )
    context["card"] = card
    return context


@event_priority(-60)
def on_env(env: Any, config: MkDocsConfig, files: Files) -> None:
    # After the figures, so that every picture exists.
    if serving:
        return
    from figgen.publish.companions import companions

    site, newest = config.mdx_configs["figgen"]["site"], max(changed.values(), default="")
    made = companions(site, str(config.site_description), newest)
    for path, content in made.items():
        # With the suffix of a page, it would be converted as one.
        file = File.generated(config, path.replace(".md", ".txt"), content=content)
        file.dest_uri = path
        files.append(file)
