"""The reference of formulas: an index, and a page for each topic."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from importlib import resources
from types import ModuleType

from figgen.equations.definition import Formula
from figgen.equations.held import held_by
from figgen.formulas import FORMULAS, TOPICS, domain_latex, evaluate, latex, worked
from figgen.generated.fences import figure

Arguments = Mapping[str, float]

SPELLED = {
    "all reduce": "all-reduce",
    "all gather": "all-gather",
    "reduce scatter": "reduce-scatter",
    "all to all": "all-to-all",
    "zero": "ZeRO",
    "zero2": "ZeRO-2",
    "gpipe": "GPipe",
    "one f one b": "1F1B",
    "flops": "FLOPs",
    "swiglu": "SwiGLU",
    "power sgd": "PowerSGD",
    "gpus": "GPUs",
    **{
        word: word.upper()
        for word in (
            "ccr",
            "cp",
            "dp",
            "fsdp",
            "gpt",
            "hsdp",
            "kv",
            "nccl",
            "nic",
            "pp",
            "tp",
        )
    },
}
"""Words of formulas' names that are spelled differently for readers."""


FORMULAS_BY_TOPIC = figure(
    "formula-topics",
    "",
    caption="{{ count:.0f}} formulas, {{ in_the_catalogue }} of them entries of the catalogue; "
    "most belong to {{ largest }}.",
    alt="Bars of formulas by topic, those in the catalogue and those beyond it; the longest is "
    "{{ largest }} with {{ most }}.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What pages about formulas take from outside of the package.

    `points` are arguments for a worked example, by formula; `uses` the pages that use a formula;
    `titles` what pages are called; `pictures` a figure with its introduction, by topic.
    """

    points: Mapping[str, Arguments]
    uses: Mapping[str, tuple[str, ...]]
    titles: Mapping[str, str]
    pictures: Mapping[str, str] = field(default_factory=dict)


def formula_pages(known: Known) -> dict[str, str]:
    """Return the index and every topic's page, as Markdown by path."""
    topics = {f"reference/formulas/{slug(topic)}.md": _topic_page(topic, known) for topic in TOPICS}
    return {"reference/formulas.md": _index(), **topics}


def frozen_points() -> dict[str, Arguments]:
    """Return the first frozen test point of every formula."""
    text = (resources.files("figgen.formulas") / "points.json").read_text("utf-8")
    rows = json.loads(text)["points"]
    return {row["formula"]: row["arguments"] for row in reversed(rows)}


def slug(topic: ModuleType) -> str:
    """Return a topic as in its address."""
    return topic.__name__.rpartition(".")[2].replace("_", "-")


def topic_title(topic: ModuleType) -> str:
    """Return the title of a module of formulas."""
    return slug(topic).replace("-", " ").capitalize()


def formula_link(name: str) -> str:
    """Return the link to a formula, relative to `reference/`."""
    return f"formulas/{FORMULAS[name].topic}.md#{name}"


def formula_title(name: str) -> str:
    """Return a formula's name as words, in the guide's spelling."""
    words = name.replace("_", " ")
    for plain, written in SPELLED.items():
        words = re.sub(rf"\b{plain}\b", written, words)
    return words[0].upper() + words[1:]


def _members(topic: ModuleType) -> list[Formula]:
    members = (f for f in FORMULAS.values() if f.module == topic.__name__)
    return sorted(members, key=lambda formula: formula.line)


def _index() -> str:
    """Return all formulas by topic; each entry keeps the anchor of older links."""
    parts = [
        "---\ndescription: Every formula of the guide by topic.\n---\n\n# Formulas\n\n"
        f"Every number of the guide comes from one of these {len(FORMULAS)} functions.\n"
        "The equation, the code that is tested and the script of the tools are one text.\n"
        "The [notation](notation.md) lists the letters, and [](#fig-formula-topics) counts the "
        f"formulas by topic.\n\n{FORMULAS_BY_TOPIC}"
    ]
    for topic in TOPICS:
        entries = "\n".join(
            f"- [{formula_title(f.name)}]({formula_link(f.name)}){{ #{f.name} }}: "
            f"${f.symbol}$, {_measured_in(f.unit)}"
            for f in _members(topic)
        )
        heading = f"## [{topic_title(topic)}](formulas/{slug(topic)}.md) {{ data-search-exclude }}"
        parts.append(f"\n{heading}\n\n{entries}\n")
    return "\n".join(parts)


def _topic_page(topic: ModuleType, known: Known) -> str:
    title = topic_title(topic)
    doc = " ".join((topic.__doc__ or "").split("\n\n")[0].split())
    entries = "\n".join(_entry(formula, known) for formula in _members(topic))
    return (
        f"---\ndescription: {title}, the formulas with symbols, units, domain, source and a "
        f"worked example.\n---\n\n# {title}: formulas\n\n{escape(doc)}\n\n"
        f"[All formulas](../formulas.md)\n\n{known.pictures.get(slug(topic), '')}{entries}"
    )


def _entry(formula: Formula, known: Known) -> str:
    """Return one formula under a heading whose anchor is its name."""
    rows = "\n".join(
        f"| ${argument.symbol}$ | `{argument.name}` | {escape(argument.meaning)} "
        f"| {_unit(argument.unit)} |"
        for argument in formula.args
    )
    conditions = ", ".join(f"${condition}$" for condition in domain_latex(formula))
    holds = f"Holds for {conditions}.\n" if conditions else ""
    return (
        f"\n## {formula_title(formula.name)} {{ #{formula.name} }}\n\n"
        f"{formula.doc}\n\n$$\n{latex(formula)}\n$$\n\n"
        f"| symbol | argument of `{formula.name}` | meaning | unit |\n|---|---|---|---|\n{rows}\n\n"
        f"The result is {_measured_in(formula.unit)}.\n{holds}Source: {escape(formula.source)}.\n"
        # Domains are excluded from search.
        "{: data-search-exclude }\n"
        f"{_example(formula, known)}{_held(formula)}{_used_by(formula, known)}"
    )


def _example(formula: Formula, known: Known) -> str:
    """Return the formula at its frozen test point, with the command that computes it."""
    if formula.name not in known.points:
        return ""
    arguments = known.points[formula.name]
    line = worked(evaluate(formula.name, **arguments)).latex
    given = " ".join(f"{name}={_plain(value)}" for name, value in arguments.items())
    return (
        f"\nFor example:\n\n$$\n{line}\n$$\n\n`figgen eval {formula.name} {given}`\n"
        "{: data-search-exclude }\n"
    )


def _held(formula: Formula) -> str:
    """Return a sentence with the formula's tests and their tolerances."""
    tests = " and ".join(f"`{one.test}` ({one.within})" for one in held_by(formula))
    return f"\nHeld by {tests}.\n{{: data-search-exclude }}\n" if tests else ""


def _plain(value: float) -> str:
    """Format a number as short as YAML still parses it: 7.0e+09 for 7000000000."""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    mantissa, e, power = f"{value:g}".partition("e")
    short = f"{mantissa if '.' in mantissa else mantissa + '.0'}{e}{power}"
    return short if float(short) == value else repr(value)


def _used_by(formula: Formula, known: Known) -> str:
    pages = known.uses.get(formula.name, ())
    if not pages:
        return ""
    links = ", ".join(f"[{known.titles.get(page, page)}](../../{page})" for page in pages)
    return f"\nUsed on: {links}.\n{{: data-search-exclude }}\n"


def _measured_in(unit: str) -> str:
    return "a pure number" if unit == "1" else f"in {escape(unit)}"


def _unit(unit: str) -> str:
    return "pure number" if unit == "1" else escape(unit)
