"""Schedules of the tools' engine, in a real browser, against the models and the frameworks.

Orders and times are the same; sums are the same bits where the durations add up exactly.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from figgen.models.pipeline.schedules import SCHEDULES, build
from figgen.models.pipeline.simulate import simulate
from figgen.models.pipeline.trace import Durations
from tests.browser.engine import Ask, differing, said
from tests.browser.site import ROOT

ORACLES = json.loads((ROOT / "tests" / "oracles" / "pipeline_orders.json").read_text("utf-8"))

# Sixty-fourths: their sums are exact in any order.
EXACT = (
    {},
    {"forward": 2.0, "backward_input": 1.0, "backward_weight": 1.0, "latency": 0.25},
    {"forward": 0.984375, "backward_input": 1.375, "backward_weight": 0.703125, "latency": 1.5},
    {"forward": 1.0, "backward_input": 1.25, "backward_weight": 0.0, "overlapped_pair": 3.0},
)
INEXACT = {"forward": 0.1, "backward_input": 0.7, "backward_weight": 1 / 3, "latency": 0.013}
SMALL_PIPELINES = list(itertools.product(range(1, 7), range(1, 13), (1, 2, 3)))


def described_trace(
    name: str, sizes: dict[str, int], times: dict[str, Any], cut: bool
) -> dict[str, Any]:
    schedule = build(name, **sizes)
    given = {key: tuple(v) if isinstance(v, list) else v for key, v in times.items()}
    durations = Durations(**given)
    chunks = schedule.placement.chunks
    trace = simulate(schedule, durations.per_chunk(chunks) if cut else durations)
    names = (
        "makespan", "busy", "span_by_rank", "bubble_fraction", "bubble_fraction_by_rank",
        "bubble_overhead", "bubble_overhead_by_rank", "bubble_fraction_without_flush",
        "peak_in_flight",
    )  # fmt: skip
    return {name: getattr(trace, name) for name in names} | {
        "orders": str(schedule).splitlines(),
        "rank_of_stage": schedule.placement.rank_of_stage,
        "pipes": schedule.placement.pipes,
        "times": [[[p.start, p.end, p.overlapped] for p in lane] for lane in trace.placed],
    }


def pipelines() -> Iterator[tuple[str, dict[str, int]]]:
    """Every schedule of up to six stages, twelve microbatches and three chunks, fitting or not."""
    for name in SCHEDULES:
        yield name, {"stages": 4, "microbatches": 8}
        for sizes in SMALL_PIPELINES:
            yield name, dict(zip(("stages", "microbatches", "chunks"), sizes, strict=True))


def test_every_small_schedule_runs_the_same(ask: Ask) -> None:
    cases = [
        (name, sizes, EXACT[number % len(EXACT)], bool(number % 3 == 0))
        for number, (name, sizes) in enumerate(pipelines())
    ]
    expected = [said(described_trace, *case) for case in cases]
    assert sum("error" not in answer for answer in expected) > 72 * 14
    assert differing(cases, ask("schedules", cases), expected) == []


def test_unequal_stages_and_odd_durations_run_the_same(ask: Ask) -> None:
    rng = np.random.default_rng(5)
    cases = []
    for name, stages, microbatches in itertools.product(("1f1b", "gpipe"), (2, 5), (1, 7)):
        unequal = {key: rng.random(stages).tolist() for key in INEXACT if key != "latency"}
        sizes = {"stages": stages, "microbatches": microbatches}
        cases += [(name, sizes, INEXACT, False), (name, sizes, unequal, False)]
    sizes = {"stages": 16, "microbatches": 64, "chunks": 3}
    cases.append(("interleaved-1f1b", sizes, INEXACT, True))
    for name, cut in itertools.product(("dualpipe", "dualpipev"), (False, True)):
        pairs = {"overlapped_pair": (2 + rng.random(8)).tolist()}
        cases.append((name, {"stages": 4, "microbatches": 10}, INEXACT | pairs, cut))
    shown = ask("schedules", cases)
    expected = json.loads(json.dumps([described_trace(*case) for case in cases]))
    # Python adds floats up with or without compensation, by its version.
    sums = [name for name in expected[0] if name == "busy" or name.startswith("bubble")]
    for got, want in zip(shown, expected, strict=True):
        for name in sums:
            assert got.pop(name) == pytest.approx(want.pop(name), rel=1e-12, abs=1e-14)
    assert differing(cases, shown, expected) == []


def test_schedules_of_the_published_tables_run_the_same(ask: Ask) -> None:
    """The Python side of these is compared with the tables in tests/models."""
    rows = ORACLES["published"]
    names = [title.lower() for title, *_ in rows["sail_zb_table"]["rows"]]
    cases = [(name, {"stages": 8, "microbatches": 64}, {}, False) for name in names]
    for (title, *_), overlap in itertools.product(rows["dualpipe_bubble"]["rows"], (2.0, 2.5, 3.0)):
        if title.lower() in SCHEDULES:
            sizes = {"stages": 8, "microbatches": 24}
            cases.append((title.lower(), sizes, {"overlapped_pair": overlap}, False))
    expected = [described_trace(*case) for case in cases]
    assert len(cases) > 10
    assert differing(cases, ask("schedules", cases), expected) == []


def oracle_orders() -> Iterator[tuple[str, str, dict[str, int], list[str]]]:
    """(section, schedule, sizes, order of every rank) as recorded from the frameworks."""
    called = {
        "GPipe": "gpipe",
        "LoopedBFS": "looped-bfs",
        "InterleavedZeroBubble": "zb1p",
        "ZBVZeroBubble": "zbv",
        "DualPipe": "dualpipe",
        "DualPipeV": "dualpipev",
    }
    sections = {"megatron_1f1b": "1f1b", "megatron_interleaved": "interleaved-1f1b"}
    units = {"P": "stages", "M": "microbatches", "v": "chunks"}
    for section in (*sections, "torch", "dualpipe"):
        for key, rows in ORACLES[section]["orders"].items():
            title, *parts = key.split() if section not in sections else ("", *key.split())
            sizes = {units[part[0]]: int(part[1:]) for part in parts}
            rows = [" ".join(w for w in row.split() if "REDUCE_GRAD" not in w) for row in rows]
            yield section, sections.get(section) or called[title], sizes, rows


def in_pairs(answer: dict[str, Any], stages: int, microbatches: int) -> list[str]:
    """An order in DeepSeek's words: kind, direction or chunk, microbatch of it; FB for a pair."""
    two_ways = microbatches // 2 if answer["pipes"] == 2 else 0
    rows = []
    for order, times in zip(answer["orders"], answer["times"], strict=True):
        row, joined = [], False
        for word, (_, _, paired) in zip(order.split(), times, strict=True):
            stage, kind, microbatch = re.fullmatch(r"(\d+)(\w)(\d+)", word).groups()
            side = int(stage) // stages
            where = f"{side}.{int(microbatch) - side * two_ways}"
            if joined:
                row[-1] += f",{where}"
            else:
                row.append(f"FB{where}" if paired else f"{kind}{where}")
            joined = paired and not joined
        rows.append(" ".join(row))
    return rows


def test_orders_are_those_of_megatron_torch_and_deepseek(ask: Ask) -> None:
    known = list(oracle_orders())
    answers = ask("schedules", [(name, sizes, {}, False) for _, name, sizes, _ in known])
    shown = [
        in_pairs(answer, sizes["stages"], sizes["microbatches"])
        if section == "dualpipe"
        else answer["orders"]
        for (section, _, sizes, _), answer in zip(known, answers, strict=True)
    ]
    assert len(known) == 13
    assert differing([case[:3] for case in known], shown, [case[3] for case in known]) == []


def test_timelines_are_those_of_an_independent_simulation(ask: Ask) -> None:
    frozen = ORACLES["timelines"]["rows"]
    cases = []
    for key in frozen:
        name, *parts = key.split()
        sizes = {"stages": 4, "microbatches": int(parts[1][1:])}
        weights = 2 if "t_b=2" in parts else 1
        times = {"forward": 2, "backward_input": weights, "backward_weight": weights}
        cases.append((name, sizes, times, False))
    drawn = []
    for answer in ask("schedules", cases):
        rows = [["."] * int(answer["makespan"] / 2) for _ in answer["orders"]]
        for row, order, times in zip(rows, answer["orders"], answer["times"], strict=True):
            for word, (start, end, _) in zip(order.split(), times, strict=True):
                for unit in range(int(start / 2), int(end / 2)):
                    row[unit] = word.lstrip("0123456789")
        drawn.append([" ".join(row) for row in rows])
    assert len(cases) == 4
    assert differing(list(frozen), drawn, list(frozen.values())) == []
