"""Parameters that one GPU holds, part by part, before ZeRO divides anything.

Tensor parallelism divides the projections and the tables; norms, routers, the down-projections
of latent attention and the biases of row-parallel layers stay whole on each of its ranks. Routed
experts are divided over the expert mesh instead.
Source: Megatron-LM core, tensor_parallel/layers.py and transformer/multi_latent_attention.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from figgen.models.setup.stage_layers import StageShare, shares_of_rank, virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.model_shape import FFN_MATRICES, NORM_VECTORS, ModelShape
from figgen.models.shape.transformer import attention_biases, mixer_parameters, norm_parameters

ROUTED = "routed experts"
TABLES = ("embedding", "head")


@dataclass(frozen=True, slots=True)
class HeldParameters:
    """Parameters of one part of the model on one GPU.

    Routed experts are reduced over the expert data-parallel group, everything else over the
    dense one.
    """

    part: str
    count: int

    @property
    def routed(self) -> bool:
        """Whether these parameters are routed experts."""
        return self.part == ROUTED


@lru_cache(maxsize=256)
def stage_parameters(setup: TrainingSetup, stage: int) -> tuple[HeldParameters, ...]:
    """Return what any GPU of virtual stage `stage` holds for it, without empty parts.

    The tables are padded to a multiple of TP. A tied head is one more copy of the table, unless its
    rank holds the embedding too. The same holds for the embedding in which modules of multi-token
    prediction look up their tokens, where the head has a table of its own.
    """
    share = virtual_stage_shares(setup)[stage]
    totals = _share(setup, share)
    if share.head and setup.shape.tied_embeddings and _beside_embedding(setup, stage):
        totals["head"] = 0
    if copies_embedding(setup, stage):
        totals["embedding"] = table_held(setup)
    return tuple(HeldParameters(part, count) for part, count in totals.items() if count)


def copies_embedding(setup: TrainingSetup, stage: int) -> bool:
    """Return whether multi-token prediction needs a copy of the embedding on this stage."""
    if not setup.mtp_layers or setup.shape.tied_embeddings:
        return False
    predicts = virtual_stage_shares(setup)[stage].mtp_layers > 0
    return predicts and not _beside_embedding(setup, stage)


def _beside_embedding(setup: TrainingSetup, stage: int) -> bool:
    ends = shares_of_rank(setup, setup.placement.rank_of_stage[stage])
    return any(end.embedding for end in ends)


def rank_parameters(setup: TrainingSetup, pipeline_rank: int) -> tuple[HeldParameters, ...]:
    """Return what any GPU of `pipeline_rank` holds, over all of its virtual stages."""
    totals: dict[str, int] = {}
    for stage in setup.placement.stages_of_rank(pipeline_rank):
        for held in stage_parameters(setup, stage):
            totals[held.part] = totals.get(held.part, 0) + held.count
    return tuple(HeldParameters(part, count) for part, count in totals.items())


def parameters_of(held: tuple[HeldParameters, ...], *, routed: bool) -> int:
    """Return the sum over the routed experts, or over everything else."""
    return sum(part.count for part in held if part.routed == routed)


def layer_parameters(setup: TrainingSetup, *, experts: bool) -> dict[str, int]:
    """Return the parameters of one layer on one GPU by part; with `experts`, of an expert layer."""
    shape, parallel = setup.shape, setup.parallel
    found = {"attention": attention_held(setup), "norms": _layer_norms(shape)}
    mixture = shape.experts
    if mixture is None or not experts:
        return found | {"ffn": _ffn_held(shape, shape.ffn_hidden, parallel.tp)}
    one = _ffn_held(shape, mixture.ffn_hidden, parallel.etp)
    return found | {
        "router": shape.hidden * mixture.count + (mixture.count if shape.bias else 0),
        "shared experts": mixture.shared * _ffn_held(shape, mixture.ffn_hidden, parallel.tp),
        ROUTED: mixture.count // parallel.ep * one,
    }


def attention_held(setup: TrainingSetup) -> int:
    """Parameters of one attention block on a tensor-parallel rank."""
    shape, tp = setup.shape, setup.parallel.tp
    heads, mla = shape.heads // tp, shape.latent
    if mla is None:
        query, key_value = heads * shape.head_dim, setup.kv_heads_per_rank * shape.head_dim
        biases = query + 2 * key_value + shape.hidden if shape.bias else 0
        return 2 * shape.hidden * (query + key_value) + biases
    down = shape.hidden * (mla.query_rank + mla.kv_rank + mla.rope_head_dim)
    up_query = (mla.query_rank or shape.hidden) * heads * (mla.nope_head_dim + mla.rope_head_dim)
    up_key_value = mla.kv_rank * heads * (mla.nope_head_dim + mla.value_head_dim)
    out = heads * mla.value_head_dim * shape.hidden
    return down + up_query + up_key_value + out + attention_biases(shape)


def mixer_held(setup: TrainingSetup) -> int:
    """Return the parameters of a state-space mixer on a TP rank, which holds some of its heads."""
    return mixer_parameters(setup.shape) // setup.parallel.tp


def projection_held(setup: TrainingSetup) -> int:
    """Return what a module of multi-token prediction adds to its layer: projection, 3 norms."""
    hidden = setup.shape.hidden
    norms = 3 * NORM_VECTORS[setup.shape.norm] * hidden
    return 2 * hidden * hidden // setup.parallel.tp + norms


def table_held(setup: TrainingSetup) -> int:
    """Parameters of the embedding, or of the head, on a tensor-parallel rank."""
    return -(-setup.shape.vocab // setup.parallel.tp) * setup.shape.hidden


def _share(setup: TrainingSetup, share: StageShare) -> dict[str, int]:
    """Parameters of a virtual stage on one GPU by part."""
    shape = setup.shape
    found: dict[str, int] = {}
    kinds = ((share.dense_layers, False), (share.expert_layers, True))
    for layers, experts in kinds:
        for part, count in layer_parameters(setup, experts=experts).items() if layers else ():
            found[part] = found.get(part, 0) + layers * count
    if share.mixer_layers:
        found["attention"] -= share.mixer_layers * attention_held(setup)
        found["state-space mixers"] = share.mixer_layers * mixer_held(setup)
    if share.embedding:
        found["embedding"] = table_held(setup)
        found["positions"] = shape.sequence * shape.hidden if shape.learned_positions else 0
        found["extra"] = shape.extra
    if share.head:
        found["head"] = table_held(setup)
        found["norms"] = found.get("norms", 0) + _final_norm(shape)
        found["projections"] = share.mtp_layers * projection_held(setup)
    return found


def _final_norm(shape: ModelShape) -> int:
    return NORM_VECTORS[shape.norm] * shape.hidden if shape.final_norm else 0


def _layer_norms(shape: ModelShape) -> int:
    return (norm_parameters(shape) - _final_norm(shape)) // shape.layers


def _ffn_held(shape: ModelShape, ffn_hidden: int, ways: int) -> int:
    """Return one feed-forward block divided over `ways` ranks; the last bias stays whole."""
    matrices, width = FFN_MATRICES[shape.ffn], ffn_hidden // ways
    biases = (matrices - 1) * width + shape.hidden if shape.bias else 0
    return matrices * shape.hidden * width + biases
