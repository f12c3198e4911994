"""Keeps static parts of pages from scripts, and gives every finished page its security policy."""

from __future__ import annotations

from typing import Any

from mkdocs.plugins import event_priority

serving = False


def on_startup(command: str, **_: Any) -> None:
    # `mkdocs serve` adds a script for live reload to each answer, which no hash could allow.
    global serving
    serving = command == "serve"


@event_priority(-100)
def on_post_page(output: str, **_: Any) -> str:
    from figgen.policy import with_security_policy
    from figgen.publish.html import unscripted

    if not output:
        return output  # unchanged, under serve
    finished = unscripted(output)
    return finished if serving else with_security_policy(finished)


@event_priority(-100)
def on_post_template(output: str, template_name: str, **_: Any) -> str:
    return on_post_page(output) if template_name.endswith(".html") else output
