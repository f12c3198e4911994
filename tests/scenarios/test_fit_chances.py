"""A chance to fit is right as often as it promises, even for publishers not used in the fit."""

from __future__ import annotations

from math import exp, sqrt
from statistics import NormalDist, median

import pytest

from figgen.models.memory.fit_probability import SAFE, most_bytes
from figgen.models.setup.framework_memory import FRAMEWORKS
from figgen.models.setup.peak_spread import ALL_ERRORS, NORMAL_95, STUDENT_95, peak_spread
from figgen.scenarios.evidence.fit_chances import (
    VARIANTS,
    ahead,
    errors_by_publisher,
    held,
    outcomes,
    peak_errors,
    rms,
    spread_without,
    unknown_errors,
    width,
)
from figgen.scenarios.evidence.peaks import judged_peaks


def binomial_error(chance: float, count: int) -> float:
    return sqrt(chance * (1 - chance) / count)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_errors_of_a_framework_are_those_of_its_publishers(name: str) -> None:
    software = VARIANTS.get(name, name)
    found = [error for (of, _), error in errors_by_publisher().items() if of == software]
    if name in ("unknown", "hf-trainer"):
        found = list(unknown_errors())
    assert FRAMEWORKS[name].peak_errors == tuple(round(error, 2) for error in found)


def test_a_stand_in_is_as_wide_as_all_publishers_together() -> None:
    assert round(rms(errors_by_publisher().values()), 2) == ALL_ERRORS


def test_a_publisher_left_out_has_no_part_in_its_spread() -> None:
    known = errors_by_publisher()
    swift = known["megatron", "modelscope-ms-swift"]
    others = rms(error for (_, name), error in known.items() if name != "modelscope-ms-swift")
    cards = known["megatron", "nvidia-megatron-bridge-cards"]
    assert spread_without("megatron", "modelscope-ms-swift") == peak_spread((cards,), others)
    assert swift > 2 * cards


def test_nineteen_of_twenty_peaks_of_publishers_left_out_lie_below_the_bound() -> None:
    everyone = peak_errors()
    others = [one for one in everyone if one.software != "nanotron"]
    for listed in (everyone, others):
        found = held(listed)
        least = SAFE - binomial_error(SAFE, found.peaks)
        assert found.unseen_below / found.peaks >= least
        assert found.below / found.peaks >= least
    assert len(others) == 102


def test_the_bound_holds_for_each_software_as_often_as_promised() -> None:
    for software in {one.software for one in peak_errors()}:
        found = held(one for one in peak_errors() if one.software == software)
        least = SAFE - 2 * binomial_error(SAFE, found.peaks)
        assert found.below / found.peaks >= least, software


@pytest.mark.parametrize("chance", [0.8, 0.9, SAFE, 0.99])
def test_chances_above_four_in_five_hold(chance: float) -> None:
    found = held(peak_errors(), chance)
    assert found.below / found.peaks >= chance - binomial_error(chance, found.peaks)


def test_layouts_of_the_sweep_ran_as_often_as_promised() -> None:
    """Failed layouts include crashes for other reasons, which no memory model predicts."""
    found = outcomes()
    shares = [one.share for one in found]
    assert shares == sorted(shares, reverse=True)
    assert sum(one.ran + one.failed for one in found) == 898 + 771
    assert shares[0] > 0.9
    assert found[-1].ran == 0
    # Between an even chance and four in five, about as many ran as the chance says.
    even = next(one for one in found if one.low == 0.5)
    assert even.low - binomial_error(0.5, even.ran + even.failed) < even.share < even.high


def test_layouts_whose_peaks_are_left_out_ran_as_often_as_promised() -> None:
    """Their peaks exceed the prediction most, and yet they fitted."""
    found = outcomes(ahead)
    assert sum(one.ran for one in found) == 898 - 663
    assert sum(one.software == "nanotron" for one in peak_errors()) == 663
    assert found[0].share > SAFE
    assert found[-1].ran == 0


def test_tensors_that_wait_are_as_many_in_every_model_and_in_every_microbatch() -> None:
    """Queued tensors don't depend on the model, and with stages most jobs queue nothing."""
    queued: dict[object, list[float]] = {}
    for one in judged_peaks():
        run = one.run
        if run.framework == "nanotron" and run.tp >= 16 and run.shape.layers < 80:
            tensor_bytes = 2 * run.microbatch * run.sequence * run.shape.hidden
            tensors = (one.measured_bytes - one.modelled_bytes) / tensor_bytes
            queued.setdefault(run.shape.layers if run.pp == 1 else "stages", []).append(tensors)
            if run.pp == 1:
                queued.setdefault(f"{min(run.microbatch, 4)}", []).append(tensors)
    assert abs(median(queued.pop("stages"))) < 2
    assert set(queued) == {16, 28, 32, "1", "2", "4"}
    assert all(35 < median(found) < 55 for found in queued.values())


def test_the_width_of_normal_errors_is_their_standard_deviation() -> None:
    normal = NormalDist(sigma=0.2)
    errors = [normal.inv_cdf((at + 0.5) / 2000) for at in range(2000)]
    assert width(errors) == pytest.approx(0.2, rel=0.01)
    # A peak in twenty and more that is far off widens it to where the 95 % quantile is.
    assert width([0.01] * 90 + [0.5] * 10) == pytest.approx(0.5 / NORMAL_95)


def test_a_normal_distribution_has_the_quantile_of_students_t() -> None:
    """Two errors of known size and two stand-ins: 2.132 at four degrees of freedom."""
    spread = peak_spread((0.1, 0.1), others=0.1)
    assert most_bytes(1.0, spread, SAFE) == pytest.approx(exp(-0.1 * 2.132), rel=1e-4)
    assert NormalDist().inv_cdf(0.95) == pytest.approx(NORMAL_95, abs=1e-3)
    # With two degrees of freedom the quantile has a closed form.
    assert STUDENT_95[0] == pytest.approx((2 * 0.95 - 1) / sqrt(2 * 0.95 * 0.05), abs=1e-3)


def test_more_publishers_that_agree_make_it_narrower() -> None:
    assert peak_spread(()) > peak_spread((0.05,)) > peak_spread((0.05, 0.05))
    assert peak_spread((0.05,) * 20) < peak_spread((0.05,) * 8), "more than the table of t has"
