"""Goodput compared with a simulated failing job, intervals with Daly's simulations, and spares
counted."""

from __future__ import annotations

import math
import random

import pytest

from figgen.catalog import load
from figgen.catalog.interruptions import FILE, interruption, interruptions, read_interruptions
from figgen.errors import InputError
from figgen.formulas.reliability import (
    daly_interval,
    goodput,
    job_mtbf,
    lost_share,
    nodes_in_repair,
    young_interval,
)
from figgen.models.planner.reliability import best_interval_s, spare_nodes
from figgen.models.planner.saving import WAYS, saving

HOUR, DAY = 3600.0, 86_400.0


def simulated(
    interval_s: float, stall_s: float, lag_s: float, restart_s: float, mtbf_s: float, failures: int
) -> float:
    """Return the goodput of a job that is followed from one event to the next."""
    draw = random.Random(7).expovariate
    now = kept = 0.0
    fails_at = draw(1 / mtbf_s)
    for _ in range(failures):
        trained, pending = 0.0, []
        while True:
            saved_at = now + interval_s + stall_s
            if saved_at > fails_at:
                break
            now, trained = saved_at, trained + interval_s
            pending.append((now + lag_s, trained))
        # Training goes on from the last checkpoint that was safe when the job failed.
        kept += max((work for safe_at, work in pending if safe_at <= fails_at), default=0.0)
        now = fails_at
        while True:
            back_at = now + restart_s
            fails_at = now + draw(1 / mtbf_s)
            if fails_at >= back_at:
                break
            now = fails_at
        now = back_at
    return kept / now


@pytest.mark.parametrize(
    ("interval_s", "stall_s", "lag_s", "restart_s", "mtbf_s"),
    [
        (900, 60, 0, 600, 3 * HOUR),
        (900, 5, 60, 600, 3 * HOUR),
        (120, 20, 100, 600, 0.4 * HOUR),
        (1800, 120, 0, 1200, 0.5 * HOUR),
        (600, 1, 601, 60, 2 * HOUR),
    ],
)
def test_goodput_is_that_of_a_job_that_fails(
    interval_s: float, stall_s: float, lag_s: float, restart_s: float, mtbf_s: float
) -> None:
    found = goodput(interval_s, stall_s, lag_s, restart_s, mtbf_s)
    # 40,000 failures: standard errors of about half a percent of what is lost.
    seen = simulated(interval_s, stall_s, lag_s, restart_s, mtbf_s, 40_000)
    assert found == pytest.approx(seen, abs=0.008)


def test_first_order_is_the_limit_of_rare_failures() -> None:
    for mtbf_s in (1e6, 1e7):
        lost = 1 - goodput(900, 9, 30, 600, mtbf_s)
        assert lost_share(900, 9, 30, 600, mtbf_s) == pytest.approx(lost, rel=2000 / mtbf_s)


@pytest.mark.parametrize(("mtbf_s", "minutes"), [(24 * HOUR, 117), (6 * HOUR, 57), (900, 9.1)])
def test_intervals_are_those_of_daly_s_figures(mtbf_s: float, minutes: float) -> None:
    """Daly 2006, figures 3 to 5: a dump of 5 minutes, confirmed there by simulation."""
    found = float(daly_interval(300, mtbf_s))
    assert found / 60 == pytest.approx(minutes, rel=0.006)
    assert found == pytest.approx(best_interval_s(300, mtbf_s), rel=0.003)


@pytest.mark.parametrize("stall_s", [1, 60, 600])
@pytest.mark.parametrize("mtbf_s", [HOUR, DAY])
def test_best_interval_is_the_best(stall_s: float, mtbf_s: float) -> None:
    best = best_interval_s(stall_s, mtbf_s)
    shares = [goodput(best * factor, stall_s, 0, 300, mtbf_s) for factor in (0.98, 1, 1.02)]
    assert max(shares) == shares[1]
    if stall_s * 100 < mtbf_s:
        assert best == pytest.approx(float(young_interval(stall_s, mtbf_s)), rel=0.1)


def test_no_checkpoint_begins_before_the_last_is_safe() -> None:
    assert best_interval_s(1, HOUR, lag_s=500) == 499
    assert best_interval_s(1, HOUR, lag_s=10) == best_interval_s(1, HOUR)


@pytest.mark.parametrize(("gpus", "hours"), [(16_384, 1.8), (131_072, 0.23)])
def test_rate_of_meta_s_cluster_gives_the_times_that_meta_projects(gpus: int, hours: float) -> None:
    found = float(job_mtbf(gpus, interruption("rsc-1").gpu_mtbf_s))
    assert found / HOUR == pytest.approx(hours, rel=0.025)


def test_llama_3_stopped_every_three_hours() -> None:
    assert job_mtbf(16_384, interruption("llama-3-405b").gpu_mtbf_s) == 54 * DAY / 419


def test_llama_3_s_goodput_is_reached_with_what_was_at_hand() -> None:
    """The report says more than 90%, but gives neither interval nor restart time."""
    size = 405e9 * 14
    mtbf_s = float(job_mtbf(16_384, interruption("llama-3-405b").gpu_mtbf_s))
    for way in WAYS:
        saved = saving(way, size, 16_384)
        best = best_interval_s(saved.stall_s, mtbf_s, saved.lag_s)
        assert 0.9 < goodput(best, saved.stall_s, saved.lag_s, saved.restart_s, mtbf_s) < 0.99


def test_spares_are_enough_as_often_as_promised() -> None:
    """A simulation of failures and repairs counts how often more nodes are out than
    spares exist."""
    draw = random.Random(3)
    gpus, gpu_mtbf_s, repair_s = 16_384, 2000 * DAY, DAY
    mean = float(nodes_in_repair(gpus, gpu_mtbf_s, repair_s))
    spares = spare_nodes(mean, 0.95)
    back: list[float] = []
    now, short, horizon = 0.0, 0.0, 4000 * DAY
    while now < horizon:
        after = now + draw.expovariate(gpus / gpu_mtbf_s)
        while back and back[0] <= after:
            short += (back[0] - now) * (len(back) > spares)
            now = back.pop(0)
        short += (after - now) * (len(back) > spares)
        now = after
        back.append(now + repair_s)
    assert short / now == pytest.approx(1 - 0.95, abs=0.02)
    assert short / now <= 0.055


@pytest.mark.parametrize("mean", [0.5, 3.0, 20.0, 699.9])
@pytest.mark.parametrize("confidence", [0.5, 0.99, 0.9999])
def test_spares_are_the_fewest_that_poisson_allows(mean: float, confidence: float) -> None:
    found = spare_nodes(mean, confidence)
    chance = [math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(1000)]
    assert math.fsum(chance[: found + 1]) >= confidence - 1e-12
    assert math.fsum(chance[:found]) < confidence


def test_none_in_repair_needs_none_to_spare() -> None:
    assert spare_nodes(0, 0.99) == 0
    # e^-in_repair has to be a number that is not nothing: e^-745 is.
    for count, confidence in ((700, 0.99), (1e4, 0.99), (-1, 0.99), (1, 1.0)):
        with pytest.raises(InputError, match="in repair"):
            spare_nodes(count, confidence)


def test_a_rate_and_a_count_at_once_are_refused() -> None:
    text = load.content(FILE).replace("gpus = 992\n", "gpus = 992\ngpus_per_node = 8\n")
    with pytest.raises(InputError, match=r"opt-175b.*gpus, observed, failures"):
        read_interruptions(text, load.sources())
    with pytest.raises(InputError, match="rsc-1"):
        interruption("rsc-11")
    assert len(interruptions()) == 5


@pytest.mark.parametrize("name", ["stall_s", "mtbf_s"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_a_time_that_is_not_above_zero_has_no_best_interval(name: str, value: float) -> None:
    with pytest.raises(InputError, match=f"{name}: expected > 0"):
        best_interval_s(**{"stall_s": 10.0, "mtbf_s": 1e4} | {name: value})
