"""Write figures as PDF with embedded fonts and as PNG."""

from __future__ import annotations

import io
import warnings

from matplotlib import rc_context

from figgen.errors import InputError
from figgen.paper.drawing import SETTINGS, drawn
from figgen.paper.marks import natural_px, read
from figgen.paper.widths import PX_PER_IN

PNG_DPI = 300


def printed(svg: str, kind: str, title: str, width_in: float | None = None) -> bytes:
    """Convert a figure's SVG to `pdf` or `png`, by default in its natural width.

    Equal figures give equal bytes. Raises InputError for characters that the font lacks.
    """
    width = natural_px(svg) / PX_PER_IN if width_in is None else width_in
    out = io.BytesIO()
    with rc_context(SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("error", r"Glyph \d+")
        figure = drawn(read(svg, width), width)
        try:
            if kind == "pdf":
                figure.savefig(out, format="pdf", metadata={"Title": title, "CreationDate": None})
            else:
                about = {"Title": title, "Software": None}
                figure.savefig(out, format="png", dpi=PNG_DPI, metadata=about)
        except UserWarning as warning:
            raise InputError("a label", expected="letters of DejaVu Sans", got=warning) from None
    return out.getvalue()
