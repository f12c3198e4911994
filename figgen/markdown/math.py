"""Convert TeX to MathML at build time: pages need no script, and unknown commands are errors."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as etree
from html import unescape
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import Any

from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString

from figgen import cache
from figgen.errors import InputError
from figgen.markdown.conversion import Page, Site

ARITHMATEX = {"generic": True, "smart_dollar": True}

# Text that must not begin a line, since a browser may break the line after any formula.
_CLOSING = re.compile(r"[)\],.;:!?%’']+|-(?:th|fold)\b[)\],.;:!?]*")
_REFERENCE = re.compile(r"&#x([0-9a-fA-F]{1,5});")
_NOT_MATH = {"href", "class", "style", "id"}
_LEFT_OVER = re.compile(r"<m[ion]>\s*(\\[a-zA-Z]+|\\.)|<mtext>[^<]*(\\)")


# Converted formulas, kept between builds by `remember` and `recall`: a reference page has a
# thousand symbols, and the converter takes a fraction of a millisecond for each.
_converted: dict[str, str] = {}


def mathml(tex: str, display: bool = False) -> str:
    """Convert `tex` to a `<math>` element. Raises InputError for an unknown command."""
    key = f"{'display' if display else 'inline'} {tex}"
    if key not in _converted:
        _converted[key] = _convert(tex, display)
    return _converted[key]


def recall(folder: Path) -> None:
    """Load formulas that earlier builds converted with the same converter and repairs."""
    stored = cache.read(folder, _store_name())
    learn(json.loads(stored) if stored else {})


def remember(folder: Path) -> None:
    """Store the converted formulas, if there are new ones."""
    text = json.dumps(_converted, sort_keys=True, ensure_ascii=False)
    if cache.read(folder, _store_name()) != text:
        cache.write(folder, _store_name(), text)


def known() -> int:
    """Return the number of formulas converted so far."""
    return len(_converted)


def news(before: int) -> dict[str, str]:
    """Return formulas converted since `before` were known, for another process."""
    return dict(islice(_converted.items(), before, None))


def learn(converted: dict[str, str]) -> None:
    """Add formulas that another process converted."""
    _converted.update(converted)


def _store_name() -> str:
    recipe = Path(__file__).read_text(encoding="utf-8") + metadata.version("latex2mathml")
    return f"mathml-{cache.digest(recipe)[:32]}"


def _convert(tex: str, display: bool) -> str:
    from latex2mathml.converter import Converter

    braces = re.sub(r"\\.", "", tex)
    if braces.count("{") != braces.count("}"):
        raise InputError("braces of a formula", expected="as many { as }", got=tex)
    try:
        converter = Converter(display="block" if display else "inline")
        tree = converter.convert_to_element(_prepared(tex))
    except Exception as error:
        raise InputError(f"math cannot be read: {type(error).__name__}", got=tex) from None
    for element in tree.iter():
        if unfit := _NOT_MATH.intersection(element.keys()):
            raise InputError(f"math: {', '.join(sorted(unfit))} of an element", got=tex)
        # The converter writes its own signs as references, and text as the author wrote it.
        element.text = _REFERENCE.sub(lambda m: chr(int(m[1], 16)), element.text or "") or None
    del tree.attrib["xmlns"]
    markup = etree.tostring(tree, encoding="unicode")
    left_over = _LEFT_OVER.search(markup)
    if left_over:
        command = left_over.group(1) or "a backslash inside \\text"
        raise InputError(f"math: {command} is not understood", got=tex)
    return markup


def _prepared(tex: str) -> str:
    """Work around faults of latex2mathml: `aligned`, escaped `_` in text, limits of min and max."""
    tex = tex.replace(r"\begin{aligned}", r"\begin{split}").replace(
        r"\end{aligned}", r"\end{split}"
    )
    tex = re.sub(r"\\text\{([^{}]*)\}", lambda m: r"\text{" + m[1].replace(r"\_", "_") + "}", tex)
    return re.sub(r"\\(min|max)_", r"\\\1\\limits_", tex)


def characters(markup: str) -> set[str]:
    """Return the characters that the math font needs for `markup`, with √ for each root."""
    radical = "√" if re.search(r"<m(sqrt|root)\b", markup) else ""
    return set(unescape(re.sub(r"<[^>]*>", "", markup)) + radical)


class MathTree(Treeprocessor):
    """Replaces elements that arithmatex marked as math by MathML."""

    def __init__(self, md: Any, site: Site, page: Page) -> None:
        super().__init__(md)
        self.site = site
        self.page = page

    def run(self, root: etree.Element) -> None:
        for element in root.iter():
            if element.get("class") != "arithmatex":
                continue
            tex = (element.text or "").strip()
            display = tex.startswith(r"\[")
            tex = tex[2:-2].strip()
            if display:  # arithmatex escapes displayed math, but not inline math
                tex = unescape(tex)
            try:
                markup = mathml(tex, display)
            except InputError as error:
                element.text = AtomicString(f"[{self.page.report(error, tex)}]")
                element.set("class", "figgen-error")
                continue
            self.page.characters |= characters(markup)
            element.set("class", "fig-math")
            closing = "" if display else _closing(element.tail)
            element.text = AtomicString(self.md.htmlStash.store(markup) + closing)
            element.tail = (element.tail or "")[len(closing) :]


def _closing(after: str | None) -> str:
    """Return the punctuation after a formula that must stay on its line."""
    found = _CLOSING.match(after or "")
    return found[0] if found else ""
