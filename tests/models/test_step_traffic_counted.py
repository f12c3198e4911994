"""Bytes of a step: every call of every rank of small layouts, counted one by one.

The count follows a rank's order action by action and layer by layer, and takes what a call sends
from the trace of its algorithm.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from figgen.errors import InputError
from figgen.models.collectives import bytes_sent_per_rank, trace
from figgen.models.machine.layout import layout
from figgen.models.memory.rank_parameters import stage_parameters
from figgen.models.setup.stage_layers import virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.model_shape import ExpertShape, LatentAttention
from figgen.models.shape.recipes import Recipe
from figgen.models.step.data_traffic import stage_traffic
from tests.models.jobs import small

DENSE = small(layers=5, kv_heads=2, sequence=16, tied_embeddings=True)
MIXTURE = small(
    layers=5,
    sequence=16,
    experts=ExpertShape(count=4, top_k=2, ffn_hidden=8, shared=1, dense_layers=2),
    latent=LatentAttention(
        query_rank=6, kv_rank=4, nope_head_dim=4, rope_head_dim=2, value_head_dim=4
    ),
)
COSTS = Recipe(
    name="odd",
    label="weights of 2, gradients of 3 bytes",
    weight_bytes=2,
    gradient_bytes=3,
    optimizer_bytes=5,
)


@cache
def one_rank_sends(collective: str, size: int) -> float:
    """Return the share of the buffer that a rank sends, from the trace of the algorithm."""
    if size == 1:
        return 0.0
    algorithm = "pairwise" if collective == "all-to-all" else "ring"
    return bytes_sent_per_rank(trace(collective, algorithm, size), 1.0)[0]


def calls_of_layer(
    run: TrainingSetup, experts: bool
) -> Iterator[tuple[str, str, float, tuple[str, ...]]]:
    """Return axis, collective and buffer of one layer's forward calls; backward mirrors them.

    The last element lists modules whose recomputation repeats the call.
    """
    shape, p = run.shape, run.parallel
    tokens = run.microbatch_size * run.sequence / p.cp
    hidden = 2 * tokens * shape.hidden
    into = hidden
    if shape.latent:
        into = 2 * tokens * (shape.latent.query_rank + shape.latent.kv_rank + 2)
    blocks = [(into, ("mla_up_proj",) if shape.latent else (), ())]
    if not experts or shape.experts.shared:
        modules = ("moe", "shared_experts") if experts else ("mlp",)
        blocks.append((hidden, modules, modules))
    for gathered, in_again, out_again in blocks:
        if run.sequence_parallel:
            yield "tp", "all-gather", gathered, in_again
            yield "tp", "reduce-scatter", hidden, out_again
        else:
            yield "tp", "all-reduce", hidden, out_again
    if experts:
        back = hidden / p.tp * shape.experts.top_k
        there = back * 33 / 64 if run.activations == "fp8-deepseek" else back
        yield "ep", "all-to-all", there, ("moe",)
        yield "etp", "all-gather", there * p.etp, ("moe",)
        yield "etp", "reduce-scatter", back * p.etp, ("moe",)
        yield "ep", "all-to-all", back, ("moe",)


def mirrored(
    run: TrainingSetup, call: tuple[str, str, float, tuple[str, ...]]
) -> tuple[str, str, float]:
    """Return the same call in backward, where a gather becomes a reduce-scatter and vice versa.

    Gradients go to the experts as tokens do in forward, and come back in the same way.
    """
    axis, collective, buffer, _ = call
    if axis == "etp" and run.activations == "fp8-deepseek":
        buffer = buffer * 64 / 33 if collective == "all-gather" else buffer * 33 / 64
    swap = {"all-gather": "reduce-scatter", "reduce-scatter": "all-gather"}
    return axis, swap.get(collective, collective), buffer


class Count:
    """Count a rank's bytes for one virtual stage by axis, over one step."""

    def __init__(self, run: TrainingSetup, stage: int) -> None:
        self.run, self.stage = run, stage
        self.share = virtual_stage_shares(run)[stage]
        self.total: Counter[str] = Counter()
        p = run.parallel
        self.sizes = {"tp": p.tp, "ep": p.ep, "etp": p.etp, "edp": p.edp, "embedding": 2}
        self.data = "dp-cp" if p.cp > 1 else "dp"
        self.sizes[self.data] = p.dp * p.cp
        self.hidden = 2 * run.microbatch_size * run.sequence / p.cp * run.shape.hidden
        self.held: dict[str, float] = defaultdict(float)
        for part in stage_parameters(run, stage):
            self.held["edp" if part.part == "routed experts" else self.data] += part.count

    def call(self, axis: str, collective: str, buffer: float) -> None:
        self.total[axis] += one_rank_sends(collective, self.sizes[axis]) * buffer

    def step(self) -> Counter[str]:
        run = self.run
        for action in run.order.orders[run.placement.rank_of_stage[self.stage]]:
            if action.stage == self.stage and action.kind != "W":
                forward = action.kind == "F"
                self.layers(forward)
                self.ends(forward)
                self.message(forward)
                self.sharded(forward)
        once = run.framework == "torchtitan" and run.parallel.pp > 1
        for axis, count in self.held.items():
            if run.zero_stage == 0:
                self.call(axis, "all-reduce", 3 * count)
            if run.zero_stage == 1 or (once and run.zero_stage):
                self.call(axis, "reduce-scatter", 3 * count)
            if run.zero_stage in (1, 2) or (once and run.zero_stage):
                self.call(axis, "all-gather", 2 * count)
        first, last = run.placement.rank_of_stage[0], run.placement.rank_of_stage[-1]
        if (
            run.shape.tied_embeddings
            and first != last
            and (self.share.embedding or self.share.head)
        ):
            table = run.shape.vocab * run.shape.hidden / run.parallel.tp
            self.call("embedding", "all-reduce", 3 * table)
        return self.total

    def layers(self, forward: bool) -> None:
        run, shape, p = self.run, self.run.shape, self.run.parallel
        again = run.recomputation
        for layer in range(self.share.first_layer, self.share.first_layer + self.share.layers):
            experts = shape.experts is not None and layer >= shape.experts.dense_layers
            place = layer - self.share.first_layer
            whole = place < again.whole_layers(self.share.layers)
            for found in calls_of_layer(run, experts):
                axis, collective, buffer, modules = found
                if forward or whole or again.modules & set(modules):
                    self.call(axis, collective, buffer)
                if not forward:
                    self.call(*mirrored(run, found))
                    if run.sequence_parallel and (axis, collective) == ("tp", "all-gather"):
                        self.call(axis, collective, buffer)
            # Keys and values: a block to the next rank, C − 1 times a round; gradients likewise.
            core = "core_attn" in again.modules and not run.flash_attention
            rounds = 1 if forward else 2 + (whole or core)
            width = max(1, shape.kv_heads // p.tp) * shape.head_dim
            if shape.latent:
                width = shape.heads // p.tp * 5  # keys of 4 + 2, values of 4
            block = 2 * 2 * run.microbatch_size * run.sequence / p.cp * width
            self.total["cp"] += rounds * (p.cp - 1) * block

    def ends(self, forward: bool) -> None:
        split = self.run.sequence_parallel
        if split and (self.share.embedding or self.share.head):
            tables = self.share.embedding + self.share.head
            again = self.share.head and not forward
            for _ in range(tables + again):
                self.call("tp", "all-gather", self.hidden)
        elif (self.share.embedding and forward) or (self.share.head and not forward):
            self.call("tp", "all-reduce", self.hidden)

    def message(self, forward: bool) -> None:
        place, stage = self.run.placement, self.stage
        if place.is_last(stage) if forward else place.is_first(stage):
            return
        if place.rank_of_stage[stage + (1 if forward else -1)] != place.rank_of_stage[stage]:
            split = self.run.parallel.tp if self.run.sequence_parallel else 1
            self.total["pp"] += self.hidden / split

    def sharded(self, forward: bool) -> None:
        if self.run.framework == "torchtitan" and self.run.parallel.pp > 1:
            return  # It keeps the stage whole from the first microbatch to the last.
        for axis, count in self.held.items():
            if self.run.zero_stage == 3:
                self.call(axis, "all-gather", 2 * count)
            if self.run.zero_stage >= 2 and not forward:
                self.call(axis, "reduce-scatter", 3 * count)


def modelled(run: TrainingSetup, stage: int) -> Counter[str]:
    total: Counter[str] = Counter()
    passing = len(run.order.microbatches_of(stage))
    for entry in stage_traffic(run, stage):
        times = passing if entry.per_microbatch else 1
        total[entry.axis] += times * entry.calls * entry.sent_bytes
    return total


OPTIONS = [
    {},
    {"zero_stage": 0, "sequence_parallel": False},
    {"zero_stage": 2, "recompute": "full"},
    {"zero_stage": 1, "schedule": "interleaved-1f1b", "chunks": 2},
    {"zero_stage": 2, "schedule": "zbv"},
    {"zero_stage": 1, "schedule": "dualpipe"},
    {"zero_stage": 3, "schedule": "zb1p", "microbatch_size": 2},
    {"zero_stage": 3, "recompute": "full"},
    {"zero_stage": 3, "framework": "torchtitan"},
    {"zero_stage": 2, "framework": "torchtitan", "schedule": "interleaved-1f1b", "chunks": 2},
    {"recompute": "mla_up_proj,mlp", "activations": "fp8-deepseek"},
    {"recompute": "moe,core_attn", "flash_attention": False, "activations": "fp8"},
    {"recompute": "mlp,layernorm", "sequence_parallel": False},
    {"recompute": "block:1", "activations": "fp8-deepseek"},
    {"recompute": "uniform:2"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(map(str, options)))
@pytest.mark.parametrize("name", ["dense", "mixture"])
def test_bytes_are_those_of_every_call_counted_one_by_one(
    name: str, options: dict[str, Any]
) -> None:
    shape = {"dense": DENSE, "mixture": MIXTURE}[name]
    checked = 0
    for tp, cp, pp, ep, etp in itertools.product((1, 2), (1, 2), (1, 2, 4), (1, 2, 4), (1, 2)):
        if (shape.experts is None and ep * etp > 1) or etp > tp:
            continue
        given = {"microbatches": 8, "sequence": 16, "recipe": COSTS} | options
        try:
            parallel = layout(nodes=2, gpus_per_node=8, tp=tp, cp=cp, pp=pp, ep=ep, etp=etp)
            run = TrainingSetup(shape=shape, parallel=parallel, **given)
        except InputError:
            continue
        for stage in range(run.placement.stages):
            expected = Count(run, stage).step()
            found = modelled(run, stage)
            for axis in expected | found:
                assert found[axis] == pytest.approx(expected[axis]), (parallel, stage, axis)
        checked += 1
    assert checked >= 6
