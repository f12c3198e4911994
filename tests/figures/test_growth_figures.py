"""Why distribute: growth, state and reach compared with reports, papers and datasheets."""

from __future__ import annotations

from math import ceil

import pytest

from figgen.catalog import model
from figgen.charts import Diagram
from figgen.figures.memory.wall import (
    bandwidth_ladder,
    gpus_to_hold_table,
    machine_levels,
    state_by_recipe,
)
from figgen.figures.training.growth import loss_by_parameters, model_growth, training_work

# arXiv numbers begin with the year and month of a report: 2005.14165 is of May 2020.
REPORTS = {
    "gpt-3-175b": "2005.14165",
    "palm-540b": "2204.02311",
    "mt-nlg-530b": "2201.11990",
    "llama-1-65b": "2302.13971",
    "llama-3-405b": "2407.21783",
    "deepseek-v2": "2405.04434",
    "deepseek-v3": "2412.19437",
    "kimi-k2": "2507.20534",
}


@pytest.mark.parametrize(("name", "report"), REPORTS.items())
def test_month_of_a_model_is_that_of_its_report(name: str, report: str) -> None:
    assert model(name).released == f"20{report[:2]}-{report[2:4]}"


def test_gpus_for_a_deadline_are_enough_to_meet_it() -> None:
    values = training_work().values
    rate = 0.4 * 989.4e12 * 60 * 86400
    # Six operations per parameter per token; one GPU fewer would be late.
    assert values["llama_1_65b_gpus"].value == ceil(6 * 65.3e9 * 1.4e12 / rate) == 268
    assert values["llama_3_70b_gpus"].value == 3096


def test_memory_of_a_b300_grew_9_fold_by_its_package_and_8_by_what_a_program_sees() -> None:
    values = model_growth().values
    assert values["memory_growth"].value == pytest.approx(270 / 32)
    assert values["package_growth"].value == 288 / 32 == 9


def test_growth_from_gpt_2_to_palm_is_what_the_counts_say() -> None:
    values = model_growth().values
    assert values["growth"].value == pytest.approx(540.4e9 / 1.558e9, rel=0.005)
    assert values["months"].value == 38
    assert values["doubling_months"].value == pytest.approx(4.5, abs=0.05)
    assert values["first_held"].value == 32e9 / 16


def test_a_tenfold_of_parameters_multiplies_the_loss_by_ten_to_the_minus_0_076() -> None:
    values = loss_by_parameters().values
    assert values["tenth"].value == pytest.approx(10**-0.076, rel=1e-12)
    assert values["halving_growth"].value == pytest.approx(9139, abs=1)


def test_work_of_llama_3_405b_is_the_published_3_8e25() -> None:
    """Llama 3 report, section 3.2: 3.8 × 10²⁵ FLOPs on 15.6T tokens."""
    rows = {row[0]: row for row in training_work().rows}
    assert float(rows["Llama 3.1 405B"][3]) == pytest.approx(3.8e25, rel=0.01)


def test_work_of_gpt_3_is_the_published_3_14e23() -> None:
    """Brown et al. 2020, table D.1: 3.14 × 10²³ FLOPs."""
    rows = {row[0]: row for row in training_work().rows}
    assert float(rows["GPT-3 175B"][3]) == pytest.approx(3.14e23, rel=0.005)


def test_seven_billion_parameters_take_112_126_140_and_112_gb() -> None:
    values = state_by_recipe().values
    totals = [values[f"{name}_total"].value for name in ("zero16", "mcore18", "mcore20", "fp32_16")]
    assert totals == [112e9, 126e9, 140e9, 112e9]


def test_weights_and_state_share_the_same_four_fifths_of_a_gpu() -> None:
    values = gpus_to_hold_table().values
    weights = {"llama_3_405b": 13, "palm_540b": 17, "gpt_3_175b": 6, "llama_3_70b": 3}
    assert {name: values[f"{name}_weight_gpus"].value for name in weights} == weights
    for name, parameters in (("llama_3_405b", 405.9e9), ("palm_540b", 540.4e9)):
        assert weights[name] == -(-parameters * 2 // 64e9)
    assert values["gpt_3_175b_gpus"].value == -(-174.6e9 * 18 // 64e9)


def test_nvlink_is_9_to_18_times_the_network() -> None:
    values = bandwidth_ladder().values
    assert [values[f"{name}_ratio"].value for name in ("a100", "h100", "b200")] == [12, 9, 18]


def test_links_of_a_machine_are_as_wide_as_their_bandwidth() -> None:
    chart = machine_levels()
    assert isinstance(chart, Diagram)
    boxes = {box.name: box for box in chart.boxes}
    links = [name for name in boxes if name.startswith(("NVLink", "port")) and "speed" not in name]
    assert len(boxes) - len(links) - 2 == 2 * (1 + 1 + 4 + 4) + 1
    assert len(links) == 2 * 2 * 4
    assert boxes["NVLink 0.1"].width == pytest.approx(9 * boxes["port 1.2"].width)
    for link in map(boxes.get, links):
        assert link is not None
        ends = [box for box in chart.boxes if box.role == "neutral" and not box.frame]
        touching = [
            box
            for box in ends
            if box.x <= link.x + link.width / 2 <= box.x + box.width
            and (
                link.y + link.height == pytest.approx(box.y)
                or box.y + box.height == pytest.approx(link.y)
            )
        ]
        assert len(touching) == 2, link.name
    assert chart.values["ratio"].value == 9
