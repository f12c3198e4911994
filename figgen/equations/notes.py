"""Formulas as data for the live tools, which print them with a reader's own numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from figgen.equations.definition import Formula
from figgen.equations.syntax import expression_tree
from figgen.equations.tree import compact
from figgen.errors import InputError

LETTERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "Delta": "Δ", "eta": "η", "theta": "θ",
    "lambda": "λ", "phi": "φ",
    "rho": "ρ", "tau": "τ", "ell": "ℓ", "max": "max",
}  # fmt: skip
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def notes_module(formulas: Iterable[Formula]) -> str:
    """Return an ES module that exports `notes`: all about each formula except its function."""
    found = {formula.name: note(formula) for formula in sorted(formulas, key=lambda f: f.name)}
    rows = ",\n".join(f"{name}:{_json(about)}" for name, about in found.items())
    header = "// Printed from the Python formulas of figgen.\n\n"
    return f"{header}export const notes = {{\n{rows}\n}};\n"


def note(formula: Formula) -> dict[str, object]:
    """Return a formula's meaning, source, unit, symbol, tree, and the notation of its arguments."""
    return {
        "doc": formula.doc,
        "source": formula.source,
        "symbol": plain(formula.symbol),
        "unit": formula.unit,
        "arguments": {
            argument.name: [plain(argument.symbol), argument.unit, argument.meaning]
            for argument in formula.args
        },
        "tree": compact(expression_tree(formula)),
    }


def plain(symbol: str) -> str:
    r"""Return a LaTeX symbol without markup: "T_ring" for `T_\text{ring}`, "n₀" for `n_0`.

    Raises InputError for a command that has no plain spelling.
    """
    shown = re.sub(r"\\(?:text|hat)\{([^}]*)\}", r"\1", symbol)
    shown = re.sub(r"\\([A-Za-z]+) ?", lambda found: LETTERS.get(found[1], found[0]), shown)
    shown = re.sub(r"_(\d)\b", lambda found: found[1].translate(SUBSCRIPTS), shown)
    shown = re.sub(r"[{}]", "", shown).replace("^*", "*")
    if "\\" in shown:
        raise InputError("a symbol without a plain spelling", got=symbol)
    return shown


def _json(about: dict[str, object]) -> str:
    return json.dumps(about, ensure_ascii=False, separators=(",", ":"))
