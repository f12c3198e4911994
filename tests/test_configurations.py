"""What the tools load: the whole catalog in SI units, and published steps that the command line
accepts."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict
from functools import cache
from typing import Any

import pytest

from figgen import catalog
from figgen.__main__ import main
from figgen.models.machine.layout import layout
from figgen.models.shape.model_shape import ExpertShape, LatentAttention, ModelShape, StateSpace
from figgen.scenarios.options.resolve import training_step
from figgen.scenarios.options.schema import OPTIONS
from figgen.scenarios.tools.data import configurations, configurations_json

TRAINING = [name for name, preset in catalog.PRESETS.items() if preset.kind == "training"]
loaded = cache(configurations)


def test_file_is_small_and_says_the_same() -> None:
    content = configurations_json()
    assert json.loads(content) == json.loads(json.dumps(loaded()))
    assert len(gzip.compress(content.encode())) < 25_000


def test_every_shape_comes_back_from_what_differs_from_the_usual() -> None:
    assert list(loaded()["models"]) == list(catalog.MODELS)
    for name, entry in loaded()["models"].items():
        given = {key: value for key, value in entry.items() if key != "title"}
        kinds = {"experts": ExpertShape, "latent": LatentAttention, "state_space": StateSpace}
        for key, kind in kinds.items():
            if key in given:
                given[key] = kind(**given[key])
        assert ModelShape(**given) == catalog.model(name).shape
        assert asdict(ModelShape(**given)) == asdict(catalog.model(name).shape)


def test_hardware_is_in_si_with_the_ranges_of_the_catalog() -> None:
    h100 = loaded()["accelerators"]["h100-sxm-80gb"]
    assert h100["peaks"]["bf16"] == 989.4e12
    assert h100["memory_bytes"] == 85017493504  # total_memory of PyTorch on an H100
    assert h100["scale_up_bandwidth_bytes_per_s"] == 450e9
    assert loaded()["links"]["ib-ndr"]["bandwidth_bytes_per_s"] == 50e9
    for name, link in catalog.LINKS.items():
        ends = [link.bandwidth.low, link.bandwidth.high]
        found = loaded()["links"][name].get("bandwidth_bytes_per_s_range", [None, None])
        assert found == ends or None in ends
    assert loaded()["links"]["neuronlink3"]["bandwidth_bytes_per_s_range"] == [640e9, 1.28e12]
    assert loaded()["latencies"] == {"scale_up_s": 3.4e-6, "network_s": 14e-6}


def test_hardware_presets_are_nodes_of_the_catalog() -> None:
    nodes = [
        preset["choices"] for preset in loaded()["presets"].values() if preset["kind"] == "hardware"
    ]
    assert len(nodes) >= 7
    for node in nodes:
        chip = loaded()["accelerators"][node["accelerator"]]
        assert node["gpus_per_node"] <= chip["scale_up_domain"]
        assert loaded()["links"][node["nic"]]["kind"] == "scale-out"


def test_map_presets_lay_out_their_own_sizes() -> None:
    for name, preset in loaded()["presets"].items():
        if preset["kind"] == "map":
            found, wanted = layout(**preset["choices"]), catalog.preset(name)
            for axis in ("tp", "cp", "dp", "pp", "ep", "etp", "edp"):
                assert getattr(found, axis) == getattr(wanted, axis)


def options(choices: dict[str, Any]) -> list[str]:
    """Return choices as options of the command line."""
    words = []
    for name, value in choices.items():
        option = OPTIONS[name]
        words += (
            [option.command_flag] if option.kind == "switch" else [option.command_flag, str(value)]
        )
    return words


@pytest.mark.parametrize("name", TRAINING)
def test_a_published_step_is_that_of_the_chapters_on_the_layout_of_its_run(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main(["step", *options(loaded()["presets"][name]["choices"]), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    run = catalog.preset(name).run
    assert answer["world_size"] == run.gpus
    for axis in ("tp", "cp", "dp", "pp", "ep"):
        assert answer[axis] == getattr(run, axis)
    if run.tokens_per_step is not None:
        assert answer["tokens_per_step"] == run.tokens_per_step
    assert answer["step_time_s"] == training_step(preset=name).estimate.step_time_s


def test_every_training_preset_is_there_with_a_network_and_a_precision() -> None:
    kinds = {name: preset["kind"] for name, preset in loaded()["presets"].items()}
    assert [name for name, kind in kinds.items() if kind == "training"] == TRAINING
    for name in TRAINING:
        choices = loaded()["presets"][name]["choices"]
        assert choices["nic"] in catalog.LINKS
        assert choices["dtype"] in loaded()["accelerators"][choices["accelerator"]]["peaks"]
