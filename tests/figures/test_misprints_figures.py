"""The appendix of misprints: computed values compared with a list that was checked by hand."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest

from figgen.figures.appendix.misprints import misprints
from figgen.formulas.pipeline import (
    bubble_fraction_at_four_microbatches_per_stage,
    microbatches_for_efficiency,
)

# Worked out on paper for the errata that the guide started from, not by this package.
BY_HAND = {
    "Keys and values of 2,048 tokens over 100 GB/s": 67_108_864 / 1e11,
    "Half the loss by parameters alone, L ∝ N^−0.076": 9139,
    "Crossover size of NVLink at 1 µs": 450_000,
    "InfiniBand HDR": 25e9,
    "All-reduce of 140 GB over eight A100": 245 / 300,
    "Top 1% of a gradient, indices kept": 100 / 3,
    "Ridge of an A100 over NVLink": 1040,
    "Peak of an H100 in BF16": 989.4e12,
    "NVLink 4": 450e9,
    "DP 8 × PP 8 × TP 8 × EP 8, in GPUs": 512,
    "A GPT-3 layer's tensor-parallel bytes, TP 8": 352.3e6,
    "Largest model that 80 GB hold replicated": 5e9,
    "ZeRO-1 of 10B parameters on eight GPUs": 55e9,
    "Idle share of four stages, four microbatches": 3 / 7,
}


def test_every_number_is_the_one_worked_out_by_hand() -> None:
    computed = {entry.what: entry.computed for entry in misprints()}
    assert computed == pytest.approx(BY_HAND, rel=2e-4)


def test_no_claim_is_right_and_the_worst_comes_first() -> None:
    factors = [entry.factor for entry in misprints()]
    assert factors == sorted(factors, reverse=True)
    assert min(factors) > 1.05


ROOT = Path(__file__).parents[2]


def test_every_claim_of_the_appendix_names_where_it_was_printed() -> None:
    """The quotes were found in the texts; one claim appears in none of them, as it says."""
    oracle = json.loads((ROOT / "tests/oracles/printed_claims.json").read_text("utf-8"))
    page = (ROOT / "docs/appendix/errata.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| “")]
    claims = oracle["claims"]
    assert len(rows) == len(claims)
    for row in rows:
        (found,) = [claims[key] for key in claims if row.startswith(f"| “{key}")]
        assert row.endswith(f" {found[0] if found else '–'} |"), row
    assert [key for key, found in claims.items() if not found] == ["Interleaving needs"]
    for letter, title in oracle["texts"].items():
        assert re.search(rf"^- \*\*{letter}\*\*.*{re.escape(title.split(': ')[-1])}", page, re.M)
    for path in (ROOT / "docs").rglob("*.md"):
        assert "often printed" not in path.read_text("utf-8").lower(), path


def test_four_microbatches_per_stage_idle_a_ninth_to_a_fifth_and_never_a_sixth_below_five() -> None:
    def idle(stages: int, microbatches: int) -> Fraction:
        return Fraction(stages - 1, microbatches + stages - 1)

    for stages in range(2, 65):
        found = float(bubble_fraction_at_four_microbatches_per_stage(stages))
        assert found == pytest.approx(float(idle(stages, 4 * stages)))
        assert Fraction(1, 9) <= idle(stages, 4 * stages) < Fraction(1, 5)
        assert (idle(stages, 4 * stages) >= Fraction(1, 6)) is (stages >= 5)
    # The number that the appendix prints leaves a tenth, not less; one more leaves less.
    assert microbatches_for_efficiency(8, 1, 0.9) == pytest.approx(63)
    assert idle(8, 63) == Fraction(1, 10) > idle(8, 64)
