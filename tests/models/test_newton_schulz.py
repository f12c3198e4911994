"""Muon: one matrix counted matmul by matmul, how matrices are dealt, the published bound."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from figgen import catalog
from figgen.formulas.fine_tuning import newton_schulz_flops, newton_schulz_overhead
from figgen.models.machine.cluster import Cluster
from figgen.models.setup.layer_matrices import layer_matrices
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.recipes import recipe
from figgen.models.step.newton_schulz import most_dealt, update_flops
from figgen.models.step.step import step
from tests.models.jobs import job

CLUSTER = Cluster(
    peak_flops_per_s=1e15, scale_up_bandwidth_bytes_per_s=4.5e11, network_bandwidth_bytes_per_s=5e10
)


class Counting:
    """A matrix that counts the FLOPs of its matmuls: 2·m·k·n."""

    flops = 0

    def __init__(self, value: np.ndarray) -> None:
        self.value = value

    def __matmul__(self, other: Counting) -> Counting:
        (m, k), (_, n) = self.value.shape, other.value.shape
        Counting.flops += 2 * m * k * n
        return Counting(self.value @ other.value)

    def scaled(self, factor: float) -> Counting:
        return Counting(factor * self.value)

    def plus(self, other: Counting) -> Counting:
        return Counting(self.value + other.value)

    @property
    def transposed(self) -> Counting:
        return Counting(self.value.T)


def orthogonalized(given: np.ndarray, iterations: int) -> np.ndarray:
    """Run zeropower_via_newtonschulz5 of Jordan et al. 2024, with their coefficients."""
    a, b, c = 3.4445, -4.7750, 2.0315
    turned = given.shape[0] > given.shape[1]
    x = Counting((given.T if turned else given) / np.linalg.norm(given))
    for _ in range(iterations):
        square = x @ x.transposed
        mixed = square.scaled(b).plus((square @ square).scaled(c))
        x = x.scaled(a).plus(mixed @ x)
    return x.value.T if turned else x.value


@pytest.mark.parametrize("sides", [(8, 8), (24, 8), (8, 24), (40, 16)])
def test_flops_of_a_matrix_are_those_of_its_products(sides: tuple[int, int]) -> None:
    Counting.flops = 0
    found = orthogonalized(np.random.default_rng(3).normal(size=sides), 5)
    assert float(newton_schulz_flops(max(sides), min(sides), 5)) == Counting.flops
    # And it is Muon: singular values end near 1.
    values = np.linalg.svd(found, compute_uv=False)
    assert 0.5 < values.min() < values.max() < 1.5


def muon(model: str, microbatches: int = 4, **sizes: Any) -> TrainingSetup:
    shape = catalog.model(model).shape
    return job(shape, **sizes, microbatches=microbatches, sequence=4096, recipe=recipe("muon14"))


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        ("llama-3-8b", {"nodes": 1}),
        ("llama-3-8b", {"nodes": 32}),
        ("llama-3-70b", {"nodes": 8, "tp": 8, "pp": 4}),
        ("mixtral-8x7b", {"nodes": 4, "ep": 8, "etp": 1}),
    ],
)
def test_work_of_a_rank_is_that_of_dealing_matrix_by_matrix(
    model: str, sizes: dict[str, int]
) -> None:
    run = muon(model, **sizes)
    for pipeline_rank in range(run.parallel.pp):
        dealt = 0.0
        layers = run.shape.layers // run.parallel.pp
        for routed, ranks in ((False, run.dense_shards), (True, run.parallel.edp)):
            works = []
            for one in layer_matrices(run.shape, experts=run.shape.experts is not None):
                if (one.part == "routed") != routed:
                    continue
                copies = one.copies // run.parallel.ep if routed else one.copies
                sides = sorted((one.inputs, one.outputs))
                works += layers * copies * [5 * (4 * sides[1] * sides[0] ** 2 + 2 * sides[0] ** 3)]
            hands = [0.0] * ranks
            for at, work in enumerate(sorted(works, reverse=True)):
                hands[at % ranks] += work
            dealt += max(hands)
        assert update_flops(run, pipeline_rank) == pytest.approx(dealt)


def test_dealing_counts_pieces_alike_as_one_kind() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        works = Counter({float(w): int(n) for w, n in rng.integers(1, 20, (4, 2))})
        ranks = int(rng.integers(1, 12))
        hands = [0.0] * ranks
        for at, work in enumerate(sorted(works.elements(), reverse=True)):
            hands[at % ranks] += work
        assert most_dealt(works, ranks) == max(hands)


@pytest.mark.parametrize("model", ["llama-3-8b", "llama-3-70b", "llama-3-405b"])
def test_all_of_it_is_below_the_bound_that_its_author_prints(model: str) -> None:
    """Jordan et al. 2024: at most T·m/B of forward and backward, with m the shorter side and B
    tokens."""
    run = replace(muon(model, nodes=1), zero_stage=0)
    one_replica = update_flops(run, 0)
    shape = run.shape
    inner = sum(one.weights for one in layer_matrices(shape, experts=False)) * shape.layers
    tokens = 4_000_000
    widest = max(min(one.inputs, one.outputs) for one in layer_matrices(shape, experts=False))
    bound = float(newton_schulz_overhead(widest, 5, tokens))
    assert 0.4 * bound < one_replica / (6 * inner * tokens) <= bound


def test_moonlights_step_is_one_to_three_percent_longer() -> None:
    """Liu et al. 2025, arXiv:2502.16982, section 2.3: 1% to 3% of forward and backward.

    The model has its shape, 16B with 64 experts of which 6 are active, and some 8M tokens per step.
    """
    shape = replace(
        catalog.model("deepseek-v3").shape,
        layers=27,
        hidden=2048,
        heads=16,
        kv_heads=16,
        ffn_hidden=11264,
        experts=replace(
            catalog.model("deepseek-v3").shape.experts,
            count=64,
            top_k=6,
            ffn_hidden=1408,
            shared=2,
            dense_layers=1,
        ),
    )
    run = job(shape, nodes=16, ep=8, etp=1, microbatches=8, sequence=8192, recipe=recipe("muon14"))
    found = step(run, CLUSTER, compute_efficiency=0.4)
    assert 0 < update_flops(run, 0) / 4e14 / found.compute_s < 0.03


def test_ranks_beyond_the_matrices_do_not_shorten_it() -> None:
    few, many = (update_flops(muon("llama-3-8b", nodes=nodes), 0) for nodes in (32, 256))
    sides = (4096, 14336)
    assert few == many == float(newton_schulz_flops(max(sides), min(sides), 5))
