"""The excerpt of two recorded steps agrees with its files."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path

import pytest

from figgen.catalog.load import content
from figgen.catalog.recorded import recorded_memory, recorded_trace
from figgen.catalog.recorded_ddp import recorded_ddp
from tests.oracles.profiles import shorten_ddp, shorten_ranks
from tests.oracles.profiles.shorten_recorded import excerpt

DOCS = Path(__file__).parents[2] / "docs"


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


def test_metas_all_reduces_wait_rather_than_send_as_the_profile_chapter_says() -> None:
    """Their time hardly grows with their bytes, which it would on a slow path."""
    sent = [call for call in recorded_ddp().calls if call.collective == "allreduce"]
    took = {call.message_bytes: call.span_s[1] - call.span_s[0] for call in sent}
    small, large = min(took), max(took)
    assert large / small > 3.8
    assert (took[small], took[large]) == pytest.approx((2.52e-3, 2.67e-3), abs=5e-6)
    assert min(took.values()) > 2e-3
    text = (DOCS / "guide/reading-a-profile.md").read_text("utf-8")
    assert 'message_bytes="8.196 MB", time_s="2.52 ms"' in text
    assert "the smallest takes nearly as long as the largest, for a quarter of the bytes" in text


def test_one_of_four_equal_layers_is_late_on_one_rank_and_on_the_other_a_step_later() -> None:
    def milliseconds(rank: int, step: int, name: str) -> list[float]:
        path = DOCS / f"assets/examples/data-parallel-rank{rank}.json.gz"
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        (own,) = (e for e in events if e.get("name") == f"ProfilerStep#{step}")
        return sorted(
            e["dur"] / 1e3
            for e in events
            if e.get("name") == name and 0 <= e["ts"] - own["ts"] < own["dur"]
        )

    *usual, late = milliseconds(1, 0, "aten::linear")
    assert len(usual) == 3
    assert usual == pytest.approx([1, 1, 1], abs=0.25)
    assert late > 10 * max(usual)
    assert late > sum(milliseconds(0, 0, "DistributedDataParallel.forward"))
    *usual, late = milliseconds(0, 1, "aten::mm")
    assert late > 6 * max(usual)


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
