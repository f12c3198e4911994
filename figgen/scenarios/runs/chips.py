"""What a chip sustains of its peaks, whatever the software.

Shares come from measured rates of the chip itself or of a related one.
"""

from __future__ import annotations

from figgen.catalog import load
from figgen.catalog.hardware import DTYPES, Accelerator
from figgen.scenarios.runs.device_run import MULTIPROCESSORS
from figgen.scenarios.runs.residual_classes import generation_of

REFERENCES = {
    "volta": "v100-sxm2-32gb",
    "ampere": "a100-sxm-80gb",
    "hopper": "h100-sxm-80gb",
    "blackwell": "b200-sxm-hgx",
}
"""The chip of each generation whose measured matmul rates, relative to peak, represent it."""

CAPPED = ("h20-sxm-96gb", "rtx-3090", "rtx-4090", "rtx-5090")
CAPPED_SHARE = 110 / 119.5
"""Chips whose tensor cores are deliberately slowed down, so that power does not limit them, and the
share of the peak that cuBLAS reaches on one of them: 105 to 115 of the 119.5 TFLOP/s of an L20
(xlite-dev/CUDA-Learn-Notes, kernels/hgemm/README.md). On an RTX 4090 a kernel of tinygrad's pull
request 11390 reached 168 of 165 TFLOP/s."""

STAND_INS = {"mi350x": "mi355x"}
"""For chips without a measured rate, one of the same silicon at a different clock that has one."""

UNMEASURED = 0.8
"""Share of the peak assumed for chips without a measured matmul rate in the catalog."""

ATTENTION_LIKE = {
    **dict.fromkeys((*CAPPED, "rtx-a5000", "rtx-a6000", "a10"), "ampere"),
    **dict.fromkeys(("l4", "l40s", "rtx-6000-ada"), "l40s"),
    **dict.fromkeys(("mi250", "mi250x", "mi300x", "mi325x"), "mi300x"),
}
"""Maps chips to the one whose attention reaches the same share of the peak, if not the
generation's.

FlashAttention 2 uses the instructions of Ampere, which Ada and Ampere's cards have too. Slowed-down
tensor cores bound it on all of them alike.
"""


HOST_BYTES_PER_S = 285e9
"""Memory bandwidth that a node's CPUs reach in an update of the optimizer's state: 30.5 billion
parameters in 3.0 s on a node of eight H200 (PrimeIntellect-ai/prime-rl pull request 3234, at 8K
tokens; the step grew from 1.75 s to 3.96 s, and part of the update ran behind the backward)."""

GRACE_BYTES_PER_S = 512e9
"""Bandwidth of a Grace CPU's LPDDR5X (NVIDIA, GH200 and GB200 NVL72 datasheets)."""


def matmul_share(chip: Accelerator, dtype: str) -> float:
    """Return the measured matmul rate over peak, of this chip or of the one that represents it."""
    if known_name(chip) in CAPPED:
        return CAPPED_SHARE
    reference = REFERENCES.get(generation_of(chip), STAND_INS.get(chip.name))
    source = load.accelerators.only(reference)[reference] if reference else chip
    # Wherever both were measured the shares agree, so one represents the other.
    order = ("bf16", "fp8") if dtype in ("bf16", "fp16", "tf32") else ("fp8", "bf16")
    for name in order:
        measured = getattr(source, f"measured_{name}")
        if measured is not None:
            return float(measured.value) / source.peak_flops_per_s(name)
    return UNMEASURED


def sustained_by(chip: Accelerator) -> tuple[str, ...]:
    """Return keys of the share of a measured matmul rate that a step sustains, nearest first."""
    generation = generation_of(chip)
    if generation != "other":
        return (generation,)
    if chip.vendor == "Google":
        return ("tpu",)
    name = known_name(chip)
    measured = name in CAPPED or name in STAND_INS or chip.measured_bf16 is not None
    return (name, "measured" if measured else "other")


def known_name(chip: Accelerator) -> str:
    """Return the name of a chip with the catalog's peaks, or "" for a reader's own chip."""
    if chip.name not in load.accelerators.names():
        return ""
    known = load.accelerators.only(chip.name)[chip.name]
    return chip.name if chip is known or _peaks(chip) == _peaks(known) else ""


def _peaks(chip: Accelerator) -> tuple[float | None, ...]:
    """Return the peaks by format, None for formats that the chip lacks."""
    found = [getattr(chip, dtype) for dtype in DTYPES]
    return tuple(None if peak is None else peak.value for peak in found)


def attention_by(chip: Accelerator) -> tuple[str, ...]:
    """Return the keys of the share of the peak that attention reaches, nearest first."""
    name = known_name(chip)
    return (ATTENTION_LIKE.get(name, name), generation_of(chip))


def plain_peak(chip: Accelerator) -> float:
    """Return the 16-bit peak, FLOP/s."""
    return chip.peak_flops_per_s("bf16" if chip.bf16 else "fp16")


def hopper_peak_on(generation: str) -> float:
    """Return the 16-bit peak of Hopper with the number of multiprocessors of a generation."""
    name, sms = REFERENCES["hopper"], MULTIPROCESSORS
    peak = load.accelerators.only(name)[name].peak_flops_per_s("bf16")
    return peak * sms[generation][0] / sms["hopper"][0]


def neighbor_share(chip: Accelerator) -> float:
    """Return the share of a chip's links in a node that reach one peer.

    That is all of them behind a switch, and one link in a mesh or a torus.
    """
    peer = chip.scale_up.peer_bandwidth or chip.scale_up.bandwidth
    return peer.value / chip.scale_up_bandwidth_bytes_per_s


def host_link_bytes_per_s(chip: Accelerator) -> float:
    """Return the bandwidth that a GPU reaches on its link to the host.

    The link is NVLink-C2C, which two Blackwell GPUs share, or PCIe of the chip's generation.
    """
    if beside := gpus_of_a_grace(chip):
        return load.links()["nvlink-c2c"].bandwidth_bytes_per_s / beside
    generation = 3 if chip.year < 2019 else 4 if chip.year < 2022 else 5
    own = load.links()[f"pcie{generation}-x16"]
    return (own.achieved_bandwidth or own.bandwidth).value


def gpus_of_a_grace(chip: Accelerator) -> int:
    """Return how many GPUs share a Grace CPU, or 0 for a chip without one."""
    return {"gh": 1, "gb": 2}.get(chip.name[:2], 0)


def host_bytes_per_s(chip: Accelerator) -> float:
    """Return the memory bandwidth of all CPUs of a node.

    Grace CPUs count over the whole scale-up domain; in a part of it NVLink-C2C is slower anyway.
    """
    beside = gpus_of_a_grace(chip)
    return chip.scale_up_domain / beside * GRACE_BYTES_PER_S if beside else HOST_BYTES_PER_S
