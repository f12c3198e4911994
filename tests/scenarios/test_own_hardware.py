"""A reader's accelerator and link behave as if they were in the catalog."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from figgen.__main__ import main
from figgen.catalog.load import content
from figgen.errors import InputError
from figgen.scenarios.options.resolve import training_step
from figgen.scenarios.options.scenario import scenario
from figgen.scenarios.planning.plan_question import plan_question
from figgen.scenarios.planning.planner import plan
from figgen.scenarios.runs.own_hardware import named_accelerator, named_link

MINE = """
[my-gpu]
hbm_capacity = "96 GB"
hbm_bandwidth = "4 TB/s"
bf16 = "800 TFLOP/s"
scale_up = "600 GB/s"
scale_up_domain = 8

[my-network]
bandwidth = "25 GB/s"
per = "GPU"
"""
JOB = {"model": "llama-3-8b", "nodes": 2, "gpus_per_node": 8, "global_batch": 32}


def stanza(file: str, name: str) -> str:
    """Return an entry of the catalog as text."""
    whole = content(file)
    return f"[{name}]{whole.split(f'[{name}]')[1].split(chr(10) + '[')[0]}\n"


@pytest.mark.parametrize("ending", ["toml", "json"])
@pytest.mark.parametrize("chip", ["h100-sxm-80gb", "mi300x", "a100-sxm-80gb"])
def test_a_stanza_of_the_catalog_is_what_the_catalog_has(
    chip: str, ending: str, tmp_path: Path
) -> None:
    text = stanza("accelerators.toml", chip) + stanza("links.toml", "ib-hdr")
    file = tmp_path / f"copied.{ending}"
    file.write_text(text if ending == "toml" else json.dumps(tomllib.loads(text)))
    mine = {**JOB, "accelerator": str(file), "nic": str(file)}
    theirs = {**JOB, "accelerator": chip, "nic": "ib-hdr"}
    one, other = training_step(**mine), training_step(**theirs)
    assert one.predicted == other.predicted
    assert one.estimate == other.estimate
    assert one.memory == other.memory
    searched, known = (plan(plan_question(scenario(**each, cp=1))) for each in (mine, theirs))
    assert searched.found.step_s[:100].tolist() == known.found.step_s[:100].tolist()
    assert searched.question.residuals == known.question.residuals


def test_an_own_accelerator_is_read_in_its_units(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(MINE)
    chip, link = named_accelerator(str(file)), named_link(str(file))
    assert (chip.hbm_bytes, chip.hbm_bandwidth_bytes_per_s) == (96e9, 4e12)
    assert (chip.peak_flops_per_s("bf16"), chip.scale_up_bandwidth_bytes_per_s) == (800e12, 600e9)
    assert link.bandwidth_bytes_per_s == 25e9
    found = training_step(**JOB, accelerator=str(file), nic=str(file))
    assert found.predicted.residuals.name == "jobs with few or no published runs"
    # Nobody measured it: 0.8 of its peak at best, of which steps sustain 0.7.
    weights = 2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336
    work = 3 * 2 * 8192 * weights
    assert found.predicted.parts.dense.matmuls_s == pytest.approx(work / (0.56 * 800e12))


def test_a_network_may_stand_beside_a_chip_of_the_catalog(tmp_path: Path) -> None:
    file = tmp_path / "net.toml"
    file.write_text(MINE.split("[my-network]")[1])
    assert named_link(str(file)).bandwidth_bytes_per_s == 25e9
    found = training_step(**JOB, nic=str(file))
    assert found.cluster.network_bandwidth_bytes_per_s == 25e9


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("hbm_bandwidth", "hbm_bandwith"), r"hbm_bandwith: unknown key.*hbm_bandwidth"),
        (('"96 GB"', '"96 TFLOP"'), r"mine.toml:3: \[my-gpu\] hbm_capacity.*expected B.*FLOP"),
        (('"96 GB"', "96"), r"hbm_capacity: a number without a unit"),
        (('"4 TB/s"', '"4 PB/s"'), r"hbm_bandwidth: implausible.*4 PB/s"),
        (('bf16 = "800 TFLOP/s"', ""), "no dense peak"),
        (('"600 GB/s"', '"nvlink44"'), r"scale_up: dangling.*nvlink4"),
        (('"600 GB/s"', '"600 GB"'), r"scale_up"),
        (("scale_up_domain = 8", ""), "scale_up_domain: missing"),
        (("[my-gpu]", "[my-gpu"), "TOML or JSON"),
        (('bandwidth = "25 GB/s"', 'hbm_capacity = "8 GB"'), "one table of an accelerator"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(
    change: tuple[str, str], says: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(MINE.replace(*change))
    with pytest.raises(InputError, match=says):
        scenario(**JOB, accelerator=str(file))


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "long.toml").write_text("#" * 2**21)
    for name in ("list.json", "long.toml", "none.toml"):
        with pytest.raises(InputError, match=name):
            named_accelerator(str(tmp_path / name))


def test_the_command_line_takes_own_model_chip_network_and_rates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, config = tmp_path / "mine.toml", tmp_path / "config.json"
    file.write_text(MINE)
    config.write_text(json.dumps({
        "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
        "num_key_value_heads": 8, "num_hidden_layers": 32, "intermediate_size": 14336,
        "vocab_size": 128256, "max_position_embeddings": 8192,
    }))  # fmt: skip
    words = ["--nodes", "2", "--accelerator", str(file), "--nic", str(file), "--global-batch", "32"]
    said = {}
    for model in (str(config), "llama-3-8b"):
        for more in ([], ["--measured", "bf16-400000-2"]):
            assert main(["plan", "--model", model, *words, *more, "--json"]) == 0
            said[model, bool(more)] = json.loads(capsys.readouterr().out)["best"][0]
    assert said[str(config), False] == said["llama-3-8b", False]
    assert said[str(config), True] == said["llama-3-8b", True]
    assert said["llama-3-8b", True]["step_time_s"] > said["llama-3-8b", False]["step_time_s"]
