"""ZeRO's figures compared with the corrected tables (7B, 10B), counted rings and
simulated streams."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from figgen.charts import Curves, Timeline
from figgen.figures.zero.flow import fsdp_timeline
from figgen.registry import build
from figgen.values import compute
from tests.figures.reading import table, value

# Appendix D.1 of the corrected tables: GB per GPU with eight ranks.
PRINTED = {
    ("zero16", 7e9): (112.00, 38.50, 26.25, 14.00),
    ("mcore18", 7e9): (126.00, 52.50, 28.00, 15.75),
    ("zero16", 10e9): (160.00, 55.00, 37.50, 20.00),
    ("mcore18", 10e9): (180.00, 75.00, 40.00, 22.50),
    ("zero16", 70e9): (1120.00, 385.00, 262.50, 140.00),
    ("mcore18", 70e9): (1260.00, 525.00, 280.00, 157.50),
}


@pytest.mark.parametrize(("recipe", "parameters"), PRINTED)
def test_memory_by_stage_is_that_of_the_corrected_table(recipe: str, parameters: float) -> None:
    bars = build("zero-memory", {"parameters": parameters, "dp": 8, "recipe_name": recipe})
    stages = table("zero-stages", parameters=parameters, ranks=[8], recipes=[recipe])
    for stage, printed in enumerate(PRINTED[recipe, parameters]):
        assert value(bars, f"stage_{stage}") == pytest.approx(printed * 1e9)
        assert value(stages, f"{recipe}_stage_{stage}_dp_8") == pytest.approx(printed * 1e9)


def test_what_is_on_a_rank_is_written_as_megatron_documents_it() -> None:
    rows = {(row[0], row[1]): row[2] for row in table("zero-stages").rows}
    assert rows["2 + 2 + 16", "ZeRO-1"] == "4 + 16/D"
    assert rows["2 + 4 + 12", "ZeRO-1"] == "6 + 12/D"
    assert rows["2 + 4 + 12", "ZeRO-2"] == "2 + 16/D"


def test_sharding_leaves_one_copy_in_all() -> None:
    chart = build("state-redundancy", {"ranks": 3})
    assert value(chart, "replicated_all") == 3 * value(chart, "sharded_all")
    assert value(chart, "sharded_each") == pytest.approx(37.333e9, rel=1e-4)


def test_bytes_by_stage_are_those_of_the_paper_and_grow_with_accumulation() -> None:
    chart = table("zero-communication", dp=8, parameters=7e9)
    ratios = [value(chart, f"stage_{stage}_m1_ratio") for stage in range(4)]
    assert ratios == pytest.approx([1, 1, 1, 1.5])
    # The formula catalog's points: 36.75 GB for ZeRO-3, 110.25 GB for ZeRO-2 with M = 8.
    assert value(chart, "stage_3_m1") == pytest.approx(36.75e9)
    assert value(chart, "stage_2_m8") == pytest.approx(110.25e9)


def test_with_fp32_gradients_zero_3_sends_no_more_than_ddp() -> None:
    chart = table("zero-communication", reduce="fp32")
    assert value(chart, "stage_1_m1_ratio") == pytest.approx(0.75)
    assert value(chart, "stage_3_m1_ratio") == pytest.approx(1.0)


def test_the_chosen_stage_is_the_lowest_that_fits() -> None:
    chart = table("zero-choice")
    assert value(chart, "gpt_2_xl_8") == 0
    assert value(chart, "llama_3_70b_8") == 4
    assert value(chart, "llama_3_70b_64") == 3
    # 13.0B at 2 + 16/8 = 4 bytes are 52 GB, above the 48 GB of room; 2 + 16/64 are 29 GB.
    assert (value(chart, "llama_2_13b_8"), value(chart, "llama_2_13b_64")) == (3, 2)


def test_prefetch_hides_all_gathers_but_the_first() -> None:
    chart = build("fsdp-timeline", {"layers": 3, "prefetch": 1, "gather": 1.0, "forward": 2.0})
    assert isinstance(chart, Timeline)
    exposed = [
        (chart.lanes[slot.lane], slot.label) for slot in chart.slots if slot.role == "exposed"
    ]
    assert exposed == [("gather", "0"), ("reduce", "0")]
    assert value(chart, "makespan") == 3 * 2 * 3 + 2
    assert (value(chart, "forward_serial"), value(chart, "forward_ahead")) == (9, 7)
    assert value(build("fsdp-timeline", {"prefetch": 0}), "peak") == 1


def test_hybrid_sharding_sends_what_the_corrected_example_says() -> None:
    chart = table("hybrid-traffic", parameters=7e9, nodes=8)
    assert value(chart, "hybrid_inside") == pytest.approx(36.75e9)
    assert value(chart, "hybrid_nic") == pytest.approx(3.0625e9)
    assert value(chart, "flat_inside") + value(chart, "flat_nic") == pytest.approx(
        41.34e9, rel=1e-3
    )
    # Eight rings, each of which leaves a node at another GPU: every rank's hops, one by one.
    nodes, each = 8, 8
    rings = [
        [(node, (first + at) % each) for node in range(nodes) for at in range(each)]
        for first in range(each)
    ]
    hops = [(ring[at - 1], one) for ring in rings for at, one in enumerate(ring)]
    of_one = [(a, b) for a, b in hops if a == (3, 5)]
    inside = sum(a[0] == b[0] for a, b in of_one) / len(of_one)
    assert value(chart, "flat_inside") == pytest.approx(inside * 41.34375e9)
    assert value(chart, "flat_nic") == pytest.approx((1 - inside) * 41.34375e9)
    assert value(chart, "flat_nic") == pytest.approx(5.17e9, rel=1e-3)


def test_a_100g_port_asks_an_h100_for_79152_tokens_and_a_node_of_eight_for_an_eighth() -> None:
    chart = build("zero3-tokens", {})
    assert isinstance(chart, Curves)
    assert value(chart, "h100_roce_100g") == pytest.approx(79_152, rel=1e-3)
    assert value(chart, "h100_ib_ndr") == pytest.approx(19_788, rel=1e-3)
    assert value(chart, "h100_8_ib_ndr") == pytest.approx(19_788 / 8, rel=1e-3)


def test_every_place_further_away_is_slower() -> None:
    chart = table("state-homes")
    assert value(chart, "hbm_s") < value(chart, "peers_s") < value(chart, "nodes_s")


def test_the_tokens_that_hide_a_gather_are_one_number_in_both_figures() -> None:
    """The figures used to differ: one gather and three gathers hidden behind all work."""
    homes, curve = table("state-homes"), build("zero3-tokens", {})
    assert value(homes, "nodes_tokens") == value(curve, "h100_ib_ndr") == pytest.approx(19_788)
    parameters = 6_738_415_616
    forward = 2 * parameters * value(homes, "nodes_tokens") / 989.4e12
    assert forward == pytest.approx(value(homes, "nodes_s"))
    assert value(homes, "host_optimizer_s") == pytest.approx(12 * parameters / 63e9, rel=1e-3)


def test_adams_state_of_llama_2_7b_takes_1283_ms_over_pcie_5() -> None:
    """Matrix by matrix as in the checkpoint, at the capacity of sixteen lanes.

    A sentence used to say 1.33 s, which is for seven billion parameters.
    """
    hidden, ffn, vocabulary, layers = 4096, 11_008, 32_000, 32
    products = 4 * hidden * hidden + 3 * hidden * ffn  # q, k, v, o; gate, up, down
    parameters = 2 * vocabulary * hidden + layers * (products + 2 * hidden) + hidden
    lanes, transfers_per_s, payload = 16, 32e9, 128 / 130
    seconds = parameters * (4 + 4 + 4) * 8 / (lanes * transfers_per_s * payload)
    assert round(1000 * seconds) == 1283
    assert value(table("state-homes"), "host_optimizer_s") == pytest.approx(seconds, rel=1e-5)
    page = (Path(__file__).parents[2] / "docs" / "guide" / "zero-fsdp.md").read_text("utf-8")
    sentence = page[page.index("Adam's state takes so long to move") :]
    call = re.search(r"\{\{ (.*?):time\}\}", sentence)
    assert call
    assert compute(call[1])[0].value == pytest.approx(seconds, rel=1e-5)


def test_the_time_of_a_sharded_step_is_in_units_of_what_takes_one() -> None:
    labels = [fsdp_timeline(gather=g, forward=f).time_label for g, f in ((1, 2), (3, 1), (2, 3))]
    assert labels == ["time, in units of a gather", "time, in units of a forward", "time"]
