"""Rank orders compared with the examples printed in the frameworks' documentation and papers."""

from __future__ import annotations

import pytest

from figgen.errors import InputError
from figgen.models.machine.frameworks import (
    CONVENTIONS,
    convention,
)
from figgen.models.machine.layout import layout
from figgen.models.machine.mesh import coordinates_of, groups


def test_megatron_tp_pp_dp_mapping_puts_dp_outermost() -> None:
    parallel = layout(nodes=8, gpus_per_node=8, tp=8, pp=4, order="megatron-tp-pp-dp")
    assert groups(parallel.dense, "pp")[0] == (0, 8, 16, 24)
    assert groups(parallel.dense, "dp")[0] == (0, 32)
    default = layout(nodes=8, gpus_per_node=8, tp=8, pp=4).dense
    assert groups(default, "pp")[0] == (0, 16, 32, 48)
    assert groups(default, "dp")[0] == (0, 8)


def test_rank_4_of_2x2x2_is_the_second_replica_when_dp_is_outermost() -> None:
    grid = layout(nodes=1, gpus_per_node=8, tp=2, pp=2, order="tp-cp-pp-dp").dense
    assert coordinates_of(grid, 4) == {"tp": 0, "cp": 0, "pp": 0, "dp": 1}


def test_llama_3_example_of_16_gpus() -> None:
    # The paper's figure 5: with every size 2, GPU 0 shares its TP group with GPU 1, CP with 2,
    # PP with 4 and DP with 8.
    grid = layout(nodes=2, gpus_per_node=8, tp=2, cp=2, pp=2, order="llama3").dense
    first = {axis: groups(grid, axis)[0] for axis in ("tp", "cp", "pp", "dp")}
    assert first == {"tp": (0, 1), "cp": (0, 2), "pp": (0, 4), "dp": (0, 8)}


def test_deepspeed_documented_pipe_groups_of_2x2x2() -> None:
    grid = layout(nodes=1, gpus_per_node=8, tp=2, pp=2, order="deepspeed").dense
    assert groups(grid, "pp") == ((0, 4), (1, 5), (2, 6), (3, 7))
    # Its filter_match example: the ranks with pipe=0, data=1 are one model group.
    assert (2, 3) in groups(grid, "tp")
    assert coordinates_of(grid, 3) == {"tp": 1, "dp": 1, "pp": 0, "cp": 0}


def test_deepspeed_documented_expert_groups_of_16_gpus() -> None:
    # The example of _get_expert_parallel_ranks, with enable_expert_tensor_parallelism.
    parallel = layout(nodes=2, gpus_per_node=8, tp=2, ep=4, etp=2, order="deepspeed")
    evens = [(0, 2, 4, 6), (8, 10, 12, 14)]
    odds = [(1, 3, 5, 7), (9, 11, 13, 15)]
    assert sorted(groups(parallel.expert, "ep")) == sorted(evens + odds)
    data = [(0, 8), (2, 10), (4, 12), (6, 14), (1, 9), (3, 11), (5, 13), (7, 15)]
    assert sorted(groups(parallel.expert, "edp")) == sorted(data)


def test_deepspeed_leaves_experts_whole_unless_told_otherwise() -> None:
    # The example of _create_expert_and_data_parallel, which MoE takes by default, also beside TP.
    parallel = layout(nodes=2, gpus_per_node=8, tp=2, ep=2, order="deepspeed")
    assert parallel.etp == 1
    assert groups(parallel.expert, "ep") == tuple((r, r + 1) for r in range(0, 16, 2))
    assert groups(parallel.expert, "edp") == (tuple(range(0, 16, 2)), tuple(range(1, 16, 2)))


def test_nanotron_moves_dp_outermost_only_with_experts() -> None:
    dense = layout(nodes=1, gpus_per_node=8, tp=2, pp=2, order="nanotron").dense
    moe = layout(nodes=1, gpus_per_node=8, tp=2, pp=2, ep=2, order="nanotron-moe")
    assert (groups(dense, "dp")[0], groups(dense, "pp")[0]) == ((0, 2), (0, 4))
    assert (groups(moe.dense, "dp")[0], groups(moe.dense, "pp")[0]) == ((0, 4), (0, 2))
    assert moe.etp == 1
    assert groups(moe.expert, "ep")[0] == (0, 1)


def test_torchtitan_dense_ranks_are_those_of_megatron() -> None:
    sizes = {"nodes": 4, "gpus_per_node": 8, "tp": 4, "cp": 2, "pp": 2}
    assert layout(**sizes, order="torchtitan").dense == layout(**sizes).dense


def test_an_order_of_ones_own_has_two_axes_or_more() -> None:
    for order in ("dp-tp", "pp-tp-dp"):
        assert convention(order).order == tuple(order.split("-"))
    for order in ("tp", "", "rows-columns"):
        with pytest.raises(InputError, match="unknown rank order"):
            convention(order)
    with pytest.raises(InputError, match="unknown axis"):
        convention("tp-columns")
    with pytest.raises(InputError, match="each axis once"):
        convention("tp-dp-tp")


def test_every_convention_names_its_source_and_known_axes_once() -> None:
    for name, known in CONVENTIONS.items():
        assert convention(name) is known
        assert known.name == name
        assert convention("-".join(known.order)).order == known.order
        assert "@" in known.source or "arXiv" in known.source
