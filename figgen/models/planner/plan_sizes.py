"""What a layer, a table and the ends of a pipeline take, from the models that know one layout.

Everything that grows with the tokens of a microbatch is given for one token, so that a few
layouts of one GPU say it for all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from figgen.models.machine.layout import layout
from figgen.models.memory.activations import (
    layer_bytes,
    layer_gradient_bytes,
    loss_bytes,
    mixer_bytes,
    recomputed_bytes,
    stage_bytes,
)
from figgen.models.memory.communication_buffers import (
    key_value_width,
    query_width,
    traded_heads,
)
from figgen.models.memory.memory_lines import cast_weight_bytes
from figgen.models.memory.rank_parameters import (
    ROUTED,
    attention_held,
    layer_parameters,
    mixer_held,
    projection_held,
    table_held,
)
from figgen.models.planner.plan_memory import ACTIVATION_BYTES
from figgen.models.setup.stage_layers import (
    StageShare,
    fullest_and_beside_head,
    layers_by_cost,
    stage_shares,
)
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.model_shape import NORM_VECTORS

_DENSE = StageShare(first_layer=0, layers=1, expert_layers=0, embedding=False, head=False)
_EXPERTS = StageShare(first_layer=0, layers=1, expert_layers=1, embedding=False, head=False)
_INNER = StageShare(first_layer=0, layers=0, expert_layers=0, embedding=False, head=False)
_FIRST = StageShare(first_layer=0, layers=0, expert_layers=0, embedding=True, head=False)


@lru_cache(maxsize=4096)
def layer_sizes(setup: TrainingSetup, tp: int, etp: int, recompute: str) -> dict[str, float]:
    """Those fields of `HeldSizes` that TP, ETP and recomputation decide, for EP of 1."""
    order = setup.parallel.order
    parallel = layout(nodes=1, gpus_per_node=tp * etp, tp=tp, etp=etp, order=order)
    one = replace(
        setup, parallel=parallel, microbatches=1, microbatch_size=1, schedule="1f1b", chunks=None,
        recompute=recompute,
    )  # fmt: skip
    shape = setup.shape
    found: dict[str, float] = {}
    for kind, share, experts in (("dense", _DENSE, False), ("experts", _EXPERTS, True)):
        there = shape.dense_layers if not experts else shape.expert_layers
        found |= {
            f"kept_{kind}": layer_bytes(one, experts=experts) if there else 0.0,
            f"anew_{kind}": recomputed_bytes(one, share) if there else 0.0,
            f"gradient_{kind}": layer_gradient_bytes(one, share) if there else 0.0,
        }
    output = stage_bytes(one, _INNER)
    found |= {
        "kept_embedding": stage_bytes(one, _FIRST) - output,
        "kept_head": stage_bytes(one, replace(_INNER, head=True, mtp_layers=setup.mtp_layers)),
        "kept_output": output,
        "loss": loss_bytes(one),
        "kept_mixer": mixer_bytes(one),
    }
    found = {name: size / one.tokens for name, size in found.items()}
    dense, experts_ = (layer_parameters(one, experts=kind) for kind in (False, True))
    routed = experts_.pop(ROUTED, 0)
    top_k = shape.experts.top_k if shape.experts else 0
    each = setup.activation_format.dispatch_bytes + ACTIVATION_BYTES
    final = NORM_VECTORS[shape.norm] * shape.hidden if shape.final_norm else 0
    return found | {
        "with_head": final + setup.mtp_layers * projection_held(one),
        "dense_layer": sum(dense.values()),
        "expert_layer": sum(experts_.values()),
        "routed_layer": routed,
        "mixer": mixer_held(one) - attention_held(one) if shape.state_space else 0,
        "table": table_held(one),
        "key_value_width": key_value_width(one) if shape.attention_layers else 0,
        "query_width": query_width(one) if shape.attention_layers else 0,
        "key_value_heads": traded_heads(one),
        "dispatched": top_k * etp * each,
    }


def job_sizes(setup: TrainingSetup) -> dict[str, float]:
    """Those fields of `HeldSizes` that are the same for all layouts of a job."""
    shape, framework, recipe = setup.shape, setup.framework_memory, setup.recipe
    blocks = 2 if setup.double_buffering else 1
    positions = shape.sequence * shape.hidden if shape.learned_positions else 0
    return {
        "with_embedding": positions + shape.extra,
        "hidden": shape.hidden,
        "sequence_parallel": float(setup.sequence_parallel),
        "key_value_blocks": 0 if setup.context_exchange == "all-gather" else blocks,
        "trades_heads": float(setup.trades_heads),
        "prefetched": 2 if setup.double_buffering else 1,
        "weight_bytes": recipe.weight_bytes,
        "gradient_bytes": recipe.gradient_bytes,
        "optimizer_bytes": setup.optimizer_bytes,
        "cast_weight_bytes": cast_weight_bytes(replace(setup, zero_stage=0)),
        "table_bytes": setup.table_bytes,
        "bucket_bytes": framework.bucket_bytes,
        "fresh_gradient_bytes": framework.fresh_gradient_bytes,
        "whole_in_pipeline": float(framework.whole_in_pipeline),
        "allocator_share": framework.allocator_share,
    }


@dataclass(frozen=True, slots=True)
class StageNumbers:
    """Stages of a pipeline: their shares, most layers of a rank, layers beside the head.

    Where the head counts in the cut, its rank is not among those with most layers.
    """

    shares: tuple[StageShare, ...]
    fullest_layers: int
    head_layers: float


def stage_numbers(setup: TrainingSetup, pp: int, chunks: int, pipes: int) -> StageNumbers:
    """The stages that `pp` ranks of `chunks` each are cut into, as `setup`'s framework cuts."""
    shape, balanced = setup.shape, setup.framework_memory.balanced
    dealt = layers_by_cost(shape, pp * chunks) if balanced else ((), -1)
    shares = stage_shares(shape, pp * chunks, *dealt, setup.mtp_layers)
    cut = balanced or setup.mtp_layers > 0
    return StageNumbers(shares * pipes, *fullest_and_beside_head(shares, pp, cut=cut))
