"""Widths of figures on paper, and the smallest legible width."""

from __future__ import annotations

from figgen.errors import InputError, unknown

COLUMNS_IN = {
    "ieee": 3.5,
    "ieee-wide": 7.16,
    "acm": 3.33,
    "acm-wide": 7.0,
    "icml": 3.25,
    "icml-wide": 6.75,
    "neurips": 5.5,
    "iclr": 5.5,
    "nature": 3.5,
    "nature-wide": 7.2,
    "a4": 6.3,
    "slide": 10.0,
}
"""Widths of columns and text blocks of common templates, in inches."""
PX_PER_IN = 96
LEAST_TEXT_PT = 5.0
"""The smallest text that journals print (Nature: 5 pt)."""
MOST_IN = 40


def width_in(name: str) -> float:
    """Return a width in inches from a template's name or a number; InputError for others."""
    if name in COLUMNS_IN:
        return COLUMNS_IN[name]
    try:
        width = float(name)
    except ValueError:
        raise unknown("template (or a number of inches)", name, COLUMNS_IN) from None
    if not 1 <= width <= MOST_IN:
        raise InputError("width", expected=f"1 to {MOST_IN} inches", got=name)
    return width


def text_pt(text_px: float, width_px: float, width: float) -> float:
    """Return the size in points of text on a drawing of `width_px` printed `width` inches wide."""
    return text_px * 72 * width / width_px


def too_narrow(text_px: float, width_px: float, width: float) -> InputError:
    """Return the error for a figure whose text would be too small to read."""
    least = LEAST_TEXT_PT * width_px / (72 * text_px)
    fit = [name for name, wide in COLUMNS_IN.items() if wide >= least]
    named = f" ({', '.join(fit)})" if fit else ""
    return InputError(
        "width",
        expected=f"at least {least:.2f} inches{named}, so that the text has {LEAST_TEXT_PT:g} pt",
        got=f"{width:g} inches",
    )
