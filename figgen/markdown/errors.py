"""How a mistake looks in the page while its author is still writing: a red box, never a crash."""

from __future__ import annotations

import xml.etree.ElementTree as etree
from html import escape

from markdown.util import AtomicString

from figgen.serving.code import last_place


def place_of(error: BaseException) -> str:
    """` (figgen/figures/…/x.py:41)`, where in the site's code an error came up; empty if not."""
    found = last_place(error)
    return f" ({found[0]}:{found[1]})" if found else ""


def error_box(*messages: str) -> str:
    """A block in place of a figure that cannot be computed."""
    return (
        '<div class="admonition failure figgen-error">'
        '<p class="admonition-title">This figure cannot be computed</p>'
        f"{''.join(f'<p>{escape(message)}</p>' for message in messages)}</div>"
    )


def inline_error(message: str) -> etree.Element:
    """A mark in place of a number that cannot be computed."""
    element = etree.Element("strong", {"class": "figgen-error"})
    element.text = AtomicString(f"[{message}]")
    return element
