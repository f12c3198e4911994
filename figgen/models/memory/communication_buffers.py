"""Widths of the tensors that context-parallel ranks exchange, and copies of tokens for experts."""

from __future__ import annotations

from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.visited_groups import visited_groups, within_reach


def key_value_width(setup: TrainingSetup) -> float:
    """Return the mean width of keys and values on a TP rank: elements per token and tensor."""
    mla = setup.shape.latent
    if mla is None:
        return setup.kv_heads_per_rank * setup.shape.head_dim
    width = mla.nope_head_dim + mla.rope_head_dim + mla.value_head_dim
    return setup.shape.heads // setup.parallel.tp * width / 2


def query_width(setup: TrainingSetup) -> float:
    """Return the width of the queries on a TP rank: elements per token."""
    mla, heads = setup.shape.latent, setup.shape.heads // setup.parallel.tp
    head = setup.shape.head_dim if mla is None else mla.nope_head_dim + mla.rope_head_dim
    return heads * head


def traded_heads(setup: TrainingSetup) -> int:
    """Return the key and value heads on a TP rank; latent attention has as many as query heads."""
    if setup.shape.latent is None:
        return setup.kv_heads_per_rank
    return setup.shape.heads // setup.parallel.tp


def traded_copies(setup: TrainingSetup) -> float:
    """Return the copies of each key and value that an all-to-all sends: trading ranks over heads.

    Source: Jacobs et al. 2023 (DeepSpeed Ulysses), arXiv:2309.14509, with grouped heads.
    """
    return max(1.0, setup.traded_ranks / traded_heads(setup))


def received_copies(setup: TrainingSetup) -> float:
    """Return the tokens in the buffers of the fullest rank of experts, for each token of its own.

    With DeepEP and HybridEP a rank receives a token once, however many of its experts the token
    visits.
    """
    experts, ranks = setup.shape.experts, setup.parallel.ep
    if experts is None:
        return 0.0
    copies = float(experts.top_k)
    if setup.sends_once:
        reached = within_reach(ranks, experts.groups, experts.reached)
        copies = float(visited_groups(reached, experts.top_k))
    return copies * setup.fullest_experts
