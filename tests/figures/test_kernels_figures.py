"""Passes of unfused kernels, traced through the published code, and gpt-fast's bytes per token."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from figgen.figures.roofline.kernels import ADDITION, GATING, GPT_FAST, NORM, ROTATION
from figgen.registry import build

# README of gpt-fast: tokens per second and GB/s of memory bandwidth of Llama 2 7B.
README = {104.9: 1397.31, 155.58: 1069.20, 196.80: 862.69}


@dataclass
class Tensor:
    """A tensor that records what each kernel reads and writes, in bytes per element of
    the whole."""

    log: list[tuple[float, float]]
    item: int = 2
    part: float = 1.0

    def _kernel(self, reads: float, item: int, part: float) -> Tensor:
        self.log.append((reads, item * part))
        return Tensor(self.log, item, part)

    def to(self, item: int) -> Tensor:
        return self._kernel(self.item * self.part, item, self.part)

    def map(self) -> Tensor:
        return self._kernel(self.item * self.part, self.item, self.part)

    def mean(self) -> Tensor:
        return self._kernel(self.item * self.part, self.item, 0.0)

    def half(self) -> Tensor:
        return Tensor(self.log, self.item, self.part / 2)

    def joined(self, other: Tensor) -> Tensor:
        reads = self.item * self.part + other.item * other.part
        return self._kernel(reads, self.item, self.part + other.part)

    def __mul__(self, other: Tensor) -> Tensor:
        return self._kernel(self.item * self.part + other.item * other.part, self.item, self.part)

    __add__ = __mul__


def vector() -> Tensor:
    """Return one number per token or per channel, which is negligible next to a whole tensor."""
    return Tensor([], part=0.0)


def test_passes_are_those_of_the_code_of_transformers() -> None:
    """modeling_llama.py: LlamaRMSNorm.forward, apply_rotary_pos_emb, LlamaMLP.forward."""
    norm: list[tuple[float, float]] = []
    x = Tensor(norm).to(4)
    variance = x.map().mean().map().map()  # plus ε, and rsqrt
    scaled = (x * variance).to(2)
    _ = scaled * vector()
    assert norm == list(NORM)
    rotation: list[tuple[float, float]] = []
    q = Tensor(rotation)
    cosine = q * vector()
    turned = q.half().map().joined(q.half())
    _ = cosine + turned * vector()
    assert sorted(rotation) == sorted(ROTATION)
    gating: list[tuple[float, float]] = []
    _ = Tensor(gating).map() * Tensor(gating)
    assert gating == list(GATING)
    adding: list[tuple[float, float]] = []
    _ = Tensor(adding) + Tensor(adding)
    assert adding == list(ADDITION)


def test_fused_kernels_read_their_inputs_once_and_write_their_results_once() -> None:
    table = build("fusion-bytes", {"tokens": 1, "model_name": "llama-3-8b"})
    moved = {row[0]: row[4] for row in table.rows}
    h, turned, f = 4096, 40 * 128, 14336
    assert moved == {
        "adding and RMSNorm, twice": 2 * h * 2 * (2 + 2),
        "rotation of queries and keys": turned * 2 * 2,
        "SwiGLU": f * 2 * 3,
        "together": 16 * h + 4 * turned + 6 * f,
    }
    assert table.rows[-1][1] == 2 * 9 + 2 * 5 + 2


@pytest.mark.parametrize("at", [1, 2, 3])
def test_weights_of_a_token_are_what_gpt_fast_counts(at: int) -> None:
    """It divides its bandwidth by its rate; 8-bit scales and 16-bit tables are not in our bytes."""
    rate = GPT_FAST[at][2]
    counted = README[rate] / rate * 1e9
    held = build("decode-techniques", {}).rows[at][1]
    assert counted == pytest.approx(held, rel=0.07)
    assert counted >= held
