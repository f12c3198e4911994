"""Sliding windows: pairs under a mask, layers of published patterns, work and time of a step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from figgen import catalog
from figgen.errors import InputError
from figgen.models.machine.cluster import Cluster
from figgen.models.memory.memory import memory
from figgen.models.setup.stage_layers import virtual_stage_shares
from figgen.models.shape.documents import windowed_keys
from figgen.models.shape.transformer import flops_per_token, keys_met
from figgen.models.step.compute import training_flops_per_token
from figgen.models.step.stage_time import stage_times
from figgen.models.step.stage_work import layer_core_flops, stage_work
from figgen.models.step.step import step
from tests.models.jobs import job

GEMMA = catalog.model("gemma-3-27b").shape
CLUSTER = Cluster(
    peak_flops_per_s=1e15,
    scale_up_bandwidth_bytes_per_s=450e9,
    network_bandwidth_bytes_per_s=50e9,
    scale_up_latency_s=5e-6,
    network_latency_s=1e-5,
)


@pytest.mark.parametrize("sequence", range(1, 13))
def test_keys_of_a_window_are_those_of_its_mask(sequence: int) -> None:
    """As for a full square, s²/2 stands for the s(s + 1)/2 pairs of a causal mask."""
    for window in range(1, 15):
        seen = sum(
            max(0, at - window + 1) <= key <= at
            for at in range(sequence)
            for key in range(sequence)
        )
        diagonal = min(window, sequence) / 2
        assert sequence * windowed_keys(sequence, window) / 2 == pytest.approx(seen - diagonal)


@pytest.mark.parametrize(
    ("name", "pattern", "full"),
    [
        # gemma_pytorch, attn_types; gpt_oss/torch/model.py, layer_idx % 2; all layers of Mistral.
        ("gemma-3-27b", (True, True, True, True, True, False), 10),
        ("gpt-oss-120b", (True, False), 18),
        ("mistral-7b", (True,), 0),
        ("llama-3-8b", (False,), 32),
    ],
)
def test_layers_with_a_window_are_those_of_the_published_code(
    name: str, pattern: tuple[bool, ...], full: int
) -> None:
    shape = catalog.model(name).shape
    listed = [pattern[layer % len(pattern)] for layer in range(shape.layers)]
    assert listed.count(False) == full
    for first in range(shape.layers):
        for layers in range(shape.layers - first + 1):
            expected = sum(listed[first : first + layers])
            assert shape.windowed_layers(first, layers) == expected


def test_gemma_3_has_the_parameters_of_its_report() -> None:
    """arXiv:2503.19786, table 1: 25,600M plus the embedding of the text model."""
    counts = catalog.model("gemma-3-27b").counts
    assert counts.total - counts.embedding == pytest.approx(25_600e6, rel=1e-4)


def test_a_window_of_the_whole_sequence_is_none() -> None:
    for every in (0, 6):
        wide = replace(GEMMA, window=4096, full_every=every)
        bare = replace(GEMMA, window=0, full_every=0)
        assert flops_per_token(wide, sequence=4096) == flops_per_token(bare, sequence=4096)
        assert keys_met(wide, 4096) == 62 * 4096


def test_a_window_saves_work_where_a_kernel_skips_what_is_masked() -> None:
    """At 32K, 52 of 62 layers use a 16th of the keys."""
    bare, sequence = replace(GEMMA, window=0, full_every=0), 32768
    share = keys_met(GEMMA, sequence) / keys_met(bare, sequence)
    assert share == pytest.approx((10 + 52 * (1 / 16 - 1 / 2**10)) / 62)
    for flash in (True, False):
        work = {}
        for shape in (GEMMA, bare):
            run = job(
                shape,
                gpus_per_node=2,
                pp=2,
                microbatches=4,
                sequence=sequence,
                flash_attention=flash,
            )
            work[shape] = sum(stage_work(run, each).core for each in virtual_stage_shares(run))
        assert work[GEMMA] / work[bare] == pytest.approx(share if flash else 1)


def test_cores_of_all_stages_are_the_causal_attention_of_the_convention() -> None:
    run = job(GEMMA, tp=2, pp=4, microbatches=8, sequence=32768)
    core = sum(stage_work(run, each).core for each in virtual_stage_shares(run))
    causal = training_flops_per_token(GEMMA, "causal", sequence=32768)
    products = causal - training_flops_per_token(
        replace(GEMMA, window=1, full_every=0), "causal", sequence=32768
    )
    alone = 6 * GEMMA.layers * GEMMA.attention_width * windowed_keys(32768, 1)
    assert 3 * core * run.parallel.tp / run.tokens == pytest.approx(products + alone, rel=1e-9)


def test_stages_with_a_full_layer_take_longer() -> None:
    run = job(replace(GEMMA, layers=12), gpus_per_node=4, pp=4, microbatches=8, sequence=32768)
    windowed = [each.windowed_layers for each in virtual_stage_shares(run)]
    assert windowed == [3, 2, 3, 2]
    times = [stage.forward_s for stage in stage_times(run, CLUSTER, 0.5)]
    assert times[1] > times[0]
    assert times[1] - times[0] == pytest.approx(
        (layer_core_flops(run) - layer_core_flops(run, windowed=True)) / 0.5e15
    )


def test_a_window_shortens_the_step_and_keeps_its_memory_and_messages() -> None:
    for exchange in ("p2p", "all-gather"):
        found = {}
        for shape in (GEMMA, replace(GEMMA, window=0, full_every=0)):
            run = job(
                shape,
                nodes=2,
                tp=4,
                cp=2,
                microbatches=8,
                sequence=32768,
                context_exchange=exchange,
            )
            found[shape.window] = step(run, CLUSTER), memory(run).printed_bytes
        assert found[1024][0].step_time_s < found[0][0].step_time_s
        assert found[1024][1] == found[0][1]
        sent = [[row.sent_bytes for row in estimate.rows] for estimate, _ in found.values()]
        assert sent[0] == sent[1]


def test_a_narrow_window_leaves_less_to_hide_a_ring_behind() -> None:
    """A send is hidden by the attention to one block, which a window makes smaller."""
    exposed = []
    for window in (0, 1024, 16):
        shape = replace(GEMMA, window=window, full_every=0)
        run = job(shape, cp=8, microbatches=2, sequence=32768)
        exposed.append(dict(step(run, CLUSTER).exposed)["cp"])
    assert exposed == sorted(exposed)
    assert exposed[0] < exposed[2]


@pytest.mark.parametrize("name", ["window", "full_every"])
def test_windows_below_0_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} of a model: expected >= 0, got -1"):
        replace(GEMMA, **{name: -1})
