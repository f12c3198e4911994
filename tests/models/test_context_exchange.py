"""Bytes of the exchanges compared with a count of every element that changes its rank."""

from __future__ import annotations

import pytest

from figgen.catalog import model
from figgen.errors import InputError
from figgen.models.algorithms.context_exchange import kv_elements_per_token, ulysses_bytes


def sent_by_rank_0(heads: int, kv_heads: int, width: int, cp: int, tokens: int) -> int:
    """Return the elements that rank 0 sends, head by head; rank r attends with a run of query
    heads."""
    run = heads // cp
    sent = 0
    for rank in range(1, cp):
        mine = range(rank * run, (rank + 1) * run)
        needed = {head * kv_heads // heads for head in mine}
        sent += tokens * width * (len(mine) + 2 * len(needed))  # queries, keys and values out
        sent += tokens * width * run  # outputs of rank 0's heads, for that rank's tokens
    return sent


@pytest.mark.parametrize("cp", [1, 2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("name", ["llama-3-70b", "llama-3-405b"])
def test_all_to_all_sends_what_a_count_by_head_sends(name: str, cp: int) -> None:
    shape = model(name).shape
    want = 2 * sent_by_rank_0(shape.heads, shape.kv_heads, shape.head_dim, cp, 10)
    assert ulysses_bytes(shape, cp=cp, tokens=10) == pytest.approx(want)


def test_keys_and_values_of_a_token_are_the_published_widths() -> None:
    deepseek = model("deepseek-v3").shape
    assert kv_elements_per_token(deepseek, "latent") == 576
    assert kv_elements_per_token(deepseek) == 128 * (192 + 128)
    assert kv_elements_per_token(model("llama-3-405b").shape) == 2 * 1024


def test_unfit_forms_and_sizes_are_refused() -> None:
    shape = model("llama-3-8b").shape
    with pytest.raises(InputError, match="a divisor of 32 heads"):
        ulysses_bytes(shape, cp=3, tokens=1)
    with pytest.raises(InputError, match="latent attention"):
        kv_elements_per_token(shape, "latent")
    with pytest.raises(InputError, match="expanded"):
        kv_elements_per_token(shape, "expandet")
