"""What a record leaves open follows its framework's habit, as its code states in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from figgen import catalog
from figgen.catalog.publishers import publisher_records
from figgen.errors import InputError
from figgen.models.setup.framework_memory import FRAMEWORKS
from figgen.models.shape.model_shape import LatentAttention
from figgen.models.shape.recipes import RECIPES
from figgen.scenarios.options.resolve import training_step
from figgen.scenarios.runs.job import run_job, shares_of
from figgen.scenarios.runs.rate_row import GivenRates
from figgen.scenarios.runs.rates import attained, rate_row
from figgen.scenarios.runs.record import described_run
from figgen.scenarios.runs.residual_classes import class_of
from figgen.scenarios.runs.setup import memory_framework, run_setup
from figgen.scenarios.runs.software import known_software, memory_of, read_software

RUN: dict[str, Any] = {
    "id": "a", "hardware": "H100 (DGX)", "num_accelerators": 64, "tp": 1, "pp": 1,
    "global_batch_sequences": 300, "seq_length": 4096, "model_shape_ref": "llama3-8b",
    "precision": "BF16", "step_time_s": 5.0, "framework": "megatron-lm",
}  # fmt: skip
MIXED = {"model_shape_ref": "mixtral-8x7b", "ep": 8}

HABITS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"zero_stage": 1, "microbatch": 1, "etp": None, "group": "megatron-lm"}),
    ({"source_group": "a table"}, {"group": "a table"}),
    # What pipelines call ZeRO-2 reduces once a step.
    ({"zero_stage": 2}, {"zero_stage": 2}),
    ({"zero_stage": 2, "pp": 2}, {"zero_stage": 1}),
    ({"zero_stage": 3, "pp": 2}, {"zero_stage": 3, "microbatch": 1}),
    ({"zero_stage": 0, "pp": 2}, {"zero_stage": 0}),
    # A replica's batch at once under ZeRO-3, sixteen sequences at most, one at least.
    ({"framework": "llm-foundry"}, {"zero_stage": 3, "microbatch": 4}),
    ({"framework": "llm-foundry", "global_batch_sequences": 6400}, {"microbatch": 16}),
    ({"framework": "llm-foundry", "global_batch_sequences": 64}, {"microbatch": 1}),
    ({"framework": "nanotron"}, {"zero_stage": 0}),
    (
        {"framework": "torchtitan"},
        {"zero_stage": 3, "microbatch": 4, "recompute": "every_second_product"},
    ),
    ({"framework": "torchtitan", "model_shape_ref": "llama3-70b"}, {"recompute": "full"}),
    ({"framework": "PaxML (JAX)", "recompute": "SAVE_QKV_OUT_PROJ"}, {"recompute": "mlp"}),
    ({"pp": 2, "vpp": 2}, {"schedule": "interleaved-1f1b", "virtual_stages": 2}),
    ({"pp": 2, "vpp": 1}, {"schedule": "1f1b", "virtual_stages": 1}),
    ({"framework": "own, arXiv:2412.19437"}, {"schedule": "dualpipe"}),
    # Tokens of a batch, where nobody counts its sequences.
    ({"global_batch_sequences": None, "tokens_per_batch": 4_194_304}, {"global_batch": 1024}),
    ({"global_batch_sequences": None, "tokens_per_batch": 1000}, {"global_batch": 1}),
    ({"global_batch_sequences": 8, "tokens_per_batch": 4_194_304}, {"global_batch": 8}),
    ({"framework": "llm-foundry", "global_batch_sequences": 32}, {"microbatch": 1}),
    ({"framework": "torchtitan", "pp": 2, "global_batch_sequences": 64}, {"microbatch": 1}),
    # Years with months, and GiB.
    ({"release": "NeMo 25.03", "source": "a page"}, {"version": 25 + 3 / 12, "source": "a page"}),
    ({"framework": "Megatron-Bridge", "release": "2026-08-15"}, {"version": 26 + 8 / 12}),
    ({"framework": "NeMo", "release": "2026-08-15"}, {"version": None}),
    ({"peak_memory_gib": 40}, {"peak_memory_bytes": 40 * 1024**3}),
    # A kernel of attention, a way to send tokens to experts, a state that the host updates.
    ({"attention": "flash_attention_3"}, {"flash_attention": 3}),
    ({"attention": "FlashAttention 2, fused rotary"}, {"flash_attention": 2}),
    ({"attention": "SDPA flash"}, {"flash_attention": 0}),
    (MIXED | {"dispatcher": "deepep"}, {"dispatcher": "deepep"}),
    (MIXED | {"dispatcher": "alltoall"}, {"dispatcher": "all-to-all"}),
    (MIXED | {"dispatcher": "flex, HybridEP"}, {"dispatcher": "hybridep"}),
    (MIXED | {"dispatcher": "AllGather"}, {"dispatcher": "usual"}),
    ({"offloaded_optimizer": 1.0}, {"offloaded_optimizer": 1.0}),
    # Experts are divided as attention is where that fits on a stage, but not by recipes that say 1.
    (MIXED | {"tp": 2}, {"etp": None}),
    (MIXED | {"tp": 2, "framework": "megatron-bridge"}, {"etp": 1}),
    (MIXED | {"tp": 2, "ep": 64}, {"etp": 1}),
    (MIXED | {"tp": 2, "etp": 2, "framework": "megatron-bridge"}, {"etp": 2}),
]


@pytest.mark.parametrize(("said", "found"), HABITS)
def test_what_nobody_says_is_what_the_framework_does(
    said: dict[str, Any], found: dict[str, Any]
) -> None:
    run = described_run(RUN | said)
    assert {name: getattr(run, name) for name in found} == found


def test_attention_is_the_kernel_that_the_source_names() -> None:
    """FlashAttention 2 on two B200, whose trainer's steps of 16K and 64K tokens differ by
    attention: 346 TFLOP/s, forward twice and backward (prime-rl's benchmarks/baselines)."""

    def share(hardware: str, attention: str) -> float:
        run = {"hardware": hardware, "attention": attention, "framework": "torchtitan"}
        rates = rate_row(described_run(RUN | run))
        return float(rates.rates.attention_flops_per_s * rates.attention_share)

    usual = share("H100", "")
    assert share("H100", "flash_attention_2") == usual < share("H100", "flash_attention_3")
    assert share("A100 80GB", "flash_attention_2") == share("A100 80GB", "")
    # A quarter either way: 132 multiprocessors of an H100 stand for 148 of a B200.
    assert share("B200", "flash_attention_2") == pytest.approx(346e12, rel=0.25)
    assert share("B200", "") > 1.5 * share("B200", "flash_attention_2")


def test_attention_measured_on_a_machine_is_not_that_of_software_with_its_own_kernel() -> None:
    """measure.py times PyTorch's attention, which is neither FlashAttention 2 nor 3 on an H100."""
    measured = {"attention": (500e12,)}

    def rate(attention: str, framework: str) -> float:
        run = described_run(RUN | {"attention": attention, "framework": framework})
        assert run.accelerator.name == "h100-sxm-80gb"
        return float(attained(run, GivenRates(measured=measured)).attention_flops_per_s)

    for framework in ("megatron-lm", "torchtitan"):
        assert rate("", framework) == 500e12
    for attention, framework in (
        ("flash_attention_2", "torchtitan"),
        ("flash_attention_3", "torchtitan"),
        ("", "llm-foundry"),
    ):
        run = described_run(RUN | {"attention": attention, "framework": framework})
        assert rate(attention, framework) == attained(run).attention_flops_per_s < 600e12


def test_a_measured_format_of_sixteen_bits_stands_for_the_other() -> None:
    for dtype, other in (("BF16", "fp16"), ("BF16", "bf16")):
        run = described_run(RUN | {"precision": dtype})
        found = attained(run, GivenRates(measured={other: (600e12, 2e-6)}))
        assert found.matmul_flops_per_s == pytest.approx(600e12 * rate_row(run).matmul_share)
        assert found.matmul_start_s == 2e-6


def test_fp16_is_megatron_of_2020_and_stores_scores() -> None:
    old, new = (described_run(RUN | {"precision": name}) for name in ("FP16", "BF16"))
    assert run_setup(old).recipe == RECIPES["mcore20"]
    assert run_setup(new).recipe != RECIPES["mcore20"]
    assert not run_setup(old).flash_attention
    assert run_setup(new).flash_attention


def test_memory_is_that_of_the_framework_and_its_release() -> None:
    found = {("torchtitan", 24.5): "torchtitan-2024", ("torchtitan", 25.0): "torchtitan-2024",
             ("torchtitan", 25.1): "torchtitan", ("torchtitan", None): "torchtitan",
             ("nemo", 24.5): "megatron-2024", ("llm-foundry", 24.5): "fsdp"}  # fmt: skip
    assert {key: memory_framework(*key) for key in found} == found


def test_chunks_count_only_in_a_pipeline() -> None:
    """A pipeline of two stages and two chunks has four shares; without a pipeline there is one."""
    piped = described_run(RUN | {"pp": 2, "vpp": 2})
    alone = replace(piped, pp=1)
    assert (len(shares_of(piped)[0]), len(shares_of(alone)[0])) == (4, 1)
    assert (run_job(piped).chunks, run_job(alone).chunks) == (2, 1)
    assert (run_setup(piped).chunks, run_setup(alone).placement.chunks) == (2, 1)


def test_what_nobody_measured_has_no_class_of_its_own() -> None:
    run = described_run(RUN)
    assert class_of(run) == "dense models on Hopper"
    mixers = replace(run, shape=catalog.model("granite-4-h-small").shape)
    assert (
        class_of(mixers)
        == class_of(replace(run, gpus=10**6))
        == "jobs with few or no published runs"
    )


def test_a_shape_of_one_s_own_has_what_is_usual_of_experts_and_heads() -> None:
    own = {"layers": 4, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 1000, "num_experts": 8}
    shape = described_run(RUN | {"model_shape_ref": "own", "shape": own}).shape
    assert shape.head_dim == 512 // 8
    experts = shape.experts
    assert experts is not None
    sizes = (experts.count, experts.top_k, experts.ffn_hidden, experts.shared, experts.dense_layers)
    assert sizes == (8, 2, 2048, 0, 0)
    # Of a model that is named, all fields except those given.
    more = RUN | {"model_shape_ref": "deepseek-v3", "shape": {"num_experts": 320}}
    found, known = described_run(more).shape.experts, catalog.model("deepseek-v3").shape.experts
    assert known is not None
    assert found == replace(known, count=320)


def test_ranks_of_attention_divide_experts_too_and_sequences_where_there_are_several() -> None:
    ways = [(1, 1, 1), (2, 1, 1), (2, 8, 2), (1, 8, 1)]
    for tp, ep, etp in ways:
        run = described_run(RUN | MIXED | {"tp": tp, "ep": ep})
        assert run_job(run).etp == etp
        assert run_setup(run).sequence_parallel is (tp > 1)


RECORD: dict[str, Any] = {
    "hardware": "H100 SXM 80GB", "num_accelerators": 8, "global_batch_sequences": 8,
    "seq_length": 2048, "tp": 1, "pp": 1,
    "shape": {
        "num_layers": 2, "hidden_size": 256, "num_attention_heads": 4, "num_kv_heads": 4,
        "ffn_hidden_size": 512, "vocab_size": 1000, "gated_mlp": True,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "habits", "timed_as"),
    [
        ("deepspeed", "deepspeed", "pytorch"),
        ("hf-trainer", "hf-trainer", "pytorch"),
        ("prime-rl", "prime-rl", "torchtitan"),
        ("prime-rl-logits 26.01", "prime-rl-logits", "torchtitan"),
        ("torchtitan 24.12", "torchtitan-2024", "torchtitan"),
    ],
)
def test_software_may_fill_memory_in_its_own_way_and_take_the_time_of_another(
    words: str, habits: str, timed_as: str
) -> None:
    assert memory_of(words) == habits
    assert read_software(words)[0] == timed_as


@pytest.mark.parametrize(
    ("record", "habits"),
    [
        ({"framework": "DeepSpeed (ms-swift)"}, "deepspeed"),
        ({"framework": "Megatron-DeepSpeed"}, "megatron-deepspeed"),
        ({"framework": "ms-swift (HF Trainer)"}, "hf-trainer"),
        ({"framework": "torchtitan-like FSDP2 (prime-rl)", "id": "a-rl-full-b"}, "prime-rl"),
        (
            {"framework": "torchtitan-like FSDP2 (prime-rl)", "id": "a-sft-full-b"},
            "prime-rl-logits",
        ),
    ],
)
def test_a_record_names_whose_habits_fill_its_memory(record: dict[str, str], habits: str) -> None:
    assert run_setup(described_run({**RECORD, **record})).framework == habits


def test_a_record_that_stores_scores_says_so() -> None:
    said = {**RECORD, "framework": "PyTorch", "attention": "unfused, dropout 0.1 on them"}
    setup = run_setup(described_run(said))
    assert (setup.flash_attention, setup.dropout) == (False, True)
    setup = run_setup(described_run({**RECORD, "framework": "PyTorch"}))
    assert (setup.flash_attention, setup.dropout) == (True, False)


@pytest.mark.parametrize(
    ("said", "habits"),
    [
        ({"framework": "PyTorch", "compiled": True}, "pytorch-compiled"),
        ({"framework": "PyTorch", "compiled": False}, "pytorch"),
        ({"framework": "PyTorch (litgpt, Fabric)", "compiled": False}, "litgpt"),
        ({"framework": "torchtitan", "release": "2025-09", "compiled": False}, "torchtitan-2024"),
        ({"framework": "torchtune", "habits": "torchtune-eager"}, "torchtune-eager"),
    ],
)
def test_a_record_says_what_fills_its_memory_by_its_compiler_or_by_name(
    said: dict[str, Any], habits: str
) -> None:
    run = described_run({**RECORD, **said})
    assert run_setup(run).framework == habits
    # What is timed stays.
    assert run.habits is None


def test_a_record_says_what_is_kept_of_a_parameter_and_what_is_on_the_host() -> None:
    said = {**RECORD, "state_bytes": [2, 2, 8, 4], "offloaded_activations": 0.5}
    setup = run_setup(described_run(said))
    assert (setup.recipe.total_bytes, setup.recipe.update_bytes) == (12, 4)
    assert setup.offloaded_activations == 0.5
    assert run_setup(described_run({**RECORD, "state_bytes": [2, 0, 0]})).recipe.update_bytes == 0
    for wrong in ([2, 2], [2, 2, 8, 4, 1], "16", [2, 2, -1]):
        with pytest.raises(InputError, match="state_bytes"):
            described_run({**RECORD, "state_bytes": wrong})
    with pytest.raises(InputError, match="framework"):
        described_run({**RECORD, "habits": "nobody"})


def test_a_record_with_latent_attention_has_it_in_its_shape() -> None:
    """Moonlight by Megatron-Core's names of sizes: queries aren't compressed."""
    sizes = {"kv_lora_rank": 512, "qk_head_dim": 128, "qk_pos_emb_head_dim": 64, "v_head_dim": 128}
    (record,) = (
        one for one in publisher_records() if one["id"] == "mbridge-skill-moonlight-tp2ep8-none"
    )
    assert {key: record["shape"][key] for key in sizes} == sizes
    latent = described_run(record).shape.latent
    assert latent == LatentAttention(
        query_rank=0, kv_rank=512, nope_head_dim=128, rope_head_dim=64, value_head_dim=128
    )


def test_every_habit_of_memory_is_a_choice_of_software() -> None:
    """Exceptions are unknown software, and habits that depend on the release."""
    chosen = {memory_of(name) for name in known_software()}
    assert chosen == set(FRAMEWORKS) - {"unknown", "megatron-2024"}
    assert memory_of("megatron-lm 24.06") == "megatron-2024"


def test_software_that_a_compiler_fuses_is_timed_so() -> None:
    def seconds(software: str) -> float:
        job = {"model": "llama-3-8b", "nodes": 1, "gpus_per_node": 8, "zero_stage": 3}
        step = training_step(
            **job, sequence=4096, microbatch_size=1, global_batch=8, software=software
        )
        return step.predicted.step_time_s

    assert seconds("pytorch-compiled") < seconds("pytorch") == seconds("litgpt")
    assert seconds("torchtune") == seconds("torchtune-logits") < seconds("torchtune-eager")
