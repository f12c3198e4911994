"""Layers with Mamba-2 mixers in the step and memory models, compared with their reference code."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from figgen import catalog
from figgen.errors import InputError
from figgen.formulas.modern_layers import state_space_activation_bytes
from figgen.models.machine.layout import layout
from figgen.models.memory.activations import (
    layer_gradient_bytes,
    layer_input_bytes,
    mixer_bytes,
    peak_activation_bytes,
    recomputed_bytes,
    stage_bytes,
)
from figgen.models.memory.layer_tensors import layer_tensors
from figgen.models.memory.memory import memory
from figgen.models.memory.rank_parameters import rank_parameters
from figgen.models.setup.stage_layers import virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.model_shape import StateSpace
from figgen.models.shape.transformer import (
    flops_per_token,
    keys_met,
    matmul_parameters,
    parameter_counts,
)
from figgen.models.step.data_traffic import stage_traffic
from figgen.models.step.stage_work import stage_work
from figgen.scenarios.options.resolve import training_step

HYBRID = catalog.model("mamba-2-hybrid-8b").shape
GRANITE = catalog.model("granite-4-h-small").shape
IN, STATE, HEADS, GROUPS = 8192, 128, 128, 8


def setup(shape: Any = HYBRID, **options: Any) -> TrainingSetup:
    sizes = {name: options.pop(name, 1) for name in ("tp", "cp", "pp", "ep")}
    gpus = max(sizes["tp"] * sizes["cp"], sizes["ep"]) * sizes["pp"]
    parallel = layout(nodes=1, gpus_per_node=gpus, etp=1 if shape.experts else None, **sizes)
    return TrainingSetup(
        shape=shape, parallel=parallel, **{"microbatches": 8, "sequence": 4096} | options
    )


@pytest.mark.parametrize(
    ("shape", "attention"), [(GRANITE, [5, 15, 25, 35]), (HYBRID, [3, 10, 17, 24])]
)
def test_attention_is_where_the_configuration_has_it(shape: Any, attention: list[int]) -> None:
    found = [layer for layer in range(shape.layers) if not shape.mixer_layers(layer, 1)]
    assert found == attention
    for first in range(shape.layers):
        for layers in range(shape.layers - first + 1):
            here = [layer for layer in attention if first <= layer < first + layers]
            assert shape.mixer_layers(first, layers) == layers - len(here)
    # Without its last layers the model ends before one with attention.
    short = replace(shape, layers=attention[-1], experts=None)
    assert short.attention_layers == 3
    assert short.state_space_layers == short.layers - 3
    assert mixer_bytes(setup(replace(shape, state_space=None))) == 0
    alone = replace(shape, state_space=replace(shape.state_space, attention_every=0))
    assert alone.mixer_layers(0, 10) == 10


def test_parameters_are_those_of_megatrons_mixer() -> None:
    """ssm/mamba_mixer.py: in_proj, conv1d with bias, dt_bias, A_log and D, norm, out_proj."""
    mixer = 4096 * (2 * IN + 2 * GROUPS * STATE + HEADS) + (IN + 2 * GROUPS * STATE) * (4 + 1)
    mixer += 3 * HEADS + IN + IN * 4096
    attention = 4096 * 4096 * 2 + 2 * 4096 * 1024
    blocks = 28 * (2 * 4096 * 16384 + 2 * 4096)
    total = 24 * mixer + 4 * attention + blocks + 2 * 256000 * 4096 + 4096
    assert parameter_counts(HYBRID).total == total
    assert total == pytest.approx(8.65e9, rel=0.001)


def test_work_is_the_sum_of_the_scans_products_and_near_megatrons_formula() -> None:
    """Per token: scores and their matmul with inputs in a chunk, states in and out.

    Megatron-LM's own formula counts 7 FLOPs per state and channel for the scan, "a small percent"
    of a layer.
    """
    core = 2 * 128 * (GROUPS * STATE + IN) + 4 * STATE * IN
    attention = 12 * HYBRID.attention_width * keys_met(HYBRID, 4096)
    assert keys_met(HYBRID, 4096) == 4 * 4096
    assert flops_per_token(HYBRID) == 6 * matmul_parameters(HYBRID) + 3 * 24 * core + attention
    megatron = 6 * matmul_parameters(HYBRID) + 3 * 24 * 7 * IN * STATE + attention / 2
    causal = flops_per_token(HYBRID, causal=True)
    assert causal == pytest.approx(megatron, rel=0.02)
    run = setup()
    work = stage_work(run, virtual_stage_shares(run)[0])
    assert (work.weights + work.core) * 3 == pytest.approx(4096 * causal, rel=1e-9)


def test_a_mixer_keeps_what_its_kernel_saves() -> None:
    """ssd_combined.py saves zxbcdt and the output before the gate;

    Megatron's norm and out_proj save their inputs, in_proj its own. The kernel recomputes
    everything else.
    """
    run = setup(tp=4)
    mine = {t.name: t.bytes for t in layer_tensors(run, mixer=True)}
    other = {t.name for t in layer_tensors(run)}
    kept = sum(size for name, size in mine.items() if name not in other)
    per_token = 2 * (4096 + 2 * IN + 2 * GROUPS * STATE + HEADS + 3 * IN) / 4
    assert kept == 4096 * per_token
    formula = state_space_activation_bytes(4096, IN, STATE, GROUPS, HEADS, 2)
    assert kept == 4096 * formula / 4
    run = setup(GRANITE)
    both = [stage_bytes(run, share) for share in virtual_stage_shares(run)]
    plain = setup(replace(GRANITE, state_space=None))
    more = both[0] - stage_bytes(plain, virtual_stage_shares(plain)[0])
    per_mixer = (2 * IN + 2 * STATE + HEADS + 3 * IN) - (4096 + 2 * 1024 + 4096)
    assert more == 36 * 4096 * 2 * per_mixer


@pytest.mark.parametrize(("tp", "pp"), [(1, 1), (2, 1), (4, 2), (8, 1), (1, 4), (2, 4)])
def test_ranks_hold_every_parameter_and_mixers_are_divided_whole(tp: int, pp: int) -> None:
    run = setup(tp=tp, pp=pp)
    held: Counter[str] = Counter()
    for rank in range(pp):
        for part in rank_parameters(run, rank):
            held[part.part] += part.count * (tp if part.part != "norms" else 1)
    assert held.total() == parameter_counts(HYBRID).total


def test_full_recomputation_keeps_inputs_only_and_runs_mixers_again() -> None:
    run = setup(recompute="full")
    share = virtual_stage_shares(run)[0]
    work = stage_work(run, share)
    head = 2 * 4096 * HYBRID.vocab * HYBRID.hidden
    assert work.recomputed == pytest.approx(work.weights - head + work.core, rel=1e-12)
    inputs = 28 * 4096 * 4096 * 2
    ends = 4096 * 8 + 4096 * (2 * 4096 * 2 + 4 * HYBRID.vocab)
    assert stage_bytes(run, share) == inputs + ends


@pytest.mark.parametrize("heads", [128, 8])
def test_backward_makes_the_kind_of_layer_anew_that_takes_more(heads: int) -> None:
    """A whole layer except its input; with few heads a mixer keeps less than attention does.

    Its gradients are those of the mixer's projections if these are wider than the other block.
    """
    shape = replace(
        HYBRID,
        ffn_hidden=512,
        state_space=StateSpace(mixer_heads=heads, mixer_head_dim=64, state=128, groups=8),
    )
    run = setup(shape, tp=2, recompute="full")
    share = virtual_stage_shares(run)[0]
    kinds = [[t for t in layer_tensors(run, mixer=m) if not t.core] for m in (False, True)]
    attention, mixer = (sum(t.bytes for t in kind) for kind in kinds)
    assert (mixer > attention) == (heads == 128)
    assert recomputed_bytes(run, share) == max(attention, mixer) - layer_input_bytes(run)
    projected = 2 * heads * 64 + 2 * 8 * 128 + heads
    assert layer_gradient_bytes(run, share) == 4096 * projected / 2 * 2


def test_layers_recomputed_first_leave_other_mixers_where_attention_stands_elsewhere() -> None:
    """Stages of four layers, of which the third and the fifth have one attention layer each: layer
    10, which keeps its tensors, and layer 17, which is recomputed."""
    run = setup(pp=7, recompute="block:2")
    held = peak_activation_bytes(run)
    # Five and three microbatches in flight; one mixer is kept by the third, two by the fifth.
    more = sum(t.bytes for t in layer_tensors(run, mixer=True) if not t.core)
    more -= sum(t.bytes for t in layer_tensors(run) if not t.core)
    assert held[4] / 3 - held[2] / 5 == pytest.approx(more, rel=1e-9)
    assert abs(more) > 1e6


def test_tensor_parallel_messages_are_those_of_attention() -> None:
    """Both projections are column- and row-parallel like attention's, and so have the same
    exchanges."""
    for options in ({"tp": 4}, {"tp": 2, "sequence_parallel": False}):
        plain = setup(replace(HYBRID, state_space=None), **options)
        mine, other = (
            [entry for entry in stage_traffic(run, 0) if entry.axis == "tp"]
            for run in (setup(**options), plain)
        )
        assert mine == other


def test_context_parallel_mixers_exchange_heads_for_tokens() -> None:
    """mamba_context_parallel.py: all-to-alls of z, x, B, C and dt before the scan, of y after it,
    and the same for gradients; with 2 groups on a rank of CP 4, B and C are each sent twice."""
    run = setup(tp=4, cp=4)
    found: Counter[tuple[str, float]] = Counter()
    for entry in stage_traffic(run, 0):
        if entry.axis == "cp" and entry.collective == "all-to-all":
            found[entry.phase, entry.buffer_bytes] += entry.calls
    tokens = 4096 // 4
    for phase in ("forward", "backward"):
        assert found.pop((phase, 2.0 * tokens * IN // 4)) == 3 * 24
        assert found.pop((phase, 2.0 * tokens * STATE * 4)) == 2 * 24
        assert found.pop((phase, 2.0 * tokens * HEADS // 4)) == 24
    assert not found
    rings = [entry for entry in stage_traffic(run, 0) if entry.collective == "send"]
    assert [entry.calls for entry in rings] == [4 * 3, 2 * 4 * 3]


@pytest.mark.parametrize(
    ("shape", "sizes"), [(GRANITE, {"tp": 2}), (HYBRID, {"tp": 16}), (HYBRID, {"tp": 4, "cp": 3})]
)
def test_what_the_mixer_asserts_is_refused(shape: Any, sizes: dict[str, int]) -> None:
    with pytest.raises(InputError, match="expected a multiple"):
        setup(shape, sequence=4096 * 3, **sizes)
    with pytest.raises(InputError, match="plain"):
        replace(shape, window=128)
    with pytest.raises(InputError, match="groups of a mixer"):
        replace(
            shape, state_space=StateSpace(mixer_heads=6, mixer_head_dim=64, state=128, groups=4)
        )


def test_the_memory_of_a_hybrid_is_its_parameters_state_and_its_layers() -> None:
    """18 bytes per parameter without sharding, and the activations that its stages have
    in flight."""
    run = setup(pp=2, zero_stage=0)
    found = memory(run)
    for rank in found.ranks:
        state = sum(rank.bytes_of(part) for part in ("weights", "gradients", "optimizer"))
        assert state == 18 * rank.parameters
        share = virtual_stage_shares(run)[rank.pipeline_rank]
        assert rank.bytes_of("activations") == (2 - rank.pipeline_rank) * stage_bytes(run, share)


def test_a_hybrid_is_a_little_slower_than_attention_at_4k_and_much_faster_at_128k() -> None:
    """These are only bounds: no published times for training such a model were found, and the
    interval is that of hardware that nobody has timed."""

    def seconds(sequence: int, **changes: Any) -> float:
        found = training_step(
            model="mamba-2-hybrid-8b",
            nodes=4,
            gpus_per_node=8,
            tp=4,
            global_batch=32,
            sequence=sequence,
        )
        run = replace(found.setup, shape=replace(found.setup.shape, **changes))
        return replace(found, setup=run).predicted.step_time_s

    short, long = (seconds(length, state_space=None) / seconds(length) for length in (4096, 131072))
    found = training_step(model="mamba-2-hybrid-8b", nodes=1, gpus_per_node=8, global_batch=8)
    assert found.predicted.residuals.name == "jobs with few or no published runs"
    assert 0.8 < short < 1.2
    assert 2 < long < 7
