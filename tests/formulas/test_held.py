"""The pages name for each formula the test that holds it, and its tolerance."""

import json

import pytest

from figgen.equations.held import held_by
from figgen.formulas import FORMULAS
from tests.formulas.held import ROOT, held

FILE = ROOT / "figgen" / "formulas" / "held.json"


@pytest.mark.golden
def test_the_table_for_the_pages_is_that_of_the_tests(pytestconfig: pytest.Config) -> None:
    written = json.dumps(held(), indent=1) + "\n"
    if pytestconfig.getoption("--update-golden"):
        FILE.write_text(written, encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == written, "--update-golden rewrites it"
    assert all(held_by(formula) for formula in FORMULAS.values())


def test_half_of_the_formulas_are_held_by_more_than_their_point() -> None:
    assert sum(len(rows) > 1 for rows in held().values()) >= 95
