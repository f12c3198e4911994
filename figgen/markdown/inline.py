"""`{{ value:spec }}` in running text: a number with its formula and source.

It becomes `<data value=…>`; if it has a formula or a source, a button around it opens a
popover with the formula, the substitution and the source, which needs no script.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as etree
from collections.abc import Mapping
from html import escape

from markdown.inlinepatterns import InlineProcessor
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString

from figgen.cache import digest
from figgen.charts import Named
from figgen.equations.definition import Formula
from figgen.equations.evaluation import Evaluation
from figgen.equations.held import held_by
from figgen.equations.latex import domain_latex, latex
from figgen.equations.opened_data import Opened, OpenedPart
from figgen.equations.worked import worked
from figgen.errors import InputError
from figgen.json_text import compact_json
from figgen.markdown.conversion import Page, Site
from figgen.markdown.errors import inline_error, place_of
from figgen.markdown.math import characters, mathml
from figgen.quantity_shown import NBSP
from figgen.units import format_quantity
from figgen.values import Computed, compute

PATTERN = r"\{\{((?:[^{}\"']|\"[^\"\n]*\"|'[^'\n]*')*)\}\}"
LARGEST = 3
"""The number of parts shown with their formula; others are shown with their size only."""

_MARKS = re.compile(rf"{NBSP}\S+|[.,;:!?)%]+")
# Elements in which a button is not allowed, or would be read out as part of a name.
_NO_BUTTON = {"h1", "h2", "h3", "h4", "h5", "h6", "a", "button", "summary", "label", "figcaption"}


class ValueInline(InlineProcessor):
    """Replaces `{{ … }}`; `named` is set while a figure's own caption is converted.

    A value that a script can recompute for a different machine carries unit, format, and its call
    as data, or its name if it is a value of a figure that `follows` the machine.
    """

    def __init__(self, md: object, site: Site, page: Page) -> None:
        super().__init__(PATTERN, md)
        self.site = site
        self.page = page
        self.named: Mapping[str, Named] | None = None
        self.follows = False

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[etree.Element, int, int]:
        try:
            computed, spec = compute(m.group(1), self.named)
            shown = computed.text(spec)
        except InputError as error:
            return self._refuse(error, m), m.start(0), m.end(0)
        except Exception as error:  # a bug in a formula or a lookup
            what = f"{type(error).__name__} while computing this value: {error}{place_of(error)}"
            return self._refuse(InputError(what), m), m.start(0), m.end(0)
        element = etree.Element("data", {"value": repr(computed.value).strip("'")})
        element.text = AtomicString(shown)
        if computed.evaluation or computed.source:
            element.set("data-worked", self._worked(computed, shown, spec))
        if computed.follows is not None:
            element.set("data-follows", compact_json(computed.follows))
        elif self.named is not None and self.follows:
            element.set("data-follows", computed.call)
        if "data-follows" in element.attrib and spec.startswith("in"):
            told = InputError(f"format {spec!r}", expected="a value of a given machine")
            return self._refuse(told, m), m.start(0), m.end(0)
        if "data-follows" in element.attrib:
            element.set("data-spec", f"{computed.unit} {spec}")
        if self.named is None:
            self.page.shown[m.group(0)] = shown
        self._note(computed, shown, m.group(0))
        return element, m.start(0), m.end(0)

    def _refuse(self, error: InputError, m: re.Match[str]) -> etree.Element:
        if self.named is not None:
            raise error  # the figure's directive reports it, with the figure's line
        return inline_error(self.page.report(error, m.group(0)))

    def _worked(self, computed: Computed, shown: str, spec: str) -> str:
        key = f"how-{digest(computed.call + shown)[:10]}"
        if key not in self.page.worked:
            html = popover(key, computed, shown, spec, self._reference(computed))
            self.page.characters |= characters(html)
            self.page.worked[key] = html
        return key

    def _reference(self, computed: Computed) -> str:
        """Return the link to the formula in the reference, or "" if the site has no such page."""
        if computed.evaluation is None or self.page.url is None:
            return ""
        formula = computed.evaluation.formula
        for page in (f"reference/formulas/{formula.topic}", "formulas"):
            if f"{page}.md" in self.site.numbers:
                return f"{self.page.to(page)}/#{formula.name}"
        return ""

    def _note(self, computed: Computed, shown: str, text: str) -> None:
        if self.named is None and self.page.path:
            self.page.entries.append(
                {
                    "where": f"{self.page.path}:{self.page.line_of(text)}",
                    "call": computed.call,
                    "value": computed.value,
                    "unit": computed.unit,
                    "shown": shown,
                    "source": computed.source,
                    "quantity": computed.quantity,
                    "inputs": dict(computed.inputs),
                }
            )


def popover(key: str, computed: Computed, shown: str, spec: str, reference: str = "") -> str:
    """Return a number's popover: formula, substitution with units, source, and its call.

    `reference` is the link to the formula's description.
    """
    lines = [f"<p><strong>{escape(shown)}</strong></p>"]
    if computed.evaluation:
        lines += _derivation(computed.evaluation, spec)
    if computed.opened:
        lines += _opened(computed.opened)
    if computed.source:
        lines.append(f"<p>Source: {escape(computed.source)}</p>")
    if computed.evaluation:
        lines += _held(computed.evaluation.formula)
    link = f' <a href="{escape(reference)}">About this formula</a>' if reference else ""
    lines.append(f"<p><code>{escape(computed.call)}</code>{link}</p>")
    label = escape(f"How {shown} is computed", quote=True)
    return (
        f'<div popover id="{key}" class="fig-how" role="dialog" aria-label="{label}">'
        + "".join(lines)
        + "</div>"
    )


def _derivation(evaluation: Evaluation, spec: str) -> list[str]:
    formula = evaluation.formula
    lines = [
        f"<p>{escape(formula.doc)}</p>",
        f'<p class="fig-math">{mathml(latex(formula), True)}</p>',
        f'<p class="fig-math">{mathml(worked(evaluation, spec).latex, True)}</p>',
    ]
    conditions = ", ".join(mathml(condition) for condition in domain_latex(formula))
    if conditions:
        lines.append(f"<p>Holds for {conditions}.</p>")
    return lines


def _opened(found: Opened) -> list[str]:
    """Return a formula in words, its substitution, and the three largest parts with theirs."""
    lines = [f"<p>{escape(found.formula)}</p>"]
    if found.worked:
        lines.append(f"<p>= {escape(found.worked)}</p>")
    items = [
        f"<li>{escape(f'{part.name}: {_quantity(part)} = {part.how} ({part.source})')}</li>"
        for part in found.parts[:LARGEST]
    ]
    if rest := found.parts[LARGEST:]:
        named = ", ".join(f"{escape(part.name)} {_quantity(part)}" for part in rest)
        items.append(f"<li>smaller: {named}</li>")
    return [*lines, f"<ul>{''.join(items)}</ul>"] if items else lines


def _quantity(part: OpenedPart) -> str:
    return format_quantity(part.value, part.unit, "time" if part.unit == "s" else "bytes")


def _held(formula: Formula) -> list[str]:
    """Return a paragraph with the formula's tests and their tolerances, if there are any."""
    tests = [
        f"<code>{escape(held.test)}</code> ({escape(held.within)})" for held in held_by(formula)
    ]
    return [f'<p class="fig-held">Held by {" and ".join(tests)}.</p>'] if tests else []


class ButtonTree(Treeprocessor):
    """Wraps each number that has an explanation in a button, where a button is allowed."""

    def run(self, root: etree.Element) -> None:
        self._visit(root, allowed=True)

    def _visit(self, parent: etree.Element, allowed: bool) -> None:
        allowed = allowed and parent.tag not in _NO_BUTTON
        for index, child in enumerate(list(parent)):
            key = child.attrib.pop("data-worked", None) if child.tag == "data" else None
            if key and allowed:
                button = etree.Element(
                    "button", {"type": "button", "class": "fig-value", "popovertarget": key}
                )
                tail, child.tail = child.tail or "", None
                button.append(child)
                # A line may break next to a button, and would begin with the full stop or the unit.
                if mark := _MARKS.match(tail):
                    button.tail, tail = mark[0], tail[mark.end() :]
                    kept = etree.Element("span", {"class": "fig-keep"})
                    kept.append(button)
                    button = kept
                button.tail = tail
                parent[index] = button
            else:
                self._visit(child, allowed)
