"""Buses and fabrics, compared with graphs that are built and cut by hand."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import combinations, product

import pytest

from figgen.catalog import link
from figgen.catalog.load import nccl
from figgen.charts import Bars, Curves, Diagram, Table
from figgen.figures.mesh.fabrics import PCIE, dragonfly, fat_tree, torus
from figgen.formulas.collectives import double_binary_tree_all_reduce_time, ring_all_reduce_time
from figgen.formulas.topology import (
    dragonfly_bisection_links,
    dragonfly_endpoints,
    dragonfly_router_ports,
    fat_tree_endpoints,
    fat_tree_switches,
    lanes_bandwidth,
    local_steps_to_hide,
    staged_copy_time,
    torus_bisection_links,
    torus_diameter,
)
from figgen.registry import build

Graph = dict[object, set[object]]


def graph(edges: Iterable[tuple[object, object]]) -> Graph:
    found: Graph = {}
    for a, b in edges:
        found.setdefault(a, set()).add(b)
        found.setdefault(b, set()).add(a)
    return found


def hops(of: Graph, start: object) -> dict[object, int]:
    far, queue = {start: 0}, deque([start])
    while queue:
        at = queue.popleft()
        for other in of[at] - far.keys():
            far[other] = far[at] + 1
            queue.append(other)
    return far


def torus_graph(side: int, dimensions: int) -> Graph:
    def next_along(place: tuple[int, ...], axis: int) -> tuple[int, ...]:
        return (*place[:axis], (place[axis] + 1) % side, *place[axis + 1 :])

    places = product(range(side), repeat=dimensions)
    return graph((p, next_along(p, axis)) for p in places for axis in range(dimensions))


def fly_graph(p: int, a: int, h: int) -> Graph:
    """Connect port j of group g to group g + j + 1, counted around, and that group back."""
    groups = a * h + 1
    near = [((g, r), (g, s)) for g in range(groups) for r, s in combinations(range(a), 2)]
    hosts = [((g, r), ("host", g, r, e)) for g in range(groups) for r in range(a) for e in range(p)]
    far = []
    for g, other in combinations(range(groups), 2):
        there, back = other - g - 1, groups - (other - g) - 1
        far.append(((g, there // h), (other, back // h)))
    return graph([*near, *hosts, *far])


def tree_graph(ports: int) -> Graph:
    """Build Al-Fares' three tiers: pods of ports/2 edge and as many aggregation switches."""
    half = ports // 2
    edges: list[tuple[object, object]] = []
    for pod, edge in product(range(ports), range(half)):
        edges += [(("edge", pod, edge), ("host", pod, edge, host)) for host in range(half)]
        edges += [(("edge", pod, edge), ("agg", pod, agg)) for agg in range(half)]
        edges += [(("agg", pod, edge), ("core", edge, core)) for core in range(half)]
    return graph(edges)


@pytest.mark.parametrize(("side", "dimensions"), [(4, 2), (6, 2), (4, 3), (5, 2), (5, 3)])
def test_a_torus_is_as_wide_as_its_formula_says(side: int, dimensions: int) -> None:
    of = torus_graph(side, dimensions)
    assert len(of) == side**dimensions
    assert {len(neighbours) for neighbours in of.values()} == {2 * dimensions}
    assert max(hops(of, (0,) * dimensions).values()) == torus_diameter(side, dimensions)


def test_no_cut_of_a_small_torus_into_halves_is_smaller_than_the_formula() -> None:
    of = torus_graph(4, 2)
    first, *others = of
    number = {place: 1 << at for at, place in enumerate(of)}
    beside = {place: sum(number[o] for o in of[place]) for place in of}
    cuts = []
    for half in combinations(others, 7):
        inside = number[first] + sum(number[place] for place in half)
        cuts.append(sum((beside[p] & ~inside).bit_count() for p in (first, *half)))
    assert min(cuts) == torus_bisection_links(4, 2)


@pytest.mark.parametrize(("p", "a", "h"), [(1, 2, 1), (2, 4, 2), (3, 4, 2)])
def test_a_dragonfly_has_its_endpoints_and_ports_and_three_hops_between_routers(
    p: int, a: int, h: int
) -> None:
    of = fly_graph(p, a, h)
    hosts = {node for node in of if node[0] == "host"}  # type: ignore[index]
    assert len(hosts) == dragonfly_endpoints(p, a, h)
    routers = of.keys() - hosts
    assert {len(of[router]) for router in routers} == {dragonfly_router_ports(p, a, h)}
    far = max(max(hops(of, host).values()) for host in list(hosts)[:4])
    assert far <= dragonfly(2, 1e9, 0).hops == 5  # endpoint, near, far, near, endpoint
    left = set(range((a * h + 1) // 2))
    crossing = sum(
        1 for g, r in routers for o in of[g, r] if o[0] != "host" and g in left and o[0] not in left
    )  # type: ignore[misc,index]
    assert crossing == dragonfly_bisection_links(a, h)


@pytest.mark.parametrize("ports", [2, 4, 6])
def test_a_fat_tree_has_its_hosts_and_switches_and_uses_every_port(ports: int) -> None:
    of = tree_graph(ports)
    hosts = {node for node in of if node[0] == "host"}  # type: ignore[index]
    assert len(hosts) == fat_tree_endpoints(ports, 3)
    assert len(of) - len(hosts) == fat_tree_switches(ports, 3)
    assert {len(of[node]) for node in of.keys() - hosts} == {ports}
    far = max(hops(of, next(iter(hosts))).values())
    assert far == fat_tree(3, ports, 1e9, 0).hops == 6


@pytest.mark.parametrize("generation", [3, 4, 5, 6])
def test_sixteen_lanes_are_what_is_published(generation: int) -> None:
    rate = lanes_bandwidth(16, *PCIE[generation])
    assert rate == pytest.approx(link(f"pcie{generation}-x16").bandwidth_bytes_per_s, rel=2e-4)


def test_a_generation_doubles_the_bytes_but_for_the_sixth() -> None:
    """121 GB/s follow 63.015: flits carry 242 of 256 bytes, earlier 128 of 130 bits
    were payload."""
    values = build("pcie-generations", {}).values
    growth = {key: number.value for key, number in values.items() if key.startswith("growth")}
    assert growth == pytest.approx(
        {f"growth_to_gen{g}": 121 / 63.015 if g == 6 else 2 for g in (4, 5, 6, 7)}, rel=2e-4
    )


@pytest.mark.parametrize("segments", [1, 3, 32])
def test_a_staged_copy_takes_as_long_as_when_it_is_followed(segments: int) -> None:
    each = 10e-6 + 1e9 / segments / 50e9
    inward = outward = 0.0
    for _ in range(segments):
        inward += each
        outward = max(outward, inward) + each
    assert staged_copy_time(segments, 1e9, 10e-6, 50e9) == pytest.approx(outward, rel=1e-12)


def test_a_site_waits_no_more_than_was_asked() -> None:
    for took, step, kept in product((0.1, 7, 300), (1, 10), (0.5, 0.75, 0.984375)):
        steps = local_steps_to_hide(took, step, kept)
        assert steps * step / (steps * step + took) >= kept - 1e-9
        assert (steps - 1) * step / ((steps - 1) * step + took) < kept


@pytest.mark.parametrize("over", [1, 2])
def test_no_link_of_a_tree_carries_its_all_to_all_sooner_than_the_bound(over: int) -> None:
    """It counts every flow between eight endpoints on leaves of two, which share their uplinks
    evenly."""
    leaf, rate, endpoints = 2, 50e9, 8
    up = dict.fromkeys(range(endpoints // leaf), 0.0)
    port = dict.fromkeys(range(endpoints), 0.0)
    for a, b in product(range(endpoints), repeat=2):
        port[a] += (a != b) / endpoints
        up[a // leaf] += (a // leaf != b // leaf) / endpoints / (leaf / over)
    busiest = max(*up.values(), *port.values()) / rate
    assert fat_tree(2, 4, rate, 0, over).all_to_all_s(1, rate) == pytest.approx(busiest)


def test_a_switched_all_reduce_is_that_of_the_page_on_algorithms() -> None:
    """2,048 ranks with a port each take 97.3 ms around a ring and 40.3 ms by the double tree."""
    step = nccl().network_latency_s
    ring = ring_all_reduce_time(2048, 1e9, step, 50e9)
    tree = double_binary_tree_all_reduce_time(2048, 1e9, step, 50e9)
    assert (ring, tree) == (pytest.approx(97.3e-3, rel=1e-3), pytest.approx(40.3e-3, rel=1e-3))
    table = build("fabrics-compared", {})
    assert isinstance(table, Table)
    assert table.rows[0][-2] == tree


def test_fabrics_are_ordered_as_their_links_say() -> None:
    table = build("fabrics-compared", {})
    assert isinstance(table, Table)
    by_name = {row[0]: row for row in table.rows}
    # All but the 32 endpoints of a leaf are reached through its eight ways up.
    assert by_name["fat tree, 2 tiers, 4:1"][-1] == pytest.approx(
        32 * (2048 - 32) / 2048 * 1e9 / (8 * 50e9)
    )
    cube = torus(10, 3, 50e9, 0)
    assert cube.all_reduce_s(1e9) == pytest.approx(2 * 0.999 * 1e9 / 300e9)
    chart = build("all-to-all-by-fabric", {})
    assert isinstance(chart, Curves)
    assert all(list(each.y) == sorted(each.y) for each in chart.series)
    bars = build("host-copies", {})
    assert isinstance(bars, Bars)
    assert list(bars.segments[0].lengths) == sorted(bars.segments[0].lengths)
    both = build("fabric-collectives", {})
    assert isinstance(both, Bars)
    drawn = list(zip(*(each.lengths for each in both.segments), strict=True))
    assert drawn == [row[-2:] for row in table.rows]
    wires = build("torus-wiring", {})
    assert isinstance(wires, Diagram)
