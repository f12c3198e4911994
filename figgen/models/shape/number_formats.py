"""Binary floating-point formats: their ranges, and how they round numbers.

A format has exponent and mantissa bits and a meaning for its highest codes. IEEE-like formats
(FP16, BF16, E5M2) give the whole top exponent to infinities and NaN, E4M3 only its last code,
E2M1 nothing. Sources: IEEE 754; Micikevicius et al. 2022, arXiv:2209.05433; OCP MX 1.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from figgen.errors import InputError, unknown

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatFormat:
    """A signed format; `specials` says what the highest exponent is used for.

    "ieee": infinities and NaN; "nan": its largest mantissa is NaN; "none": only numbers.
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    specials: Literal["ieee", "nan", "none"] = "ieee"

    @property
    def bits(self) -> int:
        """Bits of one number, its sign included."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def bias(self) -> int:
        """Return the number that is subtracted from the stored exponent."""
        return int(2 ** (self.exponent_bits - 1)) - 1

    @property
    def highest_exponent(self) -> int:
        """Exponent of the largest number."""
        top = int(2**self.exponent_bits) - 1 - (self.specials == "ieee")
        return top - self.bias

    @property
    def largest(self) -> float:
        """The largest finite number."""
        missing = 2 if self.specials == "nan" else 1
        return float((2 - missing * 2.0**-self.mantissa_bits) * 2.0**self.highest_exponent)

    @property
    def smallest_normal(self) -> float:
        """The smallest number with full precision."""
        return float(2.0 ** (1 - self.bias))

    @property
    def smallest(self) -> float:
        """The smallest positive number, a subnormal."""
        return float(2.0 ** (1 - self.bias - self.mantissa_bits))

    @property
    def epsilon(self) -> float:
        """Step from 1 to the next number."""
        return float(2.0**-self.mantissa_bits)

    def relative_error_bound(self, magnitude: float) -> float:
        """Return the bound of the relative rounding error to nearest at this magnitude; at most 1.

        It is half a step divided by the magnitude. The bound is not tight: a number at the start of
        a binade is exact, and the worst case, halfway to the next number, errs by ε/2 over 1 + ε/2.
        For E4M3 that is 5.9%, and the bound is 6.25%.
        """
        if magnitude > self.largest:
            return 1.0
        exponent = np.floor(np.log2(max(magnitude, self.smallest_normal)))
        return float(min(1.0, 2.0 ** (exponent - self.mantissa_bits) / 2 / magnitude))

    def rounded(self, numbers: Array) -> Array:
        """Return `numbers` rounded to the nearest of the format, ties to even.

        Beyond the largest number, IEEE-like formats overflow to infinity and the others saturate,
        as hardware conversions to E4M3 and E2M1 do by default.
        """
        magnitude = np.abs(numbers)
        exponent = np.floor(np.log2(np.maximum(magnitude, self.smallest_normal)))
        step = 2.0 ** (exponent - self.mantissa_bits)
        found = np.round(magnitude / step) * step
        beyond = np.inf if self.specials == "ieee" else self.largest
        return np.asarray(np.sign(numbers) * np.where(found > self.largest, beyond, found))


_ALL = (
    FloatFormat(name="FP32", exponent_bits=8, mantissa_bits=23),
    FloatFormat(name="TF32", exponent_bits=8, mantissa_bits=10),
    FloatFormat(name="BF16", exponent_bits=8, mantissa_bits=7),
    FloatFormat(name="FP16", exponent_bits=5, mantissa_bits=10),
    FloatFormat(name="FP8 E5M2", exponent_bits=5, mantissa_bits=2),
    FloatFormat(name="FP8 E4M3", exponent_bits=4, mantissa_bits=3, specials="nan"),
    FloatFormat(name="FP4 E2M1", exponent_bits=2, mantissa_bits=1, specials="none"),
)

FORMATS: dict[str, FloatFormat] = {each.name: each for each in _ALL}
"""Formats by name, widest first."""


def float_format(name: str) -> FloatFormat:
    """Return the format `name`. Raises InputError, with the nearest names, if it is unknown."""
    if name not in FORMATS:
        raise unknown("number format", name, FORMATS)
    return FORMATS[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFormat:
    """A format whose `block` elements share a scale of `scale_bits`; 0 means a whole tensor."""

    name: str
    element: str
    block: int
    scale_bits: int
    scale_is_power: bool

    @property
    def bits_per_element(self) -> float:
        """Return bits per element, including its part of the scale; one per tensor counts as 0."""
        share = self.scale_bits / self.block if self.block else 0.0
        return float_format(self.element).bits + share

    def rounded(self, numbers: Array) -> Array:
        """Return `numbers` scaled to the element's largest by block, rounded, and scaled back."""
        block = self.block or len(numbers)
        if len(numbers) % block:
            raise InputError("numbers", expected=f"a multiple of {block}", got=len(numbers))
        element = float_format(self.element)
        rows = numbers.reshape(-1, block)
        scale = np.abs(rows).max(axis=1, keepdims=True) / element.largest
        if self.scale_is_power:
            scale = 2.0 ** np.ceil(np.log2(scale))
        return np.asarray((element.rounded(rows / scale) * scale).reshape(-1))


BLOCKS: dict[str, BlockFormat] = {
    each.name: each
    for each in (
        BlockFormat(
            name="FP8, a scale per tensor",
            element="FP8 E4M3",
            block=0,
            scale_bits=32,
            scale_is_power=False,
        ),
        BlockFormat(
            name="FP8, 128 to a scale",
            element="FP8 E4M3",
            block=128,
            scale_bits=32,
            scale_is_power=False,
        ),
        BlockFormat(
            name="FP8, 128 × 128 to a scale",
            element="FP8 E4M3",
            block=128 * 128,
            scale_bits=32,
            scale_is_power=False,
        ),
        BlockFormat(name="MXFP8", element="FP8 E4M3", block=32, scale_bits=8, scale_is_power=True),
        BlockFormat(
            name="FP4, a scale per tensor",
            element="FP4 E2M1",
            block=0,
            scale_bits=32,
            scale_is_power=False,
        ),
        BlockFormat(name="MXFP4", element="FP4 E2M1", block=32, scale_bits=8, scale_is_power=True),
        BlockFormat(name="NVFP4", element="FP4 E2M1", block=16, scale_bits=8, scale_is_power=False),
    )
}
"""Scaled formats by name; NVFP4's own FP8 scale is treated as exact."""
