"""Gradients in order, buckets by PyTorch's rule, and their queue compared with the closed form."""

from __future__ import annotations

import itertools

import pytest

from figgen import catalog
from figgen.errors import InputError
from figgen.formulas.data_parallel import (
    best_overlapped_bucket_count,
    exposed_communication_time,
)
from figgen.models.algorithms.gradient_overlap import (
    GradientTensor,
    exposed_s,
    fill_buckets,
    gradient_tensors,
    reduced_buckets,
)
from figgen.models.step.gradient_buckets import best_number

DENSE = ("gpt-2-xl", "bert-large", "llama-2-7b", "llama-3-8b", "llama-3-405b", "olmo-2-7b")


@pytest.mark.parametrize("name", DENSE)
def test_every_parameter_has_one_gradient(name: str) -> None:
    model = catalog.model(name)
    tensors = gradient_tensors(model.shape)
    assert sum(tensor.elements for tensor in tensors) == model.parameters


@pytest.mark.parametrize("name", DENSE)
def test_last_layers_come_first_and_the_embedding_last(name: str) -> None:
    tensors = gradient_tensors(catalog.model(name).shape)
    layers = [tensor.layer for tensor in tensors if tensor.layer is not None]
    assert layers == sorted(layers, reverse=True)
    assert tensors[-1].name == "embedding"
    shares = [tensor.ready_share for tensor in tensors]
    assert shares == sorted(shares)
    assert shares[-1] == 1


@pytest.mark.parametrize(
    ("name", "sizes", "table"),
    [
        (
            "llama-3-8b",
            {
                "query": 4096**2,
                "key": 4096 * 1024,
                "value": 4096 * 1024,
                "output": 4096**2,
                "gate": 4096 * 14336,
                "up": 4096 * 14336,
                "down": 4096 * 14336,
            },
            128_256 * 4096,
        ),
        (
            "gpt-2-xl",
            {
                "query": 1600**2,
                "key": 1600**2,
                "value": 1600**2,
                "output": 1600**2,
                "up": 4 * 1600**2,
                "down": 4 * 1600**2,
            },
            50_257 * 1600,
        ),
    ],
)
def test_a_matrix_is_ready_when_as_much_was_multiplied_as_up_to_it(
    name: str, sizes: dict[str, int], table: int
) -> None:
    """The output layer's table is first, tied or not, then each layer's matrices in reverse."""
    shape = catalog.model(name).shape
    tensors = gradient_tensors(shape)
    total = table + shape.layers * sum(sizes.values())
    done = table
    for layer in reversed(range(shape.layers)):
        mine = {each.name: each for each in tensors if each.layer == layer}
        assert mine.keys() - {"vectors"} == sizes.keys()
        for matrix, size in reversed(sizes.items()):
            done += size
            assert mine[matrix].elements == size
            assert mine[matrix].ready_share == pytest.approx(done / total, rel=1e-12)
    assert ("head" in {each.name for each in tensors}) is not shape.tied_embeddings


def test_experts_are_refused() -> None:
    with pytest.raises(InputError, match="dense model"):
        gradient_tensors(catalog.model("mixtral-8x7b").shape)


def test_a_bucket_closes_when_it_holds_its_cap_and_no_tensor_is_cut() -> None:
    assert fill_buckets([1, 1, 1, 9, 2, 2, 1], 1, 3) == ((0,), (1, 2, 3), (4, 5), (6,))
    assert fill_buckets([100, 1, 100], 1, 3) == ((0,), (1, 2))
    assert fill_buckets([0.5, 0.4, 0.3, 2], 1, 3) == ((0, 1, 2), (3,))


@pytest.mark.parametrize("cap", [1, 2, 5, 100])
def test_buckets_keep_every_tensor_once_and_in_order(cap: int) -> None:
    for sizes in itertools.product((1, 2, 7), repeat=5):
        buckets = fill_buckets(sizes, 1, cap)
        assert [index for bucket in buckets for index in bucket] == [0, 1, 2, 3, 4]
        for bucket in buckets[1:-1]:
            assert sum(sizes[i] for i in bucket) >= cap > sum(sizes[i] for i in bucket[:-1])


def test_caps_of_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="bucket_bytes"):
        fill_buckets([1], 0, 1)
    with pytest.raises(InputError, match="bucket_bytes"):
        fill_buckets([1], 1, 0)


@pytest.mark.parametrize("count", [1, 2, 5, 16])
@pytest.mark.parametrize("communication_s", [0.1, 0.9, 3.0])
@pytest.mark.parametrize("overhead_s", [0.0, 0.01])
def test_equal_buckets_leave_what_the_closed_form_says(
    count: int, communication_s: float, overhead_s: float
) -> None:
    tensors = [
        GradientTensor(name="w", layer=i, elements=10, ready_share=(i + 1) / count)
        for i in range(count)
    ]
    buckets = reduced_buckets(
        tensors,
        backward_s=1.0,
        bytes_per_element=1,
        seconds_per_byte=communication_s / 10 / count,
        bucket_overhead_s=overhead_s,
        first_bucket_bytes=10,
        bucket_bytes=10,
    )
    expected = exposed_communication_time(communication_s, 1.0, count, overhead_s)
    assert len(buckets) == count
    assert exposed_s(buckets, 1.0) == pytest.approx(expected)


@pytest.mark.parametrize("communication_s", [0.02, 0.109, 0.19, 0.2, 0.5])
@pytest.mark.parametrize("overhead_s", [2e-4, 1e-3, 5e-3])
def test_closed_form_of_the_best_count_is_beside_the_best_of_all_tried(
    communication_s: float, overhead_s: float
) -> None:
    closed = best_overlapped_bucket_count(communication_s, 0.2, overhead_s)
    assert abs(best_number(communication_s, 0.2, overhead_s) - closed) <= 1
