"""Published tables of attention: complete, and counted as in the guide."""

from __future__ import annotations

import pytest

from figgen.catalog.attention_tables import HEAD_DIM, HEADS, attention_table, attention_tables
from figgen.errors import InputError
from figgen.figures.training.published_attention import attention_rates
from figgen.formulas.compute_and_roofline import attention_core_flops


def test_tables_are_whole() -> None:
    """20 rows of two passes, and 90 of one pass each."""
    rows = {chip: len(table.passes) for chip, table in attention_tables().items()}
    assert rows == {"h200-sxm-141gb": 40, "gb200-nvl72": 90, "gb300-nvl72": 90}


def test_rates_are_those_that_the_source_prints() -> None:
    """Like the guide, it excludes the masked half and counts the backward as two and a half
    forwards."""
    for table in attention_tables().values():
        for one in table.passes:
            # Microseconds and whole TFLOP/s are what it rounds to.
            rounded = 0.6e-6 / one.seconds + 0.6e12 / one.printed_flops_per_s
            rate = one.flops / one.seconds
            assert rate == pytest.approx(one.printed_flops_per_s, rel=rounded), one


def test_work_is_that_of_the_formula() -> None:
    one = attention_table("h200-sxm-141gb").passes[0]
    whole = attention_core_flops(
        sequence_length=one.sequence, microbatch_size=one.batch, hidden=HEADS * HEAD_DIM
    )
    assert one.flops == whole / 2


def test_both_passes_lie_between_their_rates() -> None:
    for row in attention_rates().rows:
        _, _, forward, backward, both, _ = row
        assert isinstance(forward, float)
        assert isinstance(backward, float)
        # Seven parts of work, two of them forward.
        assert both == pytest.approx(3.5 / (1 / forward + 2.5 / backward))


def test_an_unknown_chip_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match="gb200-nvl72"):
        attention_table("gb200-nvl")
