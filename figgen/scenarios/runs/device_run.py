"""A run of plain transformers on one device: reads its record and predicts its step.

The step consists of the operations that `figgen.models.operations` lists. Rates are the shares of
peaks that whole steps on an H100 reached. Rates that `measure.py` measured on another machine
replace them kind by kind, in the ratio to what the same program measured on that H100, so that the
difference between a single kernel and one in a step cancels.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean
from typing import Any

from figgen.catalog import load
from figgen.catalog.hardware import Accelerator
from figgen.catalog.measured_file import read_measured
from figgen.catalog.residuals import Residuals, residuals
from figgen.errors import InputError, check_share, unknown
from figgen.models.machine.layout import layout
from figgen.models.memory.fit_probability import fit_probability
from figgen.models.operations.device_job import DeviceJob
from figgen.models.operations.device_step import step_operations
from figgen.models.operations.kernel_rates import (
    REFERENCE_BYTES_PER_S,
    KernelRates,
    device_rates,
)
from figgen.models.operations.operation import (
    BROADCAST,
    CONTIGUOUS,
    COPY,
    FUSED,
    SCATTER,
    SOFTMAX,
    STRIDED,
)
from figgen.models.operations.peak_memory import DeviceMemory, device_memory
from figgen.models.operations.stack import STACKS, Stack
from figgen.models.operations.step_time import step_parts_s
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.model_shape import ModelShape
from figgen.models.step.compute import MFU_CONVENTION
from figgen.models.step.step import needed_utilisation
from figgen.scenarios.runs.fields import Record, whole_of
from figgen.scenarios.runs.machine_rates import rates_of
from figgen.scenarios.runs.measured_rates import Measured
from figgen.scenarios.runs.names import accelerator_of, recompute_of
from figgen.scenarios.runs.residual_classes import generation_of
from figgen.scenarios.runs.shape import shape_of

TRANSFORMERS = "transformers"
"""The framework name of these runs."""

CLASS = "transformers on one GPU"
"""The residual class of these runs, which gives the interval of a prediction."""

MULTIPROCESSORS = {
    "volta": (80, 1.53e9),
    "ampere": (108, 1.41e9),
    "hopper": (132, 1.98e9),
    "blackwell": (148, 1.98e9),
}
"""Multiprocessors of a generation's largest chip and their highest clock in Hz, from NVIDIA's
whitepapers and from `nvidia-smi` on an H100 and an H200."""
USUAL_MULTIPROCESSORS = 132

DEVICE_SPREAD = 0.092
"""The spread of what a step takes on the device, as that of a framework's peaks, which
`figgen.scenarios.evidence.fit_chances` computes from steps on an H100 and an H200."""

EMPTY = ("", "none")

ADAPTERS = "lora_rank"
"""The field of a record with the rank of adapters."""

PRECISION_FIELD, PRECISIONS = "float32_matmul_precision", ("highest", "high", "medium")
"""PyTorch's value of the setting that lets matmuls of FP32 tensors run in TF32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRun:
    """A run on one device and its measurements, None if the record has none."""

    name: str
    job: DeviceJob
    accelerator: Accelerator
    step_time_s: float | None
    allocated_bytes: float | None
    reserved_bytes: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedDevice:
    """A predicted step: seconds by part, which add up to it, and memory."""

    run: DeviceRun
    parts_s: Mapping[str, float]
    memory: DeviceMemory
    capacity_bytes: float
    residuals: Residuals

    @property
    def step_time_s(self) -> float:
        """Seconds of the step."""
        return sum(self.parts_s.values())

    @property
    def fit_probability(self) -> float:
        """Probability that the step stays within what the device reports to PyTorch."""
        return fit_probability(self.memory.device_bytes, self.capacity_bytes, DEVICE_SPREAD)

    @property
    def model_flops_utilisation(self) -> float:
        """MFU against the dense 16-bit peak, recomputation not counted."""
        return self.utilisation(MFU_CONVENTION)

    def utilisation(self, convention: str) -> float:
        """Return the MFU by a convention against the dense 16-bit peak.

        Gradients of frozen weights are not counted.
        """
        job = self.run.job
        setup = TrainingSetup(
            shape=job.shape,
            parallel=layout(nodes=1, gpus_per_node=1),
            microbatches=job.microbatches,
            microbatch_size=job.microbatch,
            sequence=job.sequence,
            lora_rank=job.lora_rank or None,
        )
        return needed_utilisation(
            setup,
            convention,
            tokens_per_s_per_gpu=setup.tokens_per_step / self.step_time_s,
            peak_flops_per_s=self.run.accelerator.peak_flops_per_s("bf16"),
        )


WAYS = {
    "eager": (False, True), "compiled": (True, True),
    "eager-bf16": (False, False), "compiled-bf16": (True, False),
}  # fmt: skip
"""Ways to run a step of plain transformers: eager or compiled, under autocast or in BF16."""


def device_run_of(setup: TrainingSetup, chip: Accelerator, way: str, name: str) -> DeviceRun:
    """Return a training setup as a run of plain transformers on one device.

    Raises InputError for several GPUs and for recomputing parts of layers.
    """
    if way not in WAYS:
        raise unknown("way of transformers", way, WAYS)
    if setup.parallel.world_size != 1:
        got = setup.parallel.world_size
        raise InputError(
            "GPUs of plain transformers", expected="1: nodes=1, gpus_per_node=1", got=got
        )
    if setup.lora_rank is not None:
        _check_adapters(setup.lora_matrices, setup.frozen_weights)
    if setup.recompute not in ("none", "full"):
        raise InputError("recompute", expected="none or full", got=setup.recompute)
    return DeviceRun(
        name=name,
        job=DeviceJob(
            shape=setup.shape,
            stack=STACKS[WAYS[way]],
            microbatch=setup.microbatch_size,
            microbatches=setup.microbatches,
            sequence=setup.sequence,
            recomputed=setup.recompute == "full",
            lora_rank=setup.lora_rank or 0,
        ),
        accelerator=chip,
        step_time_s=None,
        allocated_bytes=None,
        reserved_bytes=None,
    )


def _check_adapters(matrices: str, frozen: str) -> None:
    """Raise InputError for adapters whose operations are not listed for plain transformers."""
    if matrices != "all-linear":
        raise InputError("lora_matrices", expected="all-linear in plain transformers", got=matrices)
    if frozen != "16-bit":
        raise InputError("frozen_weights", expected="16-bit in plain transformers", got=frozen)


def is_device_run(record: object) -> bool:
    """Return whether a record describes plain transformers on one device."""
    if not isinstance(record, Mapping):
        return False
    framework = str(record.get("framework") or "").strip().lower()
    return framework.startswith(TRANSFORMERS) and record.get("num_accelerators", 1) == 1


def device_run(record: Record) -> DeviceRun:
    """Return the run of a record. Raises InputError naming the field at fault."""
    sequence = whole_of(record, "seq_length")
    microbatch = whole_of(record, "micro_batch", 1)
    batch = whole_of(record, "global_batch_sequences", microbatch)
    microbatches = whole_of(record, "microbatches", max(1, batch // microbatch))
    words = str(record.get("recompute") or "")
    recompute = recompute_of(words)
    if recompute not in (*EMPTY, "full"):
        raise InputError("recompute", expected="none or full", got=words)
    return DeviceRun(
        name=str(record.get("id", "run")),
        job=DeviceJob(
            shape=_shape(record, sequence),
            stack=_stack(record),
            microbatch=microbatch,
            microbatches=microbatches,
            sequence=sequence,
            recomputed=recompute == "full",
            lora_rank=whole_of(record, ADAPTERS, 0),
        ),
        accelerator=accelerator_of(str(record.get("hardware") or "")),
        step_time_s=_measured(record, "step_time_s"),
        allocated_bytes=_measured(record, "peak_allocated_bytes"),
        reserved_bytes=_measured(record, "peak_reserved_bytes"),
    )


def _stack(record: Record) -> Stack:
    """Return the software stack of a record, which may set PyTorch's FP32 matmul precision."""
    state = str(record.get("state") or "autocast").lower()
    stack = STACKS[bool(record.get("compiled")), "autocast" in state or "fp32" in state]
    precision = str(record.get(PRECISION_FIELD) or "high")
    if precision not in PRECISIONS:
        raise InputError(PRECISION_FIELD, expected=" or ".join(PRECISIONS), got=precision)
    return replace(stack, tf32=precision != "highest")


def _measured(record: Record, field: str) -> float | None:
    value = record.get(field)
    return float(value) if isinstance(value, int | float) and value > 0 else None


def _shape(record: Record, sequence: int) -> ModelShape:
    """Return the model's shape, with what its class determines beyond its sizes."""
    shape, given = shape_of(record, sequence), record.get("shape")
    named = str(record.get("model_class") or "").lower()
    norms = given.get("qk_norm") if isinstance(given, Mapping) else None
    if named.startswith("gpt2"):
        return replace(
            shape, ffn="gelu", norm="layernorm", bias=True, learned_positions=True,
            sequence=max(1024, sequence),
        )  # fmt: skip
    if norms or named.startswith("qwen3"):
        return replace(shape, qk_norm=str(norms or "per-head"))
    return shape


def predicted_device(
    run: DeviceRun, measured: Measured | None = None, compute_efficiency: float | None = None
) -> PredictedDevice:
    """Predict a run, with rates `measured` on its machine if there are any.

    `compute_efficiency` is the share of the peak that matmuls reach. Raises InputError if it is
    outside 0 … 1.
    """
    rates = rates_on(run.accelerator, measured or {})
    if compute_efficiency is not None:
        check_share("compute_efficiency", compute_efficiency)
        peak = run.accelerator.peak_flops_per_s("bf16")
        rates = replace(rates, matmul_flops_per_s=compute_efficiency * peak)
    return PredictedDevice(
        run=run,
        parts_s=device_parts_s(run, rates),
        memory=device_memory(run.job),
        capacity_bytes=(measured or {}).get("capacity", (run.accelerator.capacity_bytes,))[0],
        residuals=residuals()[CLASS],
    )


def device_parts_s(run: DeviceRun, rates: KernelRates) -> dict[str, float]:
    """Return the seconds of a run's step by part."""
    return step_parts_s(step_operations(run.job), rates, run.job.stack)


def device_step_s(run: DeviceRun) -> float:
    """Return the seconds of a run's step by the datasheet of its chip."""
    return sum(device_parts_s(run, rates_on(run.accelerator, {})).values())


def rates_on(chip: Accelerator, measured: Measured) -> KernelRates:
    """Return a chip's rates by its datasheet, or scaled by those `measured` on it."""
    return _beside_reference(_datasheet_rates(chip), measured)


def _datasheet_rates(chip: Accelerator) -> KernelRates:
    """Return a chip's rates by its datasheet.

    If its clock is unknown, every pass scales with bandwidth.
    """
    issue = issue_rate_of(chip)
    bandwidth = chip.hbm_bandwidth_bytes_per_s
    return device_rates(
        flops_per_s=chip.peak_flops_per_s("bf16"),
        tf32_flops_per_s=_tf32_peak(chip),
        bytes_per_s=bandwidth,
        issue=bandwidth / REFERENCE_BYTES_PER_S if issue is None else issue,
        multiprocessors=multiprocessors_of(chip),
    )


def _tf32_peak(chip: Accelerator) -> float:
    try:
        return chip.peak_flops_per_s("tf32")
    except InputError:
        return chip.peak_flops_per_s("bf16") / 2


def _beside_reference(rates: KernelRates, measured: Measured) -> KernelRates:
    """Return the rates, scaling every kind that was measured here from the reference machine.

    The scale is the ratio of what the same version of `measure.py` measured here and there. Files
    of version 1 have no rates by kind of access.
    """
    usual = _datasheet_rates(load.accelerators.only(REFERENCE)[REFERENCE])
    known = reference_rates(alone="memory" in measured and "contiguous" not in measured)
    fields: dict[str, float] = {}
    access = dict(rates.access_bytes_per_s)
    for name, parts in MEASURED_BY.items():
        # The nearest measured part counts; `memory` substitutes for every kind of pass.
        part = next((one for one in parts if one in measured), None)
        if part is None:
            continue
        ratio = measured[part][0] / known[part][0]
        if name in access:
            access[name] = usual.access_bytes_per_s[name] * ratio
        else:
            fields[name] = getattr(usual, name) * ratio
    if "fusedloss" in measured and "contiguous" in measured:
        # A fused pass counts half as a contiguous pass and half as a compiled loss.
        seconds = fmean(known[one][0] / measured[one][0] for one in ("fusedloss", "contiguous"))
        access[FUSED] = usual.access_bytes_per_s[FUSED] / seconds
    return replace(rates, access_bytes_per_s=access, **fields)


REFERENCE = "h100-sxm-80gb"
"""The chip on whose steps the shares were measured."""

MEASURED_BY: Mapping[str, tuple[str, ...]] = {
    "matmul_flops_per_s": ("bf16",),
    "unaligned_flops_per_s": ("bf16",),
    "grouped_flops_per_s": ("bf16",),
    "grouped_fp32_flops_per_s": ("tf32", "bf16"),
    "grouped_full_flops_per_s": ("tf32", "bf16"),
    "attention_64_flops_per_s": ("attention",),
    "attention_128_flops_per_s": ("attention",),
    "masked_64_flops_per_s": ("masked", "attention"),
    "masked_128_flops_per_s": ("masked", "attention"),
    CONTIGUOUS: ("contiguous", "memory"),
    COPY: ("contiguous", "memory"),
    BROADCAST: ("broadcast", "memory"),
    STRIDED: ("strided", "memory"),
    SOFTMAX: ("loss", "memory"),
    SCATTER: ("loss", "memory"),
    FUSED: ("contiguous", "memory"),
    "optimizer_fp32_bytes_per_s": ("adam32", "memory"),
    "optimizer_bf16_bytes_per_s": ("adam16", "memory"),
}
"""For each rate, the parts of a measured file that can replace it, nearest first."""


@cache
def reference_rates(*, alone: bool = False) -> Mapping[str, tuple[float, ...]]:
    """Return what `measure.py` measured on the machine on whose steps the shares were measured.

    With `alone`, return what its first version measured there, which timed each kernel alone, with
    its launch: passes over 1 to 1.6 GB took 7 to 23 µs longer.
    """
    file = "measured-h100-alone.json" if alone else "measured-h100.json"
    return rates_of(read_measured(load.content(file))).known


def issue_rate_of(chip: Accelerator) -> float | None:
    """Return multiprocessors times clock relative to the reference, None if unknown."""
    generation = generation_of(chip)
    if generation not in MULTIPROCESSORS:
        return None
    count, clock_hz = MULTIPROCESSORS[generation]
    reference, reference_hz = MULTIPROCESSORS["hopper"]
    return count * clock_hz / (reference * reference_hz)


def multiprocessors_of(chip: Accelerator) -> int:
    """Return the multiprocessors of a chip, by its generation."""
    return MULTIPROCESSORS.get(generation_of(chip), (USUAL_MULTIPROCESSORS, 0.0))[0]


PREDICTED_BEFORE = "predicted_before_s"
"""The field that marks records which were predicted before they were timed, not used for rates."""

STEP_FILES = ("steps-h100.json", "steps-h200.json")
"""Files of the catalog with steps measured on one GPU."""


def measured_steps() -> tuple[Record, ...]:
    """Return the records of steps measured on one GPU with all weights trained."""
    return tuple(record for record in _recorded_steps() if not record.get(ADAPTERS))


def adapter_steps() -> tuple[Record, ...]:
    """Return the records of steps on one GPU that trained LoRA adapters."""
    return tuple(record for record in _recorded_steps() if record.get(ADAPTERS))


@cache
def _recorded_steps() -> tuple[Record, ...]:
    return tuple(record for name in STEP_FILES for record in json.loads(load.content(name))["runs"])


def device_answer(found: PredictedDevice) -> dict[str, Any]:
    """Return a predicted run as data for JSON."""
    run, seconds, held = found.run, found.step_time_s, found.memory
    tokens = run.job.tokens * run.job.microbatches
    answer: dict[str, Any] = {
        "id": run.name,
        "stack": run.job.stack.name,
        "step_time_s": seconds,
        "step_time_interval_s": [seconds * found.residuals.low, seconds * found.residuals.high],
        "interval_of": found.residuals.name,
        "parts": dict(found.parts_s),
        "tokens_per_s_per_gpu": tokens / seconds,
        "model_flops_utilisation": found.model_flops_utilisation,
        "memory_bytes": held.reserved_bytes,
        "allocated_bytes": held.allocated_bytes,
        "memory_device_bytes": held.device_bytes,
        "memory_peak_at": held.moment,
        "capacity_bytes": found.capacity_bytes,
        "fits": found.fit_probability >= 0.5,
        "fit_probability": found.fit_probability,
    }
    if run.step_time_s is not None:
        answer["measured_step_time_s"] = run.step_time_s
        answer["difference"] = seconds / run.step_time_s - 1
    return answer
