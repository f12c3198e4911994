"""`figgen step`: what Muon adds, compared with its matmuls counted one by one."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from figgen import catalog
from figgen.__main__ import main
from figgen.catalog.rates import constants

ASKED = ("--model", "llama-3-8b", "--nodes", "1", "--gpus-per-node", "8", "--microbatches", "4")


@dataclass
class Sides:
    """A matrix of which only the shape is known, and which counts its matmuls."""

    rows: int
    columns: int
    flops: list[int]

    def __matmul__(self, other: Sides) -> Sides:
        assert self.columns == other.rows
        self.flops.append(2 * self.rows * self.columns * other.columns)
        return Sides(self.rows, other.columns, self.flops)

    @property
    def transposed(self) -> Sides:
        return Sides(self.columns, self.rows, self.flops)


def orthogonalised(rows: int, columns: int) -> int:
    """Return FLOPs of Jordan et al. 2024, zeropower_via_newtonschulz5, on the shorter side."""
    flops: list[int] = []
    x = Sides(min(rows, columns), max(rows, columns), flops)
    for _ in range(5):
        square = x @ x.transposed
        mixed = square @ square
        x = mixed @ x
    return sum(flops)


def test_step_says_what_muon_adds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("step", *ASKED, "--recipe", "muon14", "--zero", "0", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    # Llama 3.1 8B without ZeRO: each of eight GPUs does the seven matrices of all 32 layers.
    sides = [(4096, 4096)] * 2 + [(4096, 1024)] * 2 + [(4096, 14336)] * 3
    counted = 32 * sum(orthogonalised(*pair) for pair in sides)
    assert found["orthogonalising_flops"] == counted
    # Megatron's matmuls in 16 bits: the measured rate of an H100, and the share of it in steps.
    known = constants()
    rate = catalog.accelerator(found["accelerator"]).measured_bf16.value
    added_s = counted / rate / known["matmul_share.hopper"].value
    assert found["orthogonalising_s"] == pytest.approx(added_s)
    assert found["step_and_orthogonalising_s"] == pytest.approx(found["step_time_s"] + added_s)

    assert main(("step", *ASKED, "--recipe", "muon14", "--zero", "1")) == 0
    dealt = capsys.readouterr().out.splitlines()[-1].replace("\xa0", " ")
    # 224 matrices on eight GPUs: 28 each, four of every kind of a layer's seven.
    assert dealt.startswith(f"Muon's matmuls add to that: {counted / 8 / 1e12:.3g} TFLOP")


def test_no_other_optimizer_has_such_products(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("step", *ASKED)) == 0
    assert "Muon" not in capsys.readouterr().out
    assert main(("step", *ASKED, "--recipe", "adam10", "--json")) == 0
    assert "orthogonalising_s" not in json.loads(capsys.readouterr().out)
