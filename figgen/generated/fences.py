"""Figure fences as generated pages write them."""

from __future__ import annotations


def figure(name: str, parameters: str, *, caption: str, alt: str, figure_id: str = "") -> str:
    """A figure fence; the texts may not hold double quotes."""
    named = f"id: {figure_id}\n" if figure_id else ""
    return (
        f'```figure\nfigure: {name}\n{named}{parameters}\ncaption: "{caption}"\nalt: "{alt}"\n```\n'
    )
