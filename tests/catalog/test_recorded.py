"""The excerpt of two recorded steps agrees with its files."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from figgen.catalog.load import content
from figgen.catalog.recorded import recorded_memory, recorded_trace
from figgen.catalog.recorded_ddp import recorded_ddp
from tests.oracles.profiles import shorten_ddp, shorten_ranks
from tests.oracles.profiles.shorten_recorded import excerpt


def test_the_excerpt_is_what_the_recorded_files_give() -> None:
    assert json.loads(content("recorded-steps.json")) == excerpt()


def test_the_excerpt_of_ddp_is_what_its_file_gives() -> None:
    assert json.loads(content("recorded-ddp.json")) == shorten_ddp.excerpt()


def test_the_excerpt_of_two_ranks_is_what_their_files_give() -> None:
    assert json.loads(content("recorded-ranks.json")) == shorten_ranks.excerpt()


def test_ddp_sends_each_gradient_of_resnet_50_once() -> None:
    """25,557,032 parameters, as torchvision prints for its ResNet-50."""
    sent = [call for call in recorded_ddp().calls if call.collective == "allreduce"]
    assert sum(call.message_bytes for call in sent) == 4 * 25_557_032
    assert len(sent) == 5
    # The CPU launches every phase after the one before, and the GPU is never far behind.
    forward, backward, update = recorded_ddp().host_s.values()
    assert forward[1] < backward[0] < backward[1] < update[0]
    last = max(end for start, end in recorded_ddp().kernels_s if start < forward[1])
    assert last < backward[0]


def test_kernels_of_the_profile_take_as_long_as_another_count_of_them() -> None:
    """`tests/oracles/trace_tinyllama.json` has the seconds by kind, counted when it was
    recorded."""
    phases = recorded_trace().phases.values()
    for kind, seconds in (("product", 0.06629), ("attention", 0.01737), ("optimizer", 0.01664)):
        assert sum(phase.busy_s[kind] for phase in phases) == pytest.approx(seconds, rel=1e-3)
    passes = sum(phase.busy_s["passes"] for phase in phases)
    assert passes == pytest.approx(0.0974 + 0.0025, rel=2e-3)


def test_a_layer_of_llama_has_seven_matmuls_and_one_attention() -> None:
    layer = recorded_trace().layer
    kinds = [kernel.kind for kernel in layer]
    assert kinds.count("product") == 7
    assert kinds.count("attention") == 1
    assert all(one.end_s <= other.start_s + 1e-7 for one, other in pairwise(layer))
    # The three matmuls of the MLP have 5,632 columns or rows beside 2,048, those of Q and O 2,048.
    lengths = [kernel.end_s - kernel.start_s for kernel in layer if kernel.kind == "product"]
    for at in (4, 5, 6):
        assert lengths[at] / lengths[0] == pytest.approx(5632 / 2048, rel=0.1)


def test_the_snapshot_begins_with_weights_and_adams_averages_in_32_bits() -> None:
    memory = recorded_memory()
    state = 12 * 1_235_814_400
    assert memory.bytes[0] == pytest.approx(state, rel=0.01)
    assert max(memory.gradients) < 1.3 * 4 * 1_235_814_400
    assert memory.backward_s == memory.times_s[memory.bytes.index(max(memory.bytes))]
    assert memory.backward_s < memory.update_s < max(memory.times_s)
