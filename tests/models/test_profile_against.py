"""Comparing two recordings, naming a slow rank, lanes for the picture, the job of a trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from figgen.__main__ import main
from figgen.models.profiles.lanes import KINDS, lanes_of
from figgen.models.profiles.profile import RankProfile, profiles, recorded_ranks
from figgen.models.profiles.profile_against import causes, pairs, slow_rank
from figgen.models.profiles.profile_beside import common_calls, waiting
from figgen.models.profiles.profile_words import profile_answer
from figgen.models.profiles.trace_setup import setup_of
from figgen.units import format_quantity
from tests.test_profile import NCCL, kernel
from tests.test_profile_cases import RECORDED


def rank_of(events: list[dict[str, Any]], number: int = 0, size: int = 4) -> RankProfile:
    header = {
        "distributedInfo": {"rank": number, "world_size": size},
        "deviceProperties": [{"name": "NVIDIA H100 80GB HBM3"}],
    }
    (found,) = profiles(((header, event) for event in events), "made")
    return found


def step(gemm: float, call: float, extra: int = 0, number: int = 0) -> RankProfile:
    """Return a matmul, elementwise kernels of 5 µs each, an all-reduce, and 10 µs of idling."""
    parts = [kernel("nvjet_gemm", 0.0, gemm)]
    parts += [
        kernel("vectorized_elementwise_kernel<4>", gemm + 5.0 * at, 5.0) for at in range(extra)
    ]
    begun = gemm + 5.0 * extra
    group = NCCL | {"Collective name": "allreduce", "Process Group Description": "dp"}
    parts.append(kernel("ncclDevKernel_AllReduce_x", begun, call, **group))
    whole = {"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#1", "ts": 0.0}
    parts.append(whole | {"dur": begun + call + 10.0})
    return rank_of(parts, number)


def test_causes_add_up_and_come_by_what_they_cost() -> None:
    after, before = step(80.0, 30.0, extra=8), step(100.0, 20.0, extra=2)
    found = causes(after, before)
    assert [cause.cause for cause in found] == [
        "elementwise", "product", "exposed communication", "idle",
    ]  # fmt: skip
    more = [cause.more_s for cause in found]
    assert more == pytest.approx([30e-6, -20e-6, 10e-6, 0.0], abs=1e-12)
    assert sum(more) == pytest.approx(after.wall_s - before.wall_s)
    first = found[0]
    assert first.evidence == "vectorized_elementwise_kernel<4>"
    assert (first.runs, first.base_runs) == (8, 2)
    assert found[2].evidence == "dp all-reduce"


def test_ranks_of_two_recordings_are_paired_by_name() -> None:
    one, other, third = step(10, 5, number=1), step(20, 5, number=2), step(30, 5, number=3)
    assert pairs([one, other], [other, one]) == [(one, one), (other, other)]
    assert pairs([one], [other, third]) == [(one, third)]


def test_a_slow_rank_is_named_with_what_takes_it_longer() -> None:
    """Three ranks reach the all-reduce after 100 µs, one after 140: they wait 40 µs for it."""
    ranks = [step(100.0, 60.0, number=at) for at in range(3)] + [step(140.0, 20.0, number=3)]
    found = slow_rank(ranks, waiting(common_calls(ranks)))
    assert found is not None
    assert (found.name, found.last, found.calls) == ("rank 3", 1, 1)
    assert found.cost_s == pytest.approx(40e-6)
    assert [(cause.cause, cause.more_s) for cause in found.evidence] == [
        ("computing", pytest.approx(40e-6)),
        ("product", pytest.approx(40e-6)),
    ]
    told = profile_answer(ranks[3], 4, waiting(common_calls(ranks)), format_quantity, found).text
    assert "The slow rank is rank 3: another waits 40\u00a0µs per step for it." in told
    alike = [step(100.0, 20.0, number=at) for at in range(4)]
    calls = waiting(common_calls(alike))
    assert slow_rank(alike[:1], calls) is None
    assert slow_rank(alike, ()) is None


def test_a_comparison_is_told_in_text_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for number, took in enumerate((9.0, 4.0)):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps([kernel("gemm", 0.0, took), kernel("Memcpy", 20.0, 1.0)]))
        files.append(str(path))
    assert main(["profile", files[0], "--against", files[1]]) == 0
    text = capsys.readouterr().out
    assert "gemm: 1 to 1 runs, 4 µs to 9 µs" in text.replace("\xa0", " ")
    assert main(["profile", files[0], "--against", files[1], "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["against"][0]
    assert first["more_s"] == pytest.approx(5e-6)


def test_lanes_hold_all_that_ran_in_its_order() -> None:
    events = [
        kernel("nvjet_gemm", 30.0, 5.0) | {"tid": 7},
        kernel("flash_fwd_kernel", 10.0, 5.0) | {"tid": 7},
        kernel("ncclDevKernel_AllReduce_x", 12.0, 9.0) | {"tid": 20},
        kernel("Memset (Device)", 50.0, 1.0) | {"tid": 7, "cat": "gpu_memset"},
        kernel("ProfilerStep#4", 10.0, 41.0) | {"cat": "gpu_user_annotation"},
    ]
    ranks = recorded_ranks((({}, event) for event in events), "made")
    (found,) = [lanes_of(kept) for kept in ranks.values()]
    assert [lane.name for lane in found.lanes] == ["stream 7", "stream 20"]
    first = found.lanes[0]
    assert [KINDS[kind] for kind in first.kinds] == ["attention", "product", "memset"]
    assert first.starts == pytest.approx([0.0, 20e-6, 40e-6])
    assert [found.names[at] for at in first.names][:2] == ["flash_fwd_kernel", "nvjet_gemm"]
    assert found.steps == (("ProfilerStep#4", 0.0, pytest.approx(41e-6)),)
    assert found.seconds == pytest.approx(41e-6)


def test_a_trace_tells_the_gpu_and_the_sizes_of_its_groups() -> None:
    found = setup_of(step(10.0, 5.0))
    assert (found.device, found.ranks, found.sizes) == ("NVIDIA H100 80GB HBM3", 4, ())
    sized = NCCL | {"Process Group Description": "tp", "Group size": 2}
    calls = [kernel("gemm", 0.0, 5.0), kernel("ncclDevKernel_AllGather_x", 5.0, 5.0, **sized)]
    assert setup_of(rank_of(calls)).sizes == (("tp", 2),)


def test_the_recorded_job_is_one_gpu() -> None:
    from figgen.models.profiles.trace_reader import trace_events

    (rank,) = profiles(trace_events(str(RECORDED)), "recorded")
    found = setup_of(rank)
    assert (found.ranks, found.steps, found.device) == (1, 2, "NVIDIA H100 80GB HBM3")
