"""State and activations in the host's memory: what that frees on the GPU and adds to a step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from figgen.errors import InputError
from figgen.models.shape.model_shape import ModelShape
from figgen.models.shape.transformer import parameter_counts
from figgen.scenarios.options.config_json import named_model
from figgen.scenarios.options.resolve import TrainingStep, training_step
from tests.models.test_context_exchange_measured import GLM_45_AIR

PUBLISHED = json.loads(
    (Path(__file__).parents[1] / "oracles" / "offloading.json").read_text("utf-8")
)
MEASURED = PUBLISHED["nemo_rl_3628"]

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
    """The constants are from ZeRO-Offload's table, for torch's Adam on a different machine."""
    without = one_gpu(model, 0).estimate.step_time_s
    base_s = MEASURED[0]["step_s"]
    for row in MEASURED[1:]:
        step_s = one_gpu(model, row["fraction"], row["overlap"]).estimate.step_time_s
        assert step_s - without == pytest.approx(row["step_s"] - base_s, rel=0.12), row


def test_an_offloaded_optimizer_frees_what_nemo_rl_measured(model: str) -> None:
    """Moments leave, FP32 weights stay; the half was sampled while copies were on the GPU."""
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
    """Each of eight GPUs updates an eighth, but no faster than the node's memory allows."""
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
@pytest.mark.parametrize("option", ["offloaded_optimizer", "offloaded_activations"])
def test_shares_beyond_the_whole_are_refused(option: str, share: float) -> None:
    with pytest.raises(InputError, match="0 to 1"):
        training_step(model="llama-3-8b", nodes=1, gpus_per_node=8, **{option: share})


def test_graphs_of_the_whole_step_do_not_copy_activations() -> None:
    with pytest.raises(InputError, match="none or layers with offloaded_activations"):
        training_step(model="llama-3-8b", nodes=1, cuda_graphs="step", offloaded_activations=1)


QWEN3_4B = {
    "hidden_size": 2560,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "intermediate_size": 9728,
}
OWN = {
    "qwen-3-0.6b": QWEN3_06B,
    "qwen-3-4b": QWEN3_06B | QWEN3_4B,
    "glm-4.5-air": GLM_45_AIR,
}


def away(row: dict[str, Any], folder: Path, share: float) -> TrainingStep:
    file = folder / "config.json"
    file.write_text(json.dumps(OWN[row["model"]]), encoding="utf-8")
    return training_step(
        model=str(file),
        accelerator=row["accelerator"],
        nodes=1,
        gpus_per_node=row["gpus"],
        sequence=row["sequence"],
        microbatches=2,
        zero_stage=3,
        recompute="full",
        software="torchtitan",
        lora_rank=row["lora_rank"],
        offloaded_activations=share,
        offload_overlap=False,
    )


@pytest.mark.parametrize("row", PUBLISHED["prime_rl_baselines"])
def test_inputs_of_recomputed_layers_free_and_add_what_prime_rl_measured(
    row: dict[str, Any], tmp_path: Path
) -> None:
    """Eight GPUs share the host's memory, at a rate measured there for a different kind of work."""
    kept, gone = (away(row, tmp_path, share) for share in (0.0, 1.0))
    freed = kept.memory.fullest.allocated_bytes - gone.memory.fullest.allocated_bytes
    assert freed / 2**30 == pytest.approx(row["kept_gib"] - row["away_gib"], rel=0.05)
    added = gone.estimate.step_time_s - kept.estimate.step_time_s
    near = 0.13 if row["gpus"] == 1 else 0.36
    assert added == pytest.approx(row["away_s"] - row["kept_s"], rel=near)


def test_copies_that_overlap_are_as_free_as_torchtune_measured() -> None:
    """Llama 3.2 3B on one A100, where gradients are freed in backward and do not add to
    the peak."""
    shape = (
        "layers=28, hidden=3072, heads=24, kv_heads=8, head_dim=128, ffn=8192, vocab=128256, "
        "tied=on"
    )
    kept, gone = (
        training_step(
            model=shape,
            accelerator="a100-sxm-80gb",
            nodes=1,
            gpus_per_node=1,
            sequence=4096,
            microbatch_size=2,
            microbatches=2,
            recompute="full",
            software="torchtitan",
            offloaded_activations=share,
        )
        for share in (0, 1)
    )
    measured = PUBLISHED["torchtune_readme"]
    slower = measured["kept_tokens_per_s"] / measured["away_tokens_per_s"]
    assert gone.estimate.step_time_s / kept.estimate.step_time_s == pytest.approx(slower, abs=0.002)
    freed = kept.memory.fullest.allocated_bytes - gone.memory.fullest.allocated_bytes
    assert freed / 2**30 == pytest.approx(measured["kept_gib"] - measured["away_gib"], rel=0.08)


@pytest.mark.parametrize("row", PUBLISHED["transformers_48444"])
def test_all_inputs_but_those_at_work_leave(row: dict[str, int]) -> None:
    """It was measured after forward, when no layer has come back yet."""
    shape = f"layers={row['layers']}, hidden={row['hidden']}, heads=16, vocab=1000"
    kept, gone = (
        training_step(
            model=shape,
            nodes=1,
            gpus_per_node=1,
            sequence=row["tokens"],
            microbatches=1,
            recompute="full",
            offload_overlap=False,
            offloaded_activations=share,
        ).memory.fullest.bytes_of("activations")
        for share in (0, 1)
    )
    left = 1 - 1 / row["layers"]
    assert kept - gone == pytest.approx(left * row["freed_mb"] * 2**20)


def test_half_of_the_activations_is_half_of_the_copies() -> None:
    def step(share: float) -> TrainingStep:
        return training_step(
            model="llama-3-8b", nodes=1, offloaded_activations=share, offload_overlap=False
        )

    times = [step(share).estimate.step_time_s for share in (0, 0.5, 1)]
    assert times[2] - times[1] == pytest.approx(times[1] - times[0], rel=1e-6)
    sizes = [step(share).memory.fullest.bytes_of("activations") for share in (0, 0.5, 1)]
    assert sizes[1] - sizes[2] == pytest.approx(sizes[0] - sizes[1])


def test_megatrons_activations_leave_behind_computing() -> None:
    """Nearly all that theory predicts was offloaded, and the step was only a third of a percent
    longer."""
    measured = PUBLISHED["megatron_1752"]
    options: dict[str, Any] = {"model": "llama-3-70b", "nodes": 8, "tp": 8, "recompute": "full"}
    kept, gone = (training_step(**options, offloaded_activations=share) for share in (0, 1))
    slower = gone.estimate.step_time_s / kept.estimate.step_time_s
    assert slower == pytest.approx(measured["away_ms"] / measured["kept_ms"], abs=0.004)
    size = kept.memory.fullest.bytes_of("activations")
    left = size - gone.memory.fullest.bytes_of("activations")
    inputs = 80 * 8192 * 8192 * 2 / 8
    assert left / inputs == pytest.approx(measured["freed_of_theory"], abs=2.1 / 80)


def test_grace_carries_what_pcie_holds_up() -> None:
    """NVLink-C2C has eight times the rate of PCIe, and its host memory of its own; all of it is
    offloaded."""
    slower = {}
    for chip, gpus in (("h100-sxm-80gb", 8), ("gh200-96gb", 1), ("gb200-nvl72", 72)):
        times = [
            training_step(
                model="llama-3-8b",
                accelerator=chip,
                nodes=1,
                gpus_per_node=gpus,
                offloaded_activations=share,
            ).estimate.step_time_s
            for share in (0, 1)
        ]
        slower[chip] = times[1] / times[0]
    assert slower["h100-sxm-80gb"] > 2
    assert slower["gh200-96gb"] < 1.05
    assert slower["gb200-nvl72"] < slower["h100-sxm-80gb"] / 1.5
