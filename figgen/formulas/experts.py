"""Mixture of experts: all-to-all traffic and parameter counts.

Routing itself is simulated in `figgen.models`.
"""

from __future__ import annotations

from figgen.equations.ops import Number, ceil
from figgen.formulas.notation import formula


@formula(symbol=r"E_\text{rank}", unit="expert", source="definition", where="experts % ep == 0")
def experts_per_rank(experts: Number, ep: Number) -> Number:
    """Experts of a layer that each expert-parallel rank holds."""
    return experts // ep


@formula(symbol=r"C_\text{e}", unit="token", source="Fedus et al. 2021, arXiv:2101.03961, eq. 3")
def expert_capacity(
    tokens: Number, top_k: Number, experts: Number, capacity_factor: Number
) -> Number:
    """Token copies that each expert accepts; a router drops the copies beyond them."""
    return ceil(capacity_factor * tokens * top_k / experts)


@formula(
    symbol=r"V_\text{EP}",
    unit="B",
    source="derivation: uniform routing, one copy for every expert chosen",
)
def expert_all_to_all_bytes(
    passes: Number,
    top_k: Number,
    tokens: Number,
    hidden: Number,
    bytes_per_element: Number,
    ep: Number,
) -> Number:
    """Bytes that a rank with `tokens` tokens sends in the all-to-alls of one layer."""
    return passes * top_k * tokens * hidden * bytes_per_element * ((ep - 1) / ep)


@formula(
    symbol=r"\rho",
    unit="1",
    source="definition",
    where="parameters >= active_parameters",
)
def total_to_active_ratio(parameters: Number, active_parameters: Number) -> Number:
    """Parameters that a model stores for each parameter that a token uses."""
    return parameters / active_parameters


@formula(
    symbol=r"\text{CCR}_\text{EP}",
    unit="FLOP/B",
    source="derivation: gated experts, two all-to-alls forward and two backward",
    where="ep >= 2",
)
def expert_all_to_all_ccr(ffn_width: Number, bytes_per_element: Number, ep: Number) -> Number:
    """Work of the experts per byte sent, which depends only on the width of one expert."""
    return 4.5 * ffn_width / bytes_per_element * ep / (ep - 1)
