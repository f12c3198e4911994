"""All layouts of a job: every mesh that divides a cluster and a model, with all other choices.

A layout is a mesh (TP, CP, PP, EP, ETP; DP follows from them), a schedule with its chunks, a
microbatch size, a ZeRO stage and a way to recompute. Tensor parallelism stays within a node unless
its size is given. Layouts that `TrainingSetup` would refuse are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from figgen.models.machine.frameworks import Convention
from figgen.models.machine.nearest import Sizes, problem
from figgen.models.pipeline.schedules import MOST_STAGES
from figgen.models.setup.training_setup import ZERO_STAGES
from figgen.models.shape.model_shape import ModelShape

MOST_CHUNKS = 16
"""Most chunks of a rank that are tried."""

CHUNKS: Mapping[str, tuple[int, ...]] = {
    "naive": (1,), "gpipe": (1,), "looped-bfs": tuple(range(2, MOST_CHUNKS + 1)), "1f1b": (1,),
    "interleaved-1f1b": tuple(range(2, MOST_CHUNKS + 1)), "zb1p": tuple(range(1, MOST_CHUNKS + 1)),
    "zb2p": (1,), "zbv": (2,), "v-half": (2,), "v-min": (2,), "dualpipe": (1,), "dualpipev": (2,),
}  # fmt: skip
"""The chunks that are tried of each schedule."""

_TORCH = ("1f1b", "gpipe", "interleaved-1f1b", "looped-bfs", "zb1p", "zbv", "dualpipev")
SCHEDULES_OF: Mapping[str, tuple[str, ...]] = {
    "megatron": ("1f1b", "interleaved-1f1b"),
    "nanotron": ("1f1b", "gpipe"),
    "torchtitan": _TORCH,
    "deepseek": ("1f1b", "interleaved-1f1b", "dualpipe", "dualpipev"),
}
"""Schedules that come with a framework: NVIDIA/Megatron-LM@d98e8a64 core/pipeline_parallel/
schedules.py; huggingface/nanotron@67c5ebb6 parallel/pipeline_parallel/engine.py;
torch.distributed.pipelining.schedules (get_schedule_class) for torchtitan@b5bcd76c; DeepSeek's
DualPipe and DualPipeV beside Megatron's for theirs. Megatron's where nothing is known."""

Wanted = Mapping[str, int | None]
"""Sizes of axes that were said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meshes:
    """Meshes of one pipeline size, each axis an array."""

    tp: np.ndarray
    cp: np.ndarray
    ep: np.ndarray
    etp: np.ndarray
    dp: np.ndarray

    def __len__(self) -> int:
        return len(self.tp)

    def some(self, chosen: np.ndarray) -> Meshes:
        """These of them."""
        return Meshes(
            tp=self.tp[chosen],
            cp=self.cp[chosen],
            ep=self.ep[chosen],
            etp=self.etp[chosen],
            dp=self.dp[chosen],
        )


def divisors(number: int) -> tuple[int, ...]:
    """All divisors of a positive number, ascending."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return tuple(dict.fromkeys([*small, *(number // d for d in reversed(small))]))


def pipelines(world: int, wanted: Wanted) -> tuple[int, ...]:
    """Pipeline sizes; for some there may be too few layers for any schedule."""
    return _allowed(divisors(world), wanted.get("pp"), MOST_STAGES)


def schedules(
    layers: int, pp: int, names: Sequence[str], chunks: int | None
) -> Iterator[tuple[str, int]]:
    """Schedules of `names` with their chunks; without a pipeline there is nothing to choose."""
    if pp == 1:
        yield "1f1b", 1
        return
    for name in names:
        for each in CHUNKS[name] if chunks is None else (chunks,):
            if each in CHUNKS[name] and layers >= pp * each - 2:
                yield name, each


def meshes(
    shape: ModelShape,
    convention: Convention,
    pp: int,
    *,
    world: int,
    gpus_per_node: int,
    sequence: int,
    sequence_parallel: bool,
    trades_heads: bool,
    wanted: Wanted,
) -> Meshes:
    """Every mesh with `pp` stages."""
    parts, experts = world // pp, shape.experts
    tps = [
        tp
        for tp in _allowed(divisors(parts), wanted.get("tp"), gpus_per_node, gpus_per_node)
        if _divides_model(shape, tp, sequence_parallel)
    ]
    eps = _allowed(divisors(parts) if experts else (1,), wanted.get("ep"), parts)
    etps = _allowed(divisors(parts), wanted.get("etp"), gpus_per_node, gpus_per_node)
    found = []
    for tp in tps:
        cps = [
            cp
            for cp in _allowed(divisors(parts // tp), wanted.get("cp"), sequence)
            if sequence % (cp * (tp if sequence_parallel else 1)) == 0
            and _divides_mixers(shape, tp, cp)
            and not (trades_heads and shape.attention_layers and shape.heads // tp % cp)
        ]
        own = (tp if convention.etp == "tp" else 1,)
        mixtures = [
            (ep, etp)
            for etp, ep in product(etps if experts else own, eps)
            if not experts or (experts.count % ep == 0 and experts.ffn_hidden % etp == 0)
        ]
        found += [
            (tp, cp, ep, etp, parts // (tp * cp))
            for cp, (ep, etp) in product(cps, mixtures)
            if problem(world, Sizes(tp=tp, cp=cp, pp=pp, ep=ep, etp=etp), convention) is None
        ]
    dp = wanted.get("dp")
    rows = [row for row in found if dp is None or row[-1] == dp]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    return Meshes(tp=columns[0], cp=columns[1], ep=columns[2], etp=columns[3], dp=columns[4])


def batches(dp: np.ndarray, global_batch: int, wanted: int | None) -> tuple[np.ndarray, ...]:
    """Index of the mesh, microbatch and number of microbatches of all that divide the batch."""
    index, size, number = [], [], []
    for ways in np.unique(dp):
        if global_batch % ways:
            continue
        mine = np.flatnonzero(dp == ways)
        sizes = divisors(global_batch // int(ways))
        for each in sizes if wanted is None else tuple(s for s in sizes if s == wanted):
            index.append(mine)
            size.append(np.full(len(mine), each))
            number.append(np.full(len(mine), global_batch // int(ways) // each))
    empty = [np.zeros(0, dtype=np.int64)]
    return tuple(np.concatenate(part or empty) for part in (index, size, number))


def sharding(framework: str, pp: int, wanted: int | None) -> tuple[int, ...]:
    """The ZeRO stages that are tried: all that the framework has.

    Sources: huggingface/nanotron@67c5ebb6 optim/zero.py (stage 1 is the only one);
    deepspeedai/DeepSpeed runtime/pipe/engine.py (2 and 3 are incompatible with pipelines).
    """
    first_two = framework == "nanotron" or (framework == "megatron-deepspeed" and pp > 1)
    known = ZERO_STAGES[:2] if first_two else ZERO_STAGES
    return known if wanted is None else tuple({wanted} & set(known))


def _divides_mixers(shape: ModelShape, tp: int, cp: int) -> bool:
    mixers = shape.state_space
    if mixers is None:
        return True
    if mixers.groups % tp or mixers.mixer_heads // tp % cp:
        return False
    groups = mixers.groups // tp
    return groups % cp == 0 or cp % groups == 0


def _divides_model(shape: ModelShape, tp: int, sequence_parallel: bool) -> bool:
    kv, experts = shape.kv_heads, shape.experts
    if shape.heads % tp or (kv % tp and tp % kv):
        return False
    if shape.dense_layers and shape.ffn_hidden % tp:
        return False
    if experts is None:
        return True
    return (sequence_parallel or tp == 1) and not (experts.shared and experts.ffn_hidden % tp)


def _allowed(
    sizes: Sequence[int], wanted: int | None, most: int, of: int | None = None
) -> tuple[int, ...]:
    """The size that was said, if it is one; or those up to `most` that divide `of`."""
    if wanted is not None:
        return (wanted,) if wanted in sizes else ()
    return tuple(size for size in sizes if size <= most and (of is None or of % size == 0))
