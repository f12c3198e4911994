"""Tables of nccl-tests and rccl-tests are read as these programs print them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from figgen import catalog
from figgen.__main__ import main
from figgen.scenarios.taking.log_words import HEALTHY, collective_rows, log_sentences
from figgen.scenarios.taking.logs import CollectiveLog, read_log

ORACLES = Path(__file__).parents[1] / "oracles"
TABLES = json.loads((ORACLES / "collective_tables.json").read_text("utf-8"))["tables"]

NCCL = """# nThread 1 nGpus 8 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5
# Using devices
#  Rank  0 Group  0 Pid  100 on  node1 device  0 [0x18] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  100 on  node1 device  1 [0x2a] NVIDIA H100 80GB HBM3
# all_reduce_perf
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    22.10    0.00    0.00      0    21.93    0.00    0.00      0
     1048576        262144     float     sum      -1    60.55   17.32   30.31      0    60.20   17.42   30.48    N/A
  8589934592    2147483648     float     sum      -1    31234  275.02  481.28      0    31222  275.12  481.47      0
# Out of bounds values : 0 OK
"""  # noqa: E501


def test_a_table_of_nccl_tests_gives_its_curve_and_its_line() -> None:
    log = read_log(NCCL)
    assert isinstance(log, CollectiveLog)
    assert (log.collective, log.ranks, len(log.rows)) == ("all-reduce", 2, 3)
    largest = log.rows[-1]
    assert largest.time_s == pytest.approx(31.234e-3)
    # The program's own rates follow from size and time.
    assert largest.algorithm_bandwidth == pytest.approx(
        largest.message_bytes / largest.time_s, rel=1e-3
    )
    assert log.fit is not None
    alpha, rate = log.fit
    assert alpha == pytest.approx(22.1e-6)
    assert alpha + largest.message_bytes / rate == pytest.approx(largest.time_s)


def test_ranks_that_a_table_does_not_list_follow_from_its_rates() -> None:
    """2(n − 1)/n is 1.75 for an all-reduce of eight ranks, as in nccl-tests' PERFORMANCE.md."""
    lines = [line for line in NCCL.splitlines() if "Rank" not in line and "_perf" not in line]
    text = "\n".join(lines)
    for bus, ranks in (("481.28", 8), ("515.66", 16), ("541.45", 64)):
        log = read_log(text.replace("481.28", bus))
        assert isinstance(log, CollectiveLog)
        assert (log.collective, log.ranks, log.ranks_per_node) == ("all-reduce", ranks, 0)


LARGE = """
#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error
   268435456       1048576     float           520935    0.52    0.51  0e+00   519562    0.52    0.51  1e+00
   536870912       2097152     float          1041974    0.52    0.51  0e+00  1041299    0.52    0.51  1e+00
"""  # noqa: E501
"""All-to-alls of 256 GPUs, https://github.com/NVIDIA/nccl-tests/issues/78: time goes with size."""


def test_a_table_of_large_messages_shows_no_latency() -> None:
    log = read_log(LARGE)
    assert isinstance(log, CollectiveLog)
    assert log.fit is None
    words = [sentence for _, sentence in log_sentences(log, None)]
    assert not any("latency-bound" in one for one in words)
    assert any("already moves at 100% of the best busbw" in one for one in words)


RCCL = """
rccl-tests: Version develop:83d38d9
#  Rank  0 Group  0 Pid  37300 on   g100n126 device  0 [0000:05:00] AMD Instinct MI300X
#  Rank  1 Group  0 Pid  37300 on   g100n126 device  1 [0000:33:00] AMD Instinct MI300X
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
     8388608       2097152     float     sum      -1    91.10   92.08   92.08      0    94.94   88.36   88.36      0
"""  # noqa: E501


def test_ranks_that_a_table_lists_are_kept_where_its_rates_name_the_collective() -> None:
    """Eight MI300X of one node, https://github.com/crickett-hpe/hpc-ai-envs/pull/30, cut to two."""
    eight = RCCL.replace("92.08   92.08", "92.08  161.14").replace(
        "#       size",
        "".join(
            f"#  Rank  {n} Group  0 Pid  37300 on   g100n126 device  {n} [0000:0{n}:00] MI300X\n"
            for n in range(2, 8)
        )
        + "#       size",
    )
    log = read_log(eight)
    assert isinstance(log, CollectiveLog)
    assert (log.collective, log.ranks, log.ranks_per_node) == ("all-reduce", 8, 8)
    # Rates of two ranks are equal for every collective, so none is named.
    log = read_log(RCCL)
    assert isinstance(log, CollectiveLog)
    assert (log.collective, log.ranks, log.ranks_per_node) == ("", 2, 2)


def test_a_table_is_judged_by_its_links(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "log"
    # Two nodes of one rank, whose port carries 50 GB/s: 46.9 of them are 94 %, 23.4 are 47 %.
    text = (
        NCCL.replace("node1 device  1", "node2 device  0")
        .replace("481.28", "46.90")
        .replace("30.31", "3.31")
    )
    for found, share in ((text, "94% of the line rate"), (text.replace("46.90", "23.40"), "47%")):
        path.write_text(found)
        assert main(["take", str(path), "--ports", "1", "--line-rate", "400 Gb/s"]) == 0
        said = capsys.readouterr().out
        assert "all-reduce of 2 ranks on nodes of 1, 3 sizes" in said
        assert f"The best busbw is {share}" in said
        assert ("Look for a slow link" in said) == (share == "47%")
        assert "messages up to 8\u00a0B are latency-bound" in said
    # Rings of healthy machines, as others measured them.
    rings = [
        one
        for one in catalog.MEASUREMENTS.values()
        if one.algorithm == "ring" and one.nodes == 1 and one.collective == "all_reduce"
    ]
    assert len(rings) >= 2
    for one in rings:
        assert one.accelerator is not None
        assert max(rate for _, rate in one.points) >= (
            HEALTHY * one.accelerator.scale_up.bandwidth_bytes_per_s
        )


@pytest.mark.parametrize(
    "prefix", ["", "[1,0]<stdout>:", "0: "], ids=["plain", "mpirun", "srun --label"]
)
def test_tables_are_read_without_their_signs_and_behind_the_number_of_a_process(
    prefix: str,
) -> None:
    text = "\n".join(prefix + line.removeprefix("#") for line in NCCL.split("\n"))
    log = read_log(text)
    assert isinstance(log, CollectiveLog)
    assert log == read_log(NCCL)


def test_tables_of_older_programs_have_fewer_columns() -> None:
    head = (
        "#       size         count    type   time   algbw   busbw  error  time algbw busbw error\n"
    )
    row = "   134217728      16777216   float   3298.6   20.34   20.34  0e+00    3070.3   21.86"
    log = read_log(head + row + "   21.86  0e+00\n")
    assert isinstance(log, CollectiveLog)
    assert log.rows[0].bus_bandwidth == pytest.approx(20.34e9)


def test_processes_that_ran_alone_are_told_to_join() -> None:
    alone = NCCL.replace("30.31", "0.00").replace("481.28", "0.00").replace("0.00    0.00", "1 0")
    log = read_log(alone)
    assert isinstance(log, CollectiveLog)
    assert "with MPI=1" in log_sentences(log, None)[1][1]
    assert collective_rows(log, None)[1][-1] == "–"


def test_a_table_is_taken_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "nccl.log"
    file.write_text(NCCL, encoding="utf-8")
    assert main(["take", str(file), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["format"] == "nccl-tests"
    assert shown["alpha_s"] == pytest.approx(22.1e-6)
    assert [row["message_bytes"] for row in shown["rows"]] == [8, 2**20, 2**33]


def test_an_all_gather_of_ucc_counts_the_part_of_a_rank_and_newer_all_to_alls_all_parts() -> None:
    """ucc_pt_generator_exp.cc, get_src_count: count or count × ranks elements, printed as size."""
    head = "       Count        Size                Time, us                           {}, GB/s\n"
    # Eight ranks with 1 MiB each in 100 µs: 7 MiB over a rank's links, which are 73.40 GB/s.
    for name, size, bandwidth, collective in (
        ("Allgather", 2**20, "Bandwidth", "all-gather"),
        ("Allgather", 2**20, "Bus Bandwidth", "all-gather"),
        ("Alltoall", 2**20, "Bandwidth", "all-to-all"),
        ("Alltoall", 2**23, "Bus Bandwidth", "all-to-all"),
        ("Reduce_scatter", 2**23, "Bus Bandwidth", "reduce-scatter"),
    ):
        row = f"{size // 4} {size} 100.00 99.00 101.00 73.40 74.14 72.67\nTotal time: 0.1 ms\n"
        log = read_log(f"Collective:   {name}\n{head.format(bandwidth)}{row}")
        assert isinstance(log, CollectiveLog)
        assert (log.collective, log.ranks) == (collective, 8), name
        assert log.rows[0].message_bytes == 2**23
        assert log.rows[0].algorithm_bandwidth == pytest.approx(2**23 / 100e-6)


@pytest.mark.parametrize("table", TABLES, ids=[table["source"][19:] for table in TABLES])
def test_tables_of_other_programs_are_read_as_published(table: dict[str, Any]) -> None:
    log = read_log(table["text"])
    assert isinstance(log, CollectiveLog)
    assert log.program == table["program"]
    assert (log.collective, log.ranks) == (table["collective"], table["ranks"])
    assert log.ranks_per_node == table["ranks_per_node"]
    for row in log.rows:
        assert row.algorithm_bandwidth == pytest.approx(row.message_bytes / row.time_s, rel=2e-3)
        factor = {"all-reduce": 2.0}.get(log.collective, 1.0)
        if log.ranks:
            moved = factor * (log.ranks - 1) / log.ranks * row.message_bytes / row.time_s
            assert row.bus_bandwidth == pytest.approx(moved, rel=2e-3)
    said = [sentence for _, sentence in log_sentences(log, None)]
    assert said[0].startswith(f"Read as {table['program']}: ")
    assert any("with -F" in one for one in said) == ("without -F" in table["states"])
    if len(log.rows) == 1:
        assert not any("latency α" in one for one in said)


def test_the_latency_of_a_table_of_ucc_is_its_shortest_time() -> None:
    """PR 223's all-to-all begins at half of its best rate and shows none, PR 166's does."""
    (bare,) = [table for table in TABLES if table["source"].endswith("166")]
    log = read_log(bare["text"])
    assert isinstance(log, CollectiveLog)
    assert log.fit is not None
    assert log.fit[0] == pytest.approx(6.48e-6)
