"""The model of a job: a name in the catalog, or sizes."""

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
from figgen.scenarios.taking.published import published_sizes
from figgen.scenarios.texts.entry import normal

OTHER_NAMES = (
    ("llama31405b", "llama-3-405b"), ("llama3170b", "llama-3-70b"),
    ("llama3370b", "llama-3-70b"), ("llama318b", "llama-3-8b"), ("llama321b", "llama-3-1b"),
    ("llama7b", "llama-1-7b"), ("llama13b", "llama-1-13b"), ("llama33b", "llama-1-33b"),
    ("llama30b", "llama-1-33b"), ("llama65b", "llama-1-65b"), ("deepseekr1", "deepseek-v3"),
    ("olmo211247b", "olmo-2-7b"), ("olmo2112413b", "olmo-2-13b"), ("olmo2032532b", "olmo-2-32b"),
    ("zephyr7b", "mistral-7b"), ("vicuna7b", "llama-2-7b"), ("vicuna13b", "llama-2-13b"),
    ("granite40hsmall", "granite-4-h-small"),
)  # fmt: skip
"""Names of models without punctuation that the catalog writes differently."""

_MODELS = (
    "llama-3-405b llama-3-70b llama-3-8b llama-3-1b llama-2-7b llama-2-13b llama-2-70b "
    "mixtral-8x22b mixtral-8x7b mistral-7b deepseek-v3 deepseek-v2 qwen-3-8b qwen-3-14b "
    "qwen-3-32b qwen-3-30b-a3b qwen-3-235b-a22b gpt-oss-120b gemma-3-27b kimi-k2 grok-1 "
    "nemotron-4-340b olmo-2-7b olmo-2-13b olmo-2-32b bloom-176b opt-175b gpt-3-175b gpt-2-xl"
)
CATALOG_NAMES = (*OTHER_NAMES, *[(name.replace("-", ""), name) for name in _MODELS.split(" ")])
"""Names of models without punctuation, and their names in the catalog."""

OTHER_MODELS = (
    "distill", "lite", "chat16b", "16b", "debug", "tiny", "next", "coder", "vision", "lora",
    "draft", "mini", "vl", "omni",
)  # fmt: skip
"""Parts of names that denote a model other than the one named."""

FAMILIES = ("gemma", "llama", "qwen", "mistral", "mixtral", "deepseek")
"""Names of families, of which a model's name has one."""

SIZES = (
    "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "experts", "top_k",
    "expert_ffn", "shared_experts", "dense_layers", "query_rank", "kv_rank", "nope_head_dim",
    "rope_head_dim", "value_head_dim",
)  # fmt: skip
"""Sizes of a model that a file may give, by the options' names."""


def catalog_name(said: str) -> str:
    """Return the model of the catalog that a name means, or ""."""
    plain = ""
    for letter in said.rstrip("/").partition("(")[0].rpartition("/")[2].lower():
        plain += letter if letter.isalnum() else ""
    if plain.startswith("meta"):
        plain = plain[4:]
    plain = plain.removeprefix("unsloth").replace("instruct", "").replace("base", "")
    best = ""
    for name, model in CATALOG_NAMES:
        at = plain.find(name)
        if at < 0 or (at > 0 and plain[at - 1].isalnum() and not _starts(plain, at)):
            continue
        rest = plain[at + len(name) :]
        if any(other in plain and other not in name for other in FAMILIES):
            continue
        if any(other in plain for other in OTHER_MODELS) or (rest[:1].isdigit() and best):
            continue
        return model
    return best


def _starts(plain: str, at: int) -> bool:
    """Return whether the text before a name is that of its vendor."""
    return plain[:at] in (
        "huggyllama",
        "metallama",
        "code",
        "hf",
        "nousresearch",
        "deepseekai",
        "pretrain",
    )


def take_model(given: Given, dialect: str) -> None:
    """Set the model's name if the catalog has it, and sizes if they are given."""
    said = _without_tower(given, _named(given))
    flavor = text_of(given, "model_size_name").split(" ")[0]
    named = catalog_name(said.rpartition("/")[2] + flavor) if flavor else catalog_name(said)
    if not named and flavor:
        named = catalog_name(flavor)
    if not named and dialect == "torchtitan":
        named = catalog_name(_of_configuration(given))
    sizes = {} if named else published_sizes(said)
    for name, value in sizes.items():
        take(given, name, value)
    if named:
        take(given, "model", named)
    elif sizes:
        pass  # the model by its sizes
    elif said and not _is_program_word(said) and not flavor:
        given.notes.append(
            f"the model {said!r} is not in the catalog; give its config.json or its sizes"
        )
    elif said and flavor:
        given.notes.append(f"the model {said} {flavor} is not in the catalog; give its sizes")
    for size in SIZES:
        number = whole_of(given, size)
        if number:
            take(given, size, number)
    _take_latent(given, dialect)
    _take_family(given)
    _take_kinds(given, "" if sizes else dialect)  # published sizes leave nothing to a framework


LATENT = {"kv_rank": 512, "nope_head_dim": 128, "rope_head_dim": 64, "value_head_dim": 128}
"""Megatron-Core's sizes of latent attention, transformer_config.py::MLATransformerConfig."""


def _take_latent(given: Given, dialect: str) -> None:
    """Take latent attention's sizes in Megatron only if it is switched on, or else its defaults."""
    on = switch_of(given, "latent")
    if not _is_megatron_line(dialect):
        return
    for size in ("query_rank", *LATENT):
        if on and size in LATENT:
            assume(given, size, LATENT[size])
        elif not on and size in given.taken and "model" not in given.taken:
            given.taken.pop(size)
            given.notes.append(f"{size} has no effect without latent attention")


def _take_family(given: Given) -> None:
    """Set what a family of nanotron's models has, which a file only names."""
    if switch_of(given, "is_starcoder2"):
        for kind in ("bias", "tied"):
            assume(given, kind, True)
        assume(given, "norm", "layernorm")
    if switch_of(given, "is_qwen2") and "qkv_bias" not in given.keys:
        assume(given, "qkv_bias", True)


def _without_tower(given: Given, said: str) -> str:
    """Return the name of the language model in a vision-language model such as `Qwen3-VL-8B`."""
    for mark in ("-VL-", "-vl-", "_vl_"):
        before, found, after = said.partition(mark)
        plain = before + "-" + after
        if found and (catalog_name(plain) or published_sizes(plain)):
            given.notes.append(f"of {said}, the vision tower is not counted")
            return plain
    return said


def _named(given: Given) -> str:
    """Return the name of the model: one that is known, or else the last."""
    last = text_of(given, "model_name").split(" ")[0]
    for one in given.keys.get("model_name", []):
        if catalog_name(one.value) or published_sizes(one.value):
            return one.words.split(" ")[0]
    for one in given.keys.get("model_name", []):
        for folder in reversed(one.value.split("/")[:-1]):  # of a checkpoint: `Llama-3.1-8b/iter_1`
            if catalog_name(folder) or published_sizes(folder):
                return folder
    return last


def _is_program_word(said: str) -> bool:
    return said in ("gpt", "GPT", "causal_lm", "mpt_causal_lm", "hf_causal_lm", "llama", "true")


def _of_configuration(given: Given) -> str:
    """Return the model that torchtitan's configuration is named after, such as `llama3_8b.toml`."""
    for one in given.entries:
        if one.name in ("configuration_file", "CONFIG_FILE", "--job.config_file", "--config"):
            given.heeded.extend([one.name, "--module"])
            return one.value.rpartition("/")[2].partition(".")[0]
    return ""


GATED = ("swiglu", "silu", "geglu", "fast-swiglu", "fast_swiglu", "fast-geglu")


def _take_kinds(given: Given, dialect: str) -> None:
    """Set the kinds of layers if the sizes describe a custom model."""
    if "layers" not in given.taken or "hidden" not in given.taken:
        return
    megatron = dialect in (
        "megatron-lm",
        "megatron-deepspeed",
        "gpt-neox",
        "nemo",
        "megatron-bridge",
    )
    plain = text_of(given, "model_name").startswith("mpt_causal")
    plain = plain or text_of(given, "model_kind") == "gpt2"
    megatron = megatron or plain
    activation = text_of(given, "activation").split(" ")[0].lower()
    if switch_of(given, "quick_geglu"):
        take(given, "activation", "geglu")
    elif switch_of(given, "swiglu") or activation in GATED:
        take(given, "activation", "geglu" if "geglu" in activation else "swiglu")
    elif switch_of(given, "squared_relu"):
        take(given, "activation", "squared-relu")
    elif activation in ("gelu", "relu", "squared-relu", "squared_relu"):
        take(given, "activation", activation.replace("_", "-"))
    elif activation:
        given.notes.append(f"the activation {activation!r} is not modeled")
    elif dialect == "llm-foundry" and "llama" in text_of(given, "model_name"):
        assume(given, "activation", "swiglu")
    elif plain or dialect in ("megatron-lm", "megatron-deepspeed", "gpt-neox", "llm-foundry"):
        assume(given, "activation", "gelu")
    _take_norm(given, megatron)
    alone = any(normal(one.name) != "num_query_groups" for one in given.keys.get("kv_heads", []))
    if (
        not alone
        and not switch_of(given, "grouped")
        and "grouped" not in given.keys
        and _is_megatron_line(dialect)
    ):
        given.taken.pop("kv_heads", None)
    elif switch_of(given, "grouped") and _is_megatron_line(dialect):
        assume(given, "kv_heads", 1)
    if text_of(given, "multi_query").lower() in ("true", "multiquery"):
        take(given, "kv_heads", 1)
    _assume_ffn(given, dialect)
    if "experts" in given.taken and _is_megatron_line(dialect):
        assume(given, "expert_ffn", value_of(given, "ffn", 0))
        assume(given, "top_k", 2 if dialect == "megatron-lm" else 1)
    if dialect == "gpt-neox":
        _shrink_ffn(given)
    shared = whole_of(given, "shared_ffn")
    width = given.taken.get("expert_ffn", given.taken.get("ffn", 0))
    if shared and isinstance(width, int) and width and shared % width == 0:
        take(given, "shared_experts", shared // width)
    elif shared:
        given.notes.append(f"a shared expert of width {shared} is not modeled: it is left out")
    _take_layers_of_experts(given)
    _take_window(given)


def _take_window(given: Given) -> None:
    """Set the window of attention; Megatron gives the keys before and after a token."""
    said = text_of(given, "window").replace("(", "").replace(")", "")
    before = said.replace(",", " ").split()[0] if said else ""
    if not before.isdigit() or before == "0":
        return
    both = "," in said or len(said.split()) > 1
    take(given, "window", int(before) + 1 if both else int(before))
    every = whole_of(given, "window_skip")
    if every:
        take(given, "full_every", every)


def _is_megatron_line(dialect: str) -> bool:
    return dialect in ("megatron-lm", "megatron-deepspeed")


NORMED = {
    "per-head": "afmoe qwen3 qwen3_moe qwen3_next qwen3_5 qwen3_5_moe gemma3 gemma3n gemma4 "
    "gemma4_unified dots1 lfm2 hy_v3 exaone4 exaone_moe flint apertus minimax_m3_vl",
    "full-width": "olmo2 olmo3 olmoe flex_olmo minimax_m2",
}
"""Kinds of models that always have norms of queries and keys, by the kind of norm.

The larger table of kinds in `architectures` loads only with a model's own file.
"""


def _usual_norm(kind: str) -> str:
    """Return the kind of norm of queries and keys that a kind of model always has, or ""."""
    for norm, kinds in NORMED.items():
        if kind in kinds.split(" "):
            return norm
    return ""


def _take_norm(given: Given, megatron: bool) -> None:
    norm = text_of(given, "norm").split(" ")[0].lower()
    if switch_of(given, "rms"):
        take(given, "norm", "rmsnorm")
    elif norm in ("rmsnorm", "layernorm"):
        take(given, "norm", norm)
    elif norm in ("layernorm1p", "low_precision_layernorm"):
        take(given, "norm", "layernorm")
    elif megatron:
        assume(given, "norm", "layernorm")
    adapters = text_of(given, "bias") in ("none", "all", "lora_only")  # an option of PEFT
    bias = None if adapters else switch_of(given, "bias")
    if switch_of(given, "no_bias") or bias is False:
        take(given, "bias", False)
    elif bias:
        take(given, "bias", True)
    elif megatron:
        assume(given, "bias", True)
    normed = _usual_norm(text_of(given, "model_kind"))
    if switch_of(given, "qk_norm") and "kv_rank" not in given.taken:
        take(given, "qk_norm", "per-head")
    elif normed:
        take(given, "qk_norm", normed)
    tied = switch_of(given, "tied")
    untied = switch_of(given, "untied")
    if untied is not None or tied is not None:
        take(given, "tied", not untied if untied is not None else bool(tied))
    elif megatron:
        assume(given, "tied", True)
    kind = text_of(given, "position_kind").split(" ")[0].lower()
    turned = switch_of(given, "rotary")
    without = switch_of(given, "no_positions")
    if turned or without or kind in ("rope", "mrope", "rotary", "yarn", "none", "alibi"):
        take(given, "learned_positions", False)
    elif kind in ("learned_absolute", "learned"):
        take(given, "learned_positions", True)
    elif megatron and "kv_rank" not in given.taken:
        assume(given, "learned_positions", True)
    if switch_of(given, "qkv_bias"):
        take(given, "qkv_bias", True)


def _assume_ffn(given: Given, dialect: str) -> None:
    """Assume a missing feed-forward width as the framework computes it."""
    hidden = given.taken["hidden"]
    ratio = whole_of(given, "expansion")
    if "ffn" in given.taken or not isinstance(hidden, int):
        return
    if ratio:
        take(given, "ffn", ratio * hidden)
    elif given.taken.get("activation") in ("swiglu", "geglu") and _is_megatron_line(dialect):
        block = whole_of(given, "ffn_block")
        width = hidden * 8 // 3
        if block:  # rounded as in Llama's code
            take(given, "ffn", (width + block - 1) // block * block)
        else:
            assume(given, "ffn", width // 64 * 64)
    else:
        assume(given, "ffn", 4 * hidden)


def _shrink_ffn(given: Given) -> None:
    """Divide the width by three for GPT-NeoX, whose gated blocks take a third for each matrix.

    StableLM's fork takes two thirds of 4 · hidden, rounded up to a multiple of its own.
    """
    block = whole_of(given, "ffn_block")
    hidden = given.taken["hidden"]
    if block and isinstance(hidden, int) and text_of(given, "ffn_kind").startswith("gated"):
        given.assumed.pop("ffn", None)
        take(given, "ffn", (hidden * 8 // 3 + block - 1) // block * block)
        return
    width = given.taken.get("ffn", given.assumed.get("ffn", 0))
    if isinstance(width, int) and given.taken.get("activation") in ("swiglu", "geglu"):
        third = width * 2 // 3 // 2
        each = (third + block - 1) // block * block if block else third
        given.assumed.pop("ffn", None)
        take(given, "ffn", each)


def _take_layers_of_experts(given: Given) -> None:
    """Set the leading dense layers of Megatron's `([0]*3+[1]*58)`; other patterns are noted."""
    plain = text_of(given, "moe_layer_freq").replace(" ", "").strip("'\"()")
    dense, _, rest = plain.partition("+")
    number = "1" if dense == "[0]" else dense.removeprefix("[0]*")
    if number.isdigit() and dense[:3] == "[0]" and rest[:3] == "[1]" and "[0]" not in rest:
        take(given, "dense_layers", int(number))
    elif plain not in ("", "1", "true") and ("0" in plain or plain.isdigit()):
        given.notes.append(f"experts in layers {plain!r} are not modeled: all layers have them")
