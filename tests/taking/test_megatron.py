"""Every option of Megatron's family is read, named as one that may matter, or judged neutral."""

from __future__ import annotations

import json

import pytest

from figgen.scenarios.taking.job import TakenJob, read_job
from figgen.scenarios.taking.megatron import AS_MODELLED, ON, megatron_may_matter
from figgen.scenarios.taking.names import key_of
from figgen.scenarios.taking.options import own_names
from figgen.scenarios.texts.entry import entry, normal
from tests.taking.jobs import ORACLES

KNOWN = json.loads((ORACLES / "framework_options.json").read_text("utf-8"))
FRAMEWORKS = [name for name, framework in KNOWN.items() if "neutral" in framework]
FORMS: dict[str, list[str]] = {
    "switch": [""], "int": ["3", "17"], "float": ["0.5", "3.0"], "text": ["x", "17", "fp8"],
    "bool": ["true", "false", "True"],
}  # fmt: skip
"""Values to try of an option, by the form of its value."""

SCRIPT = (
    "torchrun --nnodes 4 --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 "
    "--num-attention-heads 8 --seq-length 1024 --micro-batch-size 1 --vocab-size 32000 "
    "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --num-experts 8 --bf16 "
)


def options_of(framework: str) -> dict[str, list[str]]:
    """Return the values to try of each option of a framework."""
    known = KNOWN[framework]
    if framework == "megatron-bridge":
        sections = ("model", "train", "ddp", "dist", "checkpoint", "dataset", "mixed_precision")
        names = [one if "." in one else f"{part}.{one}" for part in sections for one in known[part]]
        return dict.fromkeys(names, FORMS["text"] + FORMS["bool"])
    if framework == "megatron-lm":
        found = {one: FORMS[form] for form in FORMS for one in known.get(form, ())}
        choices: dict[str, list[str]] = known["choices"]
        return found | choices
    return {
        one: form if isinstance(form, list) else FORMS[form]
        for one, form in known["options"].items()
    }


def matters(name: str, value: str) -> bool:
    return megatron_may_matter(entry(name, value, "script" if name[0] == "-" else "config"))


def read(said: str) -> TakenJob:
    return read_job(SCRIPT + said, {}, own_names())


def told(job: TakenJob) -> tuple[object, ...]:
    return job.taken, job.assumed, job.notes, job.unsure, job.asked


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_option_is_read_or_said_to_matter_or_judged_to_change_nothing(framework: str) -> None:
    """A new option of a framework has to be listed until somebody judges it."""
    neutral = set(KNOWN[framework]["neutral"])
    options = options_of(framework)
    assert neutral <= set(options)
    silent = [
        name
        for name, values in options.items()
        if name not in neutral
        and not key_of(name)
        and not any(matters(name, value) for value in values)
    ]
    assert silent == []


NOISE = 0.25
"""Largest share of the options that change nothing that may be said to matter."""


def test_few_options_that_change_nothing_are_said_to_matter() -> None:
    said, count = 0, 0
    for framework in FRAMEWORKS:
        options = options_of(framework)
        for name in KNOWN[framework]["neutral"]:
            said += any(matters(name, value) for value in options[name])
            count += 1
    assert count > 1600
    assert said / count <= NOISE, said / count


def test_no_option_that_is_read_is_dropped_in_silence() -> None:
    plain = told(read(""))
    for name, values in options_of("megatron-lm").items():
        if key_of(name) and name not in SCRIPT and name not in WITHOUT_EFFECT:
            assert any(told(read(f"{name} {value}")) != plain for value in values), name


WITHOUT_EFFECT = (
    "--accumulate-allreduce-grads-in-fp32", "--overlap-cpu-optimizer-d2h-h2d",
    "--hierarchical-context-parallel-sizes", "--max-position-embeddings", "--num-query-groups",
    "--optimizer-offload-fraction", "--cuda-graph-scope", "--fp8-recipe",
    "--cross-entropy-fusion-impl",
)  # fmt: skip
"""Options that are read and have an effect only beside others, or in place of missing ones."""


def test_a_fused_loss_of_megatron_itself_is_software_that_keeps_more() -> None:
    """Its implementation is native by default (Megatron-LM, training/arguments.py)."""
    script = "pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32"
    own = {"": "megatron-lm", "--cross-entropy-loss-fusion": "megatron-fused-loss"}
    own["--cross-entropy-loss-fusion --cross-entropy-fusion-impl te"] = "megatron-lm"
    own["--cross-entropy-fusion-impl native"] = "megatron-lm"
    for said, software in own.items():
        assert read(f"{script} {said}").assumed["software"] == software


def test_what_is_modelled_is_an_option_of_some_framework() -> None:
    names = {normal(one).rpartition(".")[2] for each in FRAMEWORKS for one in options_of(each)}
    names |= set(KNOWN["deepspeed"]["zero_optimization"])
    assert {*ON, *AS_MODELLED} <= names
