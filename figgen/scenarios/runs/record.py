"""Reads a training run from a file: JSON in, a checked record out.

The fields are those of the project's tables of published runs. Unknown fields are ignored; a
missing or impossible one is an error that names it. Optional fields have defaults: one sequence per
microbatch, no CP and EP, one virtual stage, the framework's ZeRO stage, BF16.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from figgen.catalog.hardware import Accelerator
from figgen.errors import InputError
from figgen.json_text import read_json
from figgen.models.setup.framework_memory import framework_memory
from figgen.models.shape.model_shape import ModelShape
from figgen.scenarios.runs.classes import stack_of
from figgen.scenarios.runs.described import DescribedRun, domain_width
from figgen.scenarios.runs.fields import Record, number_of, text_of, whole_of, wholes_of
from figgen.scenarios.runs.fusing import own_kernels
from figgen.scenarios.runs.names import (
    DTYPE_OF,
    FRAMEWORKS,
    HABITS,
    UNKNOWN_SOFTWARE,
    accelerator_of,
    dispatcher_of,
    first_match,
    format_of,
    network_of,
    recompute_of,
)
from figgen.scenarios.runs.setup import memory_framework
from figgen.scenarios.runs.shape import shape_of
from figgen.scenarios.runs.speed import measured_s
from figgen.scenarios.runs.state import memory_habits, stated_recipe
from figgen.scenarios.runs.switches import (
    documents_of,
    exchange_of,
    expert_overlap_of,
    fused_loss_of,
    graphs_of,
    offloaded_of,
    switch,
)
from figgen.scenarios.runs.usual import (
    USUAL_ZERO,
    usual_chunks,
    usual_expert_tp,
    usual_microbatch,
    usual_recompute,
)

MOST_IN_A_NODE = 16
"""The largest scale-up domain that is a single node; racks and pods have more GPUs."""

NUMBERED = r"\b(?:v|nemo|ngc|-)?\s*(2[3-9])\.(0[1-9]|1[0-2])\b"
DATED = r"\b20(2[3-9])-?(0[1-9]|1[0-2])\b"
"""Releases such as nemo 25.09; torchtitan's benchmarks have a date instead."""

FLASH = r"flash[ _-]?(?:attention|attn)?[ _-]?([1234])\b"
"""FlashAttention's version as sources write it: "flash_attention_2", "flash 3"."""

SIXTEEN_BITS = r"bf16[ -]true|pure (?:bf16|fp16)|(?:bf16|fp16) weights|state in (?:bf16|fp16)"
"""Words of sources for Adam's weights and moments in 16 bits; Lightning calls it bf16-true."""


def read_run_file(text: str) -> tuple[bool, list[Record]]:
    """Return whether a file holds many runs, and their records.

    Raises InputError for invalid JSON, and for JSON that is neither a run nor a list of runs.
    """
    try:
        content = read_json(text)
    except ValueError as error:
        raise InputError("run file", expected="JSON", got=str(error)) from None
    if isinstance(content, dict) and isinstance(content.get("runs"), list):
        return True, content["runs"]
    if isinstance(content, list):
        return True, content
    if isinstance(content, dict):
        return False, [content]
    raise InputError(
        "run file", expected='a run, a list, or {"runs": [...]}', got=type(content).__name__
    )


def described_run(record: Record) -> DescribedRun:
    """Return the run of a record. Raises InputError naming the field at fault."""
    if not isinstance(record, Mapping):
        raise InputError("a run", expected="an object with fields", got=type(record).__name__)
    chip = accelerator_of(text_of(record, "hardware"))
    words = f"{record.get('hardware', '')} {record.get('network') or ''}"
    framework = framework_of(record)
    sizes = _sizes(record)
    sequence = whole_of(record, "seq_length")
    batch = _batch(record, sequence)
    shape = shape_of(record, sequence)
    zero_stage = whole_of(record, "zero_stage", USUAL_ZERO.get(framework, 1), least=0)
    if zero_stage == 2 and sizes["pp"] > 1:
        # Pipelines called ZeRO-2 (MegaScale, Llama 3) reduce once per step, as stage 1 does here.
        zero_stage = 1
    usual = usual_microbatch(framework, zero_stage, sizes, batch)
    microbatch = whole_of(record, "micro_batch", usual)
    chunks = whole_of(record, "vpp", _chunks_of(record, framework, shape, sizes["pp"]))
    stages = sizes["pp"] * (chunks if sizes["pp"] > 1 else 1)
    number_format = format_of(str(record.get("precision") or ("bf16" if chip.bf16 else "fp16")))
    _check_peak(chip, number_format)
    tokens = batch * sequence
    return DescribedRun(
        name=str(record.get("id", "run")),
        shape=shape,
        accelerator=chip,
        network=network_of(words, chip),
        gpus=sizes["gpus"],
        gpus_per_node=_node_width(record, chip, sizes["gpus"]),
        tp=sizes["tp"],
        cp=sizes["cp"],
        pp=sizes["pp"],
        ep=sizes["ep"],
        etp=_expert_tp(record, framework, shape, sizes),
        schedule="dualpipe" if framework == "deepseek" else _schedule(chunks),
        virtual_stages=chunks,
        microbatch=microbatch,
        global_batch=batch,
        sequence=sequence,
        zero_stage=zero_stage,
        number_format=number_format,
        recompute=_recompute(record, framework, shape),
        release=str(record.get("release") or ""),
        layers_per_stage=_stage_layers(record, stages, shape.layers),
        mtp_layers=whole_of(record, "mtp_layers", 0, least=0),
        step_time_s=measured_s(record, shape, tokens, sizes["gpus"]),
        peak_memory_bytes=(number_of(record, "peak_memory_gib") or 0.0) * 2**30 or None,
        suspect=bool(record.get("suspect")),
        group=str(record.get("source_group") or framework),
        source=str(record.get("source") or ""),
        config_key=str(record.get("config_key") or record.get("id", "run")),
        **_software_of(record, framework),
        context_exchange=exchange_of(record),
        document_tokens=documents_of(record, sequence),
        offloaded_optimizer=offloaded_of(record),
        offloaded_activations=min(1.0, number_of(record, "offloaded_activations") or 0.0),
    )


def _software_of(record: Record, framework: str) -> dict[str, Any]:
    """Return the fields of a run that tell how its software computes and what it keeps."""
    named, version = str(record.get("framework") or ""), version_of(record)
    habits = first_match(HABITS, f"{named} {record.get('id') or ''}")
    attention = str(record.get("attention") or "").lower()
    formats = f"{record.get('precision') or ''} {record.get('precision_detail') or ''}".lower()
    flash = re.search(FLASH, attention)
    return {
        "framework": framework,
        "stack": stack_of(named) if named else "",
        "version": version,
        "stores_scores": bool(re.search("unfused|explicit scores", attention)),
        "dropout": "dropout" in attention,
        "flash_attention": int(flash[1]) if flash else 0,
        "dispatcher": dispatcher_of(str(record.get("dispatcher") or "")),
        "expert_overlap": expert_overlap_of(record),
        "cuda_graphs": graphs_of(record),
        "stated_recipe": stated_recipe(record),
        "compiled": switch(record.get("compiled")),
        "overlap_grad_reduce": switch(record.get("overlap_grad_reduce")),
        "overlap_param_gather": switch(record.get("overlap_param_gather")),
        "shape_padding": switch(record.get("shape_padding")),
        "fused_optimizer": switch(record.get("fused_optimizer")),
        "fused_loss": fused_loss_of(record),
        "sixteen_bit_state": bool(re.search(SIXTEEN_BITS, formats)),
        "own_kernels": own_kernels(f"{named} {attention}"),
        "habits": habits,
        "memory_habits": memory_habits(record, habits or memory_framework(framework, version)),
    }


def framework_of(record: Record) -> str:
    """Return the framework, from its own field or from other fields that name it.

    An unknown name is unknown software; if nothing is named, it is Megatron-LM.
    """
    for field in ("framework", "release", "id", "source", "model", "note"):
        found = first_match(FRAMEWORKS, str(record.get(field) or ""))
        if found is not None:
            return found
    return UNKNOWN_SOFTWARE if record.get("framework") else "megatron-lm"


def version_of(record: Record) -> float | None:
    """Return a release such as 25.09 as a number of years, or None if none is named."""
    named = DATED if framework_of(record) == "torchtitan" else NUMBERED
    for field in ("release", "id", "source"):
        found = re.search(named, _words(record, field))
        if found is not None:
            return int(found[1]) + int(found[2]) / 12
    checkout = re.search(DATED, _words(record, "release"))
    if checkout is not None and framework_of(record) == "megatron-bridge":
        return int(checkout[1]) + int(checkout[2]) / 12
    return None


def _words(record: Record, field: str) -> str:
    return str(record.get(field) or "").lower().replace("_", " ")


def _chunks_of(record: Record, framework: str, shape: ModelShape, pp: int) -> int:
    """Return the chunks per pipeline rank: two if a run of torchtitan is interleaved."""
    said = "interleaved" in f"{_words(record, 'id')} {_words(record, 'note')}"
    if framework == "torchtitan" and said and pp > 1:
        return 2
    return usual_chunks(framework, shape, pp)


def _stage_layers(record: Record, stages: int, layers: int) -> tuple[int, ...]:
    """Return the layers of each virtual stage, if given; the two end stages may have none."""
    if stages > layers + 2:
        expected = f"at most {layers + 2} virtual stages for {layers} layers"
        raise InputError("vpp", expected=expected, got=stages, key="vpp")
    given = wholes_of(record, "layers_per_stage")
    if given and (len(given) != stages or sum(given) != layers):
        expected = f"{stages} counts, together {layers}"
        raise InputError("layers_per_stage", expected=expected, got=given)
    return given


def _schedule(chunks: int) -> str:
    return "interleaved-1f1b" if chunks > 1 else "1f1b"


def _sizes(record: Record) -> dict[str, int]:
    found = {axis: whole_of(record, axis, 1) for axis in ("cp", "ep")}
    found |= {axis: whole_of(record, axis) for axis in ("tp", "pp")}
    found["gpus"] = whole_of(record, "num_accelerators")
    model_parallel = found["tp"] * found["cp"] * found["pp"]
    if found["gpus"] % model_parallel:
        expected = f"a multiple of tp·cp·pp = {model_parallel}"
        raise InputError("num_accelerators", expected=expected, got=found["gpus"])
    found["dp"] = found["gpus"] // model_parallel
    return found


def _node_width(record: Record, chip: Accelerator, gpus: int) -> int:
    """Return the GPUs per node, smaller than the scale-up domain if the record says so."""
    usual = domain_width(chip, gpus)
    given = whole_of(record, "gpus_per_node", usual)
    narrower = chip.scale_up_domain <= MOST_IN_A_NODE and given < usual and gpus % given == 0
    return given if narrower else usual


def _expert_tp(
    record: Record, framework: str, shape: ModelShape, sizes: Mapping[str, int]
) -> int | None:
    given = record.get("etp") is not None
    return whole_of(record, "etp") if given else usual_expert_tp(framework, shape, sizes)


def _batch(record: Record, sequence: int) -> int:
    if record.get("global_batch_sequences") is None and record.get("tokens_per_batch"):
        return max(1, round((number_of(record, "tokens_per_batch") or 0.0) / sequence))
    return whole_of(record, "global_batch_sequences")


def _recompute(record: Record, framework: str, shape: ModelShape) -> str:
    """Return what is recomputed, with the framework's meaning of "selective".

    The result is as `figgen.models.shape.recomputation` reads it.
    """
    found = recompute_of(str(record.get("recompute") or "")) or usual_recompute(framework, shape)
    memory = framework_memory(memory_framework(framework, version_of(record)))
    return memory.selective if found == "selective" else found


def _check_peak(chip: Accelerator, number_format: str) -> None:
    try:
        chip.peak_flops_per_s(DTYPE_OF[number_format])
    except InputError as error:
        raise InputError(f"precision: {error}") from None
