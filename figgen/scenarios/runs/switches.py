"""Options of a run that sources write as a switch, a number or in words."""

from __future__ import annotations

import re

from figgen.scenarios.runs.fields import Record, number_of, whole_of
from figgen.scenarios.runs.names import NOT_GIVEN, OFF, ON, first_match

GRAPHS = (
    (r"full.?iteration|step|whole|local", "step"),
    (r"layer|attn|attention|moe|mlp|te\b|transformer.?engine|partial|scope", "layers"),
)
"""What CUDA graphs capture, by Megatron-Core's names of implementations and scopes."""

EXCHANGES = (
    (r"ulysses.*(ring|p2p)|(ring|p2p).*ulysses|a2a ?\+ ?p2p|\busp\b", "a2a+p2p"),
    (r"ulysses|a2a|all-?to-?all|trad", "all-to-all"),
    (r"all-?gather", "all-gather"),
    (r"ring|p2p", "p2p"),
)
"""Exchanges of keys and values between context-parallel ranks, by names."""

FUSED_LOSSES = ((r"te\b|transformer.?engine", "te"), (r"native|own", "native"))
"""Fused losses of Megatron-Core, by names of `cross_entropy_fusion_impl`."""


def switch(value: object) -> bool | None:
    """Return the value of a switch in any spelling, or None for other words or nothing."""
    words = str(value).strip().lower()
    if value is None or re.fullmatch(NOT_GIVEN, words):
        return None
    if re.fullmatch(OFF, words):
        return False
    return True if re.fullmatch(ON, words) else None


def graphs_of(record: Record) -> str:
    """Return what CUDA graphs capture: parts of layers if a source only says that it uses them."""
    value = record.get("cuda_graphs")
    said, words = switch(value), str(value or "").strip().lower()
    if said is not None:
        return "layers" if said else "none"
    return "usual" if re.fullmatch(NOT_GIVEN, words) else first_match(GRAPHS, words) or "layers"


def expert_overlap_of(record: Record) -> str:
    """Return whether expert messages overlap, from their own field or a general one."""
    said = switch(record.get("expert_overlap"))
    if said is None:
        words = str(record.get("overlap") or "").lower()
        said = True if re.search(r"\bep\b|expert|a2a|all-?to-?all", words) else None
    return "usual" if said is None else "on" if said else "off"


def exchange_of(record: Record) -> str:
    """Return how context-parallel ranks exchange keys and values, by default in a ring."""
    return first_match(EXCHANGES, str(record.get("context_exchange") or "")) or "p2p"


def fused_loss_of(record: Record) -> str:
    """Return whose kernels fuse Megatron-Core's loss, "te" or "native", or "" if unsaid."""
    return first_match(FUSED_LOSSES, str(record.get("fused_loss") or "")) or ""


def offloaded_of(record: Record) -> float:
    """Return the share of the optimizer's state in the host's memory."""
    if record.get("offloaded_optimizer") is not None:
        return min(1.0, number_of(record, "offloaded_optimizer") or 0.0)
    return float(switch(record.get("optimizer_offload")) or False)


def documents_of(record: Record, sequence: int) -> tuple[int, ...]:
    """Return the lengths of equally long documents of a packed sequence, or ().

    They attend only to themselves. The last document is shorter if their length does not divide the
    sequence.
    """
    span = whole_of(record, "attention_span", sequence)
    if span >= sequence:
        return ()
    full, rest = divmod(sequence, span)
    return (span,) * full + ((rest,) if rest else ())
