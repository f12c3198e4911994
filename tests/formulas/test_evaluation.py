"""What evaluate accepts, and its errors for what it doesn't."""

import math
from fractions import Fraction

import numpy as np
import pytest

from figgen.catalog.by_name import accelerator, link
from figgen.errors import InputError
from figgen.formulas import evaluate
from figgen.units import agree

RING = {"ranks": 8, "message_bytes": 1e9, "latency_s": 1e-6, "bandwidth_bytes_per_s": 450e9}


def test_arguments_come_as_si_numbers_or_as_quantities() -> None:
    written = {
        "ranks": "8 ranks", "message_bytes": "1 GB", "latency_s": "1 µs",
        "bandwidth_bytes_per_s": "3600 Gb/s",
    }  # fmt: skip
    assert evaluate("ring_all_reduce_time", **written).value == (
        evaluate("ring_all_reduce_time", **RING).value
    )


def test_arguments_are_kept_as_plain_numbers_in_the_formulas_order() -> None:
    given = {"microbatches": np.int64(8), "stages": np.float64(4)}
    kept = evaluate("bubble_fraction", **given).arguments
    assert kept == {"stages": 4, "microbatches": 8}
    assert list(kept) == ["stages", "microbatches"]
    assert {type(value) for value in kept.values()} == {int}


def test_an_argument_that_has_a_unit_is_checked() -> None:
    h100, nvlink = accelerator("h100-sxm-80gb"), link("nvlink4")
    ridge = evaluate(
        "ridge_point", peak_flops_per_s=h100.bf16, bandwidth_bytes_per_s=nvlink.bandwidth
    )
    assert (ridge.value, ridge.unit) == (pytest.approx(989.4e12 / 450e9, rel=1e-3), "FLOP/B")
    for name in ("peak_flops_per_s", "bandwidth_bytes_per_s"):
        given = {"peak_flops_per_s": h100.bf16, "bandwidth_bytes_per_s": nvlink.bandwidth}
        with pytest.raises(InputError, match=f"ridge_point: {name}: expected .*, got 'FLOP/B'"):
            evaluate("ridge_point", **{**given, name: ridge})


def test_units_agree_if_equal_and_a_count_is_a_pure_number() -> None:
    for unit, other in (("B/s", "B/s"), ("GPU", "1"), ("1", "token")):
        assert agree(unit, other)
    for unit, other in (("B/s", "B"), ("1", "B"), ("token", "expert"), ("token/s", "1/s")):
        assert not agree(unit, other)


def test_unknown_formula_names_a_likely_one() -> None:
    with pytest.raises(InputError) as caught:
        evaluate("buble_fraction", stages=4)
    assert "bubble_fraction" in caught.value.nearest


def test_unknown_argument_names_a_likely_one() -> None:
    with pytest.raises(InputError, match="argument of bubble_fraction") as caught:
        evaluate("bubble_fraction", stages=4, microbatch=8)
    assert caught.value.nearest[0] == "microbatches"


def test_missing_arguments_are_all_named() -> None:
    with pytest.raises(InputError, match="needs message_bytes, latency_s"):
        evaluate("ring_all_reduce_time", ranks=8, bandwidth_bytes_per_s=1)


@pytest.mark.parametrize(
    "given", [True, None, [1.0], math.nan, math.inf, 1j, np.array([1.0]), "fast", "1 s", "8"]
)
def test_argument_that_is_no_fitting_number_is_refused(given: object) -> None:
    with pytest.raises(InputError, match="message_bytes"):
        evaluate("ring_all_reduce_time", **{**RING, "message_bytes": given})


def test_broken_condition_is_named_with_what_broke_it() -> None:
    with pytest.raises(InputError) as caught:
        evaluate("bubble_fraction", stages=0, microbatches=8)
    assert (caught.value.expected, caught.value.got) == ("stages ≥ 1", 0)
    with pytest.raises(InputError) as caught:
        evaluate("interleaved_bubble_fraction", stages=4, microbatches=3, chunks=2)
    assert caught.value.expected == "microbatches ≥ stages or chunks = 1"
    assert caught.value.got == {"microbatches": 3, "stages": 4, "chunks": 2}


def test_fraction_is_a_number() -> None:
    time = evaluate(
        "point_to_point_time", message_bytes=0, latency_s=Fraction(1, 8), bandwidth_bytes_per_s=1
    )
    assert time.value == 0.125


def test_result_beyond_floating_point_is_refused() -> None:
    with pytest.raises(InputError, match="has no value there"):
        evaluate("growth_for_loss_ratio", loss_ratio=1e300)


def test_a_step_that_no_group_has_is_refused_at_once() -> None:
    assert evaluate("halving_step_bytes", message_bytes=8, step=2).value == 1
    with pytest.raises(InputError, match="halving_step_bytes is not defined there"):
        evaluate("halving_step_bytes", message_bytes=1e9, step=10**12)


def test_text_outside_the_domain_is_told_as_it_was_typed() -> None:
    with pytest.raises(InputError, match="got '-3 kB'"):
        evaluate("halving_step_bytes", message_bytes="-3 kB", step=0)
