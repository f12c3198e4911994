"""A reader's own model: a shape from a file, or from sizes in a text.

A text such as `layers=32,hidden=4096,heads=32,vocab=32000` names a model wherever `--model` does;
`llama-3-8b,layers=16` is a model of the catalog with changed sizes. The command line builds such a
text from `--layers`, `--hidden` and so on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from figgen import catalog
from figgen.errors import InputError, unknown
from figgen.models.shape.model_shape import ModelShape
from figgen.models.shape.transformer import parameter_counts
from figgen.scenarios.architectures.sizes import shape_of_sizes

SIZES: Mapping[str, str] = MappingProxyType({
    "layers": "layers of the model",
    "hidden": "width of the residual stream",
    "heads": "query heads",
    "kv_heads": "key and value heads; by default as many as query heads",
    "head_dim": "head width; hidden / heads by default",
    "ffn": "width of the feed-forward block; 4 · hidden by default",
    "vocab": "rows of the embedding table",
    "experts": "routed experts per layer",
    "top_k": "experts per token",
    "expert_ffn": "width of an expert; as wide as the feed-forward block by default",
    "shared_experts": "shared experts, which process every token",
    "dense_layers": "leading layers without experts",
    "query_rank": "latent attention: width of compressed queries; 0 if they are not compressed",
    "kv_rank": "latent attention: width of compressed keys and values",
    "nope_head_dim": "latent attention: width of a head without position",
    "rope_head_dim": "latent attention: width of a head with position",
    "value_head_dim": "latent attention: width of a value head",
    "window": "window of a layer with sliding attention, in tokens",
    "full_every": "every n-th layer attends to all tokens, the others to a window",
    "activation": "swiglu, geglu, gelu, relu or squared-relu; swiglu by default",
    "norm": "rmsnorm or layernorm; rmsnorm by default",
    "qk_norm": "norms of queries and keys: none, per-head or full-width",
    "tied": "on if the head shares the embedding table",
    "bias": "on if linear layers have biases",
    "qkv_bias": "on if queries, keys and values have biases",
    "learned_positions": "on if positions are learned",
})  # fmt: skip
"""Sizes that a text may set, with a description of each."""

_NAMES = ("activation", "norm", "qk_norm")
_SWITCHES = ("tied", "bias", "qkv_bias", "learned_positions")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnModel:
    """A model that is not in the catalog, named by its file or its sizes.

    `notes` list what the shape ignores of the file.
    """

    name: str
    title: str
    shape: ModelShape
    notes: tuple[str, ...] = ()

    @property
    def parameters(self) -> int:
        """The number of all parameters, summed over the shape."""
        return parameter_counts(self.shape).total


def is_sizes(text: str) -> bool:
    """Return whether a text names a model by its sizes."""
    return "=" in text


def model_of_sizes(text: str) -> OwnModel:
    """Return the model for a text of sizes, which may begin with a model of the catalog.

    Raises InputError for an unknown size, for a value that a size cannot have, and for missing
    sizes, which it lists together.
    """
    base: ModelShape | None = None
    given: dict[str, int | str | bool] = {}
    for word in text.split(","):
        name, sign, value = word.strip().partition("=")
        if not sign:
            base = catalog.model(name).shape
        elif name not in SIZES:
            raise unknown("size of a model", name, SIZES)
        else:
            given[name] = _value(name, value)
    return OwnModel(name=text, title=title_of(text), shape=shape_of_sizes(given, base))


def title_of(text: str) -> str:
    """Return a model's sizes in words."""
    return text.replace(",", ", ").replace("=", " ").replace("_", " ")


def kind_of_size(name: str) -> str:
    """Return the placeholder that help shows for a size: `NAME`, `on|off`, or `N` for a number."""
    return "NAME" if name in _NAMES else "on|off" if name in _SWITCHES else "N"


def _value(name: str, value: str) -> int | str | bool:
    if name in _NAMES:
        return value
    if name in _SWITCHES:
        if value not in ("on", "off", "True", "False"):
            raise InputError(name, expected="on or off", got=value)
        return value in ("on", "True")
    if not value.isdigit() or int(value) > 2**40:
        raise InputError(name, expected="a whole number", got=value)
    return int(value)
