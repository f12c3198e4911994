"""Repairs the stock theme's HTML and stylesheets; warns of a repair that no longer applies."""

from __future__ import annotations

from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority, get_plugin_logger
from mkdocs.structure.files import File, Files

log = get_plugin_logger("repairs")
unmet: set[str] = set()


def on_pre_build(config: MkDocsConfig, **_: Any) -> None:
    from figgen.publish.html import expected_repairs
    from figgen.publish.styles import STYLESHEET

    config.mdx_configs["figgen"]["site"].styles = (STYLESHEET,)

    unmet.clear()
    unmet.update(expected_repairs())


@event_priority(-50)
def on_env(env: Any, config: MkDocsConfig, files: Files) -> None:
    """Publish the theme's stylesheets and ours as one, without unused rules."""
    from figgen.publish.styles import STYLESHEET, UNUSED_FILES, lighter

    theme = sorted(f.src_uri for f in files.css_files() if f.src_uri.endswith(".min.css"))
    parts = [files.get_file_from_path(str(uri)) for uri in (*theme, *config.extra_css)]
    for part in parts:
        files.remove(part)
    joined = lighter("\n".join(part.content_string for part in parts), unmet)
    files.append(File.generated(config, STYLESHEET, content=joined))
    config.extra_css = []
    for file in [f for f in files if f.src_uri.startswith(UNUSED_FILES)]:
        files.remove(file)


def on_post_page(output: str, **_: Any) -> str:
    from figgen.publish.html import repaired

    if not output:  # unchanged under serve: met when it was written
        unmet.clear()
        return output
    return repaired(output, unmet)


def on_post_template(output: str, template_name: str, **_: Any) -> str:
    from figgen.publish.html import repaired

    return repaired(output, unmet) if template_name.endswith(".html") else output


def on_post_build(**_: Any) -> None:
    for pattern in sorted(unmet):
        log.warning("the theme no longer writes this, so update the repair: %s", pattern)
