"""A file that starts a job expresses the whole job, with options that the framework has."""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from figgen.__main__ import main
from figgen.models.setup.stage_layers import virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.scenarios.options.resolve import training_step
from figgen.scenarios.taking.options import job_in, options_of
from figgen.scenarios.writing.layouts import same_ranks
from figgen.scenarios.writing.megatron_bridge import RECIPES
from figgen.scenarios.writing.torchtitan import MODELS
from figgen.scenarios.writing.writers import WRITERS, JobToWrite, write_job

ORACLES = Path(__file__).parents[1] / "oracles"
KNOWN = json.loads((ORACLES / "framework_options.json").read_text("utf-8"))
JOBS = 50
"""Random jobs for each software."""

OWN = "layers=24,hidden=2048,heads=16,kv_heads=8,head_dim=128,ffn=5504,vocab=50304"
DENSE = ["llama-3-8b", "llama-3-70b", "qwen-3-14b", OWN]
PLAIN: dict[str, list[Any]] = {
    "microbatch_size": [1, 2, 4], "microbatches": [4, 8, 16, 32], "sequence": [2048, 8192],
    "recompute": ["none", "full"],
}  # fmt: skip
MEGATRON: dict[str, list[Any]] = PLAIN | {
    "zero_stage": [0, 1, 1, 2, 3], "sequence_parallel": [True, False], "dropout": [False, True],
    "overlap_data_parallel": [True, False], "overlap_weights": [True, False],
    "context_exchange": ["p2p", "all-gather", "a2a+p2p"],
    "recompute": ["none", "selective", "full", "uniform:2", "block:1", "layernorm,mlp"],
    "pp": [1, 2, 4], "tp": [1, 2, 4], "cp": [1, 2], "order": ["megatron", "megatron-tp-pp-dp"],
    "dtype": ["bf16", "bf16", "fp8"],
    "cuda_graphs": ["usual", "usual", "usual", "usual", "none", "layers", "step"],
    "expert_overlap": ["usual", "usual", "on"], "mtp_layers": [0, 0, 0, 1],
}  # fmt: skip
DRAWN: dict[str, dict[str, list[Any]]] = {
    "megatron-lm": MEGATRON | {
        "model": [*DENSE, "mixtral-8x7b", "deepseek-v3", "gpt-3-175b", "qwen-3-30b-a3b"],
        "recipe": ["mcore18", "zero16", "mcore14", "fsdp16"], "buckets": [None, 8],
        "flash_attention": [True, True, False], "offloaded_optimizer": [0, 0, 0.5, 1],
        "offloaded_activations": [0, 0, 0.5],
    },
    "megatron-bridge": MEGATRON | {"model": list(RECIPES)},
    "torchtitan": PLAIN | {
        "model": list(MODELS), "zero_stage": [0, 2, 3], "recipe": ["fsdp16"], "tp": [1, 2, 4],
        "pp": [1, 2, 4], "cp": [1, 2], "order": ["torchtitan"],
        "context_exchange": ["p2p", "all-gather"],
        "recompute": ["none", "full", "every_second_product"], "dtype": ["bf16", "fp8"],
    },
    "deepspeed": PLAIN | {
        "model": [*DENSE, "mixtral-8x7b"], "zero_stage": [0, 1, 2, 3], "recipe": ["zero16"],
        "overlap_data_parallel": [True, False], "offloaded_optimizer": [0, 0, 0.5, 1],
    },
    "accelerate": PLAIN | {
        "model": DENSE, "zero_stage": [2, 3], "recipe": ["fsdp16"],
        "offloaded_activations": [0, 1],
    },
    "fsdp2": PLAIN | {"model": DENSE, "zero_stage": [2, 3], "recipe": ["fsdp16"]},
}  # fmt: skip


def random_job(software: str, source: random.Random) -> dict[str, Any]:
    chosen = {name: source.choice(values) for name, values in DRAWN[software].items()}
    chosen |= {"nodes": source.choice([2, 4, 8]), "gpus_per_node": 8}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    if chosen.get("pp", 1) > 1 and source.random() < 0.4:
        chosen |= {"schedule": "interleaved-1f1b", "chunks": 2}
    if chosen["model"] in ("mixtral-8x7b", "qwen-3-30b-a3b", "deepseek-v3"):
        chosen |= {"ep": source.choice([2, 4]), "etp": 1} if "tp" in chosen else {}
    if chosen.get("dtype") == "fp8":
        chosen |= {"activations": "fp8"} if software.startswith("megatron") else {}
    return chosen


def job_of(chosen: dict[str, Any]) -> JobToWrite | None:
    try:
        step = training_step(**chosen)
    except ValueError:
        return None  # such a job cannot be
    name = step.model.name if "=" not in step.model.name else ""
    return JobToWrite(setup=step.setup, parallel=step.launched, model=name, dtype=step.dtype)


def said(setup: TrainingSetup, dtype: str) -> dict[str, object]:
    """Return everything about a job that a file has to express, by the options' names."""
    shape, parallel = setup.shape, setup.parallel
    axes = {name: getattr(parallel, name) for name in ("nodes", "gpus_per_node", "tp", "cp", "pp")}
    found: dict[str, object] = axes | {
        "model": replace(shape, sequence=1),
        "ep": parallel.ep,
        "etp": parallel.etp if shape.experts else 1,
        "dtype": dtype,
        "sequence": setup.sequence,
        "microbatch_size": setup.microbatch_size,
        "microbatches": setup.microbatches,
        "zero_stage": setup.zero_stage,
        "recipe": setup.recipe.name,
        "recompute": setup.recomputation,
        "activations": setup.activations,
        "flash_attention": setup.flash_attention,
        "dropout": setup.dropout,
        "buckets": setup.buckets,
        "mtp_layers": setup.mtp_layers,
        "offloaded_optimizer": setup.offloaded_optimizer,
        "offloaded_activations": setup.offloaded_activations,
        "overlap_data_parallel": setup.overlap_data_parallel,
    }
    if setup.zero_stage == 1 and setup.overlap_data_parallel:
        found["overlap_weights"] = setup.overlap_weights
    if parallel.tp > 1:
        found["sequence_parallel"] = setup.sequence_parallel
    if parallel.cp > 1:
        found["context_exchange"] = setup.context_exchange
    if parallel.pp > 1:
        found |= {"schedule": setup.schedule, "chunks": setup.placement.chunks}
        found["layers_per_stage"] = [one.layers for one in virtual_stage_shares(setup)]
    return found


REQUIRED = {
    "--no-gradient-accumulation-fusion",
    "model.gradient_accumulation_fusion",
    "model.transformer.gradient_accumulation_fusion",
}
"""What Megatron's FSDP requires, though the models assume it to be off."""


@pytest.mark.parametrize("software", WRITERS)
def test_what_is_written_is_read_as_the_same_job(software: str) -> None:
    source = random.Random(27)
    tried, whole = 0, 0
    seen: Counter[str] = Counter()
    while tried < JOBS:
        chosen = random_job(software, source)
        job = job_of(chosen)
        if job is None:
            continue
        written = write_job(software, job)
        if written.refused:
            seen[written.refused] += 1
            assert not written.text
            assert seen.total() < 20 * JOBS
            continue
        tried += 1
        whole += not written.left_out
        taken = job_in(written.text, {})
        assert taken.asked == [], written.text
        assert set(taken.unsure) <= REQUIRED, written.text
        step = training_step(**options_of(taken))
        want, got = said(job.setup, job.dtype), said(step.setup, step.dtype)
        assert want.keys() == got.keys()
        differ = {name for name in want if want[name] != got[name]}
        assert differ <= written.left_out.keys(), (chosen, taken, written.text)
        assert same_ranks(job.parallel, step.setup.parallel.order)
        for name, why in written.left_out.items():
            assert f"# Not in this file: {name}, {why}." in written.text
    assert whole >= JOBS / 5, seen


BASES: dict[str, dict[str, Any]] = {
    "megatron-lm": {"model": "mixtral-8x7b", "tp": 2, "cp": 2, "pp": 2, "ep": 2, "etp": 1},
    "megatron-bridge": {"model": "qwen-3-30b-a3b", "tp": 2, "cp": 2, "pp": 2, "ep": 2, "etp": 1},
    "torchtitan": {
        "model": "llama-3-8b", "tp": 2, "cp": 2, "pp": 2, "zero_stage": 2, "recipe": "fsdp16",
        "order": "torchtitan",
    },
    "deepspeed": {"model": "mixtral-8x7b", "zero_stage": 3, "recipe": "zero16"},
    "accelerate": {"model": "llama-3-8b", "zero_stage": 3, "recipe": "fsdp16"},
    "fsdp2": {"model": "llama-3-8b", "zero_stage": 3, "recipe": "fsdp16"},
}  # fmt: skip
"""A job with every kind of parallelism that a format can express."""
CHANGES: dict[str, list[Any]] = {
    "microbatches": [32], "sequence": [4096], "microbatch_size": [2], "document_tokens": [(2048,)],
    "schedule": ["gpipe", "zb-h1"], "chunks": [4], "recipe": ["mcore14", "zero16", "fsdp16"],
    "zero_stage": [0, 1, 2, 3], "recompute": ["full", "selective"], "activations": ["fp8"],
    "sequence_parallel": [False], "flash_attention": [False], "dropout": [True],
    "context_exchange": ["all-gather", "a2a+p2p"], "zigzag": [False], "dispatcher": ["deepep"],
    "expert_overlap": ["on"], "cuda_graphs": ["none", "step"], "expert_skew": [1.2],
    "buckets": [8], "overlap_data_parallel": [False], "overlap_weights": [False],
    "double_buffering": [False],
    "layers_per_stage": [(17, 15), (25, 23)], "mtp_layers": [1], "offloaded_optimizer": [0.5, 1],
    "offloaded_activations": [0.5, 1], "offload_overlap": [False], "lora_rank": [16],
    "lora_matrices": ["attention"], "frozen_weights": ["nf4"],
}  # fmt: skip
"""Values of each field of a job that differ from those of BASES."""
BESIDE: dict[str, dict[str, Any]] = {
    "chunks": {"schedule": "interleaved-1f1b"},
    "offload_overlap": {"offloaded_optimizer": 1},
    "lora_matrices": {"lora_rank": 16},
    "frozen_weights": {"lora_rank": 16},
}
"""What a field requires to have an effect."""
AXIS = {
    "schedule": "pp", "chunks": "pp", "layers_per_stage": "pp", "sequence_parallel": "tp",
    "context_exchange": "cp", "zigzag": "cp", "dispatcher": "ep", "expert_overlap": "ep",
    "expert_skew": "ep",
}  # fmt: skip
"""Fields without effect on a job that lacks this axis."""


@pytest.mark.parametrize("software", WRITERS)
def test_every_option_of_a_job_is_written_or_named_as_left_out(software: str) -> None:
    elsewhere = {"shape", "parallel", "framework"}  # model and layout, above; the format itself
    assert CHANGES.keys() == {one.name for one in fields(TrainingSetup)} - elsewhere
    base = BASES[software] | {"nodes": 2, "gpus_per_node": 8, "microbatches": 16, "sequence": 8192}
    silent, tried = [], 0
    for name, values in CHANGES.items():
        if AXIS.get(name, "nodes") not in base:
            continue
        before = job_of(base | BESIDE.get(name, {}))
        assert before is not None
        first = write_job(software, before)
        for value in values:
            job = job_of(base | BESIDE.get(name, {}) | {name: value})
            if job is None or job == before or first.refused:
                continue
            tried += 1
            written = write_job(software, job)
            if not written.refused and written.text == first.text:
                silent.append((name, value))
    assert silent == []
    assert tried >= 20


@pytest.mark.parametrize(
    ("recompute", "refused"), [("moe_act", False), ("core_attn", True), ("moe", True)]
)
def test_graphs_are_left_out_where_a_module_with_dropout_is_recomputed(
    recompute: str, refused: bool
) -> None:
    """Megatron-Core names whole modules: attention, feed-forward blocks and mixtures of experts."""
    job = job_of(
        BASES["megatron-lm"]
        | {"nodes": 2, "gpus_per_node": 8, "microbatches": 16, "sequence": 8192}
        | {"dropout": True, "cuda_graphs": "step", "recompute": recompute}
    )
    assert job is not None
    written = write_job("megatron-lm", job)
    assert ("full_iteration" in written.text) != refused


def test_the_command_line_writes_and_reads_back(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = ["--model", "llama-3-8b", "--nodes", "2", "--gpus-per-node", "8", "--tp", "2"]
    assert main(["write", "megatron-lm", *asked, "--zero", "3"]) == 0
    file = tmp_path / "train.sh"
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["write", "megatron-lm", "--take", str(file), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["text"] == file.read_text("utf-8")
    assert "--data-parallel-sharding-strategy optim_grads_params" in again["text"]
    assert main(["write", "deepspeed", *asked]) == 1
    assert "data parallelism only" in capsys.readouterr().out
    assert main(["write", "colossal", *asked]) == 2


def test_every_option_that_is_written_is_one_of_the_framework() -> None:
    source = random.Random(72)
    for software in WRITERS:
        for _ in range(20):
            job = job_of(random_job(software, source))
            text = write_job(software, job).text if job else ""
            if text:
                CHECKS[software](text)


def options_in(text: str) -> set[str]:
    """Return names of options after the program, without those of the launcher before it."""
    program = re.search(r".*(?:pretrain_gpt|run_recipe|run_clm)\.py", text, re.S)
    assert program
    return set(re.findall(r"(?<=\s)--[\w.-]+", text[program.end() :]))


def check_megatron_lm(text: str) -> None:
    """Check that every option has a value that the framework's own parser accepts."""
    known = KNOWN["megatron-lm"]
    words = text[text.index("pretrain_gpt.py") :].replace("\\\n", " ").split()[1:]
    starts = [at for at, word in enumerate(words) if word.startswith("--")]
    for at, end in zip(starts, [*starts[1:], len(words)], strict=True):
        name, values = words[at], words[at + 1 : end]
        assert (len(values) == 0) == (name in known["switch"]), (name, values)
        assert len(values) <= 1 or name in known["several"], (name, values)
        if name in known["choices"]:
            assert set(values) <= set(known["choices"][name]), (name, values)
        elif name in known["int"]:
            assert all(one.isdigit() for one in values), (name, values)
        elif name in known["float"]:
            assert all(float(one) >= 0 for one in values), (name, values)
        else:
            assert name in known["switch"] or name in known["text"], name
    said = {
        words[at][2:].replace("-", "_"): " ".join(words[at + 1 : end])
        for at, end in zip(starts, [*starts[1:], len(words)], strict=True)
    }
    check_megatron_rules(said, "fp8_format" in said and "fp8_recipe" not in said)
    if said.get("cuda_graph_impl") == "full_iteration":
        assert "no_check_for_nan_in_loss_and_grad" in said


def check_megatron_bridge(text: str) -> None:
    known = KNOWN["megatron-bridge"]
    assert options_in(text) <= set(known["options"])
    found = re.search(r"--recipe (\w+)", text)
    assert found
    assert found[1] in known["recipes"]
    settings = dict(re.findall(r"^  '?([\w.]+)=([^\s']+)", text, re.M))
    place = "model.transformer" if found[1] in known["nested"] else "model"
    for setting in settings:
        section, dot, name = setting.rpartition(".")
        if dot:
            assert section in {place, *known} - ({"model"} - {place}), setting
            assert name in known[section.removeprefix("model.")], setting
    plain = {name.removeprefix(f"{place}."): text for name, text in settings.items()}
    for part in ("recompute_method", "recompute_num_layers"):
        assert (plain[part] != "null") == (plain["recompute_granularity"] == "full"), text
    assert plain["account_for_embedding_in_pipeline_split"] == "false"
    if plain.get("cuda_graph_impl", "none") != "none":
        assert plain["use_te_rng_tracker"] == plain["rng.te_rng_tracker"] == "true"
        assert plain["rerun_state_machine.check_for_nan_in_loss"] == "false"
    if "ddp.use_megatron_fsdp" in plain:
        assert "dist.use_tp_pp_dp_mapping" not in plain
    check_megatron_rules(plain, "delayed" in plain["mixed_precision"])
    assert settings["mixed_precision"] in known["mixed_precision"]


def check_megatron_rules(said: dict[str, str], delayed: bool) -> None:
    """Check what Megatron-Core refuses when it makes its configuration.

    Its `validate_args` and `TransformerConfig` at d98e8a64, and Megatron-Bridge's own at 067f987d,
    ran on 100 written jobs each on a CPU, with stand-ins for Transformer Engine: they refused 30
    and 86 of the first ones, and accept all of these.
    """
    whole = said.get("recompute_granularity") == "full"
    again = said.get("recompute_modules", "")
    graphs = said.get("cuda_graph_impl", "none")
    assert graphs in ("none", "full_iteration") or not whole, said
    if graphs != "none" and said["attention_dropout"] not in ("0", "0.0"):
        assert not any(part in again for part in ("core_attn", "mlp", "moe")), said
    if said.get("overlap_moe_expert_parallel_comm", "false") != "false":
        stages = int(said["pipeline_model_parallel_size"])
        names = (
            "virtual_pipeline_model_parallel_size",
            "num_virtual_stages_per_pipeline_rank",
            "pipeline_model_parallel_layout",
        )
        assert stages == 1 or any(said.get(name, "null") != "null" for name in names), said
        assert not whole, said
    assert not (delayed and ("layernorm" in again or "moe_act" in again)), said
    assert not (
        said.get("mtp_num_layers") and said.get("position_embedding_type", "rope") != "rope"
    )


def document(text: str, mark: str) -> str:
    found = re.search(rf"<<'{mark}'\n(.*?)\n{mark}$", text, re.M | re.S)
    assert found
    return found[1]


def check_torchtitan(text: str) -> None:
    known = KNOWN["torchtitan"]
    file = tomllib.loads(document(text, "TOML"))
    for section, values in file.items():
        assert values.keys() <= set(known["sections"][section]), section
    assert file["model"]["flavor"] in known["flavors"][file["model"]["name"]]


def check_deepspeed(text: str) -> None:
    known = KNOWN["deepspeed"]
    file = json.loads(document(text.partition("ds_config.json")[2], "JSON"))
    assert file.keys() <= set(known["keys"])
    assert file["zero_optimization"].keys() <= set(known["zero_optimization"])
    launch = text[text.index("\ndeepspeed ") : text.index(" run_clm.py")]
    assert set(re.findall(r"--\w+", launch)) <= set(known["options"])
    assert file["train_batch_size"] % file["train_micro_batch_size_per_gpu"] == 0
    check_program(text)


def check_accelerate(text: str) -> None:
    known = KNOWN["accelerate"]
    file = yaml.safe_load(document(text, "YAML"))
    assert file.keys() <= set(known["keys"])
    assert {f"--{name}" for name in file["fsdp_config"]} <= set(known["options"])
    launch = text[text.index("\naccelerate launch") : text.index(" run_clm.py")]
    assert set(re.findall(r"--\w+", launch)) <= set(known["options"])
    check_program(text)


EXAMPLE = {
    "--config_name", "--tokenizer_name", "--dataset_name", "--dataset_config_name", "--block_size",
}  # fmt: skip
"""Options of run_clm.py itself, in addition to those of every trainer."""


def check_program(text: str) -> None:
    known = {f"--{name}" for name in KNOWN["transformers"]["options"]}
    assert options_in(text) <= known | EXAMPLE


def check_fsdp2(text: str) -> None:
    compile(text, "train.py", "exec")


CHECKS = {
    "megatron-lm": check_megatron_lm, "megatron-bridge": check_megatron_bridge,
    "torchtitan": check_torchtitan, "deepspeed": check_deepspeed, "accelerate": check_accelerate,
    "fsdp2": check_fsdp2,
}  # fmt: skip


@pytest.mark.parametrize("software", ["megatron-lm", "megatron-bridge"])
@pytest.mark.parametrize("dispatcher", ["all-to-all", "deepep", "hybridep"])
def test_a_dispatcher_is_written_and_read_back(software: str, dispatcher: str) -> None:
    chosen = {"model": "qwen-3-30b-a3b", "nodes": 2, "gpus_per_node": 8, "ep": 8}
    job = job_of(chosen | {"dispatcher": dispatcher})
    assert job is not None
    written = write_job(software, job)
    assert "dispatcher" not in written.left_out
    taken = job_in(written.text, {})
    assert options_of(taken)["dispatcher"] == dispatcher


@pytest.mark.parametrize("software", ["megatron-lm", "megatron-fused-loss"])
def test_a_fused_loss_is_written_for_megatron_lm_and_read_back(software: str) -> None:
    sizes = {"model": "llama-3-8b", "nodes": 1, "gpus_per_node": 8}
    job = job_of(sizes | {"software": software})
    assert job is not None
    taken = job_in(write_job("megatron-lm", job).text, {})
    assert options_of(taken)["software"] == software
