"""Write figure fences for generated pages."""

from __future__ import annotations


def figure(name: str, parameters: str, *, caption: str, alt: str, figure_id: str = "") -> str:
    """Return a figure fence; `caption` and `alt` must not contain double quotes."""
    named = f"id: {figure_id}\n" if figure_id else ""
    return (
        f'```figure\nfigure: {name}\n{named}{parameters}\ncaption: "{caption}"\nalt: "{alt}"\n```\n'
    )
