"""Packed documents: pairs of random cuts, work and time of a step, and published kernels."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from figgen import catalog
from figgen.errors import InputError
from figgen.models.shape.documents import packed_keys
from figgen.models.shape.transformer import flops_per_token
from figgen.models.step.compute import training_flops_per_token
from figgen.scenarios.options.config_json import named_model
from figgen.scenarios.options.resolve import TrainingStep, training_step

PUBLISHED = json.loads(
    (Path(__file__).parents[1] / "oracles" / "packed_documents.json").read_text("utf-8")
)


@pytest.mark.parametrize("lengths", [(5, 3), (1, 1, 6), (2, 2, 2, 2), (7, 1)])
def test_lengths_that_are_given_count_pairs_inside_each_document(lengths: tuple[int, ...]) -> None:
    """A token counts half with itself, and every other pair twice, because the masked half is
    included."""
    owner = [at for at, length in enumerate(lengths) for _ in range(length)]
    seen = sum(
        2 if key < query else 1
        for query in range(8)
        for key in range(query + 1)
        if owner[key] == owner[query]
    )
    assert packed_keys(8, 8, lengths) * 8 == seen


@pytest.mark.parametrize(("mean", "window"), [(500, 4096), (1500, 4096), (9000, 4096), (700, 256)])
def test_a_mean_length_counts_pairs_of_random_cuts(mean: int, window: int) -> None:
    """Every token ends a document with probability 1/mean."""
    draw, sequence, found = random.Random(3), 4096, 0.0
    for _ in range(400):
        cuts = [place for place in range(1, sequence) if draw.random() < 1 / mean]
        for start, end in pairwise([0, *cuts, sequence]):
            near = min(window, end - start)
            found += near * (2 * (end - start) - near) / sequence / 400
    assert packed_keys(sequence, window, (mean,)) == pytest.approx(found, rel=0.03)


def test_very_long_documents_are_one() -> None:
    assert packed_keys(4096, 4096, (10_000_000,)) == pytest.approx(4096, rel=1e-3)
    assert packed_keys(4096, 100, (10_000_000,)) == pytest.approx(packed_keys(4096, 100), rel=1e-3)


def llama(**options: Any) -> TrainingStep:
    return training_step(model="llama-3-8b", nodes=1, sequence=32_768, **options)


def test_a_step_spends_as_much_less_on_attention_as_there_are_fewer_pairs() -> None:
    whole, packed = (
        dict(one.estimate.kinds)["attention"] for one in (llama(), llama(document_tokens=(2048,)))
    )
    keys, begun = packed_keys(32_768, 32_768, (2048,)), 1000  # tiles begin as often as before
    assert keys == pytest.approx(2 * 2048, rel=0.07)  # a mean of squares is twice d²
    assert packed / whole == pytest.approx((keys + begun) / (32_768 + begun))
    others = [dict(one.estimate.kinds)["matmuls"] for one in (llama(), llama(document_tokens=(9,)))]
    assert others[0] == others[1]
    same = llama(document_tokens=(16_384, 16_384)).estimate.kinds
    assert dict(same)["attention"] == pytest.approx(whole * (16_384 + begun) / (32_768 + begun))


def test_mfu_counts_pairs_of_one_document() -> None:
    shape, documents = catalog.model("llama-3-8b").shape, (8192,) * 4
    assert flops_per_token(shape, sequence=32_768, documents=documents) == flops_per_token(
        shape, sequence=8192
    )
    for convention in ("6nd+attention", "causal", "hfu-full", "hfu-selective"):
        packed = training_flops_per_token(shape, convention, sequence=32_768, documents=documents)
        assert packed == training_flops_per_token(shape, convention, sequence=8192)
    found = llama(document_tokens=documents)
    per_token = training_flops_per_token(shape, sequence=8192)
    rate = found.estimate.tokens_per_s_per_gpu * per_token
    assert found.estimate.model_flops_utilisation == pytest.approx(rate / 989.4e12, rel=1e-3)


def test_stored_scores_are_of_all_pairs() -> None:
    plain, packed = (
        llama(flash_attention=False, document_tokens=documents).estimate
        for documents in ((), (2048,))
    )
    assert plain.step_time_s == packed.step_time_s


def test_memory_is_that_of_the_sequence() -> None:
    whole, packed = llama().memory.fullest, llama(document_tokens=(2048,)).memory.fullest
    assert whole.total_bytes == packed.total_bytes


def test_a_ring_hides_less_behind_shorter_documents() -> None:
    """Every rank still sends all keys, and has less to compute in the meantime."""
    times = [
        dict(
            training_step(
                model="llama-3-8b", nodes=4, cp=32, sequence=131_072, document_tokens=documents
            ).estimate.exposed
        )["cp"]
        for documents in ((), (16_384,), (1024,))
    ]
    assert times == sorted(times)
    assert times[-1] > times[0]


@pytest.mark.parametrize("sequence", ["4096", "8192"])
@pytest.mark.parametrize("kernel", ["before", "after"])
def test_published_kernels_are_in_the_order_of_pairs_and_gain_less(
    sequence: str, kernel: str
) -> None:
    """With blocks of 128 tokens and kernels of a millisecond, the ratio of pairs is the upper
    bound."""
    rows = PUBLISHED["pytorch_172464_ms"][sequence]
    for (few, one), (many, other) in pairwise(rows.items()):
        measured = sum(other[kernel]) / sum(one[kernel])
        assert int(few) / int(many) < measured <= 1.03


def test_nanochats_speedup_is_that_of_its_attention(tmp_path: Path) -> None:
    """Documents of about 1,000 tokens in a sequence of 2,048; three of four layers are windowed."""
    shape = {
        "model_type": "gemma3_text", "hidden_size": 1536, "num_hidden_layers": 24,
        "num_attention_heads": 12, "num_key_value_heads": 12, "head_dim": 128,
        "intermediate_size": 6144, "vocab_size": 32768, "max_position_embeddings": 2048,
        "sliding_window": 1024, "sliding_window_pattern": 4, "tie_word_embeddings": False,
    }  # fmt: skip
    times = PUBLISHED["nanochat_663_minutes"]
    measured = times["across"] / times["within"]

    file = tmp_path / "config.json"
    file.write_text(json.dumps(shape), encoding="utf-8")
    assert named_model(str(file)).shape.window == 1024

    def step_s(documents: tuple[int, ...]) -> float:
        step = training_step(
            model=str(file),
            nodes=1,
            zero_stage=2,
            microbatch_size=16,
            microbatches=2,
            document_tokens=documents,
        )
        return step.predicted.step_time_s

    gain = step_s(()) / step_s((1000,))
    assert gain > measured > 1
    assert gain - measured < 0.02, (gain, measured)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"document_tokens": (0,)}, "lengths of 1 token or more"),
        ({"document_tokens": (4096, 4096)}, "add up to 32,768"),
        ({"document_tokens": (2048,), "zigzag": False}, "zigzag: expected on"),
    ],
)
def test_documents_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        llama(**options)
