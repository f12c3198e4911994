"""What sources say about a run's options, in many different words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from figgen.catalog.attention_tables import attention_tables
from figgen.catalog.rates import constants
from figgen.scenarios.runs.job import run_job
from figgen.scenarios.runs.names import recompute_of
from figgen.scenarios.runs.predicted import predicted_step
from figgen.scenarios.runs.rates import attained
from figgen.scenarios.runs.record import described_run, framework_of

RUN: dict[str, Any] = {
    "framework": "Megatron-LM",
    "hardware": "A100 SXM 80GB",
    "num_accelerators": 16,
    "tp": 2,
    "pp": 1,
    "cp": 4,
    "micro_batch": 1,
    "global_batch_sequences": 16,
    "seq_length": 8192,
    "model": "Llama 3 8B",
}


@pytest.mark.parametrize(
    ("said", "field", "meant"),
    [
        ({"cuda_graphs": False}, "cuda_graphs", "none"),
        ({"cuda_graphs": True}, "cuda_graphs", "layers"),
        ({"cuda_graphs": "TE moe_router+moe_preprocess"}, "cuda_graphs", "layers"),
        ({"cuda_graphs": "full iteration"}, "cuda_graphs", "step"),
        ({"cuda_graphs": "unstated"}, "cuda_graphs", "usual"),
        ({"overlap": "EP overlap"}, "expert_overlap", "on"),
        ({"overlap": "unstated"}, "expert_overlap", "usual"),
        ({"expert_overlap": False}, "expert_overlap", "off"),
        ({"context_exchange": "a2a (Ulysses)"}, "context_exchange", "all-to-all"),
        ({"context_exchange": "ulysses+ring"}, "context_exchange", "a2a+p2p"),
        ({"context_exchange": "all-gather"}, "context_exchange", "all-gather"),
        ({}, "context_exchange", "p2p"),
        ({"optimizer_offload": True}, "offloaded_optimizer", 1.0),
        ({"offloaded_optimizer": 0.5}, "offloaded_optimizer", 0.5),
        ({"attention_span": 3000}, "document_tokens", (3000, 3000, 2192)),
        ({"attention_span": 8192}, "document_tokens", ()),
        ({"compiled": "yes"}, "compiled", True),
        ({"overlap_grad_reduce": False}, "overlap_grad_reduce", False),
        ({"overlap_grad_reduce": "unstated"}, "overlap_grad_reduce", None),
        ({"overlap_param_gather": "off"}, "overlap_param_gather", False),
        ({"gpus_per_node": 4}, "gpus_per_node", 4),
        ({"hardware": "GB200", "gpus_per_node": 4}, "gpus_per_node", 16),
        ({"hardware": "V100"}, "number_format", "fp16"),
    ],
)
def test_a_switch_is_read_however_it_is_written(
    said: dict[str, object], field: str, meant: object
) -> None:
    assert getattr(described_run({**RUN, **said}), field) == meant


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("unstated", ""),
        ("not stated", ""),
        ("False", "none"),
        ("True", "full"),
        ("gradient checkpointing", "full"),
        ("selective", "selective"),
        ("selective layernorm,moe_act", "layernorm,moe_act"),
        ("selective op", "selective"),
    ],
)
def test_recomputation_is_read_from_a_switch_or_from_modules(words: str, meant: str) -> None:
    assert recompute_of(words) == meant


@pytest.mark.parametrize(
    ("words", "framework"),
    [
        ("NeMo AutoModel", "pytorch"),
        ("NeMo 2.0", "nemo"),
        ("MindSpeed-LLM", "megatron-lm"),
        ("Primus (torchtitan)", "torchtitan"),
        ("Primus", "megatron-lm"),
        ("PyTorch FSDP", "pytorch"),
        ("fsdp", "fsdp"),
        ("LLaMA-Factory", "pytorch"),
        ("torchprime (PyTorch/XLA)", "unknown"),
        ("PaddleNLP", "unknown"),
        ("Megatron-DeepSpeed", "megatron-deepspeed"),
        ("PyTorch + DeepSpeed", "pytorch"),
    ],
)
def test_software_is_known_by_what_it_is_made_of(words: str, framework: str) -> None:
    assert framework_of({"framework": words}) == framework


@pytest.mark.parametrize("chip", ["h200-sxm-141gb", "gb200-nvl72", "gb300-nvl72"])
def test_queries_begin_as_long_as_in_cudnns_tables(chip: str) -> None:
    """Seconds per pair of tokens grow as 1 + start / length, forward and backward together."""
    found: dict[int, float] = {}
    for row in attention_tables()[chip].passes:
        if row.format == "bf16" and row.causal and not row.deterministic:
            seconds = row.seconds / row.batch / row.sequence**2
            found[row.sequence] = found.get(row.sequence, 0.0) + seconds
    lengths, pair_s = np.array(list(found)), np.array(list(found.values()))
    both = np.stack([1 / pair_s, 1 / (lengths * pair_s)], axis=1)
    each, start = np.linalg.lstsq(both, np.ones(len(lengths)), rcond=None)[0]
    assert constants()["attention_start_keys.all"].value == pytest.approx(start / each, rel=0.25)


def test_scores_that_are_written_have_no_tiles_to_begin() -> None:
    assert attained(described_run({**RUN, "precision": "fp16"})).attention_start_keys == 0
    assert attained(described_run(RUN)).attention_start_keys == 600


def test_gradients_that_do_not_overlap_are_waited_for() -> None:
    alone, behind = (
        run_job(described_run(RUN | {"overlap_grad_reduce": said})) for said in (False, True)
    )
    assert (alone.overlapped, behind.overlapped) == (0.0, 1.0)
    assert run_job(described_run(RUN)) == behind


def test_weights_that_do_not_overlap_are_waited_for_once_a_step() -> None:
    run = {**RUN, "cp": 1, "zero_stage": 1, "framework": "megatron-lm", "network": "1.56 GB/s"}
    alone, behind = (
        predicted_step(described_run(run | {"overlap_param_gather": said})).step_time_s
        for said in (False, True)
    )
    neither = predicted_step(described_run(run | {"overlap_grad_reduce": False})).step_time_s
    assert behind < alone < neither
    sharded = run | {"zero_stage": 3}
    assert run_job(described_run(sharded | {"overlap_param_gather": False})).gathers_alone == 1
    assert (
        predicted_step(described_run(sharded)).step_time_s
        == predicted_step(described_run(sharded | {"overlap_param_gather": False})).step_time_s
    )


def test_paxml_waits_for_the_weights_of_each_layer_and_maxtext_does_not() -> None:
    alike = {**RUN, "cp": 1, "tp": 1, "zero_stage": 3, "hardware": "H100 SXM 80GB"}
    late, early = (described_run({**alike, "framework": name}) for name in ("Paxml", "MaxText"))
    assert (run_job(late).overlapped, run_job(early).overlapped) == (0, 1)
    assert predicted_step(late).step_time_s > predicted_step(early).step_time_s
    assert attained(late).host_layer_s == 0
