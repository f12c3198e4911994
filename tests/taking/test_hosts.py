"""Hosts and ranks are read as Slurm, Open MPI, DeepSpeed, NCCL and torch print them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from figgen.__main__ import main
from figgen.models.machine.layout import ParallelLayout, layout
from figgen.models.machine.mesh import groups
from figgen.scenarios.taking.hosts import (
    Hosts,
    differences,
    expanded_names,
    host_names,
    hostfile,
    rankfile,
    read_hosts,
)
from figgen.scenarios.taking.job import read_job
from figgen.scenarios.taking.options import own_names

LAYOUT = layout(nodes=2, gpus_per_node=4, tp=2, pp=2)


def known(text: str) -> Hosts:
    found = read_hosts(text)
    assert found is not None
    return found


def told(text: str, parallel: ParallelLayout = LAYOUT) -> tuple[list[str], list[int]]:
    found = differences(parallel, known(text))
    return found.sentences, found.ranks


@pytest.mark.parametrize(
    ("text", "names", "slots"),
    [
        ("node001\nnode002\n", ["node001", "node002"], [0, 0]),
        ("node[001-002,7],gpu1", ["node001", "node002", "node7", "gpu1"], [0, 0, 0, 0]),
        ("# hosts\nworker-0 slots=8\nworker-1 slots=4\n", ["worker-0", "worker-1"], [8, 4]),
        ("n1:8\nn2:8\n", ["n1", "n2"], [8, 8]),
        ("rank 0=a1 slot=0\nrank 1=a2 slot=0:3\n", ["a1", "a2"], [1, 1]),
        ("0: a1\n1: a1\n2: a2\n3: a2", ["a1", "a2"], [2, 2]),
        (
            "#  Rank  0 Group  0 Pid  1 on  node1 device  0 [0x18] NVIDIA H100 80GB HBM3\n"
            "#  Rank  1 Group  0 Pid  1 on  node2 device  5 [0x2a] NVIDIA H100 80GB HBM3",
            ["node1", "node2"],
            [1, 1],
        ),
        (
            "n1:17:88 [3] NCCL INFO comm 0x5 rank 3 nranks 16 cudaDev 3 busId 5d000 - Init",
            ["n1"],
            [1],
        ),
    ],
)
def test_hosts_are_read_in_each_form(text: str, names: list[str], slots: list[int]) -> None:
    hosts = known(text)
    assert (hosts.names, hosts.slots) == (names, slots)


@pytest.mark.parametrize(
    "text",
    [
        "torchrun --nnodes 2 train.py",
        "hello",
        "one\ntwo",
        '{"a": [1, 2]}',
        '{"model_type":"llama","architectures":["LlamaForCausalLM"],"layer_types":["a1","a2"]}',
        "tp = [1, 2]",
        "train.sh",
        "layers: [0, 1]\nname: x",
        "",
    ],
)
def test_other_texts_name_no_hosts(text: str) -> None:
    assert read_hosts(text) is None


def test_ranks_that_run_elsewhere_are_named_with_the_groups_that_they_tear() -> None:
    cyclic = "\n".join(f"{rank}: node{rank % 2}" for rank in range(8))
    sentences, ranks = told(cyclic)
    assert ranks == [1, 2, 3, 4, 5, 6]
    assert sentences[0].startswith("6 ranks of 8 run elsewhere than in the layout: rank 1 on GPU 0")
    assert sentences[1] == "4 groups of TP span more nodes than in the layout"
    assert told("\n".join(f"{rank}: node{rank // 4}" for rank in range(8))) == ([], [])


def test_a_cluster_of_another_size_is_named() -> None:
    sentences, _ = told("a1 slots=8\na2 slots=4\na3 slots=4\n")
    assert sentences == [
        "the text names 3 hosts, but the layout has 2 nodes",
        "the layout has 4 GPUs per node, but a1 has 8",
    ]


def test_a_mesh_of_torch_and_printed_groups_are_compared_axis_by_axis() -> None:
    # What torch.distributed.device_mesh.DeviceMesh.__repr__ prints.
    mesh = "DeviceMesh('cuda', [[[0, 1], [2, 3]], [[4, 5], [6, 7]]], mesh_dim_names=('{}'))"
    assert told(mesh.format("pp', 'dp', 'tp")) == ([], [])
    sentences, ranks = told(mesh.format("dp', 'pp', 'tp"))
    assert sentences[0] == "the text has the PP group [0, 2] instead of [0, 4]"
    assert ranks == list(range(8))
    printed = "[rank0]: tensor parallel group [0, 1]\n[rank0]: data parallel group: [0, 4]"
    assert told(printed) == (["the text has the DP group [0, 4] instead of [0, 2]"], [0, 4])


@pytest.mark.parametrize("order", ["megatron", "llama3", "tp-pp-dp", "pp-dp-cp-tp"])
def test_a_rankfile_puts_each_part_of_the_model_where_the_layout_has_it(order: str) -> None:
    sizes = {"nodes": 4, "gpus_per_node": 4, "tp": 2, "pp": 4}
    parallel = layout(**sizes, order=order)
    names = [f"n{at}" for at in range(4)]
    hosts = known(rankfile(parallel, names))
    number = {at: names.index(name) for at, name in enumerate(hosts.names)}
    places = {rank: 4 * number[node] + gpu for rank, (node, gpu) in hosts.ranks.items()}
    assert sorted(places.values()) == list(range(16))
    for axis in ("tp", "pp", "dp"):
        # Megatron's groups, put where the file says, are those of the layout.
        usual = {frozenset(places[r] for r in g) for g in groups(layout(**sizes).dense, axis)}
        assert usual == {frozenset(group) for group in groups(parallel.dense, axis)}


def test_a_hostfile_is_read_back_as_the_cluster() -> None:
    text = hostfile(LAYOUT, host_names(LAYOUT, known("first1\nfirst2\n")))
    assert text == "first1 slots=4\nfirst2 slots=4"
    job = read_job(text, {}, own_names())
    assert (job.dialect, job.taken) == ("hostfile", {"nodes": 2, "gpus_per_node": 4})
    assert host_names(LAYOUT, None) == ["node0", "node1"]


def test_brackets_of_slurm_are_expanded() -> None:
    assert expanded_names("a[08-11]b") == ["a08b", "a09b", "a10b", "a11b"]
    assert expanded_names("a b[1-2]") == []


def test_the_command_line_compares_and_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "hosts"
    file.write_text("h1\nh2\nh3\n", encoding="utf-8")
    asked = ["ranks", "--nodes", "2", "--gpus-per-node", "4", "--tp", "2", "--hosts", str(file)]
    assert main([*asked, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["hosts"]
    assert shown["names"] == ["h1", "h2", "h3"]
    assert shown["sentences"] == ["the text names 3 hosts, but the layout has 2 nodes"]
    assert main([*asked, "--file", "rankfile"]) == 0
    assert capsys.readouterr().out.splitlines()[4] == "rank 4=h2 slot=0"
    file.write_text("hello", encoding="utf-8")
    assert main(asked) == 2
    assert "hosts, or ranks with their places" in capsys.readouterr().err
