"""The picture that accompanies a link to a page: its title above its first figure, 1200 × 630.

The card is drawn from the figure's own SVG with the fonts that come with Matplotlib, so it looks
the same wherever the site is built.
"""

from __future__ import annotations

import re
import textwrap
from html import escape
from importlib.util import find_spec
from pathlib import Path

from figgen import theme

WIDTH, HEIGHT = 1200, 630
MARGIN = 60
LETTERS_PER_LINE = 30
INKS = theme.variables()
_VARIABLE = re.compile(r"var\((--[\w-]+)\)")
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


def card_svg(site: str, title: str, picture: str) -> str:
    """Return the card as SVG; `picture` is a figure written by `renderers.svg.standalone`."""
    lines = textwrap.wrap(title, LETTERS_PER_LINE)[:2]
    ink, muted, paper = (INKS[f"--fig-{role}"].light for role in ("ink", "muted", "paper"))
    titled = "".join(
        f'<text x="{MARGIN}" y="{170 + 66 * k}" font-size="58" font-weight="bold" fill="{ink}">'
        f"{escape(line)}</text>"
        for k, line in enumerate(lines)
    )
    top = 150 + 66 * len(lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{paper}"/>'
        f'<rect width="{WIDTH}" height="14" fill="{ink}"/>'
        f'<text x="{MARGIN}" y="86" font-size="30" fill="{muted}">{escape(site)}</text>'
        f"{titled}{_placed(picture, top)}</svg>"
    )


def _placed(picture: str, top: int) -> str:
    """Place the figure below the title, as large as fits, in the light palette."""
    size = _SIZE.search(picture)
    if not size:
        return ""
    width, height = map(float, size.groups())
    room = HEIGHT - top - MARGIN / 2
    scale = min((WIDTH - 2 * MARGIN) / width, room / height)
    head, rest = picture.split(">", 1)
    body = re.sub(r"\A<style>.*?</style>", "", rest, flags=re.S).rstrip().removesuffix("</svg>")
    named = re.search(r'class="([^"]*)"', head)
    rules = "".join(f"{selector}{{{rule}}}" for selector, rule in theme.rules().items())
    return _light(
        f'<svg x="{MARGIN}" y="{top}" width="{width * scale:.0f}" height="{height * scale:.0f}" '
        f'class="{named[1] if named else ""}" viewBox="0 0 {width:g} {height:g}" font-size="12" '
        f'fill="var(--fig-ink)"><style>{rules}</style>{body}</svg>'
    )


def _light(svg: str) -> str:
    """Replace variables by their light-scheme values, for a renderer without variables."""
    return _VARIABLE.sub(lambda found: INKS[found[1]].light if found[1] in INKS else "none", svg)


def card(site: str, title: str, picture: str) -> bytes:
    """Return the card as PNG."""
    from resvg_py import svg_to_bytes

    return bytes(
        svg_to_bytes(
            svg_string=card_svg(site, title, picture),
            width=WIDTH,
            skip_system_fonts=True,
            font_files=_fonts(),
            font_family="DejaVu Sans",
            sans_serif_family="DejaVu Sans",
        )
    )


def _fonts() -> list[str]:
    """Return the font files that come with Matplotlib, without importing it."""
    package = find_spec("matplotlib")
    assert package is not None
    assert package.origin is not None
    folder = Path(package.origin).parent / "mpl-data/fonts/ttf"
    return [str(folder / name) for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")]
