"""The math font, reduced to the characters that the pages use.

STIX Two Math (SIL Open Font License) comes inside the ziamath package; fontTools keeps its MATH
table, without which radicals and brackets would not stretch.
"""

from __future__ import annotations

import io
from collections.abc import Set
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from figgen import cache
from figgen.errors import InputError

FONT = "STIXTwoMath-Regular.ttf"


def math_font(characters: Set[str], folder: Path | None) -> bytes:
    """Return a WOFF2 subset, cached in `folder` because making it takes a quarter of a second."""
    text = "".join(sorted(characters | set(map(_slanted, characters))))
    version = metadata.version("ziamath") + metadata.version("fonttools")
    path = folder / f"math-{cache.digest(f'{version} unhinted {text}')[:32]}" if folder else None
    if path and (stored := _stored(path)):
        return stored
    made = _subset(text)
    if path:
        cache.write(path.parent, path.name, made.hex())
    return made


def _slanted(letter: str) -> str:
    """Return the italic form that browsers show for a letter that stands alone in a formula."""
    if letter == "h":
        return "\N{PLANCK CONSTANT}"
    for first, last, italic in (("A", "Z", 0x1D434), ("a", "z", 0x1D44E), ("Α", "ω", 0x1D6E2)):
        if first <= letter <= last:
            # Between Greek capitals and small letters, the italics have one code point less.
            gap = 7 - 1 if first == "Α" and letter >= "α" else 0
            return chr(italic + ord(letter) - ord(first) - gap)
    return {"ϕ": "\U0001d719", "∂": "\U0001d715", "ϵ": "\U0001d716"}.get(letter, letter)


def _stored(path: Path) -> bytes | None:
    stored = cache.read(path.parent, path.name)
    return bytes.fromhex(stored) if stored else None


def _source() -> Path:
    """Return the font's path without importing its package, which would load the whole font."""
    package = find_spec("ziamath")
    if package is None or package.origin is None:
        raise InputError("the ziamath package is not installed")
    return Path(package.origin).with_name("fonts") / FONT


def _subset(text: str) -> bytes:
    from fontTools import subset
    from fontTools.ttLib import TTFont

    source = _source().read_bytes()
    # Hinting for coarse screens and separate glyphs for indices are half of the font.
    options = subset.Options(flavor="woff2", layout_features=[], hinting=False, notdef_outline=True)
    font = TTFont(io.BytesIO(source), recalcTimestamp=False)
    subsetter = subset.Subsetter(options)
    subsetter.populate(text=text)
    subsetter.subset(font)
    font.flavor = "woff2"
    out = io.BytesIO()
    font.save(out)
    return out.getvalue()
