"""Commands, addresses and launch scripts that this site writes are read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from figgen.__main__ import main
from figgen.models.machine.layout import ParallelLayout
from figgen.models.machine.mesh import RankMesh, groups
from figgen.scenarios.options.resolve import SIZES, parallel_layout, training_step
from figgen.scenarios.options.schema import OPTIONS
from figgen.scenarios.taking.names import BY_NAME, KEYS
from figgen.scenarios.taking.options import options_of
from tests.taking.jobs import take

WRITTEN = json.loads((Path(__file__).parent / "written_by_the_rank_map.json").read_text("utf-8"))


def wide(mesh: RankMesh) -> list[str]:
    return [name for name, size in mesh.axes if size > 1]


def ranks_of(layout: ParallelLayout) -> dict[str, object]:
    meshes = [layout.dense, *([layout.expert] if layout.ep > 1 else [])]
    return {name: groups(mesh, name) for mesh in meshes for name in wide(mesh)}


@pytest.mark.parametrize("case", WRITTEN, ids=lambda case: f"{case['launcher']} {case['layout']}")
def test_a_launch_that_the_rank_map_writes_is_read_back(case: dict[str, Any]) -> None:
    found = options_of(take(case["text"]))
    sizes = {name: value for name, value in found.items() if name in (*SIZES, "order")}
    assert ranks_of(parallel_layout(**sizes)) == ranks_of(parallel_layout(**case["layout"]))


COMMAND = (
    "figgen step --model llama-3-70b --nodes 8 --gpus-per-node 8 --tp 8 --pp 4 --zero 1 "
    "--recipe mcore14 --schedule zbv --microbatches 32 --recompute mlp,moe --no-overlap "
    "--dropout --reserve '3 GB' --efficiency 0.5 --layers-per-stage 10,10,10,10,10,10,10,10 "
    "--software 'nemo 24.09 fp8-current' --network-latency-s '20 µs' --json"
)


def test_commands_and_addresses_of_this_site_are_read_back() -> None:
    found = options_of(take(COMMAND))
    assert found["reserve_bytes"] == 3e9
    assert found["network_latency_s"] == pytest.approx(20e-6)
    assert found["layers_per_stage"] == (10,) * 8
    assert (found["overlap_data_parallel"], found["dropout"]) == (False, True)
    assert found["software"] == "nemo 24.09 fp8-current"
    assert training_step(**found).setup.recipe.name == "mcore14"
    for option in OPTIONS.values():
        if option.default not in (None, "", ()) and option.kind != "switch":
            value = str(option.default)
            job = take(f"figgen memory --tp 2 {option.command_flag} '{value}'")
            assert str(job.taken[option.name]) == value
    address = (
        "https://x.org/tools/modeler/?nodes=16&gpus=8&model=gpt-3-175b&flash=0&zero=2&reserve=2"
    )
    taken = options_of(take(address))
    assert (taken["gpus_per_node"], taken["zero_stage"], taken["reserve_bytes"]) == (8, 2, 2e9)
    assert taken["flash_attention"] is False


def test_every_name_means_one_thing() -> None:
    names = [name for given in KEYS.values() for name in given.split(" ")]
    assert len(names) == len(set(names)) == len(BY_NAME)


def test_the_command_line_takes_and_goes_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    script = tmp_path / "train.sh"
    script.write_text(
        "torchrun --nnodes $N --nproc-per-node 8 pretrain_gpt.py --num-layers 32 "
        "--hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8 "
        "--ffn-hidden-size 14336 --swiglu --vocab-size 128256 --seq-length 4096 "
        "--micro-batch-size 1 --global-batch-size 64 --tensor-model-parallel-size 2 --bf16\n",
        encoding="utf-8",
    )
    assert main(["take", str(script), "--set", "N=2", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert {"taken", "assumed", "left", "asked"} <= shown.keys()
    assert (shown["taken"]["nodes"], shown["taken"]["model"]) == (2, "llama-3-8b")
    for verb in ("step", "memory", "ranks", "plan"):
        assert main([verb, "--take", str(script), "--set", "N=2", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)
    assert main(["step", "--take", str(script), "--set", "N=2", "--tp", "4", "--json"]) == 0
    step = json.loads(capsys.readouterr().out)
    assert (step["tp"], step["dp"], step["tokens_per_step"]) == (4, 4, 64 * 4096)
    assert main(["step", "--take", str(script)]) == 2
    assert "--set N=…" in capsys.readouterr().err


def test_a_model_has_sizes_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = ["--nodes", "1", "--gpus-per-node", "8", "--json"]
    sizes = ["--layers", "32", "--hidden", "4096", "--heads", "32", "--kv-heads", "8"]
    more = ["--ffn", "14336", "--vocab", "128256"]
    assert main(["memory", *sizes, *more, *cluster]) == 0
    assert json.loads(capsys.readouterr().out)["ranks"][0]["parameters"] == 8_030_261_248
    assert main(["memory", "--model", "llama-3-8b", "--layers", "16", *cluster]) == 0
    half = json.loads(capsys.readouterr().out)["ranks"][0]["parameters"]
    assert half == 8_030_261_248 - 16 * 218_112_000
    assert main(["memory", "--layers", "32", *cluster]) == 2
    assert "--hidden, --heads, --vocab" in capsys.readouterr().err
