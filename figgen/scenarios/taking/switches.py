"""What overlaps, how groups exchange tokens and sequences, CUDA graphs, attention and dropout."""

from __future__ import annotations

from figgen.scenarios.taking.given import (
    Given,
    assume,
    switch_of,
    take,
    text_of,
    value_of,
    whole_of,
)

EXCHANGES = {
    "p2p": "p2p", "all_gather": "all-gather", "allgather": "all-gather", "alltoall": "p2p",
    "a2a": "all-to-all",
    "ulysses": "all-to-all", "ring": "p2p", "all-gather": "all-gather", "all-to-all": "all-to-all",
    "a2a+p2p": "a2a+p2p", "usp": "a2a+p2p", "ulysses_cp_algo": "all-to-all",
    "megatron_cp_algo": "p2p", "hybrid_cp_algo": "a2a+p2p",
}  # fmt: skip


def take_switches(given: Given, dialect: str) -> None:
    """Set what overlaps, how tokens and sequences are exchanged, the kernel of attention, and
    dropout."""
    overlap = switch_of(given, "overlap_gradients")
    if overlap is not None:
        take(given, "overlap_data_parallel", overlap)
    elif dialect == "megatron-lm":
        assume(given, "overlap_data_parallel", False)
    gathered = switch_of(given, "overlap_weights")
    known = {**given.assumed, **given.taken}
    if gathered is not None:
        take(given, "overlap_weights", gathered)
    elif dialect == "megatron-lm" and known["overlap_data_parallel"]:
        assume(given, "overlap_weights", False)
    text_of(given, "as_modelled")  # as the models assume
    _take_dispatcher(given)
    buckets = whole_of(given, "buckets")
    if buckets:
        take(given, "buckets", buckets)
    text_of(given, "hierarchical_context")  # assumed to trade heads within a node
    exchange = text_of(given, "context_exchange").split(" ")[0].lower()
    if exchange in EXCHANGES:
        take(given, "context_exchange", EXCHANGES[exchange])
    elif dialect == "torchtitan" and value_of(given, "cp", 1) > 1:
        assume(given, "context_exchange", "all-gather")
    elif exchange:
        given.notes.append(f"the context-parallel exchange {exchange!r} is not modeled")
    flash = text_of(given, "flash").split(" ")[0].lower()
    if text_of(given, "attention_kinds"):
        kinds = [one.words for one in given.keys["attention_kinds"]]
        take(given, "flash_attention", any("flash" in kind for kind in kinds))
    if flash:
        plain = flash in (
            "false",
            "no",
            "0",
            "none",
            "eager",
            "torch",
            "unfused",
            "local",
            "math",
            "disabled",
        )
        if dialect != "nemo" or not switch_of(given, "engine"):  # whose attention is its own
            take(given, "flash_attention", not plain)
    elif dialect in ("megatron-deepspeed", "gpt-neox"):
        assume(given, "flash_attention", False)
    rates = [text_of(given, "dropout_attention"), text_of(given, "dropout_hidden")]
    said = [rate.split(" ")[0] for rate in rates if rate]
    if len(said) == 2 or any(not _is_zero(rate) for rate in said):
        take(given, "dropout", any(not _is_zero(rate) for rate in said))
    elif dialect in ("megatron-lm", "megatron-deepspeed"):
        assume(given, "dropout", True)


def _take_dispatcher(given: Given) -> None:
    """Set the dispatcher; Megatron-Core's flexible one is DeepEP unless a backend is named."""
    kind = text_of(given, "dispatcher").split(" ")[0].lower()
    backend = text_of(given, "dispatcher_backend").split(" ")[0].lower()
    switched = switch_of(given, "deepep")
    once = "hybridep" if backend == "hybridep" else "deepep"
    if kind == "allgather":
        given.notes.append("tokens are gathered for the experts, but counted as all-to-alls")
    elif kind in ("flex", "deepep") or backend in ("deepep", "hybridep") or switched:
        take(given, "dispatcher", once)
    elif kind.startswith("alltoall"):
        take(given, "dispatcher", "all-to-all")
    overlap = switch_of(given, "expert_overlap")
    if overlap is not None:
        take(given, "expert_overlap", "on" if overlap else "off")
    _take_graphs(given)


def _take_graphs(given: Given) -> None:
    """Set what CUDA graphs capture: Transformer Engine parts of layers, Megatron the step."""
    kind = text_of(given, "graphs").split(" ")[0].lower()
    scope = text_of(given, "graph_scope").lower()
    if kind == "none":
        take(given, "cuda_graphs", "none")
    elif kind == "full_iteration" or (kind and "full_iteration" in scope):
        take(given, "cuda_graphs", "step")
    elif kind or switch_of(given, "older_graphs"):
        take(given, "cuda_graphs", "layers")


def _is_zero(rate: str) -> bool:
    return rate.strip("0.") == "" or rate in ("0.", "null", "none")
