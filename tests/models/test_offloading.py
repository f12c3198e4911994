"""Optimizer state in the host's memory: what it frees on the GPU and adds to a step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from figgen.errors import InputError
from figgen.models.shape.model_shape import ModelShape
from figgen.models.shape.transformer import parameter_counts
from figgen.scenarios.options.config_json import named_model
from figgen.scenarios.options.resolve import TrainingStep, training_step

MEASURED = json.loads(
    (Path(__file__).parents[1] / "oracles" / "offloading.json").read_text("utf-8")
)["nemo_rl_3628"]

# huggingface.co/Qwen/Qwen3-0.6B, config.json
QWEN3_06B = {
    "model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072, "vocab_size": 151936,
    "tie_word_embeddings": True, "max_position_embeddings": 40960, "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
}  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("qwen") / "config.json"
    file.write_text(json.dumps(QWEN3_06B), encoding="utf-8")
    return str(file)


def shape_of(model: str) -> ModelShape:
    return named_model(model).shape


def one_gpu(model: str, fraction: float, overlap: bool = True) -> TrainingStep:
    return training_step(
        model=model,
        nodes=1,
        gpus_per_node=1,
        sequence=2048,
        microbatches=8,
        offloaded_optimizer=fraction,
        offload_overlap=overlap,
    )


def test_an_offloaded_optimizer_adds_what_nemo_rl_measured(model: str) -> None:
    """The constants are those of ZeRO-Offload's table, of torch's Adam on another machine."""
    without = one_gpu(model, 0).estimate.step_time_s
    base_s = MEASURED[0]["step_s"]
    for row in MEASURED[1:]:
        step_s = one_gpu(model, row["fraction"], row["overlap"]).estimate.step_time_s
        assert step_s - without == pytest.approx(row["step_s"] - base_s, rel=0.12), row


def test_an_offloaded_optimizer_frees_what_nemo_rl_measured(model: str) -> None:
    """Moments leave, weights in FP32 stay; the half was sampled while copies were on the GPU."""
    whole = one_gpu(model, 0).memory.fullest.bytes_of("optimizer")
    freed = [
        (whole - one_gpu(model, row["fraction"]).memory.fullest.bytes_of("optimizer")) / 2**30
        for row in MEASURED
    ]
    measured = [MEASURED[0]["memory_gib"] - row["memory_gib"] for row in MEASURED]
    assert freed[-1] == pytest.approx(measured[-1], rel=0.07)
    assert freed == sorted(freed)
    assert freed[0] == 0
    assert freed[-1] * 2**30 == pytest.approx(8 * parameter_counts(shape_of(model)).total)


def test_processes_of_a_node_share_the_memory_of_its_host() -> None:
    """Of eight GPUs each updates an eighth, but no faster than the node's memory lets them."""
    options = {"model": "llama-3-8b", "nodes": 1, "gpus_per_node": 8, "zero_stage": 1}
    software = "megatron-deepspeed"
    base = training_step(software=software, **options).estimate.step_time_s
    there = training_step(software=software, offloaded_optimizer=1, **options)
    added = there.estimate.step_time_s - base
    share = parameter_counts(there.setup.shape).total / 8
    assert added == pytest.approx(share * 8 * 28 / 285e9, rel=0.15)
    assert added > share * 0.25e-9


def test_frameworks_without_a_copy_on_the_gpu_free_all_of_the_state() -> None:
    step = training_step(
        model="llama-3-8b",
        nodes=1,
        gpus_per_node=8,
        software="torchtitan",
        recipe="fsdp16",
        offloaded_optimizer=1,
    )
    assert step.memory.fullest.bytes_of("optimizer") == 0


@pytest.mark.parametrize("share", [-0.1, 1.01])
def test_shares_beyond_the_whole_are_refused(share: float) -> None:
    with pytest.raises(InputError, match="0 to 1"):
        training_step(model="llama-3-8b", nodes=1, gpus_per_node=8, offloaded_optimizer=share)
