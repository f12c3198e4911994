"""Printed numbers and what they should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from figgen.catalog import accelerator, link
from figgen.charts import Axis, Bars, Named
from figgen.formulas.alpha_beta import point_to_point_crossover_bytes
from figgen.formulas.collectives import ring_all_reduce_time
from figgen.formulas.compute_and_roofline import ridge_point
from figgen.formulas.context_parallel import kv_transfer_time
from figgen.formulas.data_parallel import top_k_compression_ratio
from figgen.formulas.pipeline import bubble_fraction
from figgen.formulas.rank_mapping import dense_world_size
from figgen.formulas.scale_and_state import (
    growth_for_loss_ratio,
    largest_replicated_model,
    zero_state_bytes,
)
from figgen.formulas.tensor_parallel import tensor_parallel_layer_bytes
from figgen.plotting.series import segments
from figgen.registry import figure

GB = 1e9


@dataclass(frozen=True, slots=True)
class Misprint:
    """A printed quantity in SI, and the computed one."""

    what: str
    printed: float
    computed: float

    @property
    def factor(self) -> float:
        """Ratio of the larger to the smaller of printed and computed; 1 if they agree."""
        return max(self.printed / self.computed, self.computed / self.printed)

    @property
    def side(self) -> Literal["too large", "too small"]:
        return "too large" if self.printed > self.computed else "too small"


def misprints() -> tuple[Misprint, ...]:
    """The numbers of the appendix that are single quantities, worst first."""
    found = (*_of_messages(), *_of_machines(), *_of_layouts())
    return tuple(sorted(found, key=lambda entry: -entry.factor))


def _of_machines() -> tuple[Misprint, ...]:
    a100, nvlink3 = accelerator("a100-sxm-80gb"), link("nvlink3").bandwidth.value
    nvlink4, hdr = link("nvlink4").bandwidth.value, link("ib-hdr").bandwidth.value
    ridge = float(ridge_point(a100.peak_flops_per_s("bf16"), nvlink3))
    return (
        Misprint("InfiniBand HDR", 200 * GB, hdr),
        Misprint("NVLink 4", 900 * GB, nvlink4),
        Misprint(
            "Peak of an H100 in BF16",
            1979e12,
            accelerator("h100-sxm-80gb").peak_flops_per_s("bf16"),
        ),
        Misprint("Ridge of an A100 over NVLink", 312e12 / (900 * GB), ridge),
        Misprint(
            "Crossover size of NVLink at 1 µs",
            3500.0,
            float(point_to_point_crossover_bytes(1e-6, nvlink4)),
        ),
    )


def _of_messages() -> tuple[Misprint, ...]:
    return (
        Misprint(
            "Keys and values of 2,048 tokens over 100 GB/s",
            0.67e-6,
            float(kv_transfer_time(2048, 8192, 2, 100 * GB)),
        ),
        Misprint(
            "All-reduce of 140 GB over eight A100",
            0.23,
            float(ring_all_reduce_time(8, 140 * GB, 0, link("nvlink3").bandwidth.value)),
        ),
        Misprint(
            "Top 1% of a gradient, indices kept",
            100.0,
            float(top_k_compression_ratio(4, 0.01, 4, 8)),
        ),
        Misprint(
            "A GPT-3 layer's tensor-parallel bytes, TP 8",
            175e6,
            float(tensor_parallel_layer_bytes(4, 8, 1, 2048, 12288, 2)),
        ),
    )


def _of_layouts() -> tuple[Misprint, ...]:
    zero = zero_state_bytes(10e9, 2, 2, 12, dp=8, zero_stage=1)
    return (
        Misprint(
            "Half the loss by parameters alone, L ∝ N^−0.076",
            8000.0,
            float(growth_for_loss_ratio(2)),
        ),
        Misprint("DP 8 × PP 8 × TP 8 × EP 8, in GPUs", 4096.0, float(dense_world_size(8, 1, 8, 8))),
        Misprint(
            "Largest model that 80 GB hold replicated",
            10e9,
            float(largest_replicated_model(80 * GB, 1, 16)),
        ),
        Misprint("ZeRO-1 of 10B parameters on eight GPUs", 50 * GB, float(zero)),
        Misprint(
            "Idle share of four stages, four microbatches", 0.75, float(bubble_fraction(4, 4))
        ),
    )


@figure("misprint-factors")
def misprint_factors() -> Bars:
    """The factor by which each printed number differs from the computed one."""
    found = misprints()
    return Bars(
        labels=tuple(f"{entry.what} ({entry.side})" for entry in found),
        segments=segments({"printed against computed": [entry.factor for entry in found]}),
        axis=Axis(label="factor between print and computation", scale="log10", low=1.0),
        values={
            "count": Named(len(found)),
            "most": Named(found[0].factor),
            "twice": Named(sum(1.9 < entry.factor < 2.1 for entry in found)),
            "least": Named(found[-1].factor),
        },
    )
