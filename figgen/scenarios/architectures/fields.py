"""The fields of a `config.json`: texts by name, read as numbers, switches and lists."""

from __future__ import annotations

from dataclasses import dataclass, field

from figgen.errors import InputError
from figgen.scenarios.texts.entry import Entry, is_whole

MOST = 2**40
INNER = ("text_config.", "llm_config.", "language_config.", "thinker_config.text_config.")
"""Parts of a multimodal file that describe its language model."""

TIED = "tie_word_embeddings"
NOTHING = ("", "null", "None", "NaN")


@dataclass(slots=True, kw_only=True)
class Fields:
    """The fields of a file, which of them are strings or were read, the missing ones, and notes."""

    values: dict[str, str]
    quoted: dict[str, bool]
    read: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def fields_of(entries: list[Entry]) -> Fields:
    """Return the fields of a file; those of its language model take precedence.

    Raises InputError for a key that is given twice.
    """
    values: dict[str, str] = {}
    quoted: dict[str, bool] = {}
    for one in entries:
        if one.name in values and one.name:
            raise InputError("the text", expected="each key once", got=one.name[:80])
        values[one.name] = one.words
        quoted[one.name] = one.quoted
    tied = values.get(TIED, "")
    for start in INNER:
        for one in entries:
            if one.name.startswith(start):
                values[one.name[len(start) :]] = one.words
                quoted[one.name[len(start) :]] = one.quoted
    if tied not in NOTHING:
        values[TIED] = tied  # the head lies outside of the language model
    return Fields(values=values, quoted=quoted)


def has(fields: Fields, name: str) -> bool:
    """Whether a field has a value."""
    fields.read.append(name)
    return fields.values.get(name, "") not in NOTHING


def whole(fields: Fields, *names: str) -> int:
    """Return the whole number of a field under any of its names, noting it as missing if absent."""
    name = _named(fields, names)
    if name == "":
        fields.missing.append(" or ".join(names))
        return 1
    return _number(fields, name, names)


def whole_or(fields: Fields, usual: int, *names: str) -> int:
    """Return the whole number of a field, the first of a list, or `usual` if absent."""
    name = _named(fields, names)
    return usual if name == "" else _number(fields, name, names)


def switch_or(fields: Fields, usual: bool, *names: str) -> bool:
    """Return whether a field is on, or `usual` if absent."""
    name = _named(fields, names)
    if name == "":
        return usual
    if fields.quoted.get(name, False):
        raise InputError(name, expected="true or false", got=_string(fields, name))
    return fields.values[name] in ("true", "True", "1")


def words_of(fields: Fields, *names: str) -> list[str]:
    """Return the list of a field, empty if absent."""
    name = _named(fields, names)
    return fields.values[name].split() if name else []


def _named(fields: Fields, names: tuple[str, ...]) -> str:
    """Return the first of the names whose field has a value, or ""."""
    for name in names:
        if has(fields, name):
            return name
    return ""


def _string(fields: Fields, name: str) -> str:
    return '"' + fields.values[name][:40] + '"'


def _number(fields: Fields, name: str, names: tuple[str, ...]) -> int:
    """Return the number of a field; strings are refused, as by transformers 5."""
    found = fields.values[name]
    if fields.quoted.get(name, False):
        expected = "a whole number"
        raise InputError(" or ".join(names), expected=expected, got=_string(fields, name))
    first = found.split()[0]
    plain = first[:-2] if first.endswith(".0") else first
    padded = len(plain) > 1 and plain.startswith("0")
    if not is_whole(plain) or padded or int(plain) > MOST:
        raise InputError(" or ".join(names), expected="a whole number", got=found[:40])
    return int(plain)


OF_SIZES = ("size", "dim", "rank", "layers", "heads", "experts", "groups", "width")
"""Words in the names of fields that are sizes."""

BESIDE_SIZES = (
    "qk_head_dim", "head_dim", "max_window_layers", "rotary_dim", "linear_conv_kernel_dim",
    "num_query_groups", "num_hidden_layers", "word_embed_proj_dim", "block_size",
    "qk_rope_head_dim", "linear_head_dim", "linear_num_heads", "mamba_chunk_size", "index_n_heads",
    "index_head_dim", "index_block_size", "top_k_experts", "global_attn_every_n_layers",
    "layer_group_size", "dim_model_base", "chunk_size",
)  # fmt: skip
"""Such fields that follow from others, or change nothing where nothing reads them."""


def note_unread(fields: Fields) -> None:
    """Note the numbers that may be sizes and that no other function of this module has read."""
    open = [f"{name} {value}" for name, value in fields.values.items() if _is_open(fields, name)]
    if open:
        fields.notes.append(f"fields that may be sizes are not read: {', '.join(open)}")


def _is_open(fields: Fields, name: str) -> bool:
    """Return whether a field may be a size that was not read."""
    sized = any(word in OF_SIZES for word in name.split("_"))
    plain = is_whole(fields.values[name]) and fields.values[name] not in ("0", "1")
    inner = "." not in name and name not in BESIDE_SIZES
    return sized and plain and inner and name not in fields.read
