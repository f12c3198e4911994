"""Hides static parts of pages from scripts, and adds the security policy to each finished page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority

serving = False
allowed: tuple[str, ...] = ()


def on_startup(command: str, **_: Any) -> None:
    # `mkdocs serve` adds a live-reload script to each page, which no hash could allow.
    global serving
    serving = command == "serve"


def on_config(config: MkDocsConfig) -> None:
    global allowed
    from figgen.policy import inline_scripts

    allowed = inline_scripts(Path(config.theme.custom_dir)) if config.theme.custom_dir else ()


@event_priority(-100)
def on_post_page(output: str, **_: Any) -> str:
    from figgen.policy import with_security_policy
    from figgen.publish.html import unscripted

    if not output:
        return output  # unchanged, under serve
    finished = unscripted(output)
    return finished if serving else with_security_policy(finished, allowed)


@event_priority(-100)
def on_post_template(output: str, template_name: str, **_: Any) -> str:
    return on_post_page(output) if template_name.endswith(".html") else output
