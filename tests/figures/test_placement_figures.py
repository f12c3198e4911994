"""Pictures and tables of placement, compared with closed forms and counts by hand or by loop."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from figgen.charts import Table
from figgen.errors import InputError
from figgen.models.machine.fabric import PodShare, leaf_of, one_leaf_share, pod_leaving_share
from figgen.models.machine.layout import layout
from figgen.models.machine.mesh import groups
from figgen.quantity_shown import NBSP
from figgen.registry import build
from tests.figures.reading import DRAWN

GPT_3 = {
    "model": "gpt-3-175b",
    "sizes": "nodes=128 gpus_per_node=8 tp=8 pp=8",
    "options": "microbatches=32 zero_stage=0 recipe=zero16 flash_attention=off",
}
LLAMA = {"run": "llama-3-405b-8k-16384", "options": "zero_stage=1"}


def test_volumes_of_gpt_3_are_the_closed_forms() -> None:
    values = build("axis-bandwidth", GPT_3).values
    message = 2048 * 12288 * 2
    # With sequence parallelism: four all-reduces in two halves each, and two inputs again.
    assert values["tp_sent"].value == 32 * 12 * 10 * 7 / 8 * message == 135_291_469_824 * 5 / 4
    assert values["pp_sent"].value == 2 * 32 * message / 8
    assert values["dp_sent"].value == pytest.approx(2 * 15 / 16 * 175e9 / 64 * 2, rel=0.01)


def test_needed_bandwidth_is_bytes_over_a_tenth_of_computing_or_the_last_backward() -> None:
    values = build("axis-bandwidth", GPT_3).values
    compute = values["compute"].value
    assert values["tp_needed"].value == pytest.approx(169_114_337_280 / (0.1 * compute))
    assert values["dp_window"].value == pytest.approx(compute / 32 * 2 / 3)


def test_strategies_on_one_node_send_what_their_closed_forms_say() -> None:
    values = build("strategy-exchanges", DRAWN["strategy-exchanges"]).values
    parameters, tokens, hidden, layers = 8.03e9, 8192, 4096, 32
    assert values["dp_8_sent"].value == pytest.approx(2 * 7 / 8 * parameters * 2, rel=1e-3)
    assert values["zero3_sent"].value == pytest.approx(3 * 7 / 8 * parameters * 2, rel=1e-3)
    assert values["zero1_sent"].value == values["dp_8_sent"].value
    tp = 8 * layers * 4 * 2 * 7 / 8 * tokens * hidden * 2
    assert values["tp_8_sent"].value == tp
    assert values["tp_8_with_sp_sent"].value == tp * 5 / 4
    assert values["pp_8_sent"].value == 2 * 8 * tokens * hidden * 2
    # Keys and values go round twice, their gradients once; 8 KV heads of 128.
    assert values["cp_8_sent"].value == pytest.approx(8 * layers * 3 * 7 / 8 * tokens * 1024 * 4)
    assert values["ep_8_sent"].value == 32 * 4 * 2 * tokens * 4096 * 2 * 7 / 8


def test_one_time_of_computing_is_behind_the_shares_of_every_strategy() -> None:
    """The Llama rows do the same work, so bytes divided by shares give one time, at 6 FLOPs per
    weight."""
    chart = build("strategy-exchanges", DRAWN["strategy-exchanges"])
    assert isinstance(chart, Table)
    values, nvlink, peak = chart.values, 450e9, 989.4e12
    at = {column.label: index for index, column in enumerate(chart.columns)}
    implied = [
        float(row[at["sent per GPU"]]) / nvlink / float(row[at["over computing"]])
        for row in chart.rows
    ]
    assert implied[:7] == pytest.approx([values["computing"].value] * 7)
    assert implied[7] == pytest.approx(values["mixture_computing"].value)
    rate = values["share_of_peak"].value * peak
    # Weights that multiply, and half of the square of 8,192 tokens in 32 layers 4,096 wide.
    llama = 6 * (8.03e9 - 128256 * 4096) + 6 * 32 * 8192 * 4096
    assert implied[0] == pytest.approx(8192 * llama / rate, rel=0.01)
    mixtral = 6 * (12.88e9 - 32000 * 4096) + 6 * 32 * 8192 * 4096
    assert implied[7] == pytest.approx(8192 * mixtral / rate, rel=0.01)


def test_oversubscription_adds_the_same_time_for_each_unit_once_nothing_more_hides() -> None:
    values = build("oversubscription", {**LLAMA, "ratios": (1, 2, 3, 4)}).values
    steps = [values[f"step_{ratio}"].value for ratio in (1, 2, 3, 4)]
    added = np.diff(steps)
    assert added[0] > 0
    assert added == pytest.approx([added[0]] * 3, rel=0.01)
    assert values["tp_4"].value == values["tp_1"].value


def test_a_ratio_below_one_is_refused() -> None:
    with pytest.raises(InputError, match="ratios"):
        build("oversubscription", {**LLAMA, "ratios": (1, 0)})


@pytest.mark.parametrize("order", ["megatron", "megatron-tp-pp-dp"])
@pytest.mark.parametrize("cabling", ["rails", "racks"])
def test_one_leaf_share_counts_links_like_a_loop(order: str, cabling: str) -> None:
    for nodes, ports in itertools.product((4, 8), (8, 16, 32)):
        parallel = layout(nodes=nodes, gpus_per_node=8, tp=8, pp=2, order=order)

        def leaf(rank: int, ports: int = ports) -> tuple[int, int]:
            node, gpu = divmod(rank, 8)
            return (node // ports, gpu) if cabling == "rails" else (node // (ports // 8), 0)

        for axis in ("dp", "pp"):
            links = []
            for group in groups(parallel.dense, axis):
                pairs = list(itertools.pairwise(group))
                links += pairs if axis == "pp" else [*pairs, (group[-1], group[0])]
            apart = [(a, b) for a, b in links if a // 8 != b // 8]
            same = sum(leaf(a) == leaf(b) for a, b in apart)
            found = one_leaf_share(parallel, axis, ports=ports, cabling=cabling)  # type: ignore[arg-type]
            assert found == same / len(apart)


def test_groups_inside_a_node_need_no_leaf() -> None:
    parallel = layout(nodes=2, gpus_per_node=8, tp=8)
    assert one_leaf_share(parallel, "tp", ports=8, cabling="racks") == 1.0


def test_a_rack_holds_whole_nodes() -> None:
    with pytest.raises(InputError, match="ports"):
        leaf_of(np.arange(16), gpus_per_node=8, ports=12, cabling="racks")


def test_a_ring_with_m_members_in_a_pod_sends_one_mth_out_of_it() -> None:
    for pods, members in itertools.product((2, 3, 4), (1, 2, 4)):
        parallel = layout(nodes=pods * members, gpus_per_node=8, tp=8)
        found = pod_leaving_share(parallel, "dp", members * 8)
        assert (found.mean, found.busiest) == pytest.approx((1 / members, 1 / members))


def test_a_pod_that_is_not_full_sends_as_much_as_a_full_one() -> None:
    # Llama 3 405B: 128 replicas of 128 GPUs in pods of 3,072, five of them full.
    found = build(
        "pod-crossings", {"run": LLAMA["run"], "orders": ("llama3",), "gpus_per_pod": 3072}
    )
    assert found.values["llama3_dp_share"].value == pytest.approx(6 / 128)
    assert found.values["llama3_dp_busiest"].value == pytest.approx(1 / 24)
    assert found.values["llama3_dp_free"].value == pytest.approx(24)


def test_a_pipeline_sends_half_of_its_bytes_over_the_border_of_two_pods_of_one_stage() -> None:
    parallel = layout(nodes=2, gpus_per_node=8, tp=8, pp=2)
    assert pod_leaving_share(parallel, "pp", 8) == PodShare(mean=1.0, busiest=0.5)
    assert pod_leaving_share(parallel, "pp", 16) == PodShare(mean=0.0, busiest=0.0)
    with pytest.raises(InputError, match="gpus_per_pod"):
        pod_leaving_share(parallel, "pp", 12)


def test_eight_gpus_have_the_groups_of_megatron_in_both_orders() -> None:
    values = {k: str(v.value).replace(NBSP, " ") for k, v in build("rank-cube", {}).values.items()}
    assert values["pp_0"] == "[0, 4] [1, 5] [2, 6] [3, 7]"
    assert values["pp_1"] == "[0, 2] [1, 3] [4, 6] [5, 7]"
    assert values["dp_0"] == values["pp_1"]
    assert values["tp_0"] == values["tp_1"] == "[0, 1] [2, 3] [4, 5] [6, 7]"


def test_the_cube_of_64_gpus_has_the_groups_of_both_orders() -> None:
    sizes = "nodes=8 gpus_per_node=8 tp=8 pp=4"
    found = [
        build("parallel-cube", {"sizes": sizes, "order": order}).values
        for order in ("megatron", "megatron-tp-pp-dp")
    ]
    firsts = [
        tuple(str(values[f"{axis}_first"].value).replace(NBSP, " ") for axis in ("dp", "pp"))
        for values in found
    ]
    assert firsts == [("[0, 8]", "[0, 16, 32, 48]"), ("[0, 32]", "[0, 8, 16, 24]")]


def test_the_tree_of_64_ranks_has_16_groups_of_each_axis_and_four_replicas() -> None:
    values = build("group-tree", DRAWN["group-tree"]).values
    assert [values[f"{axis}_groups"].value for axis in ("tp", "cp", "dp", "pp", "tp_pp")] == [
        16, 64, 16, 16, 4,
    ]  # fmt: skip


def test_a_spread_placement_leaves_as_many_gpus_but_none_together() -> None:
    values = build("fragmentation", DRAWN["fragmentation"]).values
    assert values["free_0"].value == values["free_1"].value == 4
    assert (values["largest_0"].value, values["largest_1"].value) == (4, 2)
    assert (values["fits_0"].value, values["fits_1"].value) == ("fits", "does not fit")
    with pytest.raises(InputError, match="titles"):
        build("fragmentation", {"placements": ("A.",), "titles": ()})
