"""Write a figure as a Python program that needs only matplotlib, with its marks and values."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import fields

import numpy as np
from matplotlib.path import Path

from figgen.paper import drawing
from figgen.paper.marks import natural_px, read
from figgen.paper.widths import PX_PER_IN

_HEAD = '''"""{name}, drawn by matplotlib: `python {name}.py [FILE.pdf | FILE.png]`.

`VALUES` are the figure's numbers in SI, `DRAWING` all its marks in px from the upper left corner.
Computed by figgen.
"""
'''
_TAIL = """
WIDTH_IN = {width!r}

if __name__ == "__main__":
    import sys

    import matplotlib

    with matplotlib.rc_context(SETTINGS):
        drawn(DRAWING, WIDTH_IN).savefig(sys.argv[1] if len(sys.argv) > 1 else "{name}.pdf")
"""


def script(
    svg: str, values: Mapping[str, tuple[object, str]], name: str, width_in: float | None = None
) -> str:
    """Return a program that draws a figure's SVG, by default in its natural width.

    It contains the code that draws the PDFs, so that both look the same.
    """
    width = natural_px(svg) / PX_PER_IN if width_in is None else width_in
    read_marks = read(svg, width)
    marks = "".join(f"    {_literal(mark)},\n" for mark in read_marks.marks)
    _, code = inspect.getsource(drawing).split('"""\n', 1)
    numbers = "".join(
        f"    {key!r}: ({_literal(value)}, {unit!r}),\n" for key, (value, unit) in values.items()
    )
    return (
        _HEAD.format(name=name)
        + code
        + f"\n\nVALUES = {{\n{numbers}}}\n\n"
        + f"DRAWING = PaperDrawing(width={read_marks.width!r}, height={read_marks.height!r}, "
        + f"marks=(\n{marks}))\n"
        + _TAIL.format(name=name, width=width)
    )


def _literal(part: object) -> str:
    """Return a mark, a path or a scalar as Python; fields with default values are omitted."""
    if isinstance(part, Path):
        points = ", ".join(
            f"({x!r}, {y!r})" for x, y in np.asarray(part.vertices).round(4).tolist()
        )
        codes = f", {np.asarray(part.codes).tolist()}" if part.codes is not None else ""
        return f"Path([{points}]{codes})"
    if isinstance(part, drawing.PaintedPath | drawing.PaintedText):
        given = ", ".join(
            f"{field.name}={_literal(value)}"
            for field in fields(part)
            if (value := getattr(part, field.name)) != field.default
        )
        return f"{type(part).__name__}({given})"
    if isinstance(part, float):
        return repr(part) if math.isfinite(part) else f'float("{part}")'
    return repr(part)
