"""Modules of multi-token prediction: parameters, work, memory and messages of the head's stage."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from figgen import catalog
from figgen.models.machine.layout import layout
from figgen.models.memory.activations import stage_bytes
from figgen.models.memory.rank_parameters import rank_parameters, stage_parameters
from figgen.models.setup.stage_layers import layers_beside_mtp, virtual_stage_shares
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.transformer import module_parameters, parameter_counts, weights_met
from figgen.models.step.data_traffic import stage_traffic
from figgen.models.step.stage_work import stage_work
from figgen.scenarios.options.resolve import training_step

V3 = catalog.model("deepseek-v3").shape
TIED = catalog.model("gemma-3-27b").shape


def setup(pp: int = 4, tp: int = 1, *, shape: Any = V3, **options: Any) -> TrainingSetup:
    parallel = layout(nodes=pp * tp, gpus_per_node=8, pp=pp, tp=tp)
    return TrainingSetup(
        shape=shape,
        parallel=parallel,
        **{"microbatches": 8, "sequence": 4096, "mtp_layers": 1} | options,
    )


def test_the_module_of_deepseek_v3_has_the_parameters_of_its_weights_file() -> None:
    """README_WEIGHTS.md: 11.5B, not counting the shared embedding and head."""
    assert sum(module_parameters(V3)) == pytest.approx(11.5e9, rel=0.01)


def test_layouts_are_those_of_megatron_bridge() -> None:
    """recipes/deepseek/deepseek_v3.py, set_deepseek_v3_pipeline_model_parallel_layout."""
    assert layers_beside_mtp(61, 4) == (16, 16, 16, 13)
    assert layers_beside_mtp(61, 8) == (8, 8, 8, 8, 8, 8, 8, 5)
    assert layers_beside_mtp(61, 16) == (*[4] * 15, 1)
    for stages in range(1, 62):
        dealt = layers_beside_mtp(61, stages)
        assert (len(dealt), sum(dealt)) == (stages, 61)
        assert max(dealt) - min(dealt[:-1], default=61) <= 1
        assert dealt[-1] <= min(dealt)
        left = 61
        for _ in range(stages - 1):
            left -= min(left, -(-61 // stages))
        assert dealt[-1] == left


@pytest.mark.parametrize("modules", [1, 2])
def test_work_is_that_of_megatrons_formula(modules: int) -> None:
    """num_floating_point_operations counts the modules' layers, 2h² + 3h each, and heads.

    The 3h are norms, which are not matmuls here.
    """
    run = setup(mtp_layers=modules)
    weights = sum(stage_work(run, share).weights for share in virtual_stage_shares(run))
    layers = weights_met(V3, V3.dense_layers, V3.expert_layers + modules)
    per_token = layers + modules * 2 * V3.hidden**2 + (modules + 1) * V3.vocab * V3.hidden
    assert weights == pytest.approx(2 * run.tokens * per_token, rel=1e-12)


@pytest.mark.parametrize(("shape", "copies"), [(V3, 1), (TIED, 1)])
def test_ranks_hold_the_model_its_modules_and_one_table_twice(shape: Any, copies: int) -> None:
    """A module uses a copy of the embedding, or of the tied head's table.

    If both ends of the pipeline are on one rank, as in DualPipe, it uses the embedding itself.
    """
    one = parameter_counts(shape).total + sum(module_parameters(shape))
    table = shape.vocab * shape.hidden
    piped, alone = setup(shape=shape), setup(pp=1, shape=shape)
    held = [sum(part.count for part in rank_parameters(piped, rank)) for rank in range(4)]
    assert sum(held) == one + copies * table
    assert sum(part.count for part in rank_parameters(alone, 0)) == one
    dual = setup(shape=shape, schedule="dualpipe")
    held = [sum(part.count for part in rank_parameters(dual, rank)) for rank in range(4)]
    assert sum(held) == 2 * one


def test_tensor_parallelism_divides_the_projection_and_no_norm() -> None:
    parts = {part.part: part.count for part in stage_parameters(setup(tp=4), 3)}
    assert parts["projections"] == 2 * 7168**2 // 4 + 3 * 7168


def test_the_heads_stage_keeps_logits_twice_and_a_layer_more() -> None:
    """In addition to a layer, these are kept in 16 bits: the module's embedded tokens, both halves
    of the projection's input, the input of the last norm and of the head; logits are in FP32."""
    given = (16, 16, 16, 13)
    with_it, without = (setup(mtp_layers=n, layers_per_stage=given) for n in (1, 0))
    last = [virtual_stage_shares(run)[-1] for run in (with_it, without)]
    found = stage_bytes(with_it, last[0]) - stage_bytes(without, last[1])
    more_layers = setup(mtp_layers=0, layers_per_stage=(16, 16, 15, 14))
    layer = stage_bytes(more_layers, virtual_stage_shares(more_layers)[-1])
    layer -= stage_bytes(without, last[1])
    vectors = 1 + 2 + 1 + 1
    assert found == layer + 4096 * (8 + vectors * 7168 * 2 + 4 * V3.vocab)


def sent(run: TrainingSetup, stage: int) -> Counter[tuple[str, str, str, float]]:
    found: Counter[tuple[str, str, str, float]] = Counter()
    for entry in stage_traffic(run, stage):
        if entry.axis in ("tp", "embedding"):
            found[entry.axis, entry.collective, entry.phase, entry.buffer_bytes] += entry.calls
    return found


def test_messages_of_a_module_are_those_of_megatrons() -> None:
    """multi_token_prediction.py under sequence parallelism: the projection gathers its input of two
    hidden states and the pieces of its output; embedding and head run once more."""
    shape = replace(TIED, window=0, full_every=0)
    given = (16, 16, 16, 14)
    runs = [
        setup(tp=4, shape=shape, mtp_layers=n, layers_per_stage=given, zero_stage=0) for n in (1, 0)
    ]
    hidden = 4096.0 * shape.hidden * 2
    found = sent(runs[0], 3)
    found.subtract(sent(runs[1], 3))
    added = {key: calls for key, calls in found.items() if calls and key[0] == "tp"}
    layer, ends = 2, 1  # two blocks; an embedding and a head
    assert added == {
        ("tp", "all-gather", "forward", hidden): layer + 1 + ends,
        ("tp", "reduce-scatter", "forward", hidden): layer + ends,
        ("tp", "all-gather", "forward", 2 * hidden): 1,
        # Two for each gather of forward: the gradient's and the input's once more; the output of
        # the projection has only the gradient's, the embedding its own.
        ("tp", "all-gather", "backward", hidden): 2 * layer + 1 + ends + ends,
        ("tp", "reduce-scatter", "backward", hidden): layer + ends,
        ("tp", "all-gather", "backward", 2 * hidden): 1,
        ("tp", "reduce-scatter", "backward", 2 * hidden): 1,
    }


def test_a_copy_of_the_embedding_is_summed_with_the_first_stages() -> None:
    run, without = setup(), setup(mtp_layers=0)
    table = V3.vocab * V3.hidden * run.recipe.gradient_bytes
    for stage in (0, 3):
        assert sent(run, stage)["embedding", "all-reduce", "end", table] == 1
        assert not any(axis == "embedding" for axis, *_ in sent(without, stage))


def test_full_recomputation_runs_the_module_again_with_its_projection_but_not_its_head() -> None:
    run = setup(recompute="full")
    last = virtual_stage_shares(run)[-1]
    work = stage_work(run, last)
    heads = 2 * 2 * run.tokens * V3.vocab * V3.hidden
    assert work.recomputed == pytest.approx(work.weights - heads + work.core, rel=1e-12)


def test_deepseek_v3_was_trained_with_one_module_and_a_cut_that_makes_up_for_it() -> None:
    """The module adds a layer and a head, and its usual split takes layers away from
    their stage."""
    found = training_step(preset="deepseek-v3")
    assert found.setup.mtp_layers == 1
    assert "mtp_layers" not in found.assumed
    without = training_step(preset="deepseek-v3", mtp_layers=0)
    moved = found.predicted.step_time_s / without.predicted.step_time_s
    assert moved == pytest.approx(0.903, abs=0.02)  # "a little shorter" on the page
    uneven = training_step(preset="deepseek-v3", layers_per_stage=(*[4] * 13, 3, 3, 3))
    longer = uneven.predicted.step_time_s / found.predicted.step_time_s
    assert longer == pytest.approx(1.40, abs=0.03)  # "more than a third longer" on the page
