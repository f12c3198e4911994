"""All layouts of a job: every mesh that divides a cluster and a model, with all other choices.

A layout is a mesh (TP, CP, PP, EP, ETP; DP follows from them), a schedule with its chunks, a
microbatch size, a ZeRO stage and a way to recompute. Tensor parallelism stays within a node unless
its size is given. Layouts that `TrainingSetup` would refuse are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt

from figgen.models.machine.layout import context_in_node
from figgen.models.machine.nearest import Sizes, problem
from figgen.models.pipeline.schedules import MOST_STAGES
from figgen.models.setup.training_setup import ZERO_STAGES, TrainingSetup
from figgen.models.shape.model_shape import ModelShape

MOST_CHUNKS = 16
"""Most chunks per rank that are tried."""

CHUNKS: Mapping[str, tuple[int, ...]] = {
    "naive": (1,), "gpipe": (1,), "looped-bfs": tuple(range(2, MOST_CHUNKS + 1)), "1f1b": (1,),
    "interleaved-1f1b": tuple(range(2, MOST_CHUNKS + 1)), "zb1p": tuple(range(1, MOST_CHUNKS + 1)),
    "zb2p": (1,), "zbv": (2,), "v-half": (2,), "v-min": (2,), "dualpipe": (1,), "dualpipev": (2,),
}  # fmt: skip
"""Numbers of chunks per rank to try, by schedule."""

_TORCH = ("1f1b", "gpipe", "interleaved-1f1b", "looped-bfs", "zb1p", "zbv", "dualpipev")
SCHEDULES_OF: Mapping[str, tuple[str, ...]] = {
    "megatron": ("1f1b", "interleaved-1f1b"),
    "nanotron": ("1f1b", "gpipe"),
    "torchtitan": _TORCH,
    "deepseek": ("1f1b", "interleaved-1f1b", "dualpipe", "dualpipev"),
}
"""Schedules of each framework: NVIDIA/Megatron-LM@d98e8a64 core/pipeline_parallel/schedules.py;
huggingface/nanotron@67c5ebb6 parallel/pipeline_parallel/engine.py;
torch.distributed.pipelining.schedules (get_schedule_class) for torchtitan@b5bcd76c; Megatron's with
DualPipe and DualPipeV for DeepSeek. An unknown framework has Megatron's."""

Wanted = Mapping[str, int | None]
"""Sizes of axes that were given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """Sizes of all axes except the pipeline's."""

    tp: int
    cp: int
    ep: int
    etp: int
    dp: int


def divisors(number: int) -> tuple[int, ...]:
    """Return all divisors of a positive number, ascending."""
    small = [d for d in range(1, isqrt(number) + 1) if number % d == 0]
    return tuple(dict.fromkeys([*small, *(number // d for d in reversed(small))]))


def pipelines(world: int, wanted: Wanted) -> tuple[int, ...]:
    """Return the pipeline sizes to try; for some there may be too few layers for any schedule."""
    return _allowed(divisors(world), wanted.get("pp"), MOST_STAGES)


def schedules(
    layers: int, pp: int, names: Sequence[str], chunks: int | None
) -> Iterator[tuple[str, int]]:
    """Yield the schedules of `names` with their chunks; only 1F1B without a pipeline."""
    if pp == 1:
        yield "1f1b", 1
        return
    for name in names:
        for each in CHUNKS[name] if chunks is None else (chunks,):
            if each in CHUNKS[name] and layers >= pp * each - 2:
                yield name, each


def meshes(setup: TrainingSetup, pp: int, wanted: Wanted) -> tuple[Mesh, ...]:
    """Return every mesh with `pp` stages, ordered by TP, then CP, then ETP and EP."""
    shape, parallel, split = setup.shape, setup.parallel, setup.sequence_parallel
    parts, width = parallel.world_size // pp, parallel.gpus_per_node
    found: list[Mesh] = []
    for tp in _allowed(divisors(parts), wanted.get("tp"), width, width):
        if not _divides_model(shape, tp, split):
            continue
        mixtures = _mixtures(setup, parts, tp, wanted)
        for cp in _allowed(divisors(parts // tp), wanted.get("cp"), setup.sequence):
            dp, own = parts // (tp * cp), wanted.get("dp")
            if not _divides_sequence(setup, tp, cp) or (own is not None and own != dp):
                continue
            for etp, ep in mixtures:
                sizes = Sizes(tp=tp, cp=cp, pp=pp, ep=ep, etp=etp)
                if problem(parallel.world_size, sizes, parallel.convention) is None:
                    found.append(Mesh(tp=tp, cp=cp, ep=ep, etp=etp, dp=dp))
    return tuple(found)


def _mixtures(
    setup: TrainingSetup, parts: int, tp: int, wanted: Wanted
) -> tuple[tuple[int, int], ...]:
    """Return the pairs of ETP and EP that divide the experts among `parts` GPUs."""
    experts, parallel = setup.shape.experts, setup.parallel
    width, own = parallel.gpus_per_node, wanted.get("ep")
    if experts is None:
        etp = tp if parallel.convention.etp == "tp" else 1
        return tuple((etp, ep) for ep in _allowed((1,), own, parts))
    return tuple(
        (etp, ep)
        for etp in _allowed(divisors(parts), wanted.get("etp"), width, width)
        for ep in _allowed(divisors(parts), own, parts)
        if experts.count % ep == 0 and experts.ffn_hidden % etp == 0
    )


def batches(dp: int, global_batch: int, wanted: int | None) -> tuple[tuple[int, int], ...]:
    """Return the microbatch sizes that divide the batch of `dp` replicas, each with its number."""
    if global_batch % dp:
        return ()
    mine = global_batch // dp
    return tuple((each, mine // each) for each in divisors(mine) if wanted in (None, each))


def sharding(framework: str, pp: int, wanted: int | None) -> tuple[int, ...]:
    """Return the ZeRO stages to try: all that the framework supports, or the `wanted` one.

    Sources: huggingface/nanotron@67c5ebb6 optim/zero.py (stage 1 is the only one);
    deepspeedai/DeepSpeed runtime/pipe/engine.py (2 and 3 are incompatible with pipelines).
    """
    first_two = framework == "nanotron" or (framework == "megatron-deepspeed" and pp > 1)
    known = ZERO_STAGES[:2] if first_two else ZERO_STAGES
    return known if wanted is None else tuple({wanted} & set(known))


def _divides_sequence(setup: TrainingSetup, tp: int, cp: int) -> bool:
    """Return whether context ranks can share the tokens, the heads that they trade, and mixers."""
    shape = setup.shape
    if setup.sequence % (cp * (tp if setup.sequence_parallel else 1)):
        return False
    ranks = 1
    if setup.trades_heads:
        ranks = cp
    elif setup.context_exchange == "a2a+p2p":
        ranks = context_in_node(cp, tp, setup.parallel.gpus_per_node)
    if cp % ranks or (shape.attention_layers > 0 and shape.heads // tp % ranks):
        return False
    return _divides_mixers(shape, tp, cp)


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
    """Return the given size if it is possible, or else all sizes up to `most` that divide `of`."""
    if wanted is not None:
        return (wanted,) if wanted in sizes else ()
    return tuple(size for size in sizes if size <= most and (of is None or of % size == 0))
