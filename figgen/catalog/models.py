"""Published transformer shapes, each checked against its published parameter count."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from figgen.entries.entry import CatalogEntry
from figgen.entries.read import read_entries
from figgen.entries.schema import Value, choice, count, flag, text
from figgen.errors import InputError
from figgen.models.shape.model_shape import (
    FFN_MATRICES,
    NORM_VECTORS,
    QK_NORMS,
    ExpertShape,
    LatentAttention,
    ModelShape,
    StateSpace,
)
from figgen.models.shape.transformer import ParameterCounts, flops_per_token, parameter_counts

# A sum that is further than this from the published count needs its reason in the entry.
TOLERANCE = 0.005

_EXPERT_KEYS = ("experts", "top_k", "expert_ffn_hidden")
_LATENT_KEYS = ("query_rank", "kv_rank", "nope_head_dim", "rope_head_dim", "value_head_dim")
_STATE_SPACE_KEYS = ("mixer_heads", "mixer_head_dim", "state", "groups", "chunk")

MODEL_KEYS = {
    "title": text(required=True),
    "released": text(),
    "layers": count(1, 1000, required=True),
    "hidden": count(64, 100_000, required=True),
    "heads": count(1, 1000, required=True),
    "kv_heads": count(1, 1000, required=True),
    "head_dim": count(16, 1024, required=True),
    "ffn_hidden": count(64, 1_000_000, required=True),
    "vocab": count(256, 1_000_000, required=True),
    "sequence": count(128, 10_000_000, required=True),
    "ffn": choice(*FFN_MATRICES, required=True),
    "norm": choice(*NORM_VECTORS, required=True),
    "norms_per_layer": count(1, 4),
    "final_norm": flag(),
    "qk_norm": choice(*QK_NORMS),
    "positions": choice("rope", "learned", "alibi", "none", required=True),
    "bias": flag(),
    "tied_embeddings": flag(),
    "extra": count(1, 10_000_000),
    "window": count(16, 10_000_000),
    "full_every": count(2, 100),
    "experts": count(2, 10_000),
    "top_k": count(1, 1000),
    "expert_ffn_hidden": count(64, 1_000_000),
    "shared_experts": count(1, 16),
    "dense_layers": count(1, 1000),
    "expert_groups": count(2, 1000),
    "reached_groups": count(1, 1000),
    **{key: count(1, 100_000) for key in (*_LATENT_KEYS, *_STATE_SPACE_KEYS)},
    "attention_every": count(1, 1000),
    "attention_first": count(0, 1000),
    "parameters": count(10**6, 10**14, unit="param", required=True),
    "active": count(10**6, 10**14, unit="param"),
    "tokens": count(10**9, 10**15, unit="token"),
    "gpu_hours": count(10**3, 10**9, unit="GPU-h"),
    "trained_on": text(),
    "explained": text(),
    "explained_active": text(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A published model: its shape, and the numbers printed about it.

    `published_parameters` and `published_active` are the report's own numbers; `parameters` and
    `active_parameters` are summed from the shape. `explained` says why they differ. `released` is
    the month of the report, "2020-05", or empty; `gpu_hours` are those of the whole training on
    accelerators named `trained_on`.
    """

    name: str
    title: str
    released: str
    shape: ModelShape
    positions: str
    published_parameters: Value
    published_active: Value | None
    tokens: Value | None
    gpu_hours: Value | None
    trained_on: str
    explained: str
    explained_active: str
    source: str
    note: str
    facts: tuple[tuple[str, Value], ...]

    @property
    def counts(self) -> ParameterCounts:
        """Parameters by part."""
        return parameter_counts(self.shape)

    @property
    def parameters(self) -> int:
        """All parameters, summed from the shape."""
        return self.counts.total

    @property
    def active_parameters(self) -> int:
        """Parameters that one token uses, including the embedding table, summed from the shape."""
        return self.counts.active

    @property
    def looked_up_parameters(self) -> int:
        """Parameters of a table that is only looked up; 0 if it is also the head."""
        return self.counts.embedding if self.counts.head else 0

    @property
    def read_parameters(self) -> int:
        """Parameters that decoding reads, including every expert of a mixture."""
        return self.parameters - self.looked_up_parameters

    @property
    def decoding_parameters(self) -> int:
        """Parameters with which a token is multiplied, or to which it is added, in decoding."""
        return self.active_parameters - self.looked_up_parameters

    @property
    def prefill_parameters(self) -> int:
        """The same for a prompt's token; only the last token passes through the head."""
        return self.active_parameters - self.counts.embedding - self.counts.head

    @property
    def flops_per_token(self) -> int:
        """Model FLOPs to train on one token at the shape's sequence length, full attention."""
        return flops_per_token(self.shape)

    @property
    def released_months(self) -> int | None:
        """Months from year 0 to the month of the report."""
        year, _, month = self.released.partition("-")
        return 12 * int(year) + int(month) - 1 if month else None

    @property
    def layers(self) -> int:
        return self.shape.layers

    @property
    def hidden(self) -> int:
        return self.shape.hidden

    @property
    def heads(self) -> int:
        return self.shape.heads

    @property
    def kv_heads(self) -> int:
        return self.shape.kv_heads

    @property
    def head_dim(self) -> int:
        return self.shape.head_dim

    @property
    def ffn_hidden(self) -> int:
        return self.shape.ffn_hidden

    @property
    def vocab(self) -> int:
        return self.shape.vocab

    @property
    def sequence(self) -> int:
        return self.shape.sequence

    @property
    def experts(self) -> int:
        """Routed experts per layer; 1 for a dense model."""
        return 1 if self.shape.experts is None else self.shape.experts.count

    @property
    def top_k(self) -> int:
        """Routed experts per token; 1 for a dense model."""
        return 1 if self.shape.experts is None else self.shape.experts.top_k


def read_models(file: str, content: str, sources: Mapping[str, str]) -> dict[str, Model]:
    """Return the models of one file. Raises InputError for any mistake, including wrong sums."""
    entries = read_entries(file, content, MODEL_KEYS, sources)
    return {name: _model(entry) for name, entry in entries.items()}


def _model(entry: CatalogEntry) -> Model:
    try:
        shape = _shape(entry)
    except InputError as error:
        raise entry.place.fault(str(error)) from None
    model = entry.fill(
        Model,
        shape=shape,
        released=_month(entry),
        published_parameters=entry.values["parameters"],
        published_active=entry.values.get("active"),
    )
    _check_sum(entry, "parameters", model.parameters, model.explained)
    if model.published_active is not None:
        _check_sum(entry, "active", model.active_parameters, model.explained_active)
    return model


def _month(entry: CatalogEntry) -> str:
    said = entry.words.get("released", "")
    if said and not re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", said):
        raise entry.place.at("released").fault("a month", expected="one such as 2020-05", got=said)
    return said


def _shape(entry: CatalogEntry) -> ModelShape:
    given = entry.values
    for keys in (_EXPERT_KEYS, _LATENT_KEYS, _STATE_SPACE_KEYS):
        missing = [key for key in keys if key not in given]
        if missing and len(missing) < len(keys):
            raise InputError(f"{keys[0]} needs all of {', '.join(keys)}", got=f"no {missing[0]}")
    return entry.fill(
        ModelShape,
        learned_positions=entry.words["positions"] == "learned",
        experts=_experts(entry) if "experts" in given else None,
        latent=entry.fill(LatentAttention) if "kv_rank" in given else None,
        state_space=entry.fill(StateSpace) if "mixer_heads" in given else None,
    )


def _experts(entry: CatalogEntry) -> ExpertShape:
    return ExpertShape(
        count=entry.whole("experts"),
        top_k=entry.whole("top_k"),
        ffn_hidden=entry.whole("expert_ffn_hidden"),
        shared=entry.whole("shared_experts"),
        dense_layers=entry.whole("dense_layers"),
        groups=entry.whole("expert_groups", 1),
        reached=entry.whole("reached_groups", 1),
    )


def _check_sum(entry: CatalogEntry, key: str, computed: int, explained: str) -> None:
    """Check that the shape sums to the published count, or that the entry explains why not."""
    published = entry.values[key]
    off = computed / published.value - 1
    if abs(off) > TOLERANCE and not explained:
        raise entry.place.at(key).fault(
            f"the shape sums to {computed:,}, {off:+.2%} of what is published",
            expected=f"within {TOLERANCE:.1%}, or the reason in an 'explained' key",
            got=published.printed,
        )
    if abs(off) <= TOLERANCE and explained:
        raise entry.place.at(key).fault("explained, but the sum agrees", got=explained)
