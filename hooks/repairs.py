"""Mends the stock theme's HTML on every page and template; keeps static parts from scripts."""

from __future__ import annotations

from typing import Any


def on_post_page(output: str, **_: Any) -> str:
    from figgen.page import repaired, unscripted

    return unscripted(repaired(output))


def on_post_template(output: str, template_name: str, **_: Any) -> str:
    from figgen.page import repaired

    return repaired(output) if template_name.endswith(".html") else output
