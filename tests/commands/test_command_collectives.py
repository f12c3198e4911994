"""`figgen trace`, `cost` and `convert`: every pair of names, published times, and
NCCL's estimates."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path

import pytest

from figgen.__main__ import main
from figgen.catalog import LINKS, nccl_tuning
from figgen.catalog.nccl_links import nccl_group
from figgen.models.collectives import trace
from figgen.models.collectives.traffic import bytes_per_link
from figgen.models.machine.nccl_tuning import predictions

TABLES = json.loads(
    (Path(__file__).parents[1] / "oracles" / "published_tables.json").read_text("utf-8")
)
COLLECTIVES = (
    "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce", "scatter",
    "gather",
)  # fmt: skip
ALGORITHMS = (
    "ring", "recursive-halving-doubling", "recursive-doubling", "binomial-tree",
    "double-binary-tree", "hierarchical", "pairwise", "bruck", "naive",
)  # fmt: skip
EXISTING = {
    "all-reduce": set(ALGORITHMS) - {"pairwise", "bruck"},
    "all-gather": {"ring", "recursive-halving-doubling", "recursive-doubling", "naive"},
    "reduce-scatter": {"ring", "recursive-halving-doubling", "naive"},
    "all-to-all": {"pairwise", "bruck", "naive"},
    "broadcast": {"ring", "binomial-tree", "naive"},
    "reduce": {"ring", "binomial-tree", "naive"},
    "scatter": {"binomial-tree", "naive"},
    "gather": {"binomial-tree", "naive"},
}


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


@pytest.mark.parametrize(
    ("collective", "algorithm"), list(itertools.product(COLLECTIVES, ALGORITHMS))
)
def test_every_pair_of_names_is_traced_and_costed_or_refused_with_what_there_is(
    capsys, collective, algorithm
):
    asked = (collective, "--algorithm", algorithm, "--ranks", "8")
    priced = (*asked, "--bytes", "1 MB", "--link", "nvlink4")
    if algorithm in ("hierarchical", "ring", "pairwise") and collective.startswith("all"):
        priced += ("--network", "ib-ndr")
    if algorithm in EXISTING[collective]:
        answer = said(capsys, "trace", *asked)
        assert answer["states"][-1] == answer["final"]
        assert len(answer["states"]) == len(answer["steps"]) + 1
        assert said(capsys, "cost", *priced)["time_s"] > 0
    else:
        for verb, given in (("trace", asked), ("cost", priced)):
            error = refused(capsys, verb, *given)
            assert f"unknown {collective} algorithm {algorithm!r}" in error


def test_trace_ends_with_every_contribution_everywhere(capsys):
    answer = said(capsys, "trace", "all-reduce", "--ranks", "5")

    assert answer["final"] == [[list(range(5))] * 5] * 5
    assert answer["bytes_sent_per_rank_of_message"] == pytest.approx([8 / 5] * 5)


def test_a_hierarchical_trace_has_two_levels_wherever_it_can(capsys):
    for ranks, per_node in ((4, 2), (8, 4), (12, 6), (64, 8), (7, 1), (1, 1)):
        answer = said(
            capsys, "trace", "all-reduce", "--algorithm", "hierarchical", "--ranks", str(ranks)
        )
        assert answer["phases"].count("reduce-scatter within nodes") == per_node - 1
        assert answer["phases"].count("reduce-scatter between nodes") == ranks // per_node - 1


def test_contents_are_drawn_as_sums_of_contributing_ranks(capsys):
    assert main(["trace", "reduce", "--algorithm", "naive", "--ranks", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["  rank 0: 0", "  rank 1: 1", "  rank 2: 2"]
    assert lines[3:5] == ["step 0 (reduce): 1→0+0", "  rank 0: 0+1"]


@pytest.mark.parametrize(
    ("collective", "algorithm", "time_s"),
    # 1 GB among 8 ranks at 50 GB/s without latency; published values of the closed forms.
    [
        ("all-reduce", "naive", 0.28),
        ("all-reduce", "ring", 0.035),
        ("all-reduce", "binomial-tree", 0.12),
        ("all-reduce", "double-binary-tree", 0.04),
        ("broadcast", "binomial-tree", 0.06),
        ("scatter", "binomial-tree", 0.0175),
        ("all-gather", "recursive-halving-doubling", 0.0175),
        ("reduce-scatter", "ring", 0.0175),
        # Without a formula: n − 1 messages of one n-th.
        ("gather", "naive", 7 * 0.125 / 50),
    ],
)
def test_cost_is_the_published_time(capsys, collective, algorithm, time_s):
    answer = said(
        capsys,
        "cost",
        collective,
        "--algorithm",
        algorithm,
        "--ranks",
        "8",
        "--bytes",
        "1e9",
        "--link",
        "50 GB/s",
        "--latency",
        "0 s",
    )
    assert answer["time_s"] == pytest.approx(time_s)


def test_cost_of_a_hierarchy_takes_two_links(capsys):
    answer = said(
        capsys,
        "cost",
        "all-reduce",
        "--algorithm",
        "hierarchical",
        "--ranks",
        "64",
        "--bytes",
        "1 GB",
        "--link",
        "450 GB/s",
        "--latency",
        "1 µs",
        "--network",
        "50 GB/s",
        "--network-latency",
        "5 µs",
    )
    assert answer["time_s"] == pytest.approx(0.00834788889)
    assert answer["formula"] == "two_level_all_reduce_time"


@pytest.mark.parametrize("name", LINKS)
def test_every_link_that_rings_run_over_has_a_latency(capsys, name):
    asked = ("cost", "all-reduce", "--ranks", "8", "--bytes", "1 GB", "--link", name)
    if LINKS[name].kind == "host":
        assert "--latency TIME" in refused(capsys, *asked)
    else:
        assert said(capsys, *asked)["time_s"] > 0


@pytest.mark.parametrize(
    ("ranks", "link", "time_s"),
    [(64, "ib-ndr", 41.1e-3), (8, "nvlink4", 3.94e-3), (16, "ici-v5p", 20.9e-3)],
)
def test_a_ring_takes_as_long_as_on_the_pages_about_rings(capsys, ranks, link, time_s):
    """All-reduce algorithms, figures 4.10 and 4.14, and the ring around a torus of TPU v5p."""
    asked = ("cost", "all-reduce", "--ranks", str(ranks), "--bytes", "1 GB", "--link", link)
    assert said(capsys, *asked)["time_s"] == pytest.approx(time_s, rel=2e-3)


def test_a_step_has_the_latency_of_nccl_whatever_a_bare_message_takes(capsys):
    for name in ("ib-hdr", "ib-ndr", "roce-400g"):
        asked = ("cost", "all-reduce", "--ranks", "2", "--bytes", "1 B", "--link", name)
        assert said(capsys, *asked)["time_s"] == pytest.approx(28e-6, rel=1e-4)


def test_nccl_reckons_with_its_own_constants_beside_the_textbook(capsys):
    asked = ("cost", "all-reduce", "--ranks", "8", "--bytes", "1 GB", "--link", "nvlink4")
    answer = said(capsys, *asked, "--model", "nccl", "--algorithm", "ring")
    group = nccl_group(LINKS["nvlink4"], 8, 1, LINKS["ib-ndr"])
    best = predictions(nccl_tuning().constants, group, "all-reduce", 1e9)

    rings = [p for p in best if p.algorithm == "ring"]
    assert (answer["time_s"], answer["protocol"]) == (rings[0].time_s, rings[0].protocol)
    assert answer["predictions"][0]["algorithm"] == best[0].algorithm
    assert answer["time_s"] != said(capsys, *asked)["time_s"]


def test_nccl_takes_its_own_choice_where_nobody_names_an_algorithm(capsys):
    """For 16 GiB on eight H100, 63.2 ms were measured with NVLS; the ring takes 83.6 ms."""
    asked = ("cost", "all-reduce", "--ranks", "8", "--bytes", "16 GiB", "--link", "nvlink4",
             "--model", "nccl")  # fmt: skip
    answer = said(capsys, *asked)
    assert answer["algorithm"] == "nvls"
    assert answer["time_s"] == pytest.approx(63.2e-3, rel=0.01)
    assert said(capsys, *asked, "--algorithm", "ring")["time_s"] > 80e-3


RING = ("cost", "all-reduce", "--algorithm", "ring", "--ranks", "16", "--bytes", "1e9",
        "--link", "nvlink4")  # fmt: skip


def test_a_ring_over_nodes_uses_its_network(capsys):
    near = said(capsys, *RING)["time_s"]
    across = said(capsys, *RING, "--ranks-per-node", "8", "--network", "ib-ndr")["time_s"]
    slow = said(
        capsys, *RING, "--ranks-per-node", "8", "--network", "1 GB/s", "--network-latency", "5 µs"
    )["time_s"]
    assert near == pytest.approx(4.27e-3, rel=0.01)
    assert across == pytest.approx(4.81e-3, rel=0.01)
    assert slow == pytest.approx(2 * 15 / 16 * 1e9 / 8e9, rel=0.01)


def test_a_rate_per_node_is_shared_by_its_ranks(capsys):
    asked = (*RING, "--network-latency", "14 µs", "--ranks-per-node", "8", "--network")
    per_node = said(capsys, *asked, "80 GB/s per node")["time_s"]
    assert per_node == said(capsys, *asked, "10 GB/s per GPU")["time_s"]
    assert per_node == said(capsys, *asked, "10 GB/s")["time_s"]
    shared = said(capsys, *asked, "efa-v2-p5")["time_s"]
    assert shared == said(capsys, *asked, "50 GB/s")["time_s"]
    assert "a rate per GPU or per node" in refused(capsys, *asked, "10 GB/s per rack")


def test_an_all_to_all_over_a_slow_network_takes_as_long_as_its_bytes(capsys):
    asked = (
        "cost",
        "all-to-all",
        "--ranks",
        "64",
        "--ranks-per-node",
        "8",
        "--bytes",
        "268435456",
        "--link",
        "nvlink2",
        "--network",
        "1.5625 GB/s",
        "--network-latency",
        "5 us",
    )
    least = 56 / 64 * 268435456 / 1.5625e9
    assert least <= said(capsys, *asked)["time_s"] <= 1.02 * least
    assert least <= said(capsys, *asked, "--algorithm", "pairwise")["time_s"] <= 1.2 * least


def test_nobody_who_names_no_algorithm_is_told_of_one(capsys):
    for collective in COLLECTIVES:
        asked = (collective, "--ranks", "8")
        priced = ("cost", *asked, "--bytes", "1e9", "--link", "nvlink4")
        assert said(capsys, *priced)["time_s"] > 0
        assert said(capsys, "trace", *asked)["algorithm"]


@pytest.mark.parametrize(
    ("algorithm", "option", "value"),
    [
        ("naive", "--network", "ib-ndr"),
        ("binomial-tree", "--network", "ib-ndr"),
        ("ring", "--ranks-per-node", "8"),
        ("ring", "--network-latency", "5 µs"),
        ("ring", "--segments", "4"),
        ("binomial-tree", "--segments", "4"),
    ],
)
def test_an_option_that_would_change_nothing_is_refused(capsys, algorithm, option, value):
    asked = ("cost", "all-reduce", "--ranks", "16", "--bytes", "1e9", "--link", "nvlink4")
    error = refused(capsys, *asked, "--algorithm", algorithm, option, value)
    assert option in error


@pytest.mark.parametrize("option", ["--latency", "--network-latency"])
def test_nccls_model_takes_no_latency(capsys, option):
    asked = ("cost", "all-reduce", "--ranks", "16", "--bytes", "1e9", "--link", "nvlink4")
    error = refused(capsys, *asked, "--model", "nccl", "--network", "ib-ndr", option, "5 µs")
    assert f"{option} " in error


def test_nccl_reckons_with_several_nodes_when_it_is_told_their_network(capsys):
    asked = ("cost", "all-reduce", "--ranks", "64", "--bytes", "1 MB", "--link", "nvlink4",
             "--model", "nccl", "--algorithm", "double-binary-tree")  # fmt: skip
    across = said(capsys, *asked, "--network", "ib-ndr")
    assert across["algorithm"] == "tree"
    assert {p["algorithm"] for p in across["predictions"]} >= {"ring", "tree", "nvls_tree"}
    group = nccl_group(LINKS["nvlink4"], 64, 8, LINKS["ib-ndr"])
    best = predictions(nccl_tuning().constants, group, "all-reduce", 1e6)
    assert across["time_s"] == min(p.time_s for p in best if p.algorithm == "tree")


def test_nccls_model_takes_a_rate_per_gpu_or_per_node_as_the_network(capsys):
    asked = ("cost", "all-reduce", "--ranks", "64", "--bytes", "1 MB", "--link", "nvlink4",
             "--model", "nccl", "--network")  # fmt: skip
    port = said(capsys, *asked, "ib-ndr")
    assert said(capsys, *asked, "50 GB/s per GPU")["predictions"] == port["predictions"]
    assert said(capsys, *asked, "400 GB/s per node")["predictions"] == port["predictions"]
    assert said(capsys, *asked, "1 GB/s")["time_s"] > 5 * port["time_s"]


def test_an_all_to_all_under_nccls_model_leads_to_the_one_that_posts_all_messages(capsys):
    asked = ("cost", "all-to-all", "--ranks", "8", "--bytes", "1 MB", "--link", "nvlink4")
    assert "without --model" in refused(capsys, *asked, "--model", "nccl")


def test_convert_says_what_a_number_without_a_unit_is(capsys: pytest.CaptureFixture[str]) -> None:
    for size, told in (("8", True), ("8,5", True), ("8 B", False), ("8 GiB", False)):
        asked = ("convert", "busbw", "all-reduce", "--ranks", "16", "--bytes", size)
        assert main([*asked, "--time", "5 us"]) == 0
        assert (f"{size} has no unit: read as bytes" in capsys.readouterr().out) == told


@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter", "all_gather", "all_to_all",
                                        "broadcast", "reduce"])  # fmt: skip
@pytest.mark.parametrize("ranks", [2, 8, 512])
def test_convert_has_the_published_bus_bandwidth_factors(capsys, collective, ranks):
    # nccl-tests: the factor is exact, so only rounding separates the two.
    factor = {
        "2(n-1)/n": 2 * (ranks - 1) / ranks,
        "(n-1)/n": (ranks - 1) / ranks,
        "1": 1,
    }[TABLES["nccl_busbw_factor"][collective]]
    asked = ("convert", "busbw", collective, "--ranks", str(ranks))
    assert said(capsys, *asked, "--bytes", "16 GB", "--time", "40,0 ms") == said(
        capsys,
        "convert",
        "busbw",
        collective.replace("_", "-"),
        *asked[3:],
        "--bytes",
        "16 GB",
        "--time",
        "0.04 s",
    )
    measured = said(capsys, *asked, "--bytes", "16 GB", "--time", "40 ms")
    assert measured["algbw_bytes_per_s"] == pytest.approx(400e9)
    assert measured["busbw_bytes_per_s"] == pytest.approx(factor * 400e9)
    assert measured["line_rate_bits_per_s"] == pytest.approx(8 * factor * 400e9)
    assert measured["time_s"] == 40e-3
    again = said(capsys, *asked, "--bytes", "16 GB", "--algbw", "400 GB/s")
    assert again == pytest.approx(measured)
    backwards = said(capsys, *asked, "--busbw", f"{measured['busbw_bytes_per_s']} B/s")
    assert backwards["algbw_bytes_per_s"] == pytest.approx(400e9)


@pytest.mark.parametrize(
    ("collective", "algorithm"),
    [
        ("all-reduce", "ring"),
        ("all-gather", "ring"),
        ("reduce-scatter", "ring"),
        ("broadcast", "chain"),
        ("all-to-all", "pairwise"),
    ],
)
@pytest.mark.parametrize(("nodes", "width"), [(2, 4), (3, 4), (4, 8), (2, 1)])
def test_what_a_port_sends_is_what_leaves_the_node_in_the_trace(
    capsys, collective, algorithm, nodes, width
):
    """It is counted message by message; all ports of the busiest node carry the same."""
    ranks, size, time_s, ports = nodes * width, 1e9, 1e-3, 2
    found = trace(collective, algorithm, ranks)
    leaving: Counter[int] = Counter()
    for link, sent in bytes_per_link(found, size).items():
        source, target = (rank // width for rank in link)
        leaving[source] += sent * (source != target)
    asked = (
        "convert",
        "busbw",
        collective,
        "--ranks",
        str(ranks),
        "--bytes",
        "1 GB",
        "--time",
        "1 ms",
        "--ranks-per-node",
        str(width),
        "--ports",
        str(ports),
    )
    shown = said(capsys, *asked)["port_bytes_per_s"]
    assert shown == pytest.approx(max(leaving.values()) / time_s / ports)


def test_convert_says_links_one_way_and_peaks_dense(capsys):
    link = said(capsys, "convert", "link", "900 GB/s", "--as", "two-way")
    assert link == {
        "one_way_bytes_per_s": 450e9, "two_way_bytes_per_s": 900e9, "one_way_bits_per_s": 3.6e12,
    }  # fmt: skip
    assert said(capsys, "convert", "link", "450 GB/s") == link
    assert said(capsys, "convert", "link", "400 Gb/s")["one_way_bytes_per_s"] == 50e9
    peak = said(capsys, "convert", "peak", "1979 TFLOP/s", "--as", "sparse")
    assert peak == {"dense_flops_per_s": 989.5e12, "sparse_flops_per_s": 1979e12}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("convert link 900GB/s --as sparse", "expected --as two-way, or nothing"),
        ("convert peak 900GB/s", "peak: expected a quantity in FLOP/s"),
        ("convert busbw all-reduce --busbw 1GB/s", "expected --ranks"),
        ("convert busbw allreduce --ranks 2 --busbw 1GB/s", "expected all-reduce or all-gather"),
        ("convert busbw all-reduce --ranks 8 --busbw 1GB/s --ports 8", "below --ranks"),
        ("trace all-redce --ranks 4", "did you mean all-reduce"),
        ("trace all-reduce --algorithm recursive-doubling --ranks 6", "did you mean 4 or 8"),
        ("trace all-reduce --algorithm hierarchical --ranks 12 --ranks-per-node 8", "8 or 16"),
        ("trace scatter --algorithm ring --ranks 4", "one of binomial-tree, naive"),
        ("trace broadcast --ranks 4 --root 9", "root: expected a rank from 0 to 3"),
        ("trace gather --algorithm naive --ranks 4 --segments 3", "unknown option 'segments'"),
        ("trace all-reduce --algorithm hierarchical-leader --ranks 512 --segments 64", "4,096"),
        ("cost all-reduce --ranks 8 --bytes 1GX --link nvlink4", "--bytes: unknown unit 'GX'"),
        ("cost all-reduce --ranks 8 --bytes 1s --link nvlink4", "expected a quantity in B"),
        ("cost all-reduce --ranks 8 --bytes -1 --link nvlink4", "--bytes: expected 0 to"),
        ("cost all-reduce --ranks 8 --bytes 1 --link nvlnk4", "did you mean nvlink4"),
        ("cost all-reduce --ranks 8 --bytes 1 --link 50GB/s", "expected --latency TIME"),
        (
            "cost all-reduce --ranks 8 --bytes 1 --link ib-ndr --algorithm hierarchical",
            "expected --network LINK",
        ),
        ("cost gather --ranks 1000 --bytes 1 --link ib-ndr --algorithm naive", "at most 512 ranks"),
        ("cost all-reduce --ranks 8 --bytes 1 --link ib-ndr --model nccl", "nvlink4"),
        (
            "cost all-reduce --ranks 8 --bytes 1 --link nvlink4 --model nccl --algorithm naive",
            "unknown algorithm that NCCL's model knows 'naive'",
        ),
        (
            "cost broadcast --ranks 8 --bytes 1 --link nvlink4 --model nccl --algorithm naive",
            "algorithm that NCCL's model knows",
        ),
        ("convert busbw all-reduce --ranks 8 --bytes 1GB", "--bytes and --time, or --algbw"),
        ("convert busbw all-reduce --ranks 8 --bytes 1GB --time 0s", "expected time_s > 0"),
        ("convert busbw all-reduce --ranks 8 --busbw 1GB/s --algbw 1GB/s", "or --busbw"),
    ],
)
def test_what_cannot_be_is_one_line_and_status_two(capsys, arguments, message):
    assert message in refused(capsys, *arguments.split())


def test_convert_writes_line_rates_as_one_would(capsys):
    assert main(["convert", "busbw", "all-reduce", "--ranks", "8", "--busbw", "844.5 GB/s"]) == 0
    assert capsys.readouterr().out.endswith("line rate 6,756 Gb/s\n")
