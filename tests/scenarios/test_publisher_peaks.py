"""Peaks that publishers print are held against predictions of the same kind."""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, log, sqrt
from statistics import fmean

import pytest

from figgen.models.setup.framework_memory import FRAMEWORKS
from figgen.scenarios.evidence.publisher_peaks import predicted_peaks, publisher_peaks
from figgen.scenarios.options.resolve import training_step
from figgen.scenarios.runs.record import framework_of


def test_a_device_holds_more_than_its_allocator_and_that_more_than_was_asked_for() -> None:
    setup = training_step(model="llama-3-8b", nodes=1, gpus_per_node=8, zero_stage=1).setup
    found = predicted_peaks(setup)
    assert found["allocated"] < found["reserved"] < found["device"]


def test_every_kind_is_held_and_no_run_with_adapters() -> None:
    found = publisher_peaks()
    assert {one.kind for one in found} == {"allocated", "reserved", "device"}
    assert len({one.publisher for one in found}) == 8
    assert not any("lora" in one.name.lower() for one in found)


def test_reserved_peaks_of_torchtitan_are_missed_by_a_fifth_at_most_on_average() -> None:
    """Its habits are modelled; the issue threads are of runs that nobody fitted."""
    errors = [
        abs(one.error) for one in publisher_peaks() if one.publisher == "pytorch-torchtitan-threads"
    ]
    assert len(errors) == 15
    assert fmean(errors) < 0.2


def logarithmic_errors(habits: str) -> dict[str, list[float]]:
    """Logarithms of printed over predicted peaks of a framework, by publisher."""
    found: dict[str, list[float]] = {}
    for one in publisher_peaks():
        if one.habits == FRAMEWORKS[habits].label:
            ratio = one.measured_bytes / one.predicted_bytes
            found.setdefault(one.publisher, []).append(log(ratio))
    return found


def spread(errors: Iterable[float]) -> float:
    return sqrt(fmean(error**2 for error in errors))


@pytest.mark.parametrize(
    ("name", "publishers"),
    [("pytorch", 2), ("torchtune", 2), ("deepspeed", 1), ("prime-rl", 1), ("prime-rl-logits", 1)],
)
def test_spreads_of_new_stacks_are_those_of_their_publishers(name: str, publishers: int) -> None:
    """For torchtune and plain PyTorch the habits were chosen while looking at these runs: they
    describe, and confirm nothing. Habits of the others come from their code, but their peaks had
    been seen before."""
    found = logarithmic_errors(name)
    assert len(found) == publishers
    errors = [error for of_one in found.values() for error in of_one]
    assert FRAMEWORKS[name].peak_spread == pytest.approx(spread(errors), abs=0.01)


def test_plain_pytorch_in_16_bits_is_missed_by_a_ninth_on_average_at_each_publisher() -> None:
    """With 1.64 of itself the spread of either covers eight of nine runs of the other, or more."""
    found = logarithmic_errors("pytorch")
    for errors in found.values():
        assert fmean(map(abs, errors)) < 0.115
    one, other = found.values()
    for known, unseen in ((one, other), (other, one)):
        inside = [abs(error) < 1.64 * spread(known) for error in unseen]
        assert fmean(inside) >= 8 / 9


@pytest.mark.parametrize(
    ("name", "runs", "most", "covered"),
    [("deepspeed", 10, 0.26, 7), ("prime-rl", 14, 0.17, 12), ("prime-rl-logits", 8, 0.18, 8)],
)
def test_habits_read_in_code_alone_meet_a_publisher_that_had_no_part_in_them(
    name: str, runs: int, most: float, covered: int
) -> None:
    """DeepSpeed's were missed by 120 % with those of Megatron-DeepSpeed of 2022, prime-rl's by
    107 % with torchtitan's. Three runs of DeepSpeed have a fused loss, which its habits lack."""
    (errors,) = logarithmic_errors(name).values()
    assert len(errors) == runs
    assert fmean(abs(exp(-error) - 1) for error in errors) < most
    assert sum(abs(error) < 1.64 * spread(errors) for error in errors) >= covered


def test_software_that_is_not_known_is_said_to_be_unknown_and_has_the_widest_spread() -> None:
    assert framework_of({"framework": "InternEvo"}) == "unknown"
    assert framework_of({"framework": "PyTorch 2.9 eager"}) == "pytorch"
    assert framework_of({"framework": "torchprime (PyTorch/XLA)"}) == "unknown"
    widest = max(one.peak_spread for one in FRAMEWORKS.values())
    assert FRAMEWORKS["unknown"].peak_spread == widest
    squares = [error**2 for errors in logarithmic_errors("unknown").values() for error in errors]
    assert sqrt(fmean(squares)) < widest
