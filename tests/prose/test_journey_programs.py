"""The output of the journey's programs: as recorded from PyTorch, and computed again without it."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from importlib.util import find_spec

import numpy as np
import pytest

from figgen.models.machine.mesh import coordinates_of, groups
from figgen.models.pipeline.schedules import build as pipeline_order
from figgen.scenarios.options.resolve import parallel_layout
from tests.journey_programs import DOCS, RECORD, programs, run

PROGRAMS = programs()
RECORDED = json.loads(RECORD.read_text(encoding="utf-8"))


def test_every_page_has_a_program_and_every_program_was_recorded() -> None:
    assert PROGRAMS.keys() == RECORDED.keys() == AGAIN.keys()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_page_shows_what_pytorch_printed_for_this_very_program(name: str) -> None:
    program = PROGRAMS[name]
    remedy = "python -m tests.journey_programs records them again where PyTorch is installed"
    assert program.digest == RECORDED[name]["sha256"], remedy
    assert program.output == RECORDED[name]["output"]


if find_spec("torch"):  # which the site does not need

    @pytest.mark.parametrize("name", PROGRAMS)
    def test_it_prints_that_here_too(name: str) -> None:
        assert run(PROGRAMS[name]) == PROGRAMS[name].output


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_what_numpy_and_the_models_find(name: str) -> None:
    assert PROGRAMS[name].output == AGAIN[name]()


def one() -> str:
    parameters = 512 * 2048 + 2048 + 2048 * 512 + 512
    megabytes = 4 * parameters / 1e6
    # The input, the hidden layer before and after GELU, and the output that is squared.
    kept = 256 * (512 + 2048 + 2048 + 512) * 4 / 1e6
    return (
        f"weights     {megabytes:4.1f} MB\ngradients   {megabytes:4.1f} MB\n"
        f"optimizer   {2 * megabytes:4.1f} MB\nactivations {kept:4.1f} MB for 256 tokens\n"
    )


def two() -> str:
    weight, data = Fraction(1), (((1, 1), (2, 5)), ((3, 9), (4, 13)))
    own = [sum(2 * x * (weight * x - y) for x, y in pairs) / len(pairs) for pairs in data]
    mean = sum(own) / 2
    stepped = float(weight - mean / 100)
    return "".join(
        f"rank {rank}: own {float(each):g}, mean {float(mean):g}, w {stepped:.2f}\n"
        for rank, each in enumerate(own)
    )


def hide() -> str:
    buckets, size = 4, 512 * 512 * 4  # a layer's gradient just fills a bucket of 1 MiB
    every, last = (f"{n * buckets} messages, {n * buckets * size / 1e6:.1f} MB" for n in (4, 1))
    # A bucket is sent when the backward pass leaves its layer, the first layer's at the end.
    counts = f"reduced with every microbatch: {every}\nreduced with the last one:     {last}\n"
    return f"{counts}sent before the first layer's backward: {buckets - 1}\n"


def _ranks(count: int, say: Callable[[int], str]) -> str:
    return "".join(f"rank {rank}: {say(rank)}\n" for rank in range(count))


def shard() -> str:
    ranks, layers, size = 4, 4, 64
    kept = layers * size // ranks
    text = f"kept {kept}, at most {kept + size} of {layers * size}, same result True"
    return _ranks(ranks, lambda _: text)


def levels() -> str:
    ranks, per_node, numbers = 4, 2, 8
    gradients = [np.arange(numbers) + rank for rank in range(ranks)]
    nodes = [gradients[at] + gradients[at + 1] for at in range(0, ranks, per_node)]
    whole = sum(gradients)
    halves = [sum(node[at : at + 4] for node in nodes) for at in range(0, numbers, 4)]
    same = bool((np.concatenate(halves) == whole).all())
    left = numbers // per_node
    return _ranks(ranks, lambda _: f"{left} of {numbers} numbers left the node, same sum {same}")


def split() -> str:
    x, a = np.array([[1, 2], [3, 1]]), np.array([[1, 1, 0, -1], [-2, 3, 1, 1]])
    b = np.array([[1, 1], [1, 2], [2, 1], [0, 1]])
    halves = slice(0, 2), slice(2, 4)
    parts = [np.maximum(x @ a[:, half], 0) @ b[half] for half in halves]
    whole = np.maximum(x @ a, 0) @ b
    text = f"sum {sum(parts).tolist()}, whole {bool((sum(parts) == whole).all())}"
    return _ranks(2, lambda rank: f"part {parts[rank].tolist()}, {text}")


def stages() -> str:
    order = pipeline_order("1f1b", stages=2, microbatches=4)

    def said(rank: int) -> str:
        words = [f"{action.kind}{action.microbatch}" for action in order.orders[rank]]
        alive = np.cumsum([1 if word[0] == "F" else -1 for word in words]).max()
        return f"{' '.join(words)}, at most {alive} alive, same True"

    return _ranks(2, said)


def blocks() -> str:
    tokens, ranks = 16, 2
    seen = np.tril(np.ones((tokens, tokens), int)).sum(axis=1)
    in_order, quarters = (seen.reshape(parts, -1).sum(axis=1) for parts in (ranks, 2 * ranks))
    text = (DOCS / "journey/long-sequences.md").read_text(encoding="utf-8")
    assert f"they compute {in_order[0]} and {in_order[1]} pairs" in text
    own = quarters + quarters[::-1]  # an early and a late part
    return _ranks(ranks, lambda rank: f"{own[rank]} pairs, same True")


def experts() -> str:
    firsts = [[token % 5 % 4 for token in range(8 * rank, 8 * rank + 8)] for rank in range(2)]
    chosen = [[e for first in each for e in (first, (first + 1) % 4)] for each in firsts]
    sent = [[sum(e // 2 == home for e in each) for home in range(2)] for each in chosen]
    work = [sum(each[home] for each in sent) for home in range(2)]
    return _ranks(2, lambda rank: f"sent {sent[rank]}, worked on {work[rank]}, same True")


def mesh() -> str:
    dense = parallel_layout(nodes=1, gpus_per_node=8, tp=2, pp=2).dense
    lines = []
    for rank in (0, 5):
        own = {axis: coordinates_of(dense, rank)[axis] for axis in ("tp", "dp", "pp")}
        peers = {
            axis: next(list(group) for group in groups(dense, axis) if rank in group)
            for axis in own
        }
        lines.append(f"rank {rank} is {own}\n  talks to {peers}\n")
    return "".join(lines)


def slow() -> str:
    work = [0.4, 0.4, 0.8, 0.4]
    said = [f"worked {own:.1f} s, waited {max(work) - own:.1f} s" for own in work]
    return _ranks(4, lambda rank: said[rank])


AGAIN: dict[str, Callable[[], str]] = {
    "one.py": one,
    "two.py": two,
    "hide.py": hide,
    "shard.py": shard,
    "levels.py": levels,
    "split.py": split,
    "stages.py": stages,
    "blocks.py": blocks,
    "experts.py": experts,
    "mesh.py": mesh,
    "slow.py": slow,
}
