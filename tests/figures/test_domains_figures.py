"""NVLink domains of 72 and a layer's operations, compared with counts by hand."""

from __future__ import annotations

from itertools import permutations

import pytest

from figgen.catalog import accelerator, model
from figgen.charts import Curves, Table
from figgen.errors import InputError
from figgen.figures.mesh.domains import exchange_rate, ring_rate
from figgen.formulas.modern_layers import product_intensity
from figgen.registry import build
from figgen.scenarios.stories.all_reduce import RING_PER_NIC, TWO_LEVEL, machine


@pytest.mark.parametrize(("size", "domain"), [(4, 8), (16, 8), (24, 8), (16, 4)])
def test_an_all_to_all_takes_the_slower_of_what_stays_and_what_leaves(
    size: int, domain: int
) -> None:
    inside, port, part = 9.0, 0.5, 1.0
    pairs = list(permutations(range(size), 2))
    stays = sum(part for a, b in pairs if a // domain == b // domain and a == 0) / inside
    leaves = sum(part for a, b in pairs if a // domain != b // domain and a == 0) / port
    sent = part * (size - 1)
    rate = exchange_rate(size, domain, inside, port)
    assert sent / rate == pytest.approx(max(stays, leaves))


def test_a_ring_leaves_a_domain_by_all_its_ports_and_no_faster_than_inside() -> None:
    assert ring_rate(8, 8, 900, 50) == 900
    assert ring_rate(16, 8, 900, 50) == 400
    assert ring_rate(144, 72, 900, 50) == 900


@pytest.mark.parametrize("nodes", [8, 128])
def test_nodes_of_eight_are_those_of_the_page_on_all_reduce_algorithms(nodes: int) -> None:
    table = build("domain-all-reduce", {"chip": "b200-sxm-hgx", "gpus": (8 * nodes,)})
    assert isinstance(table, Table)
    there = machine("b200-ndr", nodes)
    ring, levels = (each.time(there, 1e9, 1) for each in (RING_PER_NIC, TWO_LEVEL))
    assert table.rows[0][1:3] == pytest.approx((ring, levels), rel=1e-9)


def test_larger_domains_never_lose_and_alike_up_to_eight() -> None:
    chart = build("domain-groups", {})
    assert isinstance(chart, Curves)
    for small, large in (chart.series[:2], chart.series[2:]):
        assert small.y[:3] == large.y[:3]
        assert all(a < b for a, b in zip(small.y[3:], large.y[3:], strict=True))


@pytest.mark.parametrize(("columns", "printed"), [(128, 124.1), (8192, 2730)])
def test_intensity_is_what_nvidia_prints(columns: int, printed: float) -> None:
    """Source: NVIDIA, Matrix Multiplication Background User's Guide, section 2.1."""
    assert product_intensity(8192, 8192, columns, 2) == pytest.approx(printed, rel=5e-4)


def test_work_of_a_layer_is_that_of_its_parameters_and_its_causal_pairs() -> None:
    table = build("layer-operations", {})
    assert isinstance(table, Table)
    shape = model("llama-3-8b").shape
    matrices = 2 * shape.hidden**2 + 2 * shape.hidden * 1024 + 3 * shape.hidden * 14336
    by_name = {str(row[0]): row for row in table.rows}
    products = sum(
        float(by_name[name][1])
        for name in ("queries, keys, values", "way out of attention", "gate and up", "down")
    )
    assert products == 2 * 8192 * matrices
    # Half of the square, two products, two operations each.
    assert float(by_name["attention core, causal"][1]) == 8192**2 / 2 * 4096 * 4
    gpu = accelerator("h100-sxm-80gb")
    for name, row in by_name.items():
        if name != "the layer":
            slow = max(
                float(row[1]) / gpu.peak_flops_per_s(),
                float(row[2]) / gpu.hbm_bandwidth_bytes_per_s,
            )
            assert float(row[4]) == pytest.approx(slow)


def test_layers_of_other_kinds_are_refused() -> None:
    with pytest.raises(InputError, match="a dense one"):
        build("layer-operations", {"model_name": "deepseek-v3"})


def test_announced_racks_grow_as_their_vendors_say_and_show_the_range_of_reports() -> None:
    """NVIDIA announces 22 TB/s of HBM4 and 3.6 TB/s of NVLink in both directions;

    GB200 has 8 and 1.8.
    """
    values = build("announced-growth", {}).values
    assert values["vera_bandwidth"].value == 22 / 8
    assert values["vera_link"].value == 3.6 / 1.8
    assert values["vera_lowest"].value < 2 < values["vera_highest"].value
    rows = build("announced-racks", {"tp": 8}).values
    assert rows["vera_least"].value < rows["gb200_least"].value < rows["vera_most"].value
    assert rows["gb200_least"].value == rows["gb200_most"].value


def test_what_tp_keeps_in_an_announced_rack_is_what_the_curves_show() -> None:
    """The chapter's curves use the lowest of the announced peaks, as the catalog does."""
    curves = build("domain-groups", {"chip": "vera-rubin-nvl72"}).values
    rows = build("announced-racks", {"tp": 16}).values
    usual = accelerator("vera-rubin-nvl72").peak_flops_per_s()
    assert rows["vera_lowest"].value == usual
    assert rows["vera_most"].value == pytest.approx(float(curves["tp_72_16"].value))
