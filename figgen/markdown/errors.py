"""Show a mistake on the page as a red box, so that an author's draft never crashes a build."""

from __future__ import annotations

import xml.etree.ElementTree as etree
from html import escape

from markdown.util import AtomicString

from figgen.serving.code import last_place


def place_of(error: BaseException) -> str:
    """Return where in the site's code an error arose, as ` (figgen/…/x.py:41)`, or ""."""
    found = last_place(error)
    return f" ({found[0]}:{found[1]})" if found else ""


def error_box(*messages: str) -> str:
    """Return a block to show instead of a figure that cannot be computed."""
    return (
        '<div class="admonition failure figgen-error">'
        '<p class="admonition-title">This figure cannot be computed</p>'
        f"{''.join(f'<p>{escape(message)}</p>' for message in messages)}</div>"
    )


def inline_error(message: str) -> etree.Element:
    """Return an element to show instead of a number that cannot be computed."""
    element = etree.Element("strong", {"class": "figgen-error"})
    element.text = AtomicString(f"[{message}]")
    return element
