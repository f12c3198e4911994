"""Renames settings of OLMo, OLMo-core, InternEvo and fairseq2 to known ones.

Sources: allenai/OLMo configs; allenai/OLMo-core src/scripts/train; InternLM/InternEvo configs;
facebookresearch/fairseq2 recipes.
"""

from __future__ import annotations

from figgen.scenarios.texts.entry import Entry, aside, entry, is_whole, normal


def renamed(entries: list[Entry], names: dict[str, str]) -> list[Entry]:
    """Return the entries renamed by a table."""
    found: list[Entry] = []
    for one in entries:
        name = names.get(normal(one.name), one.name)
        found.append(one if name == one.name else entry(name, one.words, one.origin))
    return found


def with_usual(entries: list[Entry], usual: dict[str, str], origin: str) -> list[Entry]:
    """Return the entries with the values that a trainer uses for names that none of them has."""
    said = [normal(one.name) for one in entries]
    more = [entry(name, usual[name], origin) for name in usual if normal(name) not in said]
    return [*entries, *more]


OLMO = {
    "model.max_sequence_length": "seq_length", "model.activation_type": "activation",
    "model.embedding_size": "padded_vocab_size", "model.weight_tying": "tie_word_embeddings",
    "model.include_bias": "bias", "model.attention_dropout": "attention_dropout",
    "model.residual_dropout": "hidden_dropout",
    "fsdp.sharding_strategy": "fsdp_sharding_strategy",
}  # fmt: skip


def olmo(entries: list[Entry]) -> list[Entry]:
    """Rename OLMo's settings; its feed-forward width counts both input matrices of SwiGLU."""
    found: list[Entry] = []
    gated = any(one.name == "model.activation_type" and "glu" in one.value for one in entries)
    padded = any(one.name == "model.embedding_size" for one in entries)
    for one in renamed(entries, OLMO):
        if one.name == "model.mlp_hidden_size" and is_whole(one.value):
            width = int(one.value) // (2 if gated else 1)
            found.append(entry("ffn_hidden_size", str(width), one.origin))
        elif one.name == "model.layer_norm_type":
            norm = "rmsnorm" if one.value == "rms" else "layernorm"
            found.append(entry("normalization", norm, one.origin))
        elif one.name == "model.rope":
            kind = "rope" if one.value == "true" else "learned"
            found.append(entry("position_embedding_type", kind, one.origin))
        elif one.name == "model.vocab_size" and padded:
            found.append(aside(one))
        elif one.name == "activation_checkpointing":
            found.append(entry("recompute_granularity", OLMO_KEPT.get(one.value, ""), "config"))
        else:
            found.append(one)
    return [*found, entry("recipe_of", "olmo", "config")]


OLMO_KEPT = {"whole_layer": "full", "fine_grained": "selective"}
"""Megatron's names of OLMo's activation checkpointing strategies."""


def _number(entries: list[Entry], names: tuple[str, ...]) -> int:
    """Return the last whole number under one of these names, or 0."""
    found = [one for one in entries if normal(one.name) in names and is_whole(one.value)]
    return int(found[-1].value) if found else 0


def olmo_core(entries: list[Entry]) -> list[Entry]:
    """Rename OLMo-core's settings; its batches count tokens."""
    tokens = _number(entries, ("sequence_length", "max_sequence_length"))
    found: list[Entry] = []
    for one in entries:
        name = normal(one.name)
        if name in OLMO_CORE_BATCHES:
            whole = is_whole(one.value) and tokens > 0
            size = str(int(one.value) // tokens) if whole else one.words
            found.append(entry(OLMO_CORE_BATCHES[name], size, one.origin))
        elif name in ("max_sequence_length", "sequence_length"):
            found.append(entry("seq_length", str(tokens), one.origin))
        elif name in OLMO_CORE:
            found.append(entry(OLMO_CORE[name], one.words, one.origin))
        elif name in ("param_dtype", "name", "mode", "num_replicas"):
            found.extend(_olmo_core_setting(one, name))
        else:
            found.append(one)
    return [*found, entry("recipe_of", "olmo", "python")]


OLMO_CORE_BATCHES = {
    "rank_microbatch_size": "micro_batch_size", "global_batch_size": "global_batch_size",
}  # fmt: skip
OLMO_CORE = {"top_k": "moe_top_k", "expert_hidden_size": "moe_ffn_hidden_size"}


def _olmo_core_setting(one: Entry, name: str) -> list[Entry]:
    """Rename a data-parallel or checkpointing setting of OLMo-core."""
    kind, _, value = one.value.rpartition(".")
    if name == "param_dtype":
        return [entry("precision", value, one.origin)]
    if name == "num_replicas":
        return [entry("dp_replicate_size", one.words, one.origin)]
    if name == "name" and kind.endswith("DataParallelType"):
        return [entry("zero_stage", "0" if value == "ddp" else "3", one.origin)]
    if name == "mode" and kind.endswith("CheckpointingMode"):
        kept = "full" if value == "full" else "selective"
        modules = value == "selected_modules"
        found = [entry("recompute_granularity", kept, one.origin)]
        return [*found, entry("recompute_modules", "mlp", one.origin)] if modules else found
    return [one]


INTERNEVO = {
    "micro_num": "gradient_accumulation_steps", "micro_bsz": "micro_batch_size",
    "num_kv_attention_heads": "num_query_groups", "checkpoint": "gradient_checkpointing",
    "parallel.pipeline.size": "pp_size", "norm_type": "normalization", "no_bias": "no_bias",
}  # fmt: skip
BLOCK = 256
"""Feed-forward widths of InternLM are multiples of this."""


def internevo(entries: list[Entry]) -> list[Entry]:
    """Rename InternEvo's settings; in mode isp the tensor group shares only the sequence."""
    values = {one.name: one.value for one in entries}
    found: list[Entry] = []
    for one in renamed(entries, INTERNEVO):
        name = normal(one.name)
        if name == "parallel.tensor.size":
            isp = values.get("parallel.tensor.mode", "") == "isp"
            found.append(entry("cp_size" if isp else "tp_size", one.words, one.origin))
        elif name == "parallel.tensor.mode":
            kept = "true" if one.value in ("msp", "fsp") else "false"
            found.append(entry("sequence_parallel", kept, one.origin))
            if one.value == "isp":
                found.append(entry("cp_comm_type", "a2a", one.origin))
        elif name == "parallel.zero1.size":
            found.append(entry("zero_stage", "0" if one.value == "1" else "1", one.origin))
        elif name == "mlp_ratio" and one.origin == "python":
            hidden = _number(entries, ("hidden_size",))
            width = _times(one.words, hidden)
            rounded = (width + BLOCK - 1) // BLOCK * BLOCK
            found.append(entry("ffn_hidden_size", str(rounded), one.origin) if width else one)
        else:
            found.append(one)
    found.append(entry("swiglu", "true", "python"))
    return [*found, entry("recipe_of", "internevo", "python")]


def _times(ratio: str, number: int) -> int:
    """Return a decimal number or quotient, such as 3.5 or 8 / 3, times an integer; 0 if neither."""
    top, quotient, low = ratio.partition(" / ")
    if quotient:
        both = is_whole(top) and is_whole(low) and int(low) > 0
        return int(top) * number // int(low) if both else 0
    whole, _, part = ratio.partition(".")
    if not is_whole(whole) or not (part == "" or is_whole(part)):
        return 0
    scale: int = 10 ** len(part)
    return int(whole + part) * number // scale


FAIRSEQ2 = {
    "trainer.data_parallelism": "fsdp", "trainer.mixed_precision.dtype": "precision",
    "trainer.grad_accumulation.num_batches": "gradient_accumulation_steps",
    "model.arch": "model_name", "dataset.batch_size": "micro_batch_size",
    "model.dtype": "training.dtype", "model.config_overrides.hf_name": "model_name",
}  # fmt: skip


LENGTH = 8192
"""Default length of fairseq2's sequences; a batch has twice as many tokens."""


def fairseq2(entries: list[Entry]) -> list[Entry]:
    """Rename fairseq2's settings; a batch has as many sequences as fit into a number of tokens.

    Weights and moments are kept in the format of `model.dtype`.
    """
    length = _number(entries, ("dataset.max_seq_len",)) or LENGTH
    tokens = _number(entries, ("dataset.max_num_tokens",)) or 2 * LENGTH
    found = [entry("seq_length", str(length), "config")]
    for one in renamed(entries, FAIRSEQ2):
        if one.name in ("dataset.max_num_tokens", "dataset.max_seq_len"):
            continue
        if one.name == "fsdp":
            found.append(entry("zero_stage", "3" if one.value == "fsdp" else "0", one.origin))
        elif one.name == "trainer.activation_checkpointing.mode":
            kept = "none" if one.value in ("off", "false") else "full"
            found.append(entry("recompute_granularity", kept, one.origin))
        else:
            found.append(one)
    if not _number(entries, ("dataset.batch_size",)):
        found.append(entry("micro_batch_size", str(max(1, tokens // length)), "config"))
    return [*found, entry("recipe_of", "fairseq2", "config")]
