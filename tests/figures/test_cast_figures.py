"""Casts before narrow matmuls: bytes compared with cast arrays, widths with a search."""

from __future__ import annotations

import numpy as np
import pytest

from figgen.formulas.compute_and_roofline import cast_break_even_width, cast_bytes_per_element
from figgen.registry import build


@pytest.mark.parametrize(
    ("block", "bits", "scale"), [(128, 8, np.float32), (32, 8, np.uint8), (16, 4, np.uint8)]
)
def test_bytes_are_those_of_the_arrays(block: int, bits: int, scale: type) -> None:
    """It covers both copies of a tensor, with scales along its rows and along its columns."""
    source = np.zeros((256, 384), dtype=np.float16)
    moved = source.nbytes
    for one in (source, np.ascontiguousarray(source.T)):
        largest = np.abs(one.reshape(-1, block)).max(axis=1).astype(scale)
        narrow = np.zeros(one.size * bits // 8, dtype=np.uint8)
        moved += narrow.nbytes + largest.nbytes
    scale_bits = 8 * np.dtype(scale).itemsize
    each = float(cast_bytes_per_element(1, 16, bits, scale_bits, block))
    assert each * source.size == moved


def test_a_layer_of_the_break_even_width_gains_nothing() -> None:
    memory, wide, narrow = 3.35e12, 989e12, 1979e12
    width = float(cast_break_even_width(4, memory, wide, narrow))

    def gained_s(inputs: float, outputs: float) -> float:
        work = 6 * inputs * outputs
        return work / wide - work / narrow - 4 * (inputs + outputs) / memory

    assert gained_s(width, width) == pytest.approx(0, abs=1e-9 * width**2 / wide)
    assert gained_s(0.99 * width, width) < 0 < gained_s(1.01 * width, width)
    # Of unequal widths the harmonic mean counts.
    assert gained_s(2 * width, 2 * width / 3) == pytest.approx(0, abs=1e-9 * width**2 / wide)


def test_a_second_read_makes_half_as_much_again_of_a_cast() -> None:
    """Four bytes plus two more; most of the gain of a doubled peak remains."""
    found = build("cast-passes", {}).values
    # Weights of 4,096 × 14,336, read in 16 bits and written twice in 8, at 3.35 TB/s: 70 µs.
    weights = float(found["delayed_weights"].value)
    assert weights == pytest.approx(4096 * 14336 * 4 / 3.35e12, rel=1e-3)
    assert float(found["delayed_share_alone"].value) == pytest.approx(0.17, abs=0.005)
    assert 1.7 < float(found["delayed_speedup"].value) < 2
    assert float(found["nvfp4_speedup"].value) > 3
    assert float(found["current_share"].value) == pytest.approx(
        1.5 * float(found["delayed_share"].value), rel=1e-4
    )
