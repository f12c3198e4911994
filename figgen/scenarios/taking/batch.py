"""The batch of a job, its sequences and its pipeline schedule."""

from __future__ import annotations

import re

from figgen.scenarios.taking.cluster import axes_product
from figgen.scenarios.taking.given import (
    Given,
    assume,
    switch_of,
    take,
    text_of,
    value_of,
    whole_of,
)
from figgen.scenarios.texts.entry import is_whole, normal

TRAINERS = (
    "axolotl", "llama-factory", "accelerate", "deepspeed", "transformers", "torchtune", "ms-swift",
)  # fmt: skip
"""Frameworks whose steps have one microbatch unless they accumulate gradients."""

WHOLE_BATCHES = ("nemo", "megatron-bridge", "megatron-core", "torchtitan", "colossalai", "maxtext")
"""Frameworks that want the global batch, or whose microbatches are counted elsewhere."""

SCHEDULES = {
    "1f1b": "1f1b", "gpipe": "gpipe", "afab": "gpipe", "allforwardallbackward": "gpipe",
    "interleaved1f1b": "interleaved-1f1b", "interleaved-1f1b": "interleaved-1f1b",
    "loopedbfs": "looped-bfs", "zbvzerobubble": "zbv", "zbv": "zbv", "zb1p": "zb1p",
    "dualpipev": "dualpipev", "zb-h1": "zb1p",
}  # fmt: skip
"""Pipeline schedules by their names in frameworks."""

REPEATED = r"(?:\(([^)]+)\)|(.))\*(\d{1,3})(?!\d)"
"""A repeated part of a layout of stages: `(tt|)*29`, or `t*3`."""


def take_batch(given: Given, dialect: str) -> None:
    """Set sequence length, microbatches and global batch."""
    sequence = whole_of(given, "sequence")
    decoder = whole_of(given, "decoder_sequence")
    if decoder and any(normal(one.name) == "language_model_type" for one in given.entries):
        sequence = decoder  # the other length is that of images
    elif decoder:
        given.notes.append("only the decoder of this encoder-decoder model is computed")
    positions = whole_of(given, "positions")
    prompt = whole_of(given, "prompt_tokens")
    answer = whole_of(given, "answer_tokens")
    sequence = sequence or (prompt + answer if prompt and answer else 0)
    if sequence:
        take(given, "sequence", sequence)
    elif positions:
        assume(given, "sequence", positions, "the model's most")
    if switch_of(given, "document_mask") or text_of(given, "mask_kind") == "block_causal":
        given.notes.append(
            "packed documents attend only to themselves: give their mean length with "
            "--document-tokens"
        )
    _note_objective(given)
    size = whole_of(given, "microbatch_size") or _plain_batch(given, dialect)
    count = whole_of(given, "accumulation")
    count = (
        0 if dialect == "nemo" and count == 1 else count
    )  # its trainer leaves accumulation to Megatron
    whole = whole_of(given, "global_batch")
    local = whole_of(given, "local_batch")
    if dialect == "fsdp" and whole and not size and not count:
        size, whole = whole, 0  # PyTorch's data loader takes the batch of one GPU
    if dialect in ("torchtitan", "colossalai"):
        _take_local(given, local, size)
    elif dialect == "llm-foundry" and local and not whole:
        size = size or local
    if size and "microbatch_size" not in given.taken and dialect != "torchtitan":
        take(given, "microbatch_size", size)
    if whole:
        take(given, "global_batch", whole)
    if count:
        _take_count(given, count, whole, size)
    single = dialect in TRAINERS or (size > 0 and dialect not in WHOLE_BATCHES)
    if single and not whole and not count:
        assume(given, "microbatches", 1)


def _note_objective(given: Given) -> None:
    """Note what training on preferences or rewards adds to the passes that are computed."""
    said = text_of(given, "objective").lower().rpartition("_")[2]
    prompts = [one.name for one in given.keys.get("prompt_tokens", [])]
    if not said and any("max_prompt" in name for name in prompts):
        said = "grpo" if "answer_tokens" in given.keys else "training on preferences"
    for word in ("dpo", "grpo", "reward"):
        if any(one.name == "program" and word in one.value for one in given.entries):
            said = word
    if said and said not in ("sft", "pt", "pretrain") and not is_whole(said):
        given.notes.append(
            f"{said} also needs answers, a reference or a reward; only the training is computed"
        )


def take_schedule(given: Given, dialect: str) -> None:
    """Set the schedule and the chunks of a pipeline."""
    stages = value_of(given, "pp", 1)
    layers = value_of(given, "layers", 0)
    said = text_of(given, "schedule").replace("_", "").lower()
    written = text_of(given, "pipeline_layout")
    layout = _layers_of_layout(written)
    if written not in ("", "null", "none") and not layout:
        _unheed(given, "pipeline_layout")
    virtual = whole_of(given, "virtual_stages")
    if layout:
        virtual = len(layout) // max(stages, 1)
    each = whole_of(given, "virtual_layers") or whole_of(given, "stage_layers")
    if said in SCHEDULES and stages == 1 and SCHEDULES[said] != "1f1b":
        pass  # no pipeline
    elif said in SCHEDULES:
        take(given, "schedule", SCHEDULES[said])
    elif said:
        given.notes.append(f"the schedule {said!r} is not modeled")
        _unheed(given, "schedule")
    if stages > 1 and virtual > 1:
        take(given, "chunks", virtual)
        if not said:
            take(given, "schedule", "interleaved-1f1b")
    elif stages > 1 and each:
        if layers and layers % (stages * each) == 0:
            chunks = layers // (stages * each)
            if chunks > 1 or said:
                take(given, "chunks", chunks)
            if chunks > 1 and not said:
                take(given, "schedule", "interleaved-1f1b")
        else:
            given.notes.append(
                f"virtual stages of {each} layers need the number of layers: give --chunks"
            )
    elif stages > 1 and not said and dialect in ("megatron-lm", "nanotron", "gpt-neox", "nemo"):
        assume(given, "schedule", "1f1b")
    if all(one.value == "0" for one in given.keys.get("less_layers", [])):
        text_of(given, "less_layers")
    _take_stage_layers(given, stages, layers, layout)


def _layers_of_layout(text: str) -> list[int]:
    """Return the layers of each virtual stage of Megatron-Core's layout, such as "Et*2|(tt|)*29L".

    In it, `x*n` repeats a character or the part in parentheses, and commas mean nothing. A layout
    that would become too long is not read.
    """
    plain = text.replace(",", "")
    found = re.search(REPEATED, plain)
    # Nested repeats could fill the memory.
    while found is not None and len(plain) < 9999:
        before, _, after = plain.partition(found[0])
        plain = before + (found[1] or found[2]) * int(found[3]) + after
        found = re.search(REPEATED, plain)
    if "*" in plain or "|" not in plain:
        return []
    return [stage.count("t") for stage in plain.split("|")]


def _take_stage_layers(given: Given, stages: int, layers: int, layout: list[int]) -> None:
    """Set the layers of each stage if they are listed, or the first or last stage has fewer."""
    listed = text_of(given, "layer_list").replace(" ", "")
    if listed and stages == len(listed.split(",")):
        take(given, "layers_per_stage", listed)
        return
    if listed:
        _unheed(given, "layer_list")
    first = whole_of(given, "layers_first")
    last = whole_of(given, "layers_last")
    if layout and stages > 1:
        take(given, "layers_per_stage", ",".join([str(count) for count in layout]))
        return
    if not (first or last) or stages < 2:
        return
    inner = stages - (1 if first else 0) - (1 if last else 0)
    rest = layers - first - last
    if not layers or "chunks" in given.taken or inner < 1 or rest < 0 or rest % inner:
        given.notes.append(
            f"the first stage has {first or 'the usual'} layers and the last one "
            f"{last or 'the usual'}: give all stages' with --layers-per-stage"
        )
        return
    counts = [first] if first else []
    counts = counts + [rest // inner] * inner + ([last] if last else [])
    take(given, "layers_per_stage", ",".join([str(count) for count in counts]))


def _plain_batch(given: Given, dialect: str) -> int:
    """Return `batch_size` as the batch of one GPU, or 0 if its meaning is unknown."""
    if dialect in (*TRAINERS, "fsdp", "mesh", "megatron-deepspeed"):
        return whole_of(given, "plain_batch")
    return 0


def _take_local(given: Given, local: int, size: int) -> None:
    """Set microbatches from a replica's batch, which torchtitan's pipelines split further."""
    if not local:
        return
    each = size or (1 if value_of(given, "pp", 1) > 1 else local)
    if local % each:
        given.notes.append(f"a batch of {local} cannot be divided into microbatches of {each}")
        return
    take(given, "microbatch_size", each)
    if not whole_of(given, "global_batch"):
        take(given, "microbatches", local // each)


def _take_count(given: Given, count: int, whole: int, size: int) -> None:
    """Set the microbatches of a replica, unless the global batch determines them."""
    replicas = value_of(given, "dp", 0)
    if whole and size and replicas and count * size * replicas != whole:
        given.notes.append(
            f"a global batch of {whole:,} is not {count} microbatches of {size} on {replicas} "
            f"replicas of {axes_product(given)} GPUs; using the global batch"
        )
    if not whole:
        take(given, "microbatches", count)


def _unheed(given: Given, key: str) -> None:
    names = [one.name for one in given.keys.get(key, [])]
    given.heeded = [name for name in given.heeded if name not in names]
