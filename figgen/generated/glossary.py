"""The pages of the glossary and the notation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from figgen.formulas import FORMULAS, NOTATION
from figgen.generated.fences import figure
from figgen.generated.formulas import formula_link, formula_title
from figgen.markdown.lists import term_anchor

MOST_LINKED = 3
"""The most formulas that a symbol's row links to."""


_NESTED = figure(
    "nested-terms",
    "preset: llama-3-405b-8k-16384",
    caption="One run, divided in three ways: {{ gpus:, }} GPUs are {{ nodes:, }} nodes, and also "
    "{{ replicas }} replicas of {{ stages }} stages of {{ tp }} shards; a step of {{ tokens:si }} "
    "tokens is {{ microbatches }} microbatches for every replica. {{ title }}.",
    alt="Three ladders of boxes. GPUs: world size {{ gpus:, }}, node, rank. Model: {{ replicas }} "
    "replicas, {{ stages }} stages, {{ tp }} shards. Batch: {{ sequences:, }} sequences, "
    "{{ microbatches }} microbatches per replica, sequence.",
)

_SYMBOLS = figure(
    "symbols-of-a-step",
    "preset: deepseek-v3",
    caption="Multiply each column from top to bottom: dense layers and experts give the same "
    "number of ranks, and the last column the tokens of a step. {{ gpus:, }} GPUs hold {{ dp }} "
    "replicas but only {{ edp }} copies of each expert, because EP is {{ ep }}. {{ title }}.",
    alt="Three columns of boxes with symbol and value. Dense layers: T, C, D {{ dp }} and "
    "P {{ pp }} make W {{ gpus:, }}. Experts: T of experts, E {{ ep }}, D of experts {{ edp }} and "
    "P make the same W. A step: b, s, M and D make {{ tokens:si }} tokens.",
)


def glossary_page(terms: Mapping[str, Mapping[str, Any]], pages: Iterable[str]) -> str:
    """Return each term with its meaning and the page that explains it, if that is among `pages`."""
    known = set(pages)
    entries = []
    for term in sorted(terms, key=str.lower):
        entry = terms[term]
        see = entry.get("see", "")
        more = f" [More](../{see})" if see in known else ""
        entries.append(
            f'<span id="{term_anchor(term)}">{escape(term)}</span>\n:   {entry["means"]}{more}\n'
        )
    return (
        "---\ndescription: Terms of distributed training, in one sentence each.\n---\n\n"
        f"# Glossary\n\nThe guide uses each of these {len(terms)} terms in one sense and "
        "spelling.\n"
        "Symbols are in the [notation](notation.md).\n"
        "Most of them name parts of a job; [](#fig-nested-terms) shows how these parts nest.\n\n"
        f"{_NESTED}\n" + "\n".join(entries)
    )


def notation_page() -> str:
    """Return each argument of all formulas, with its symbol, unit and the formulas that use it."""
    rows = "\n".join(_symbol_row(name) for name in NOTATION if _users(name))
    return (
        "---\ndescription: Every symbol of the guide with its meaning and unit.\n---\n\n"
        "# Notation\n\n[](#fig-symbols-of-a-step) shows the letters that occur everywhere.\n"
        f"In a formula a letter has one meaning; {_shared()} of the letters below have a different "
        "meaning in a different topic, and a row for each.\n"
        "Formulas use SI units; bandwidths are for one direction.\n"
        "The [conventions](conventions.md) say how the guide counts, and "
        f"the [glossary](glossary.md) explains the words.\n\n{_SYMBOLS}\n"
        "| symbol | in code | meaning | unit | used by |\n|---|---|---|---|---|\n"
        f"{rows}\n"
        "{: data-search-exclude }\n"
    )


def _shared() -> int:
    """Count the symbols that stand for more than one argument."""
    found = Counter(NOTATION[name].symbol for name in NOTATION if _users(name))
    return sum(count > 1 for count in found.values())


def _users(name: str) -> list[str]:
    return [f.name for f in FORMULAS.values() if any(a.name == name for a in f.args)]


def _symbol_row(name: str) -> str:
    argument, users = NOTATION[name], _users(name)
    links = ", ".join(
        f"[{formula_title(user)}]({formula_link(user)})" for user in users[:MOST_LINKED]
    )
    more = f" and {len(users) - MOST_LINKED} more" if len(users) > MOST_LINKED else ""
    unit = "pure number" if argument.unit == "1" else escape(argument.unit)
    return (
        f"| ${argument.symbol}$ | `{name}` | {escape(argument.meaning)} | {unit} | {links}{more} |"
    )
