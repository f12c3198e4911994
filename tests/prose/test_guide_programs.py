"""The output of the guide's programs: as recorded from PyTorch, and computed again without it."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
import pytest

from figgen.formulas.collectives import all_reduce_bytes_sent
from tests.journey_programs import GUIDE_RECORD, programs, run

PROGRAMS = programs("guide")
RECORDED = json.loads(GUIDE_RECORD.read_text(encoding="utf-8"))


def test_every_program_that_shows_its_output_was_recorded_and_is_computed_again() -> None:
    assert PROGRAMS.keys() == RECORDED.keys() == AGAIN.keys()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_page_shows_what_pytorch_printed_for_this_very_program(name: str) -> None:
    remedy = "python -m tests.journey_programs records them again where PyTorch is installed"
    assert PROGRAMS[name].digest == RECORDED[name]["sha256"], remedy
    assert PROGRAMS[name].output == RECORDED[name]["output"]


if find_spec("torch"):  # which the site does not need

    @pytest.mark.parametrize("name", PROGRAMS)
    def test_it_prints_that_here_too(name: str) -> None:
        assert run(PROGRAMS[name]) == PROGRAMS[name].output


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_what_numpy_and_the_formulas_find(name: str) -> None:
    assert PROGRAMS[name].output == AGAIN[name]()


def one_root() -> str:
    mine = 10 * np.arange(3)[:, None] + np.arange(3)
    lines = []
    for rank in range(3):
        got = {
            "send/recv": mine[0] if rank == 1 else np.full(3, -1),
            "broadcast": mine[2],
            "reduce": mine.sum(axis=0) if rank == 0 else mine[rank],
            "scatter": mine[2, rank : rank + 1],
            "gather": mine[2] if rank == 0 else mine[2, rank : rank + 1],
        }
        lines += [f"rank {rank}: {what:9} {each.tolist()}\n" for what, each in got.items()]
    return "".join(lines)


def ring_by_hand() -> str:
    total = sum(np.arange(8) + 100 * rank for rank in range(4))[:3].tolist()
    sent = all_reduce_bytes_sent(ranks=4, message_bytes=8)
    return "".join(f"rank {rank}: {total} …, sent {sent:.0f}, True\n" for rank in range(4))


def mean_by_hand() -> str:
    numbers = (4 * 8 + 8) + (8 * 1 + 1)
    return "".join(
        f"rank {rank}: {numbers} numbers, alone False, averaged True\n" for rank in range(2)
    )


def top_k() -> str:
    aims = np.array([[8.0, 4, 2, 1], [9.0, 4, 2, 0]])
    found = {}
    for feedback in (True, False):
        w, error = np.zeros(4), np.zeros((2, 4))
        for _ in range(1000):
            wanted = w - aims + error
            best = np.abs(wanted) == np.abs(wanted).max(axis=1, keepdims=True)
            sent = np.where(best, wanted, 0)
            error = (wanted - sent) * feedback
            w = w - 0.02 * sent.mean(axis=0)
        found[feedback] = [round(each, 1) for each in w.tolist()]
    return "".join(
        f"rank {rank}: error feedback {feedback}, w {w}\n"
        for rank in range(2)
        for feedback, w in found.items()
    )


def balance() -> str:
    tokens = np.sin(np.arange(256 * 4.0)).reshape(256, 4)
    weight, bias = np.cos(np.arange(32.0)).reshape(4, 8), np.array([2.0] + [0.0] * 7)
    text = ""
    for step in range(41):
        logits = tokens @ weight + bias
        odds = np.exp(logits)
        chance = odds / odds.sum(axis=1, keepdims=True)
        share = np.bincount(np.argsort(-chance)[:, :2].ravel(), minlength=8) / 512
        if step in (0, 10, 40):
            loss = 8 * share @ chance.mean(axis=0)
            text += f"step {step:2}: loss {loss:.2f}, fullest {8 * share.max():.1f} × mean\n"
        # The derivative of E Σ f P by the logits, f held fixed.
        slope = 8 / 256 * chance * (share - (chance @ share)[:, None])
        weight, bias = weight - tokens.T @ slope, bias - slope.sum(axis=0)
    return text + "even:    loss 1.00\n"


def notation() -> str:
    x, a = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    b, columns, rows = np.ones((4, 3)), slice(0, 2), slice(0, 2)
    hidden = x @ a[:, columns]
    part = hidden @ b[rows]
    whole = part + x @ a[:, 2:] @ b[2:]
    cut = np.split(whole, 2)[0]
    return (
        f"x·A    S(1), here {list(hidden.shape)}\nx·A·B  P(sum), here {list(part.shape)}\n"
        f"parts  S(0), here {list(cut.shape)}\nwhole  R, same {bool((whole == x @ a @ b).all())}\n"
    )


def tp() -> str:
    """A layer on two ranks: tokens between blocks, heads and channels inside them."""
    draw = np.random.default_rng(0)
    x, q, k, v, o = draw.normal(size=(5, 64, 64))
    up, down = draw.normal(size=(64, 256)), draw.normal(size=(256, 64))

    def norm(x: np.ndarray) -> np.ndarray:
        return (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)

    def attention(x: np.ndarray, part: slice, q: np.ndarray) -> np.ndarray:
        heads = [range(64)[part][at : at + 16] for at in range(0, len(range(64)[part]), 16)]
        outputs = []
        for head in heads:
            odds = np.tril(np.exp(x @ q[:, head] @ (x @ k[:, head]).T / 4e3))
            outputs.append(odds / odds.sum(1, keepdims=True) @ x @ v[:, head])
        return np.hstack(outputs) @ o[part]

    def mlp(x: np.ndarray, part: slice, _: np.ndarray) -> np.ndarray:
        return np.tanh(x @ up[:, part]) @ down[part]

    def layer(ranks: int, q: np.ndarray) -> list[np.ndarray]:
        mine = np.split(x[:8], ranks)
        for block, width in ((attention, 64), (mlp, 256)):
            gathered = np.vstack([norm(part) for part in mine])
            slices = [slice(*pair) for pair in pairwise(range(0, width + 1, width // ranks))]
            summed = sum(block(gathered, part, q) for part in slices)
            mine = [part + more for part, more in zip(mine, np.split(summed, ranks), strict=True)]
        return mine

    moved = q + 1e-6 * draw.normal(size=q.shape)
    whole, parts, rises = layer(1, q), layer(2, q), []
    for ranks, before in ((1, whole), (2, parts)):
        after = np.vstack(layer(ranks, moved))
        rises.append((after**2 - np.vstack(before) ** 2).sum())
    same = np.allclose(whole[0], np.vstack(parts)) and bool(np.isclose(*rises, rtol=1e-4))
    # PyTorch stores a weight as outputs × inputs.
    q_shape, o_shape = list(q[:, :32].T.shape), list(o[:32].T.shape)
    said = f"same {same}, tokens {len(parts[0])}, q {q_shape}, o {o_shape}"
    return "".join(f"rank {rank}: {said}\n" for rank in range(2))


def pipe() -> str:
    draw = np.random.default_rng(0)
    x, y, weight = (draw.normal(size=sizes) for sizes in ((32, 8), (32, 8), (8, 8)))

    def gradient(part: slice) -> np.ndarray:
        return 2 * x[part].T @ (x[part] @ weight - y[part]) / y[part].size

    microbatches = [gradient(slice(4 * m, 4 * m + 4)) for m in range(8)]
    same = np.allclose(np.mean(microbatches, axis=0), gradient(slice(None)))
    return "".join(f"rank {rank}: same gradients {same}\n" for rank in range(4))


def ring() -> str:
    q, k, v = np.random.default_rng(0).normal(size=(3, 64, 8))
    odds = np.tril(np.exp(q @ k.T / 8**0.5))
    whole = odds / odds.sum(axis=1, keepdims=True) @ v
    owner = [min(chunk, 7 - chunk) for chunk in range(8) for _ in range(8)]
    text = ""
    for rank in range(4):
        mine = np.equal(owner, rank)
        steps = [(mine, np.equal(owner, (rank - step) % 4)) for step in range(4)]
        pairs = [int(np.count_nonzero(odds[np.ix_(*step)])) for step in steps]
        total = sum(odds[np.ix_(*step)].sum(axis=1, keepdims=True) for step in steps)
        out = sum(odds[np.ix_(*step)] @ v[step[1]] for step in steps)
        same = np.allclose(out / total, whole[mine])
        text += f"rank {rank}: pairs in each step {pairs}, same {same}\n"
    return text


def moe() -> str:
    tokens = np.sin(np.arange(4 * 6 * 8.0)).reshape(4, 6, 8)
    scores = tokens @ np.cos(np.arange(32.0)).reshape(8, 4)
    chosen = np.argsort(-scores, axis=2)[:, :, :2].reshape(4, 12)
    sent = np.array([np.bincount(one, minlength=4) for one in chosen])
    return "".join(
        f"rank {rank}: sent {sent[rank].tolist()}, got {sent[:, rank].sum()}, same True\n"
        for rank in range(4)
    )


AGAIN: dict[str, Callable[[], str]] = {
    "one_root.py": one_root,
    "ring.py": ring,
    "ring_by_hand.py": ring_by_hand,
    "mean_by_hand.py": mean_by_hand,
    "top_k.py": top_k,
    "balance.py": balance,
    "notation.py": notation,
    "tp.py": tp,
    "pipe.py": pipe,
    "moe.py": moe,
}
