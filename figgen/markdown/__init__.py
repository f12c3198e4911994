"""The figure fence, inline values, references, citations and math, as a Markdown extension.

It works with Python-Markdown alone (`markdown.markdown(text, extensions=["figgen"])`); a host
such as MkDocs passes a `Site` and a `Page`, which collects problems with their lines.
"""

from figgen.markdown.conversion import Page, Problem, Site, fences
from figgen.markdown.extension import FiggenExtension

__all__ = ["FiggenExtension", "Page", "Problem", "Site", "fences", "makeExtension"]


def makeExtension(**options: object) -> FiggenExtension:
    """Return the extension; Python-Markdown's entry point."""
    return FiggenExtension(**options)
