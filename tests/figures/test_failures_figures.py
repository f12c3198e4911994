"""The figures of failures and scaling: what must hold for all numbers."""

from __future__ import annotations

from itertools import product

import pytest

from figgen.charts import Bars, Curves
from figgen.errors import InputError
from figgen.formulas.reliability import goodput, job_mtbf
from figgen.models.memory.memory import memory
from figgen.models.planner.reliability import best_interval_s
from figgen.models.planner.saving import SIZES, WAYS, saving
from figgen.registry import build
from figgen.scenarios.runs.predicted import predicted_step
from figgen.scenarios.runs.record import described_run
from figgen.scenarios.runs.setup import run_setup
from figgen.scenarios.stories.scaling import FAILURES, lost, scaled


def test_clusters_of_one_paper_are_one_source() -> None:
    """Kokolis et al. 2024 report both RSC-1 and RSC-2."""
    values = build("interruptions-published", {}).values
    assert (values["count"].value, values["sources"].value) == (5, 4)


@pytest.mark.parametrize("kind", ["strong", "weak"])
def test_what_steps_lose_of_the_time_that_trains_is_what_the_mfu_falls_by(kind: str) -> None:
    values = build("scaling-breaks", {"kind": kind}).values
    fallen = 1 - values["last_mfu"].value / values["first_mfu"].value
    assert values["trained_share"].value == pytest.approx(fallen, abs=0.005)
    assert values["stepping_share"].value < values["trained_share"].value


def test_marks_are_the_tops_of_their_curves() -> None:
    chart = build("goodput-by-interval", {})
    assert isinstance(chart, Curves)
    for series, mark in zip(chart.series[1:], chart.marks, strict=True):
        assert max(series.y) <= mark.y <= max(series.y) + 0.002


def test_larger_jobs_keep_less_and_quicker_ways_more() -> None:
    chart = build("goodput-by-size", {})
    assert isinstance(chart, Curves)
    for series in chart.series:
        assert list(series.y) == sorted(series.y, reverse=True)
    for slow, quick in zip(chart.series, chart.series[1:], strict=False):
        assert all(a < b for a, b in zip(slow.y, quick.y, strict=True))


def test_parts_of_what_is_lost_add_up_to_what_is_not_goodput() -> None:
    chart = build("goodput-lost", {"way": "storage"})
    assert isinstance(chart, Bars)
    gpus = 131072
    saved = saving("storage", 405_853_388_800 * 14, gpus)
    mtbf_s = 54 * 86400 / 419 * 16384 / gpus
    best = best_interval_s(saved.stall_s, mtbf_s)
    kept = goodput(best, saved.stall_s, 0, saved.restart_s, mtbf_s)
    assert sum(each.lengths[-1] for each in chart.segments) == pytest.approx(1 - kept, rel=1e-6)
    assert float(job_mtbf(gpus, 54 * 86400 / 419 * 16384)) == pytest.approx(mtbf_s)


def test_a_way_that_nobody_knows_is_named() -> None:
    with pytest.raises(InputError, match="storage"):
        build("goodput-lost", {"way": "storrage"})
    with pytest.raises(InputError, match="strong or weak"):
        build("scaling", {"kind": "stong"})
    assert len(WAYS) == 3
    assert SIZES[-1] == 131072


def test_weak_scaling_ends_at_twice_the_largest_published_batch() -> None:
    """Kimi K2, arXiv:2507.20534, section 2.5: 67 million tokens; DeepSeek-V3 used 63."""
    values = build("scaling", {"kind": "weak"}).values
    assert values["tokens"].value == 2048 * 8 * 8192
    assert values["of_published"].value == 2048 * 8 * 8192 / (16_384 * 4096)
    assert values["largest"].value == "Kimi K2"
    assert round(16_384 * 4096 / 1e6) == 67


@pytest.mark.parametrize("weak", [False, True])
def test_a_size_is_its_run_and_losses_are_the_speed_that_is_missing(weak: bool) -> None:
    found = scaled("llama-3-405b", "h100-sxm-80gb", "bf16", 2048, weak)
    kept = [0.9] * len(found)
    for each, reasons in zip(found, lost(found, kept), strict=True):
        run = each.run
        assert run.global_batch == (2048 * run.gpus // 16384 if weak else 2048)
        assert run.tp * run.cp * run.pp * run.dp == run.gpus
        assert each.step.step_time_s == predicted_step(run).step_time_s
        missing = 1 - 0.9 * found[0].gpu_s_per_token / each.gpu_s_per_token
        assert sum(reasons.values()) == pytest.approx(missing, rel=1e-6)
        assert reasons[FAILURES] == pytest.approx(0.1)


@pytest.mark.parametrize("gpus", [512, 16384])
def test_no_faster_layout_that_is_tried_fits(gpus: int) -> None:
    """Every faster layout of the same chips, searched one at a time, needs more memory than a chip
    has."""
    found = scaled("llama-3-405b", "h100-sxm-80gb", "bf16", 2048, False)
    [ours] = [each for each in found if each.run.gpus == gpus]
    faster = 0
    for cp, pp, chunks in product((1, 2, 4, 8), (1, 4, 8, 16), (1, 4)):
        replicas = gpus // (8 * cp * pp)
        if not replicas or 2048 % replicas or (chunks > 1 and (pp == 1 or 2048 // replicas % pp)):
            continue
        run = described_run({
            "hardware": "h100-sxm-80gb", "num_accelerators": gpus, "tp": 8, "cp": cp, "pp": pp,
            "vpp": chunks, "micro_batch": 1, "global_batch_sequences": 2048, "seq_length": 8192,
            "zero_stage": 1, "model_shape_ref": "llama-3-405b", "recompute": "none",
        })  # fmt: skip
        if predicted_step(run).step_time_s < ours.step.step_time_s:
            faster += 1
            capacity = run.accelerator.capacity_bytes
            assert not memory(run_setup(run), capacity_bytes=capacity).fits, ours.layout
    assert faster or gpus > 512


def test_an_epoch_of_imagenet_is_read_in_its_batches() -> None:
    """MLPerf Storage: 1,024 files of 1,251 images make up ImageNet; 400 are read in 0.224 s."""
    images, samples, seconds = 1024 * 1251, 400, 0.224
    assert images == pytest.approx(1_281_167, rel=2e-4)
    rate = build("reading-rates", {}).values["resnet_rate"].value
    epoch_s = images / samples * seconds
    assert rate * epoch_s == pytest.approx(images * 114_660.07)
    fed = build("reading-rates", {}).values["resnet_fed"].value
    assert fed * rate == pytest.approx(2e12)
