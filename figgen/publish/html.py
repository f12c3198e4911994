"""Repairs to a finished page: valid HTML, and names for elements without one.

Functions take and return plain text, so that any host can apply them.
"""

from __future__ import annotations

import re

from figgen.publish.styles import STYLE_REPAIRS, replaced

# What the stock theme writes that is not valid or has no accessible name (mkdocs-material 9.8).
THEME_REPAIRS: tuple[tuple[str, str], ...] = (
    (r'(<input class="md-toggle"[^>]*?) autocomplete="off"', r"\1"),
)
# The same, on pages with nested navigation.
NESTED_REPAIRS: tuple[tuple[str, str], ...] = (
    (r'(<label class="md-nav__link"[^>]*?) tabindex=""', r"\1"),
    # A heading may be called what a part of the site is called.
    (r'(<nav class="md-nav" aria-label=")', r"\1On this page: "),
)
# What Markdown writes, on pages that have it.
CONTENT_REPAIRS: tuple[tuple[str, str], ...] = (
    # The theme's script takes a tabindex off <code> on touch screens, so <pre> is the scroll box.
    (r"<pre>(?=<span></span><code)", r'<pre tabindex="0">'),
    # Markdown cannot leave the corner of a table out.
    (r"<th( style=\"[^\"]*\")?></th>", r"<td\1></td>"),
    # The theme's script would put tables without a class into such boxes, and restyle the page.
    (
        r"<table>((?s:.*?)</table>)",
        r'<div class="md-typeset__scrollwrap"><div class="md-typeset__table">'
        r'<table class="plain">\1</div></div>',
    ),
)


_OPTIONED = re.compile(r"<code>([^<]*--\w[^<]*)</code>")
_OPTION = re.compile(r"(?<![\w-])--\w[\w-]*")


def expected_repairs() -> set[str]:
    """Return patterns that a whole build must meet; a changed theme leaves some unmet."""
    return {pattern for pattern, _ in (*THEME_REPAIRS, *STYLE_REPAIRS)}


def repaired(html: str, unmet: set[str]) -> str:
    """Repair the theme's known faults in a page, and remove those it met from `unmet`."""
    html = replaced(html, THEME_REPAIRS, unmet)
    html = replaced(html, (*NESTED_REPAIRS, *CONTENT_REPAIRS), unmet)
    html = _OPTIONED.sub(_whole_options, html)
    # A page outside the navigation has no such control.
    return html if 'id="__toc"' in html else html.replace(' for="__toc"', "")


def _whole_options(found: re.Match[str]) -> str:
    """Keep options in one piece: a browser may break a line after any hyphen, even `--`."""
    kept = _OPTION.sub(r'<span class="fig-keep">\g<0></span>', found[1])
    return f"<code>{kept}</code>"


_STATIC = re.compile(
    r'<div class="tool-static"></div>(.*?)<div class="tool-static-end"></div>', re.S
)


def unscripted(html: str) -> str:
    """Prepare a page's static parts, which stand between two marks, for readers without scripts.

    Browsers with scripts then neither lay them out nor build them, which saves half of a tool's
    page. The data tables behind pictures that a tool always shows stay unfolded.
    """

    def static(found: re.Match[str]) -> str:
        shown = found[1].replace("<details><summary>Data", "<details open><summary>Data")
        return f'<noscript class="tool-static">{shown}</noscript>'

    return _STATIC.sub(static, html)
