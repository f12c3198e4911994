"""How a mistake looks in the page while its author is still writing: a red box, never a crash."""

from __future__ import annotations

import traceback
import xml.etree.ElementTree as etree
from html import escape
from pathlib import Path

from markdown.util import AtomicString

PACKAGE = Path(__file__).parents[1]


def place_of(error: BaseException) -> str:
    """` (figgen/figures/…/x.py:41)`, the line of ours in which an error came up; empty if none."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if PACKAGE in Path(frame.filename).parents]
    if not ours:
        return ""
    path = Path(ours[-1].filename).relative_to(PACKAGE.parent).as_posix()
    return f" ({path}:{ours[-1].lineno})"


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
