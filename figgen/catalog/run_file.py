"""A training run as a file describes it: JSON in, a checked record out.

The fields are those of the project's tables of published runs. Unknown fields are ignored, a
missing or impossible one is named; what may stay unsaid has a default that says so here: one
sequence a microbatch, no CP and EP, one virtual stage, ZeRO as the framework has it, BF16.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, isfinite
from typing import Any

from figgen.catalog import load
from figgen.catalog.hardware import Accelerator, Link
from figgen.catalog.run_names import (
    DTYPE_OF,
    FRAMEWORKS,
    accelerator_of,
    first_match,
    format_of,
    model_of,
    network_of,
)
from figgen.errors import InputError, unknown
from figgen.models.compute import training_flops_per_token
from figgen.models.model_shape import ExpertShape, ModelShape

Record = Mapping[str, Any]

USUAL_ZERO = {"llm-foundry": 3, "torchtitan": 3, "fsdp": 3, "maxtext": 3, "paxml": 3, "nanotron": 0}
"""What frameworks shard when nobody says; 1 for all others."""


@dataclass(frozen=True, slots=True)
class DescribedRun:
    """A run with everything that decides its time, and what its source measured.

    `gpus_per_node` are those of a scale-up domain that the run fills. `number_format` is the
    recipe ("bf16", "fp8", "mxfp8" …), `dtype` the type whose peak its products have.
    `layers_per_stage` is empty where layers are spread evenly. `step_time_s` and
    `peak_memory_bytes` are measured, None where the source is silent.
    """

    name: str
    shape: ModelShape
    accelerator: Accelerator
    network: Link
    gpus: int
    gpus_per_node: int
    tp: int
    cp: int
    pp: int
    ep: int
    etp: int | None
    schedule: str
    virtual_stages: int
    microbatch: int
    global_batch: int
    sequence: int
    zero_stage: int
    number_format: str
    recompute: str
    framework: str
    release: str
    version: float | None
    layers_per_stage: tuple[int, ...]
    step_time_s: float | None
    peak_memory_bytes: float | None
    suspect: bool
    group: str
    source: str
    config_key: str

    @property
    def dtype(self) -> str:
        """The type of the numbers that most products multiply."""
        return DTYPE_OF[self.number_format]

    @property
    def dp(self) -> int:
        """Replicas of the dense layers."""
        return self.gpus // (self.tp * self.cp * self.pp)

    @property
    def microbatches(self) -> int:
        """Microbatches of a replica in a step, the last one not full where the batch is uneven."""
        return ceil(self.global_batch / (self.dp * self.microbatch))

    @property
    def tokens_per_s_per_gpu(self) -> float | None:
        """Measured throughput."""
        if self.step_time_s is None:
            return None
        return self.global_batch * self.sequence / self.step_time_s / self.gpus


def domain_width(chip: Accelerator, gpus: int) -> int:
    """GPUs of each node: the scale-up domain, or the widest power of two in it that divides."""
    width = chip.scale_up_domain
    if gpus < width:
        return gpus
    while gpus % width:
        width = 2 ** ((width - 1).bit_length() - 1)
    return width


def read_run_file(text: str) -> tuple[bool, list[Record]]:
    """Whether a file holds many runs, and their records.

    Raises InputError for what is no JSON, and for JSON that is neither a run nor `{"runs": []}`.
    """
    try:
        content = json.loads(text)
    except ValueError as error:
        raise InputError("run file", expected="JSON", got=str(error)) from None
    if isinstance(content, dict) and isinstance(content.get("runs"), list):
        return True, content["runs"]
    if isinstance(content, dict):
        return False, [content]
    raise InputError("run file", expected='one run, or {"runs": [...]}', got=type(content).__name__)


def described_run(record: Record) -> DescribedRun:
    """The run of a record. Raises InputError that names the field at fault."""
    if not isinstance(record, Mapping):
        raise InputError("a run", expected="an object with fields", got=type(record).__name__)
    chip = accelerator_of(_text(record, "hardware"))
    words = f"{record.get('hardware', '')} {record.get('network') or ''}"
    framework = framework_of(record)
    sizes = _sizes(record)
    sequence = _whole(record, "seq_length")
    batch = _batch(record, sequence)
    shape = shape_of(record, sequence)
    zero_stage = _whole(record, "zero_stage", USUAL_ZERO.get(framework, 1), least=0)
    microbatch = _whole(record, "micro_batch", _usual_microbatch(zero_stage, sizes, batch))
    chunks = _whole(record, "vpp", _usual_chunks(framework, shape, sizes["pp"]))
    number_format = format_of(str(record.get("precision") or "bf16"))
    _check_peak(chip, number_format)
    tokens = batch * sequence
    return DescribedRun(
        name=str(record.get("id", "run")),
        shape=shape,
        accelerator=chip,
        network=network_of(words, chip),
        gpus=sizes["gpus"], gpus_per_node=domain_width(chip, sizes["gpus"]),
        tp=sizes["tp"], cp=sizes["cp"], pp=sizes["pp"], ep=sizes["ep"],
        etp=_expert_tp(record, framework, sizes),
        schedule="dualpipe" if framework == "deepseek" else _schedule(chunks),
        virtual_stages=chunks,
        microbatch=microbatch,
        global_batch=batch,
        sequence=sequence,
        zero_stage=zero_stage,
        number_format=number_format,
        recompute=_recompute(record) or _usual_recompute(framework, shape),
        framework=framework,
        release=str(record.get("release") or ""),
        version=version_of(record),
        layers_per_stage=tuple(record.get("layers_per_stage") or ()),
        step_time_s=_measured_s(record, shape, tokens, sizes["gpus"]),
        peak_memory_bytes=_gibibytes(record.get("peak_memory_gib")),
        suspect=bool(record.get("suspect")),
        group=str(record.get("source_group") or framework),
        source=str(record.get("source") or ""),
        config_key=str(record.get("config_key") or record.get("id", "run")),
    )  # fmt: skip


def framework_of(record: Record) -> str:
    """The framework, from its own field or from what else names it; "megatron-lm" if nothing."""
    for field in ("framework", "release", "id", "source", "model", "note"):
        found = first_match(FRAMEWORKS, str(record.get(field) or ""))
        if found is not None:
            return found
    return "megatron-lm"


def version_of(record: Record) -> float | None:
    """Year and month of a release such as 25.09, as a number of years; None if none is named."""
    for field in ("release", "id", "source"):
        found = re.search(
            r"\b(?:v|nemo|ngc|-)?\s*(2[3-9])\.(0[1-9]|1[0-2])\b", _words(record, field)
        )
        if found is not None:
            return int(found[1]) + int(found[2]) / 12
    return None


def _words(record: Record, field: str) -> str:
    return str(record.get(field) or "").lower().replace("_", " ")


def _schedule(chunks: int) -> str:
    return "interleaved-1f1b" if chunks > 1 else "1f1b"


def _usual_chunks(framework: str, shape: ModelShape, pp: int) -> int:
    """Large dense models of NeMo and Megatron-LM run interleaved where nobody says how."""
    if pp == 1 or shape.experts or framework not in ("nemo", "megascale", "fsdp"):
        return 1
    return max(1, min(6, shape.layers // pp))


def _usual_microbatch(zero_stage: int, sizes: Mapping[str, int], batch: int) -> int:
    """One sequence; under ZeRO-3 without a pipeline the batch at once, at most 16 sequences."""
    if zero_stage < 3 or sizes["pp"] > 1:
        return 1
    return max(1, min(16, batch // sizes["dp"]))


def _usual_recompute(framework: str, shape: ModelShape) -> str:
    """torchtitan's configurations repeat whole layers of its large models, parts of small ones."""
    if framework != "torchtitan":
        return ""
    return "full" if shape.hidden >= 8192 else "selective"


def _sizes(record: Record) -> dict[str, int]:
    found = {axis: _whole(record, axis, 1) for axis in ("cp", "ep")}
    found |= {axis: _whole(record, axis) for axis in ("tp", "pp")}
    found["gpus"] = _whole(record, "num_accelerators")
    model_parallel = found["tp"] * found["cp"] * found["pp"]
    if found["gpus"] % model_parallel:
        expected = f"a multiple of tp·cp·pp = {model_parallel}"
        raise InputError("num_accelerators", expected=expected, got=found["gpus"])
    found["dp"] = found["gpus"] // model_parallel
    return found


def _expert_tp(record: Record, framework: str, sizes: Mapping[str, int]) -> int | None:
    """As said; else 1 where Megatron-Bridge's recipes set it, and what the framework takes."""
    if record.get("etp") is not None:
        return _whole(record, "etp")
    if sizes["ep"] == 1:
        return None
    whole = sizes["gpus"] % (sizes["tp"] * sizes["ep"] * sizes["pp"]) == 0
    return None if whole and framework != "megatron-bridge" else 1


def _batch(record: Record, sequence: int) -> int:
    if record.get("global_batch_sequences") is None and record.get("tokens_per_batch"):
        return max(1, round(float(record["tokens_per_batch"]) / sequence))
    return _whole(record, "global_batch_sequences")


def _recompute(record: Record) -> str:
    """ "none", "selective" or "full", from what sources print."""
    words = str(record.get("recompute") or "").lower()
    found = next((name for name in ("none", "full", "selective") if words.startswith(name)), None)
    if found is None and words:
        return "selective"
    return found or ""


def _measured_s(record: Record, shape: ModelShape, tokens: int, gpus: int) -> float | None:
    """Measured time of a step: printed, or from tokens per second, or from a FLOP rate."""
    if record.get("step_time_s"):
        return float(record["step_time_s"])
    for field in ("tokens_per_s_per_accelerator", "derived_tokens_per_s_per_accelerator"):
        if record.get(field):
            return tokens / (float(record[field]) * gpus)
    rate = record.get("reported_tflops_per_accelerator")
    if not rate:
        return None
    words = str(record.get("reported_tflops_convention") or "").lower()
    counted = flops_counted(words)
    try:
        per_token = training_flops_per_token(shape, counted, sequence=shape.sequence)
    except InputError:
        return None
    return tokens * per_token / (float(rate) * 1e12 * gpus)


def flops_counted(words: str) -> str:
    """The convention of `figgen.models.compute` that a source's words describe."""
    if "hardware" in words and "selective" not in words:
        return "megatron" if "96" in words else "hfu-full"
    return "causal" if "causal" in words else "6nd+attention"


def _gibibytes(value: object) -> float | None:
    return float(str(value)) * 2**30 if value else None


def shape_of(record: Record, sequence: int) -> ModelShape:
    """The shape that a record gives, or that of the catalog's model that it names.

    A given shape changes the fields of the catalog's model, where it names one too.
    Raises InputError for a record with neither.
    """
    named = record.get("model_shape_ref") or record.get("model") or ""
    known = model_of(str(named)) or model_of(str(record.get("model") or ""))
    given = record.get("shape")
    if isinstance(given, Mapping):
        return _given_shape(given, sequence, known.shape if known else None)
    if known is None:
        raise unknown("model_shape_ref (or give a shape)", str(named), load.models())
    return replace(known.shape, sequence=sequence)


SPELLINGS = {
    "layers": ("num_layers", "layers"),
    "hidden": ("hidden_size", "hidden"),
    "heads": ("num_attention_heads", "heads"),
    "vocab": ("vocab_size", "vocab"),
    "ffn_hidden": ("ffn_hidden_size", "ffn", "ffn_hidden"),
    "kv_heads": ("num_kv_heads", "kv_heads", "num_query_groups"),
    "experts": ("num_experts", "experts"),
    "top_k": ("experts_per_token", "top_k", "moe_top_k"),
    "expert_ffn": ("moe_ffn_hidden_size", "expert_ffn_hidden", "expert_ffn"),
    "shared": ("shared_experts", "num_shared_experts"),
    "dense_layers": ("dense_layers", "first_k_dense"),
    "head_dim": ("head_dim", "kv_channels"),
}


def _given_shape(given: Record, sequence: int, known: ModelShape | None) -> ModelShape:
    sizes = {
        key: int(given[name])
        for key, names in SPELLINGS.items()
        for name in reversed(names)
        if given.get(name)
    }
    for key in ("layers", "hidden", "heads", "vocab", "ffn_hidden"):
        if key not in sizes:
            if known is None:
                names = " or ".join(SPELLINGS[key])
                raise InputError("shape", expected=f"a field {names}", got="none")
            sizes[key] = int(getattr(known, key))
    gated = given.get("gated_mlp")
    if gated is None:
        # Nobody prints it for the early models, whose blocks are two matrices h × 4h.
        early = sizes["ffn_hidden"] == 4 * sizes["hidden"]
        gated = known.ffn in ("swiglu", "geglu") if known else not early
    tied = given.get("tied_embeddings")
    usual_kv = known.kv_heads if known and known.heads == sizes["heads"] else sizes["heads"]
    return ModelShape(
        layers=sizes["layers"],
        hidden=sizes["hidden"],
        heads=sizes["heads"],
        kv_heads=sizes.get("kv_heads", usual_kv),
        head_dim=sizes.get("head_dim", max(1, sizes["hidden"] // sizes["heads"])),
        ffn_hidden=sizes["ffn_hidden"],
        vocab=sizes["vocab"],
        sequence=sequence,
        ffn="swiglu" if gated else "gelu",
        norm="rmsnorm" if gated else "layernorm",
        tied_embeddings=bool(tied if tied is not None else known and known.tied_embeddings),
        experts=_given_experts(sizes, known),
        latent=known.latent if known else None,
    )


def _given_experts(sizes: Mapping[str, int], known: ModelShape | None) -> ExpertShape | None:
    usual = known.experts if known else None
    if "experts" not in sizes:
        return usual
    return ExpertShape(
        count=sizes["experts"],
        top_k=sizes.get("top_k", usual.top_k if usual else 2),
        ffn_hidden=sizes.get("expert_ffn", usual.ffn_hidden if usual else sizes["ffn_hidden"]),
        shared=sizes.get("shared", usual.shared if usual else 0),
        dense_layers=sizes.get("dense_layers", usual.dense_layers if usual else 0),
    )


def _check_peak(chip: Accelerator, number_format: str) -> None:
    try:
        chip.peak_flops_per_s(DTYPE_OF[number_format])
    except InputError as error:
        raise InputError(f"precision: {error}") from None


def _text(record: Record, field: str) -> str:
    value = record.get(field)
    if not isinstance(value, str) or not value.strip():
        raise InputError(field, expected="a text", got="missing" if value is None else value)
    return value


def _whole(record: Record, field: str, usual: int | None = None, *, least: int = 1) -> int:
    """A whole number of a record, or what is usual. Raises InputError if neither is there."""
    value = record.get(field)
    if value is None:
        if usual is None:
            raise InputError(field, expected=f"a whole number from {least} on", got="missing")
        return usual
    number = float(value) if isinstance(value, int | float) else float("nan")
    if not isfinite(number) or number != int(number) or number < least or isinstance(value, bool):
        raise InputError(field, expected=f"a whole number from {least} on", got=value)
    return int(number)
