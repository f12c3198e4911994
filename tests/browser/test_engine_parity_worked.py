"""Worked lines of the tools, in a real browser, equal those of the guide word for word."""

from __future__ import annotations

import random
from typing import Any

from figgen.equations.notes import plain
from figgen.equations.syntax import expression_tree
from figgen.equations.tree import text
from figgen.errors import InputError
from figgen.formulas import FORMULAS, evaluate, worked
from figgen.formulas.notation import NOTATION
from tests.browser.engine import Ask, differing
from tests.formulas.points import POINTS

TRIALS = 12
SPECS = {"B": ("", "bytes", "gib", "si.5"), "s": ("", "time", "si", "time.5")}
EXACT = 2**53  # Python's ints go on where doubles end.


def values(rng: random.Random, name: str, point: float) -> float:
    """Return a value near a formula's test point, or a round one; whole for counts."""
    if NOTATION[name].whole:
        return rng.choice((rng.randint(0, 70), 8 * rng.randint(1, 5), rng.randint(1, 10**7)))
    return float(point) * rng.choice((rng.uniform(0.1, 10), 1, 2, 0.5, 8, 1000, 1e-3))


def cases() -> list[tuple[str, dict[str, float], str, dict[str, str]]]:
    """Return every formula at and around its points: name, arguments, format, Python's output."""
    rng = random.Random(3)
    found = []
    for point in POINTS:
        formula = FORMULAS[point.formula]
        symbols = {argument.name: plain(argument.symbol) for argument in formula.args}
        for trial in range(TRIALS):
            given = {
                name: value if trial == 0 else values(rng, name, value)
                for name, value in point.arguments.items()
            }
            spec = rng.choice(SPECS.get(formula.unit.split("/")[0], ("", "si.4", "unit", ".1%")))
            try:
                evaluation = evaluate(formula.name, **given)
                line = worked(evaluation, spec)
            except InputError:
                continue
            if isinstance(evaluation.value, int) and abs(evaluation.value) > EXACT:
                continue
            said = {
                "text": line.text,
                "result": line.result,
                "symbols": text(expression_tree(formula), symbols),
            }
            found.append((formula.name, dict(evaluation.arguments), spec, said))
    return found


def test_every_worked_line_is_the_same(ask: Ask) -> None:
    known = cases()
    asked: list[Any] = [case[:3] for case in known]
    assert {name for name, *_ in known} == set(FORMULAS)
    assert len(known) > 2000
    assert any("≈" in said["text"] for *_, said in known)
    assert differing(asked, ask("worked", asked), [said for *_, said in known]) == []
