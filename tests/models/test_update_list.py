"""The update of a step as a list of operations, against what a trace shows and what Adam reads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from figgen import catalog
from figgen.models.operations.operation import total_kernels
from figgen.models.operations.update import adam, moved_bytes, torch_update, tuned_update
from figgen.models.step.layer_list import ListedJob
from figgen.models.step.timed_step import replicas, timed_step, updated_parameters
from figgen.models.step.update_list import update_list
from tests.models.drawn_layers import CASES, MODELS, case

TRACE = json.loads(
    (Path(__file__).parents[1] / "oracles" / "trace_tinyllama.json").read_text("utf-8")
)
TINY_LLAMA = 1_100_048_384


def test_an_update_moves_what_the_width_of_its_state_says() -> None:
    """Gradient, weight and two moments: 4 read and 3 written; norm and clipping 1 + 2 more."""
    assert moved_bytes(torch_update(1)) == 4 * (1 + 2 + 4 + 3)
    assert moved_bytes(torch_update(1, 2)) == 2 * (1 + 2 + 4 + 3)
    assert moved_bytes(adam(1)) == 4 * 4 + 4 * 3
    # The norm reads a gradient, the cast writes 16 bits, and the gradient is cleared.
    assert moved_bytes(tuned_update(1)) == 4 + 28 + 2 + 4


def test_an_update_launches_as_many_kernels_as_a_trace_of_it() -> None:
    launched = total_kernels(torch_update(TINY_LLAMA))
    assert launched == pytest.approx(TRACE["kernels"]["optimizer"], rel=0.03)


@pytest.mark.parametrize("number", range(0, CASES, 5))
@pytest.mark.parametrize("offloaded", [0.0, 0.5, 1.0])
def test_seconds_of_a_list_add_up_to_the_update_and_its_messages(
    number: int, offloaded: float
) -> None:
    job, at = case(number)
    job = replace(job, offloaded=offloaded)
    shape = catalog.model(MODELS[number % len(MODELS)]).shape
    listed = ListedJob(
        shape=shape, job=job, attained=at, peak_flops_per_s=1e15, peak_bytes_per_s=3e12
    )
    step = timed_step(job, at)
    found = {one.name: one for one in update_list(listed, step)}
    whole = step.update_s + (step.gradients_s if replicas(job) > 1 else 0)
    assert sum(one.time_s for one in found.values()) == pytest.approx(whole, rel=1e-8)
    assert ("update on the host, with copies" in found) == (offloaded > 0)
    # Lines below a billionth are dropped, which on a slow host are those of kernels.
    moved = sum(one.moved_bytes for one in found.values())
    if offloaded != 0.5:
        assert moved == pytest.approx((1 - offloaded) * 38 * updated_parameters(job))
