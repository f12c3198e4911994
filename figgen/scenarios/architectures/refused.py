"""Models that are refused, since reading their plain fields as Llama's counts them wrong."""

from __future__ import annotations

import re

from figgen.errors import InputError
from figgen.scenarios.architectures.fields import Fields, has

OTHERS = (
    (
        r"^(falcon_)?mamba|rwkv|recurrent|griffin|hawk|retnet|xlstm|hgrn|hyena|^s4|^gla$|delta_?net"
        r"|^lightning_attn",
        "a transformer, because recurrences that replace attention aren't modeled",
    ),
    (
        r"^(t5|mt5|umt5|longt5|bart|mbart|pegasus|marian|m2m_100|whisper|nllb)",
        "a decoder alone, because an encoder beside it isn't modeled",
    ),
    (r"^(clip|siglip|vit|deit|swin|dinov|convnext|resnet|sam)", "a language model"),
)
"""Kinds of models that are no decoders with attention, and what was expected instead."""

RECURRENT_FIELDS = ("lru_width", "decay_low_rank_dim", "hyena_layer_idxs", "wkv_head_size")
"""Fields that only files of models with a recurrence have."""


def refuse_others(fields: Fields, name: str) -> None:
    """Raise InputError for a model that is no decoder with attention, which Llama's fields miss.

    RecurrentGemma 2B would be counted as 4.8B.
    """
    for pattern, expected in OTHERS:
        if re.search(pattern, name) is not None:
            raise InputError(f"the model_type {name!r}", expected=expected)
    for field in RECURRENT_FIELDS:
        if has(fields, field):
            raise InputError(f"the model_type {name!r} with {field}", expected=OTHERS[0][1])
