"""Turns a text that was read into options of a training job."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from figgen import catalog
from figgen.errors import InputError
from figgen.lookups import remembered
from figgen.models.pipeline.schedules import USUAL_CHUNKS
from figgen.models.shape.model_shape import ModelShape
from figgen.scenarios.architectures.file_text import is_model_file
from figgen.scenarios.architectures.sizes import USUAL_SEQUENCE
from figgen.scenarios.options.option import Choices, Value
from figgen.scenarios.options.own_model import SIZES as MODEL_SIZES
from figgen.scenarios.options.resolve import MATTERS_WITH
from figgen.scenarios.options.schema import OPTIONS
from figgen.scenarios.taking.job import TakenJob, read_job
from figgen.scenarios.taking.left_open import completed_job
from figgen.scenarios.taking.named import Sizes
from figgen.scenarios.taking.own_lines import OwnNames

LAYOUT = ("nodes", "gpus_per_node", "tp", "pp", "cp")
"""Options that determine the number of replicas."""

BESIDE = {
    "order": ("tp", "pp", "cp", "ep"),
    "lora_matrices": ("lora_rank",),
    "frozen_weights": ("lora_rank",),
    "offload_overlap": ("offloaded_optimizer", "offloaded_activations"),
}
"""Options that have an effect only if one of these is set, too."""


def read_text(path: str) -> str:
    """Return the text of a file, or of standard input for `-`. Raises InputError if unreadable."""
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"file {path!r}", expected="text", got=str(error)) from None


def answers_of(given: Sequence[str]) -> dict[str, str]:
    """Return answers by variable from NAME=VALUE. Raises InputError for any other text."""
    found: dict[str, str] = {}
    for one in given:
        name, sign, value = one.partition("=")
        if not sign or not name:
            raise InputError("--set", expected="NAME=VALUE", got=one)
        found[name.lstrip("$")] = value
    return found


def taken_from(path: str, answers: Mapping[str, str], text: str = "") -> TakenJob:
    """Return the job of a file, or of `text` if it is given. Raises InputError if it has none."""
    text = text or read_text(path)
    if is_model_file(text) and path != "-":
        return TakenJob(
            dialect="config.json", taken={"model": path}, assumed={}, left=[], unsure=[], asked=[],
            notes=[],
        )  # fmt: skip
    return job_in(text, answers)


def job_in(text: str, answers: Mapping[str, str]) -> TakenJob:
    """Return the job that a text describes, complete. Raises InputError if it describes none."""
    names = own_names()
    return completed_job(read_job(text, dict(answers), names), names, catalog_sizes())


def own_names() -> OwnNames:
    """Return the names of a job's options on the command line and in addresses."""
    switches = [option for option in OPTIONS.values() if option.kind == "switch"]
    others = [option for option in OPTIONS.values() if option.kind != "switch"]
    sizes = {name.replace("_", "-"): name for name in MODEL_SIZES}
    return OwnNames(
        flags=sizes | {option.command_flag[2:]: option.name for option in others},
        switches={option.command_flag[2:]: option.name for option in switches},
        on=tuple(option.command_flag[2:] for option in switches if option.default is not True),
        keys={option.address_key: option.name for option in OPTIONS.values()},
        units={option.name: option.form_unit for option in others if option.kind == "quantity"},
        usual=_usual(),
        chunks=USUAL_CHUNKS,
        sequence=USUAL_SEQUENCE,
        matters_with={**{name: (axis,) for name, axis in MATTERS_WITH.items()}, **BESIDE},
        domains={
            chip.name: chip.scale_up_domain
            for chip in catalog.ACCELERATORS.values()
            if chip.host_gpus
        },
    )


def _usual() -> dict[str, int | str | bool]:
    """Return the defaults of options, except where the value follows from other options.

    What is assumed of hosts that share fast links is said with the step.
    """
    found: dict[str, int | str | bool] = {
        option.name: int(option.default) if isinstance(option.default, float) else option.default
        for option in OPTIONS.values()
        if isinstance(option.default, int | float | str) and option.kind != "quantity"
    }
    del found["join_hosts"]
    return {
        "gpus_per_node": catalog.ACCELERATORS[str(found["accelerator"])].scale_up_domain,
        **found,
    }


@remembered(1)
def catalog_sizes() -> dict[str, Sizes]:
    """Return the sizes of the catalog's decoders for `name_of_sizes`.

    BERT is excluded, since many a GPT has its sizes.
    """
    models = catalog.MODELS.items()
    return {name: _sizes(model.shape) for name, model in models if model.shape.final_norm}


def _sizes(shape: ModelShape) -> Sizes:
    experts, latent = shape.experts, shape.latent
    return {
        "layers": shape.layers, "hidden": shape.hidden, "heads": shape.heads,
        "kv_heads": shape.kv_heads, "ffn": shape.ffn_hidden, "vocab": shape.vocab,
        "sequence": shape.sequence, "kv_rank": latent.kv_rank if latent else 0,
        "experts": experts.count if experts else 0, "top_k": experts.top_k if experts else 0,
        "expert_ffn": experts.ffn_hidden if experts else 0,
        "activation": shape.ffn, "norm": shape.norm, "qk_norm": shape.qk_norm, "bias": shape.bias,
        "tied": shape.tied_embeddings, "learned_positions": shape.learned_positions,
    }  # fmt: skip


def options_of(job: TakenJob) -> Choices:
    """Return the options of a job and what its trainer assumes; unnamed sizes become a model.

    What the step sets by itself gives way to a preset and to a run.

    Raises InputError while variables of the text have no value.
    """
    if job.asked:
        given = " ".join(f"--set {name}=…" for name in job.asked)
        raise InputError("the file", expected=f"values for its variables: {given}")
    assumed = {name: value for name, value in job.assumed.items() if name not in job.usual}
    values: dict[str, int | str | bool] = {**assumed, **job.taken}
    found: dict[str, Value] = {
        name: _value(name, value) for name, value in values.items() if name in OPTIONS
    }
    if "global_batch" in found:
        found.pop("microbatches", None)
    if "dp" not in job.taken:
        found.pop("dp", None)
    sizes = {name: value for name, value in values.items() if name in MODEL_SIZES}
    if "model" not in found and sizes:
        found["model"] = ",".join(f"{name}={_word(value)}" for name, value in sizes.items())
    return found


def _value(name: str, value: int | str | bool) -> Value:
    return OPTIONS[name].read(value) if isinstance(value, str) else value


def _word(value: int | str | bool) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
