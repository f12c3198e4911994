"""Formats compared with NumPy, with printed limits, and with every code that they have."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from figgen.errors import InputError
from figgen.models.shape.number_formats import BLOCKS, FORMATS, FloatFormat, float_format

# Micikevicius et al. 2022, table 1; OCP MX 1.0, tables of FP4; IEEE binary16 by NumPy.
PRINTED = {
    "FP8 E4M3": (448.0, 2.0**-6, 2.0**-9),
    "FP8 E5M2": (57344.0, 2.0**-14, 2.0**-16),
    "FP4 E2M1": (6.0, 1.0, 0.5),
    "BF16": (3.3895313892515355e38, 2.0**-126, 2.0**-133),
}


@pytest.mark.parametrize("name", PRINTED)
def test_limits_are_the_printed_ones(name: str) -> None:
    found = float_format(name)
    assert (found.largest, found.smallest_normal, found.smallest) == PRINTED[name]


@pytest.mark.parametrize(("name", "kind"), [("FP16", np.float16), ("FP32", np.float32)])
def test_limits_are_numpys(name: str, kind: type[np.floating]) -> None:
    found, numpys = float_format(name), np.finfo(kind)
    assert found.largest == float(numpys.max)
    assert found.smallest_normal == float(numpys.tiny)
    assert found.smallest == float(numpys.smallest_subnormal)
    assert found.epsilon == float(numpys.eps)


def every_value(found: FloatFormat) -> np.ndarray:
    """Return all finite nonnegative numbers, decoded from their bits."""
    values = []
    top = 2**found.exponent_bits - 1
    for exponent, mantissa in itertools.product(range(top + 1), range(2**found.mantissa_bits)):
        last = mantissa == 2**found.mantissa_bits - 1
        if exponent == top and (found.specials == "ieee" or (found.specials == "nan" and last)):
            continue
        part = mantissa * 2.0**-found.mantissa_bits
        values.append(
            (1 + part) * 2.0 ** (exponent - found.bias)
            if exponent
            else part * 2.0 ** (1 - found.bias)
        )
    return np.array(values)


@pytest.mark.parametrize("name", ["FP8 E4M3", "FP8 E5M2", "FP4 E2M1"])
def test_rounding_finds_the_nearest_of_all_codes(name: str) -> None:
    found = float_format(name)
    codes = every_value(found)
    assert codes.max() == found.largest
    assert codes[codes > 0].min() == found.smallest
    numbers = np.geomspace(found.smallest / 8, found.largest, 997)
    nearest = np.abs(codes[None, :] - numbers[:, None]).min(axis=1)
    assert np.abs(found.rounded(numbers) - numbers) == pytest.approx(nearest)
    assert np.array_equal(found.rounded(codes), codes)


def test_fp16_rounds_as_numpy_does_and_overflows_as_it_does() -> None:
    numbers = np.concatenate([np.geomspace(1e-9, 65519.0, 4001), [65520.0, 1e6]])
    with np.errstate(over="ignore"):
        expected = numbers.astype(np.float16).astype(np.float64)
    assert np.array_equal(float_format("FP16").rounded(numbers), expected)
    assert np.array_equal(float_format("FP16").rounded(-numbers), -expected)


def test_e4m3_saturates() -> None:
    assert float_format("FP8 E4M3").rounded(np.array([1e4, -1e4])).tolist() == [448, -448]


@pytest.mark.parametrize("name", ["FP8 E4M3", "FP8 E5M2", "FP4 E2M1"])
def test_the_bound_is_half_the_gap_between_codes_and_no_more_than_all(name: str) -> None:
    found = float_format(name)
    codes = np.sort(every_value(found))
    numbers = np.geomspace(found.smallest / 8, 0.999 * found.largest, 997)
    above = np.searchsorted(codes, numbers, side="right")
    half = (codes[above] - codes[above - 1]) / 2
    worst = [found.relative_error_bound(number) for number in numbers]
    assert worst == pytest.approx(np.minimum(half / numbers, 1.0))
    assert found.relative_error_bound(1.01 * found.largest) == 1


@pytest.mark.parametrize("name", FORMATS)
def test_no_rounding_is_worse_than_the_bound(name: str) -> None:
    found = float_format(name)
    for number in np.geomspace(max(found.smallest, 1e-30), min(found.largest, 1e30), 301):
        error = abs(float(found.rounded(np.array([number]))[0]) / number - 1)
        assert error <= found.relative_error_bound(number) * (1 + 1e-9)


@pytest.mark.parametrize(("name", "worst"), [("FP8 E4M3", 1 / 17), ("FP8 E5M2", 1 / 9)])
def test_the_worst_rounding_errs_by_less_than_the_bound_at_a_power_of_two(
    name: str, worst: float
) -> None:
    """Halfway between 1 and the next number: 1.0625 becomes 1 or 1.125 in E4M3, 1.125 in E5M2."""
    found, numbers = float_format(name), np.linspace(1, 2, 8001)
    errors = np.abs(found.rounded(numbers) / numbers - 1)
    assert errors.max() == pytest.approx(worst)
    assert errors.max() < found.relative_error_bound(1.0) == found.epsilon / 2


@pytest.mark.parametrize(
    ("name", "bits"),
    [("MXFP8", 8.25), ("MXFP4", 4.25), ("NVFP4", 4.5), ("FP8, 128 to a scale", 8.25)],
)
def test_bits_per_element_count_the_scale(name: str, bits: float) -> None:
    assert BLOCKS[name].bits_per_element == bits


def test_one_outlier_ruins_its_block_only() -> None:
    numbers = np.full(64, 0.0004)
    numbers[0] = 400.0
    block = BLOCKS["MXFP8"].rounded(numbers)
    assert block[1:32].tolist() == [0.0] * 31
    assert block[32:] == pytest.approx(numbers[32:], rel=0.07)
    assert BLOCKS["FP8, a scale per tensor"].rounded(numbers)[1:].tolist() == [0.0] * 63


def test_numbers_that_blocks_do_not_divide_are_refused() -> None:
    with pytest.raises(InputError, match="multiple of 32"):
        BLOCKS["MXFP8"].rounded(np.ones(33))
    with pytest.raises(InputError, match="FP8 E4M3"):
        float_format("FP8 E4M2")
