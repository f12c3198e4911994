"""What saves memory: the table, and the largest savings computed by hand."""

from __future__ import annotations

import pytest

from figgen.charts import Bars, Table
from figgen.registry import build


def test_a_measure_takes_what_it_says_and_nothing_else() -> None:
    chart = build("measures-by-kind", {})
    assert isinstance(chart, Bars)
    kinds = {
        each.name: dict(zip(chart.labels, each.lengths, strict=True)) for each in chart.segments
    }
    sharded = {"ZeRO-1": ("optimizer",), "ZeRO-3": ("weights", "gradients", "optimizer")}
    for label, parts in sharded.items():
        for kind in ("weights", "gradients", "optimizer", "activations"):
            shrinks = kind in parts
            assert (kinds[kind][label] < kinds[kind]["as it is"]) == shrinks
    for label in ("recompute everything", "sequence parallelism", "half the microbatch"):
        assert kinds["activations"][label] < kinds["activations"]["as it is"]
        assert kinds["optimizer"][label] == kinds["optimizer"]["as it is"]


def test_savings_are_the_tensors_that_go() -> None:
    table = build("memory-measures", {})
    assert isinstance(table, Table)
    saves = {name: float(named.value) for name, named in table.values.items()}
    # 64 heads over TP 8, two sequences of 8,192, two bytes a score, 20 layers, four in flight; the
    # allocator holds a few percent on top of what comes and goes.
    scores = 64 / 8 * 2 * 8192**2 * 2 * 20 * 4
    assert scores <= saves["flash_saves"] <= 1.1 * scores
    # A stage of 20 layers over TP 8, Adam's twelve bytes, halved between two replicas.
    layer = 2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672
    state = (20 * layer + 128256 * 8192) / 8 * 12 / 2
    assert saves["zero1_saves"] == pytest.approx(state, rel=0.05)
    assert saves["small_saves"] == pytest.approx(saves["cp_saves"], rel=0.01)
    kept = [float(row[1]) for row in table.rows[1:-1]]
    assert kept == sorted(kept)
    assert saves["free"] < min(saves[key] for key in ("flash", "sp", "zero1"))
