"""Offloading: memory on the host, waiting time of a step, and published steps."""

from __future__ import annotations

from typing import NamedTuple

from figgen.catalog import accelerator, model
from figgen.charts import Axis, Bars, Column, Curves, Named, Scalar, Series, Table
from figgen.errors import check_between
from figgen.figures.parameters import ModelName
from figgen.figures.training.step import step_interval
from figgen.models.step.timed_step import HOST_UPDATE_BYTES
from figgen.plotting.placed import headings
from figgen.plotting.series import line, segments
from figgen.registry import figure
from figgen.scenarios.options.resolve import TrainingStep, training_step
from figgen.scenarios.runs.chips import HOST_BYTES_PER_S, host_link_bytes_per_s

BYTES = {"weights": 2.0, "gradients": 4.0, "optimizer": 12.0}
"""Bytes per parameter of mixed-precision training with Adam and gradients in FP32."""

WAYS = {
    "nothing": (),
    "optimizer": ("optimizer",),
    "optimizer, gradients": ("optimizer", "gradients"),
    "and weights": ("optimizer", "gradients", "weights"),
}
MACHINES = ("a100-sxm-80gb", "h100-sxm-80gb", "gh200-96gb", "gb200-nvl72")
LAYER_FLOPS, LAYER_BYTES = 24, 34
"""Of a layer as wide as h: forward FLOP per token over h², and bytes kept per token over h, in 16
bits, without what attention keeps of pairs (Korthikanti et al. 2022, section 4)."""


@figure("offload-memory", recomputed=True)
def offload_memory(*, model_name: ModelName = "llama-3-8b", gpus: int = 1) -> Bars:
    """State of a model on the GPU and in the host's memory, by what is offloaded.

    State is divided evenly over `gpus`.
    """
    check_between("gpus", gpus, 1, 100_000)
    count = float(model(model_name).parameters) / gpus
    parts = {
        f"{name}, on the GPU": tuple(
            0.0 if name in away else size * count for away in WAYS.values()
        )
        for name, size in BYTES.items()
    }
    parts["in the host's memory"] = tuple(
        sum(BYTES[name] for name in away) * count for away in WAYS.values()
    )
    left = [sum(sizes[place] for sizes in list(parts.values())[:3]) for place in range(len(WAYS))]
    return Bars(
        labels=tuple(WAYS),
        segments=segments(parts),
        axis=Axis(label="state of a GPU", unit="B", low=0.0, spec="bytes"),
        values={
            "whole": Named(left[0], "B"),
            "optimizer": Named(left[1], "B"),
            "gradients": Named(left[2], "B"),
            "host": Named(parts["in the host's memory"][-1], "B"),
        },
    )


def _alone(model_name: str, chip: str, microbatches: int, share: float) -> TrainingStep:
    return training_step(
        model=model_name,
        accelerator=chip,
        nodes=1,
        gpus_per_node=1,
        microbatches=microbatches,
        sequence=4096,
        recompute="full",
        software="megatron-deepspeed",
        offloaded_optimizer=share,
    )


@figure("offload-overhead")
def offload_overhead(
    *, model_name: str = "llama-3-8b", microbatches: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
) -> Curves:
    """Time that the host's update adds to a step of one GPU, over microbatches, by machine."""
    lines: list[Series] = []
    values: dict[str, Named] = {}
    steps: list[TrainingStep] = []
    for index, chip in enumerate(MACHINES):
        added = []
        for count in microbatches:
            without, away = (_alone(model_name, chip, count, share) for share in (0.0, 1.0))
            steps.append(away)
            added.append(away.estimate.step_time_s / without.estimate.step_time_s - 1)
        name = chip.split("-")[0]
        lines.append(line(name.upper(), map(float, microbatches), added, index))
        values |= {f"{name}_first": Named(added[0]), f"{name}_last": Named(added[-1])}
    return Curves(
        x=Axis(label="microbatches per step", scale="log2", spec=",.0f"),
        y=Axis(label="added to the step", low=0.0, spec=".0%"),
        series=tuple(lines),
        values=values | step_interval(*steps),
    )


@figure("offload-links")
def offload_links() -> Table:
    """What hides behind computing on each link to the host, at measured matmul rates.

    Fetched weights are hidden above a number of tokens per microbatch; activations that leave in
    the forward pass are hidden above a layer width.
    """
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for name in MACHINES:
        chip = accelerator(name)
        rate = host_link_bytes_per_s(chip)
        measured = chip.measured_bf16
        flops = float(measured.value) if measured else chip.peak_flops_per_s()
        ratio = flops / rate
        tokens, width = ratio, ratio * LAYER_BYTES / LAYER_FLOPS
        rows.append((chip.title, rate, ratio, tokens, width))
        short = name.split("-")[0]
        values |= {
            f"{short}_rate": Named(rate, "B/s"),
            f"{short}_tokens": Named(tokens),
            f"{short}_width": Named(width),
        }
    columns = (
        Column(label="machine"),
        Column(label="to the host and back, each", unit="B/s", spec="si"),
        *headings(
            "FLOP per byte to hide it",
            "weights: tokens per microbatch",
            "activations: width of a layer",
            spec=",.0f",
        ),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


class Offloaded(NamedTuple):
    """A published pair of steps of one job, without offloading and with all of the optimizer."""

    title: str
    model: str
    gpus: int
    without_s: float
    with_s: float


PRIME_RL = (
    Offloaded("8K tokens", "qwen-3-30b-a3b", 8, 1.75, 3.96),
    Offloaded("16K tokens", "qwen-3-30b-a3b", 8, 5.17, 5.73),
    Offloaded("64K tokens", "qwen-3-30b-a3b", 8, 38.7, 34.1),
)
"""Steps of Qwen3-30B-A3B on eight H200 with the host's update behind the backward pass.

Source: PrimeIntellect-ai/prime-rl pull request 3234, 2026-08-11. The row of 32K prints ranges."""


@figure("offload-measured")
def offload_measured() -> Table:
    """Published steps with an offloaded optimizer, and the longer of computing and host update.

    The bandwidth of the node's memory, which all GPUs share, bounds the update.
    """
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    for one in PRIME_RL:
        update_s = float(model(one.model).parameters) * HOST_UPDATE_BYTES / HOST_BYTES_PER_S
        floor_s = max(one.without_s, update_s)
        rows.append((one.title, one.without_s, update_s, floor_s, one.with_s, one.with_s / floor_s))
        key = one.title.split("K")[0]
        values |= {f"floor_{key}": Named(floor_s, "s"), f"ratio_{key}": Named(rows[-1][-1])}
        values["update"] = Named(update_s, "s")
    columns = (
        Column(label="sequence"),
        *headings(
            "step without",
            "host's update, computed",
            "the longer",
            "measured",
            unit="s",
            spec="time",
        ),
        Column(label="measured over the longer", spec=".2f"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


NEMO_RL = ((0.0, False, 0.752), (0.5, False, 1.187), (0.5, True, 1.216), (1.0, True, 1.678))
"""Share that is offloaded, overlap, seconds of a step of Qwen3-0.6B on one H100.

Source: NVIDIA-NeMo/RL pull request 3628, 2026-08-13, steps 11 to 100."""

QWEN3_06B = (
    "layers=28, hidden=1024, heads=16, kv_heads=8, head_dim=128, ffn=3072, vocab=151936, tied=on, "
    "qk_norm=per-head"
)
"""Source: huggingface.co/Qwen/Qwen3-0.6B, config.json."""


@figure("offload-fractions")
def offload_fractions() -> Table:
    """What offloading adds to a step of Qwen3-0.6B on one H100, as predicted and as measured."""
    steps = [
        training_step(
            model=QWEN3_06B,
            nodes=1,
            gpus_per_node=1,
            sequence=2048,
            microbatches=8,
            offloaded_optimizer=share,
            offload_overlap=overlap,
        )
        for share, overlap, _ in NEMO_RL
    ]
    base, base_s = steps[0].estimate.step_time_s, NEMO_RL[0][2]
    rows: list[tuple[Scalar, ...]] = []
    errors = []
    for (share, overlap, measured_s), step in zip(NEMO_RL[1:], steps[1:], strict=True):
        added, predicted = measured_s - base_s, step.estimate.step_time_s - base
        errors.append(abs(predicted / added - 1))
        rows.append((f"{share:.0%}", "yes" if overlap else "no", measured_s, added, predicted))
    columns = (
        *headings("offloaded", "copies overlap"),
        *headings("measured step", "added, measured", "added, predicted", unit="s", spec="time"),
    )
    values = {
        "base": Named(base_s, "s"),
        "half": Named(NEMO_RL[1][2], "s"),
        "whole": Named(NEMO_RL[-1][2], "s"),
        "worst": Named(max(errors)),
    }
    return Table(columns=columns, rows=tuple(rows), values=values)


class AwaySteps(NamedTuple):
    """Published steps with recomputed layers' inputs on the GPU, and in the host's memory."""

    title: str
    model: str
    gpus: int
    sequence: int
    lora_rank: int | None
    kept_s: float
    away_s: float
    kept_gib: float
    away_gib: float


QWEN3_4B = (
    "layers=36, hidden=2560, heads=32, kv_heads=8, head_dim=128, ffn=9728, vocab=151936, tied=on, "
    "qk_norm=per-head"
)
GLM_45_AIR = (
    "layers=46, hidden=4096, heads=96, kv_heads=8, head_dim=128, ffn=10944, vocab=151552, "
    "experts=128, top_k=8, expert_ffn=1408, shared_experts=1, dense_layers=1"
)
"""Sources: config.json of Qwen/Qwen3-4B and zai-org/GLM-4.5-Air on huggingface.co."""

MODELS = {"qwen-3-0.6b": QWEN3_06B, "qwen-3-4b": QWEN3_4B, "intellect-3": GLM_45_AIR}
AWAY = (
    ("Qwen3 0.6B, LoRA", "qwen-3-0.6b", 1, 65_536, 16, 13.1560, 13.4006, 11.453125, 7.91796875),
    ("Qwen3 0.6B", "qwen-3-0.6b", 1, 65_536, None, 12.1756, 12.4625, 19.560546875, 16.083984375),
    ("Qwen3 4B, LoRA", "qwen-3-4b", 1, 16_384, 16, 5.2603, 5.5036, 23.302734375, 20.568359375),
    ("Qwen3 4B, LoRA", "qwen-3-4b", 1, 65_536, 16, 31.4921, 32.4424, 41.994140625, 31.056640625),
    ("INTELLECT-3, LoRA", "intellect-3", 8, 16_384, 16, 15.7149, 16.2318, 89.72265625, 84.234375),
)
"""Every layer recomputed, two microbatches of one sequence, copies without overlap, on one H100 or
eight H200.

Source: PrimeIntellect-ai/prime-rl@559b44772e47, benchmarks/baselines."""


@figure("offload-inputs")
def offload_inputs() -> Table:
    """Memory that offloading recomputed layers' inputs frees and time it adds, with predictions."""
    rows: list[tuple[Scalar, ...]] = []
    values: dict[str, Named] = {}
    times, sizes = list[float](), list[float]()
    steps = [AwaySteps(*row) for row in AWAY]
    for one in steps:
        kept, away = (_recomputed(one, share) for share in (0.0, 1.0))
        freed = (one.kept_gib - one.away_gib) * 2**30
        found = kept.memory.fullest.allocated_bytes - away.memory.fullest.allocated_bytes
        added_s = one.away_s - one.kept_s
        found_s = away.estimate.step_time_s - kept.estimate.step_time_s
        sizes.append(abs(found / freed - 1))
        times.append(found_s / added_s - 1)
        rows.append((one.title, one.sequence, freed, found, added_s, found_s))
    values["size_error"] = Named(max(sizes))
    values["alone_error"] = Named(max(map(abs, times[:-1])))
    values["shared_error"] = Named(times[-1])
    values["most"] = Named(max((one.away_s / one.kept_s - 1) for one in steps))
    columns = (
        Column(label="step"),
        Column(label="tokens", spec=","),
        *headings("freed, measured", "freed, predicted", unit="B", spec="gib"),
        *headings("added, measured", "added, predicted", unit="s", spec="time"),
    )
    return Table(columns=columns, rows=tuple(rows), values=values)


def _recomputed(one: AwaySteps, share: float) -> TrainingStep:
    return training_step(
        model=MODELS[one.model],
        accelerator="h100-sxm-80gb" if one.gpus == 1 else "h200-sxm-141gb",
        nodes=1,
        gpus_per_node=one.gpus,
        sequence=one.sequence,
        microbatches=2,
        zero_stage=3,
        recompute="full",
        software="torchtitan",
        lora_rank=one.lora_rank,
        offloaded_activations=share,
        offload_overlap=False,
    )
