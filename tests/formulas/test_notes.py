"""Formulas as data: every one can be printed from its notes alone."""

from __future__ import annotations

import json
import re

import pytest

from figgen.equations.notes import note, notes_module, plain
from figgen.equations.ops import OPERATORS
from figgen.errors import InputError
from figgen.formulas import FORMULAS


def test_every_formula_has_a_note_that_is_plain_data() -> None:
    source = notes_module(reversed(FORMULAS.values()))
    rows = re.findall(r"^(\w+):(\{.*\}),?$", source, re.M)
    assert [name for name, _ in rows] == sorted(FORMULAS)
    for name, row in rows:
        assert json.loads(row) == json.loads(json.dumps(note(FORMULAS[name])))


def test_a_ring_is_an_expression_of_its_symbols() -> None:
    found = note(FORMULAS["ring_all_gather_time"])
    assert found["symbol"] == "T_AG"
    assert found["unit"] == "s"
    assert found["arguments"]["latency_s"][:2] == ["α", "s"]
    share = ["/", ["-", "ranks", 1], "ranks"]
    steps = ["*", ["-", "ranks", 1], "latency_s"]
    moved = ["/", ["*", share, "message_bytes"], "bandwidth_bytes_per_s"]
    assert found["tree"] == ["+", steps, moved]


def names(tree: object) -> set[str]:
    if isinstance(tree, str):
        return {tree}
    return set().union(*map(names, tree[1:])) if isinstance(tree, list) else set()


def test_trees_use_the_arguments_and_known_signs() -> None:
    known = {*"+-*/%", "//", "**", "neg", "==", "!=", "<", "<=", ">", ">=", "and", "or"}
    for name, formula in FORMULAS.items():
        found = note(formula)
        assert names(found["tree"]) <= set(found["arguments"]), name
        signs = set(re.findall(r'\["([^"]+)"', json.dumps(found["tree"])))
        assert signs <= known | set(OPERATORS), name
        assert "\\" not in found["symbol"], name


def test_symbols_lose_their_markup_and_nothing_else() -> None:
    assert plain(r"T_\text{ring}") == "T_ring"
    assert plain(r"\alpha") == "α"
    assert plain("n_0") == "n₀"
    assert plain(r"n_\text{b}^*") == "n_b*"
    with pytest.raises(InputError, match="plain spelling"):
        plain(r"\sum")
