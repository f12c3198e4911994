"""FLOPs per token and utilization of a peak, by named conventions.

MFU counts the FLOPs that the model needs, HFU those that the hardware executes, including
recomputation. Papers also count differently within either: DeepSeek-V3 prints two MFUs for one run.
A percentage therefore needs its convention.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from figgen.errors import InputError, unknown
from figgen.models.shape.model_shape import FFN_MATRICES, ModelShape
from figgen.models.shape.transformer import (
    flops_per_token,
    keys_met,
    matmul_parameters,
    mixer_core_flops,
    parameter_counts,
)

PALM = "Chowdhery et al. 2022 (PaLM), arXiv:2204.02311, appendix B"
NARAYANAN = "Narayanan et al. 2021, arXiv:2104.04473, eq. (3)"
KORTHIKANTI = "Korthikanti et al. 2022, arXiv:2205.05198, appendix A"
DERIVATION = "derivation"

MFU_CONVENTION = "6nd+attention"
"""The convention of every MFU on this site that names no other.

It is PaLM's definition, which torchtitan, llm-foundry and nanoGPT log. Megatron-LM (since March
2025) and MaxText log "causal", which omits the masked half of attention. This convention counts
masked work that kernels skip, so the MFU of very long sequences can exceed 100%.
"""

MFU_LABEL = f"MFU ({MFU_CONVENTION})"
"""Heading of columns and cards that show an MFU."""


Documents: TypeAlias = tuple[int, ...]
"""Lengths of the documents packed into a sequence, in tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlopsConvention:
    """A way to count the FLOPs of training on one token, forward and backward.

    `count` takes a shape, a sequence length in tokens and the lengths of packed documents.
    `hardware` marks counts that include recomputation: divided by a peak they give HFU, the others
    MFU.
    """

    name: str
    label: str
    count: Callable[[ModelShape, int, Documents], float]
    hardware: bool
    source: str


def _parameters_only(shape: ModelShape, sequence: int, documents: Documents) -> float:
    return 6 * parameter_counts(shape).active


def _with_attention(shape: ModelShape, sequence: int, documents: Documents) -> float:
    return flops_per_token(shape, sequence=sequence, documents=documents)


def _causal(shape: ModelShape, sequence: int, documents: Documents) -> float:
    return flops_per_token(shape, sequence=sequence, causal=True, documents=documents)


def _fully_recomputed(shape: ModelShape, sequence: int, documents: Documents) -> float:
    """Return FLOPs per token if every layer runs forward twice and the head once."""
    head = shape.vocab * shape.hidden
    layers = matmul_parameters(shape) - head
    mixers = 4 * shape.state_space_layers * mixer_core_flops(shape)
    return 8 * layers + 6 * head + 16 * _core_multiply_adds(shape, sequence, documents) + mixers


def _selectively_recomputed(shape: ModelShape, sequence: int, documents: Documents) -> float:
    """Return FLOPs per token if only the attention core runs forward twice."""
    return flops_per_token(shape, sequence=sequence, documents=documents) + 4 * _core_multiply_adds(
        shape, sequence, documents
    )


def _selective_as_printed(shape: ModelShape, sequence: int, documents: Documents) -> float:
    """Return FLOPs per token with the attention core, backward included, counted twice.

    The HFUs that Korthikanti et al. print count it so.
    """
    return flops_per_token(
        shape, sequence=sequence, documents=documents
    ) + 12 * _core_multiply_adds(shape, sequence, documents)


def _megatron(shape: ModelShape, sequence: int, documents: Documents) -> float:
    if shape.experts or shape.latent or shape.state_space or shape.kv_heads != shape.heads:
        raise InputError(
            "convention 'megatron'",
            expected="a dense model with multi-head attention",
            key="convention",
        )
    if documents:
        raise InputError("convention 'megatron'", expected="no packed documents", key="convention")
    if FFN_MATRICES[shape.ffn] != 2 or shape.ffn_hidden != 4 * shape.hidden:
        raise InputError(
            "convention 'megatron'", expected="blocks of two h × 4h matrices", key="convention"
        )
    hidden, layers = shape.hidden, shape.layers
    share = sequence / (6 * hidden) + shape.vocab / (16 * layers * hidden)
    return 96 * layers * hidden**2 * (1 + share)


def _core_multiply_adds(shape: ModelShape, sequence: int, documents: Documents) -> float:
    """Return the multiply-adds per token of QKᵀ in all layers, masked half included.

    That is half of the core's multiply-adds, since the matmul with the values takes as many.
    """
    return keys_met(shape, sequence, documents) * shape.attention_width


_ALL = (
    FlopsConvention(
        name="6nd",
        label="6 per active parameter, embedding table included",
        count=_parameters_only,
        hardware=False,
        source=PALM,
    ),
    FlopsConvention(
        name=MFU_CONVENTION,
        label="6 per multiplied weight, attention whole",
        count=_with_attention,
        hardware=False,
        source=PALM,
    ),
    FlopsConvention(
        name="causal",
        label="6 per multiplied weight, masked half of attention left out",
        count=_causal,
        hardware=False,
        source="Megatron-LM training.py, num_floating_point_operations",
    ),
    FlopsConvention(
        name="hfu-full",
        label="with every layer's forward repeated",
        count=_fully_recomputed,
        hardware=True,
        source=DERIVATION,
    ),
    FlopsConvention(
        name="hfu-selective",
        label="with the attention core's forward repeated",
        count=_selectively_recomputed,
        hardware=True,
        source=DERIVATION,
    ),
    FlopsConvention(
        name="hfu-selective-korthikanti",
        label="with all of the attention core counted twice",
        count=_selective_as_printed,
        hardware=True,
        source=KORTHIKANTI,
    ),
    FlopsConvention(
        name="megatron",
        label="96·B·s·L·h²·(1 + s/6h + V/16Lh), forward repeated",
        count=_megatron,
        hardware=True,
        source=NARAYANAN,
    ),
)

CONVENTIONS: Mapping[str, FlopsConvention] = MappingProxyType({c.name: c for c in _ALL})
"""Conventions by name."""


def training_flops_per_token(
    shape: ModelShape,
    convention: str = MFU_CONVENTION,
    *,
    sequence: int | None = None,
    documents: Documents = (),
) -> float:
    """Return the FLOPs of training on one token, counted by `convention`.

    The sequence has `sequence` tokens, by default the shape's own. If `documents` are packed into
    it, attention counts only within each document.

    Raises InputError for an unknown convention or a shape that the convention does not cover.
    """
    if convention not in CONVENTIONS:
        raise unknown("FLOPs convention", convention, CONVENTIONS)
    length = shape.sequence if sequence is None else sequence
    return CONVENTIONS[convention].count(shape, length, documents)


def utilisation(
    shape: ModelShape,
    convention: str = MFU_CONVENTION,
    *,
    tokens_per_s_per_gpu: float,
    peak_flops_per_s: float,
    sequence: int | None = None,
    documents: Documents = (),
) -> float:
    """Return MFU or HFU, whichever `convention` defines, from the throughput of one GPU.

    Raises InputError for a negative throughput or a peak that is not positive.
    """
    if tokens_per_s_per_gpu < 0:
        raise InputError("tokens_per_s_per_gpu", expected=">= 0", got=tokens_per_s_per_gpu)
    if peak_flops_per_s <= 0:
        raise InputError("peak_flops_per_s", expected="> 0", got=peak_flops_per_s)
    per_token = training_flops_per_token(shape, convention, sequence=sequence, documents=documents)
    return tokens_per_s_per_gpu * per_token / peak_flops_per_s


def utilisation_of_step(
    shape: ModelShape,
    convention: str = MFU_CONVENTION,
    *,
    step_time_s: float,
    tokens_per_step: float,
    gpus: int,
    peak_flops_per_s: float,
    sequence: int | None = None,
) -> float:
    """Return MFU or HFU, whichever `convention` defines, from the time of a step.

    Raises InputError for a step time or a GPU count that is not positive.
    """
    if step_time_s <= 0:
        raise InputError("step_time_s", expected="> 0", got=step_time_s)
    if gpus < 1:
        raise InputError("gpus", expected=">= 1", got=gpus)
    rate = tokens_per_step / step_time_s / gpus
    return utilisation(
        shape,
        convention,
        tokens_per_s_per_gpu=rate,
        peak_flops_per_s=peak_flops_per_s,
        sequence=sequence,
    )
