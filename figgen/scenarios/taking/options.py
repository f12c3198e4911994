"""Turns a text that was read into options of a training job."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from figgen import catalog
from figgen.errors import InputError
from figgen.lookups import remembered
from figgen.models.shape.model_shape import ModelShape
from figgen.scenarios.architectures.file_text import is_model_file
from figgen.scenarios.options.option import Choices, Value
from figgen.scenarios.options.own_model import SIZES as MODEL_SIZES
from figgen.scenarios.options.schema import OPTIONS
from figgen.scenarios.taking.job import TakenJob, read_job
from figgen.scenarios.taking.named import Sizes, name_of_sizes
from figgen.scenarios.taking.own_lines import OwnNames

LAYOUT = ("nodes", "gpus_per_node", "tp", "pp", "cp")
"""Options that determine the number of replicas."""


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
    return named_after_sizes(read_job(text, dict(answers), own_names()))


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
    )


def named_after_sizes(job: TakenJob) -> TakenJob:
    """Return the job with a model of the catalog if one has all the sizes in it."""
    known = {**job.assumed, **job.taken}
    name = "" if "model" in known else name_of_sizes(known, catalog_sizes())
    return replace(job, taken={**job.taken, "model": name}) if name else job


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
    }  # fmt: skip


def options_of(job: TakenJob) -> Choices:
    """Return the options of a job, assumed ones included; unnamed sizes become a model.

    Raises InputError while variables of the text have no value.
    """
    if job.asked:
        given = " ".join(f"--set {name}=…" for name in job.asked)
        raise InputError("the file", expected=f"values for its variables: {given}")
    values: dict[str, int | str | bool] = {**job.assumed, **job.taken}
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
