"""Keep a number and its unit on one line."""

from __future__ import annotations

import re
import xml.etree.ElementTree as etree

from markdown.treeprocessors import Treeprocessor

from figgen.quantity_shown import NBSP
from figgen.quantity_units import BINARY, MEASURED, POWERS, TIMES

NO_PROSE = ("code", "pre", "script", "style")
"""Elements whose spaces readers copy, and where they stay as typed."""
_PREFIX = rf"(?:{'|'.join([*BINARY, *POWERS])})?"
_MEASURED = "|".join(sorted(MEASURED, key=len, reverse=True))
_UNIT = rf"(?:{_PREFIX}(?:{_MEASURED})|{'|'.join(TIMES)})(?![\w-])"
_INSIDE = re.compile(rf"(?<=\d) (?={_UNIT})")
_AT_START = re.compile(rf"^ (?={_UNIT})")


class KeptTogether(Treeprocessor):
    """Joins each number in running text to the unit after it with a no-break space."""

    def run(self, root: etree.Element) -> None:
        self._visit(root)

    def _visit(self, element: etree.Element) -> None:
        if element.tag in NO_PROSE or "arithmatex" in element.get("class", ""):
            return
        if type(element.text) is str:
            element.text = _INSIDE.sub(NBSP, element.text)
        for child in element:
            self._visit(child)
            if type(child.tail) is str:
                child.tail = _INSIDE.sub(NBSP, child.tail)
                if "".join(child.itertext())[-1:].isdigit():
                    child.tail = _AT_START.sub(NBSP, child.tail)
