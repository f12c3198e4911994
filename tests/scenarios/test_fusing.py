"""What software fuses, compared with operation lists that agree with steps of an H100."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import pytest

from figgen import catalog
from figgen.catalog import load
from figgen.catalog.publishers import publisher_records
from figgen.catalog.rates import constants
from figgen.models.operations.device_step import end_operations, layer_operations
from figgen.models.operations.kernel_rates import HOST_S
from figgen.models.operations.operation import total_kernels
from figgen.models.operations.stack import STACKS
from figgen.models.operations.step_time import step_parts_s
from figgen.scenarios.evidence.measured import measured_runs
from figgen.scenarios.runs.device_run import device_run, measured_steps, rates_on
from figgen.scenarios.runs.fusing import (
    COMPILED,
    EAGER,
    MEGATRON,
    MODULES,
    UNFUSED_UPDATE,
    fusing_of,
    torch_update_bytes,
)
from figgen.scenarios.runs.job import run_job
from figgen.scenarios.runs.names import accelerator_of
from figgen.scenarios.runs.predicted import predicted_step
from figgen.scenarios.runs.rates import attained, terms_of
from figgen.scenarios.runs.record import described_run

RUN: dict[str, Any] = {
    "framework": "PyTorch", "hardware": "H100 SXM 80GB", "num_accelerators": 1, "tp": 1, "pp": 1,
    "precision": "bf16", "micro_batch": 2, "global_batch_sequences": 2, "seq_length": 2048,
    "shape": {"num_layers": 16, "hidden_size": 2048, "num_attention_heads": 16,
              "ffn_hidden_size": 8192, "vocab_size": 32000, "gated_mlp": True},
}  # fmt: skip


def value(name: str) -> float:
    return constants()[name].value


def steps(*, compiled: bool) -> list[Any]:
    """Return dense steps of one H100 in pure BF16, by whether they were compiled."""
    return [
        (record, device_run(record))
        for record in measured_steps()
        if (run := device_run(record)).accelerator.name == "h100-sxm-80gb"
        and run.job.shape.experts is None
        and run.job.stack == STACKS[compiled, False]
    ]


@pytest.mark.parametrize(("compiled", "fusing"), [(False, MODULES), (True, COMPILED)])
def test_passes_of_plain_pytorch_take_what_its_list_of_operations_takes(
    compiled: bool, fusing: str
) -> None:
    found = steps(compiled=compiled)
    assert found
    for record, run in found:
        job, chip = run_job(described_run({**RUN, **record, "framework": "PyTorch"})), run.job
        layer = layer_operations(chip, experts=False)
        rates = rates_on(run.accelerator, {})
        counted_s = step_parts_s(layer, rates, chip.stack)["elementwise"]
        work = job.dense_work
        least = job.tokens * (work.forward.pass_bytes + work.backward.pass_bytes)
        bandwidth = value("memory_share.all") * run.accelerator.hbm_bandwidth_bytes_per_s
        assert value(f"elementwise.{fusing}") * least / bandwidth == pytest.approx(
            counted_s, rel=0.06
        )
        loss_s = step_parts_s(end_operations(chip), rates, chip.stack)["elementwise"]
        assert value(f"loss_bytes.{fusing}") * chip.logits / bandwidth == pytest.approx(
            loss_s, rel=0.15
        )
        assert value(f"host_layer_s.{fusing}") == pytest.approx(
            HOST_S * total_kernels(layer), rel=0.05
        )


def test_a_source_says_how_its_software_fuses() -> None:
    def of(**said: object) -> str:
        return fusing_of(described_run({**RUN, **said}))

    assert of() == of(compiled=False) == MODULES
    assert of(compiled=True) == of(framework="torchtitan") == COMPILED
    assert of(framework="torchtitan", compiled=False) == MODULES
    assert of(framework="PyTorch + Transformer Engine") == MEGATRON
    assert of(attention="FlashAttention 2, fused rotary and loss", compiled=False) == EAGER
    assert of(attention="unfused (explicit scores)", compiled=False) == MODULES
    assert of(framework="megatron-lm", compiled=False) == MEGATRON
    assert of(framework="something else") == EAGER
    assert of(habits="deepspeed-liger") == EAGER
    assert of(hardware="TPU v5p") == of(hardware="Gaudi 2", framework="something else") == COMPILED


@pytest.mark.parametrize(
    "said",
    [
        {"precision": "bf16-true"},
        {"precision_detail": "bf16 weights, AdamW (fused) on bf16"},
        {"framework": "torchtune"},
    ],
)
def test_state_of_16_bits_halves_the_update(said: dict[str, str]) -> None:
    trainer = described_run({**RUN, "framework": "Hugging Face Trainer (PyTorch)"})
    assert torch_update_bytes(trainer) == 40
    run = described_run({**RUN, "framework": "Hugging Face Trainer (PyTorch)", **said})
    assert torch_update_bytes(run) == 20


GPT_2: dict[str, Any] = RUN | {
    "framework": "nanoGPT (PyTorch 2 compile, DDP)", "hardware": "A100 SXM 80GB", "compiled": True,
    "micro_batch": 12, "global_batch_sequences": 12, "seq_length": 1024,
    "shape": {"num_layers": 12, "hidden_size": 768, "num_attention_heads": 12,
              "ffn_hidden_size": 3072, "vocab_size": 50257, "gated_mlp": False,
              "tied_embeddings": True},
}  # fmt: skip


def test_padding_the_vocabulary_of_gpt_2_gains_a_quarter() -> None:
    """As nanoGPT's author says of it (karpathy/nanoGPT@77e7e04c: "about 25% faster", of the speed
    or of the time), under the compiler of PyTorch 2.0; later ones pad by themselves."""

    def step_s(vocab: int, **said: object) -> float:
        shape = GPT_2["shape"] | {"vocab_size": vocab}
        return predicted_step(described_run({**GPT_2, **said, "shape": shape})).step_time_s

    gained = step_s(50257, shape_padding=False) / step_s(50304)
    assert 1.25 * 0.95 < gained < 1 / 0.75 * 1.05
    assert step_s(50257) < step_s(50304)
    tuned = {"framework": "Megatron-LM", "compiled": None}
    assert step_s(50257, **tuned) < step_s(50304, **tuned)


def test_an_unfused_adam_reads_and_writes_what_its_operators_do() -> None:
    """The operators of `_multi_tensor_adamw` by the numbers that each reads and writes, and
    clipping; the fused kernel reads four numbers and writes all but the gradient."""
    clipping = 1 + 2
    operators = {"decay": 2, "lerp": 3, "mul": 2, "addcmul": 3, "sqrt": 2, "div": 2, "add": 2}
    unfused = sum(operators.values()) + (3 + 1) + clipping
    assert unfused / (4 + 3 + clipping) == pytest.approx(UNFUSED_UPDATE)
    run = described_run(RUN | {"fused_optimizer": False})
    assert torch_update_bytes(run) == torch_update_bytes(described_run(RUN)) * UNFUSED_UPDATE


def test_flash_attention_3_on_hopper_is_as_fast_as_its_paper_says() -> None:
    """1.5 to 2 times FlashAttention 2 forward, 1.5 to 1.75 backward, which reaches 35% of an H100
    (arXiv:2407.08608, abstract and section 4.1)."""

    def share(hardware: str, attention: str) -> float:
        run = described_run(RUN | {"hardware": hardware, "attention": attention})
        peak, names = terms_of(run)["attention_flops_per_s"]
        return peak * prod(value(name) for name in names) / run.accelerator.peak_flops_per_s("bf16")

    least, most = ((1 + 2.5) / (1 / ahead + 2.5 / back) for ahead, back in ((1.5, 1.5), (2, 1.75)))
    assert 0.35 * least < share("H100 SXM 80GB", "flash 3") < 0.35 * most
    # Slowed-down tensor cores bound every kernel alike.
    assert share("H20", "flash 3") > share("H100 SXM 80GB", "flash 3")


def test_prime_rl_passes_over_its_logits_as_often_as_its_code_does() -> None:
    """Bytes per logit in PrimeIntellect-ai/prime-rl@c330a6d4e, trainer/models/layers/lm_head.py."""
    half, full = 2, 4
    widened = half + (half + full)  # written by the matmul, cast to FP32
    scaled = exponential = less = 2 * full
    ahead = widened + scaled + full + less + exponential + full + 3 * full + full
    casts, read_by_matmuls, summed = 2 * (full + half), 2 * half, 5
    behind = widened + scaled + less + exponential + 2 * scaled + casts + read_by_matmuls + summed
    assert value("loss_bytes.chunks") == ahead + behind


def test_written_scores_take_their_products_and_their_passes() -> None:
    run = described_run({**RUN, "attention": "unfused (explicit scores, dropout 0.1 on them)"})
    chip, shape = run.accelerator, run.shape
    scores = run.microbatch * shape.heads * run.sequence**2
    # Forward: product 2, scale 4, mask 4, softmax 4, dropout 5, product 2. Backward: of values 2,
    # of scores 2, dropout 5, softmax 6, mask 4, scale 4, of queries and keys 4.
    moved_s = scores * 48 / chip.hbm_bandwidth_bytes_per_s
    matmuls_s = scores * 12 * shape.head_dim / chip.peak_flops_per_s("bf16")
    core = 7 * run.microbatch * run.sequence**2 * shape.heads * shape.head_dim
    seconds = core / attained(run).attention_flops_per_s * value("memory_share.all")
    assert seconds == pytest.approx(moved_s + matmuls_s)


def test_software_that_nobody_fitted_is_the_mean_of_what_was() -> None:
    def mean(*names: str) -> float:
        return float(prod(map(value, names)) ** (1 / len(names)))

    stacks = ("nanotron", "llm-foundry", "torchtitan")
    assert value("framework_share.unknown") == pytest.approx(
        mean(*(f"framework_share.{one}" for one in stacks)), rel=0.02
    )
    synchronous = ("megatron-2021", "nanotron", "torchtitan")
    assert value("exposed_tensor.unknown") == pytest.approx(
        mean(*(f"exposed_tensor.{one}" for one in synchronous)), rel=0.02
    )
    families = ("megatron", "megatron-2021", "nanotron")
    assert value("exposed_data.unknown") == pytest.approx(
        mean(*(f"exposed_data.{one}" for one in families)), rel=0.02
    )


def test_no_run_of_a_publisher_holds_more_than_its_chip_has() -> None:
    for record in publisher_records():
        if "peak_memory_gib" in record and "doubt" not in record:
            chip = accelerator_of(record["hardware"])
            assert record["peak_memory_gib"] * 2**30 <= 1.015 * chip.capacity_bytes, record["id"]


def test_attention_of_cards_keeps_to_the_peak_that_their_products_reach() -> None:
    chips = load.accelerators()
    for name, chip in chips.items():
        run = described_run({**RUN, "hardware": name, "precision": "bf16" if chip.bf16 else "fp16"})
        rates = attained(run)
        assert rates.matmul_flops_per_s < chip.peak_flops_per_s(run.dtype)
        assert rates.attention_flops_per_s < chip.peak_flops_per_s(run.dtype)


def test_matmuls_of_plain_pytorch_are_the_mean_of_two_frameworks_and_our_own_steps() -> None:
    """All publishers have equal weight, whatever their number of runs."""
    own = []
    for compiled in (False, True):
        for record, run in steps(compiled=compiled):
            job, chip = run_job(described_run({**RUN, **record, "framework": "PyTorch"})), run.job
            taken = step_parts_s(
                layer_operations(chip, experts=False), rates_on(run.accelerator, {}), chip.stack
            )
            flops = 6 * job.tokens * (job.attention_weights + job.dense_weights)
            megatron = attained(
                described_run({**RUN, "framework": "megatron-bridge", "release": "26.04"})
            )
            own.append(flops / taken["product"] / megatron.matmul_flops_per_s)
    shares = [value("framework_share.llm-foundry"), value("framework_share.torchtitan")]
    shares.append(float(prod(own) ** (1 / len(own))))
    assert value("framework_share.pytorch") == pytest.approx(
        float(prod(shares) ** (1 / 3)), rel=0.03
    )


def test_flash_attention_2_is_as_fast_on_ampere_whoever_calls_it() -> None:
    """It is slower than Megatron-Core's kernels only on Hopper, for which those are written."""

    def rate(framework: str, chip: str) -> float:
        run = described_run({**RUN, "framework": framework, "hardware": chip})
        return float(attained(run).attention_flops_per_s)

    assert rate("PyTorch", "A100 SXM 80GB") == rate("megatron-lm", "A100 SXM 80GB")
    assert rate("PyTorch", "H100") < rate("megatron-lm", "H100")


def test_deepspeed_runs_the_modules_of_pytorch() -> None:
    run = described_run({**RUN, "framework": "DeepSpeed (ms-swift)"})
    assert (run.framework, fusing_of(run), run.habits) == ("pytorch", MODULES, "deepspeed")
    assert described_run({**RUN, "framework": "Megatron-DeepSpeed"}).framework == (
        "megatron-deepspeed"
    )


@pytest.mark.parametrize(
    ("change", "written"),
    [
        ({}, True),
        ({"version": 25 + 7 / 12}, False),
        ({"accelerator": accelerator_of("H100 SXM 80GB")}, False),
        ({"shape": catalog.model("llama-3-70b").shape}, False),
    ],
)
def test_latent_attention_on_blackwell_waited_for_cudnn_9_11(
    change: dict[str, Any], written: bool
) -> None:
    """Transformer Engine's fused_attn.cpp: "9.11: d_qk = 192, d_v = 128 + Blackwell + bprop"."""
    name = "dgxc-v25.05-deepseek-v3-gb200-bf16-g128-b1024"
    run = next(run for run in measured_runs() if run.name == name)
    keys, _ = terms_of(replace(run, **change))["attention_start_keys"]
    assert (keys == 0) == written


def test_a_loss_whose_kernels_a_source_names_is_timed_by_them() -> None:
    """Four compiled kernels of Megatron-Core, by their passes; Liger's, measured on an A100."""

    def lost_s(**said: object) -> float:
        told = {"hardware": "A100 SXM 80GB", "framework": "megatron-lm", **said}
        found = attained(described_run({**RUN, **told}))
        return found.loss_bytes / found.memory_bytes_per_s

    assert lost_s(fused_loss="native") == lost_s(habits="megatron-fused-loss") < lost_s()
    copied, exponential, quotient, gradient = 2 + 4, 4 + 4, 4 + 4, 4 + 4 + 4 + 2
    assert value("loss_bytes.native") == copied + exponential + quotient + gradient
    # linkedin/Liger-Kernel@ead96b618e5c, benchmark/data/all_benchmark_data.csv: cross_entropy, full
    logits, measured_s = 8 * 2048 * 131_072, 25.22e-3
    assert lost_s(fused_loss="te") * logits == pytest.approx(measured_s, rel=0.02)
