"""The extension with Python-Markdown alone, without MkDocs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import markdown
import pytest

from figgen.markdown import FiggenExtension, Page, Problem, Site


class Converted(NamedTuple):
    html: str
    problems: list[Problem]
    site: Site
    page: Page


@pytest.fixture
def convert() -> Callable[..., Converted]:
    """`convert(text)` returns the HTML and all problems."""

    def run(text: str, extensions: tuple[str, ...] = (), **site_options: object) -> Converted:
        site = Site(**site_options)
        page = Page(path="guide/page.md", url="guide/page/", chapter="3")
        page.begin(text)
        figgen = FiggenExtension(site=site, page=page)
        html = markdown.markdown(text, extensions=[figgen, *extensions])
        return Converted(html, page.problems, site, page)

    return run
