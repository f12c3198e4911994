"""What a run attains, from the constants of `rates.toml`: which apply to it, and how.

Every field of `Attained` is a datasheet's number times constants, so a fit in logarithms is linear
in them. `terms_of` gives, for each field, the number and the names of its constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from math import prod

from figgen.catalog.rates import constants
from figgen.errors import InputError
from figgen.models.operations.kernel_rates import MATMUL_SHARE, UNALIGNED_FLOPS_PER_S
from figgen.models.setup.training_setup import CUDA_GRAPHS, DISPATCHERS, EXPERT_OVERLAPS
from figgen.models.step.attained import Attained
from figgen.models.step.timed_step import UPDATE_BYTES
from figgen.scenarios.runs.chips import (
    attention_by,
    hopper_peak_on,
    host_bytes_per_s,
    host_link_bytes_per_s,
    matmul_share,
    neighbor_share,
    plain_peak,
    sustained_by,
)
from figgen.scenarios.runs.classes import run_class
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.device_run import issue_rate_of
from figgen.scenarios.runs.fusing import (
    COMPILED,
    DROPPED_BYTES,
    FUSED_SCORE_BYTES,
    MEGATRON,
    MODULES,
    SCORE_BYTES,
    TORCH,
    UNDROPPED_SCORE_BYTES,
    WHOLE_GRAPH,
    fusing_of,
    is_one_program,
    pads_matmuls,
    torch_update_bytes,
)
from figgen.scenarios.runs.measured_rates import head_share
from figgen.scenarios.runs.names import UNKNOWN_SOFTWARE
from figgen.scenarios.runs.rate_row import (
    NOTHING_GIVEN,
    GivenRates,
    RateRow,
    attained_of,
    is_efa,
    written_flops_per_s,
)
from figgen.scenarios.runs.residual_classes import (
    family_of,
    generation_of,
)
from figgen.scenarios.runs.setup import memory_framework

ERAS = (
    (25.25, "until-2025-02"),
    (25.5, "until-2025-06"),
    (26.0, "until-2025-12"),
    (26.4, "until-2026-04"),
)
"""Releases of NeMo and Megatron-Bridge as year + month/12, with the names of their eras."""

USUAL = {
    "until-2025-02": ("all-to-all", "off", "none", "unfused"),
    "until-2025-06": ("all-to-all", "off", "none", "unfused"),
    "until-2025-12": ("deepep", "off", "none", "fused"),
    "until-2026-04": ("hybridep", "off", "layers", "fused"),
    "later": ("hybridep", "off", "layers", "fused"),
    "deepseek": ("deepep", "on", "none", "fused"),
    "unnamed": ("all-to-all", "off", "none", "fused"),
}
"""Defaults of most recipes of a release: dispatcher, overlap of experts' messages, CUDA graphs, and
how tokens are sorted. From Megatron-Bridge's scripts/performance, tags v0.2 to v0.6; before them
Megatron-LM's fused sorting (moe_permute_fusion) is assumed off. Other software and unnamed releases
have Megatron-LM's defaults, with its all-to-all."""

FLASH_2_ON_HOPPER = "attention_kernel.torchtitan"
"""torchtitan uses PyTorch's attention, which was FlashAttention 2 on the H100s of its runs."""

HOPPER, FLASH_3_ON_HOPPER = "attention_share.hopper", "attention_share.flash-3-on-hopper"

PRIME_LOSSES = {"prime-rl": "chunks", "prime-rl-logits": MODULES}
"""How prime-rl computes its loss, by the memory that it fills."""

PLAIN_ATTENTION = ("pytorch", UNKNOWN_SOFTWARE)
"""Families with torchtitan's attention unless a source names another."""


Terms = Mapping[str, tuple[float, tuple[str, ...]]]
"""For each field of `Attained`, a number and the names of the constants that multiply it."""


def era_of(run: DescribedRun) -> str:
    """Return the era of a run's release, or without one, of the first years of its chip."""
    if run.framework == "deepseek":
        return "deepseek"
    if run.version is None or family_of(run) != "megatron":
        return "unnamed"
    return next((name for end, name in ERAS if run.version < end), "later")


def terms_of(run: DescribedRun) -> Terms:
    """Return what every field of `Attained` is made of for a run."""
    chip, family, era = run.accelerator, family_of(run), era_of(run)
    fusing = fusing_of(run)
    exposing = "megatron-2021" if family == "megatron" and chip.vendor != "NVIDIA" else family
    product = plain = _matmul_shares(run, family)
    if run.dtype in ("fp8", "fp4"):
        product += (f"format_share.{run.number_format}",)
    dtype = run.dtype
    rate = chip.peak_flops_per_s(dtype) * matmul_share(chip, dtype)
    plain_rate = plain_peak(chip) * matmul_share(chip, "bf16")
    attention_peak, attention = _attention(run)
    own = chip.scale_up.step_latency  # the fitted share is that of NCCL's rings
    usual = USUAL[era]
    return {
        "matmul_flops_per_s": (rate, product),
        "plain_flops_per_s": (plain_rate, plain),
        "unaligned_share": (_unaligned_share(run), ()),
        "expert_flops_per_s": (rate, (*product, "expert_share.all")),
        "attention_flops_per_s": (attention_peak * head_share(run.shape.head_dim), attention),
        "attention_start_keys": _start_keys(run),
        "memory_bytes_per_s": (chip.hbm_bandwidth_bytes_per_s, ("memory_share.all",)),
        **_link_terms(run, family),
        "matmul_start_s": (0.0, ()),
        "elementwise": (1.0, (f"elementwise.{fusing}",)),
        "cast": (1.0, ("cast.all",)),
        "permutation": (1.0, (f"permutation.{_sorting(run, fusing, usual[3])}",)),
        "loss_bytes": (1.0, (_one("loss_bytes", _loss(run, fusing)),)),
        "accumulate_bytes": (ACCUMULATED.get(family, 8.0), ()),
        "optimizer": _optimizer(run, family),
        **_launch_terms(run, family, fusing),
        "scatter_latency_s": _present("scatter_latency_s", family),
        "step_s": (1.0, (_one("step_s", family),)),
        # Megatron-Core hides them with Transformer Engine's buffers, which need CUDA.
        "exposed_tensor": (1.0, (_one("exposed_tensor", exposing),)),
        "exposed_context": (1.0, ("exposed_context.all",)),
        "exposed_experts": (1.0, ("exposed_experts.all",)),
        "exposed_within_experts": (1.0, ("exposed_within_experts.all",)),
        "dispatcher": (float(DISPATCHERS[usual[0]]), ()),
        "expert_overlap": (float(EXPERT_OVERLAPS[usual[1]]), ()),
        "cuda_graphs": (float(CUDA_GRAPHS[usual[2]]), ()),
        "graphed_host": (1.0, ("graphed_host.all",)),
        "flexible_host": (1.0, ("flexible_host.all",)),
        "exposed_pipeline": (1.0, (_one("exposed_pipeline", family),)),
        "exposed_data": (1.0, (_one("exposed_data", family),)),
        "latency_s": (1.0, ("latency_s.all",)),
        "near_latency_s": (own.value, ()) if own else (1.0, ("near_latency_s.all",)),
        "straggling": (1.0, ("straggling.all",)),
        "neighbor_share": (neighbor_share(chip), ()),
        "host_link_bytes_per_s": (host_link_bytes_per_s(chip), ()),
        "host_update_s": (HOST_UPDATE_S.get(run.framework, TORCH_UPDATE_S), ()),
        "host_bytes_per_s": (host_bytes_per_s(chip), ()),
    }


def _unaligned_share(run: DescribedRun) -> float:
    """Return the rate of matmuls of a width that tensor cores dislike, over that of others."""
    issue = issue_rate_of(run.accelerator)
    if issue is None or pads_matmuls(run):
        return 1.0
    sustained = MATMUL_SHARE * plain_peak(run.accelerator)
    return min(1.0, UNALIGNED_FLOPS_PER_S * issue / sustained)


def _sorting(run: DescribedRun, fusing: str, usual: str) -> str:
    """Return how tokens are sorted by expert; PyTorch's modules do it by indexing."""
    if run.framework == "torchtitan":
        return "torchtitan"
    return usual if fusing == MEGATRON else "unfused"


def _loss(run: DescribedRun, fusing: str) -> str:
    """Return how the loss is computed: as everything is fused, or otherwise.

    torchtitan compiles its loss since December 2024 (pull request 702). prime-rl compiles layers
    only; its trainer for reinforcement learning computes logits, log-probabilities and entropy by
    chunks of the vocabulary (PrimeIntellect-ai/prime-rl@c330a6d4e, trainer/model.py,
    trainer/models/layers/lm_head.py).
    """
    if run.habits in PRIME_LOSSES:
        return PRIME_LOSSES[run.habits]
    early = memory_framework(run.framework, run.version) == "torchtitan-2024"
    if fusing == MEGATRON:
        return _fused_loss(run)
    return MODULES if early and fusing == COMPILED else fusing


def _fused_loss(run: DescribedRun) -> str:
    """Return the kernels of Megatron-Core's loss that a source names; the fit saw all of them."""
    own = run.memory_habits == "megatron-fused-loss"
    return run.fused_loss or ("native" if own else MEGATRON)


def _link_terms(run: DescribedRun, family: str) -> Terms:
    """Return the bandwidths, in bytes per second, inside a node and between nodes."""
    near = run.accelerator.scale_up_bandwidth_bytes_per_s
    network = run.network_bytes_per_s
    share = "efa" if is_efa(run.network.name) else family
    return {
        "scale_up_bytes_per_s": (near, ("scale_up_share.all",)),
        "network_bytes_per_s": (network, (_one("network_share", share),)),
        "shuffle_bytes_per_s": (network, ("shuffle_share.all",)),
        "near_shuffle_bytes_per_s": (near, ("scale_up_share.all",)),
    }


def _launch_terms(run: DescribedRun, family: str, fusing: str) -> Terms:
    """Return the seconds that the host needs to launch layers and messages."""
    launching = 0.0 if is_one_program(run) else 1.0
    return {
        "host_layer_s": (launching, (_one("host_layer_s", family, fusing),)),
        "host_expert_layer_s": (launching, _expert_host(run)),
        **{
            field: (1.0 if _optional(field, family) else 0.0, _optional(field, family))
            for field in ("host_crossing_s", "host_chained_s", "hop_s", "near_hop_s")
        },
    }


def _matmul_shares(run: DescribedRun, family: str) -> tuple[str, ...]:
    """Return the constants that multiply the 16-bit peak of matmuls."""
    chip = run.accelerator
    found: tuple[str, ...] = (_one("matmul_share", *sustained_by(chip)),)
    # XLA's share was fitted on GPUs.
    if chip.vendor == "NVIDIA" or family == UNKNOWN_SOFTWARE:
        found += _optional("framework_share", "xla" if family in WHOLE_GRAPH else family)
    return found + _optional("power_share", chip.name) + _release(run, generation_of(chip))


def _expert_host(run: DescribedRun) -> tuple[str, ...]:
    """Return the constants of the host's time for an expert layer."""
    chip = run.accelerator
    found: tuple[str, ...] = ("host_expert_layer_s.all",)
    # GH and GB chips come with Grace.
    if generation_of(chip) != "other" and not chip.name.startswith("g"):
        found += ("host_x86.all",)
    # With a fixed capacity, launching experts needs no counts from the GPU.
    return (*found, "host_token_drop.all") if "tokendrop" in run.name.lower() else found


def _attention(run: DescribedRun) -> tuple[float, tuple[str, ...]]:
    """Return the FLOP/s of which attention reaches a share, and the constants of the share.

    If the source names no kernel, it is the framework's usual one. FlashAttention 3 is written for
    Hopper. FlashAttention 2 is written for Ampere, whose
    instructions Hopper and Blackwell run too; it reaches 35% of an H100 (Shah et al. 2024,
    arXiv:2407.08608) and is assumed to be as fast on a multiprocessor of Blackwell.
    """
    chip, named, generation = run.accelerator, run.flash_attention, generation_of(run.accelerator)
    if _writes_scores(run):
        return _written_scores(run)
    share = _one("attention_share", *attention_by(chip))
    if (named, share) == (3, HOPPER):
        return plain_peak(chip), (FLASH_3_ON_HOPPER,)
    if (named, generation) == (2, "blackwell"):
        return hopper_peak_on(generation), (HOPPER, FLASH_2_ON_HOPPER)
    family = family_of(run)
    usual = _optional("attention_kernel", "torchtitan" if family in PLAIN_ATTENTION else family)
    if usual == (FLASH_2_ON_HOPPER,) and not _is_newer_than_flash_2(run):
        usual = ()
    native = named == 3 or (named == 2 and generation != "hopper")
    older = usual if generation != "other" and not native else ()
    if named == 1:
        older = ("attention_kernel.flash-1",)
    return plain_peak(chip), (share, *older)


def _has_usual_kernel(run: DescribedRun) -> bool:
    """Return whether attention runs PyTorch's or cuDNN's kernel for its chip."""
    if _writes_scores(run) or (run.flash_attention == 2 and _is_newer_than_flash_2(run)):
        return False
    usual = _one("attention_share", *attention_by(run.accelerator))
    return set(_attention(run)[1]) <= {usual, FLASH_2_ON_HOPPER}


def _is_newer_than_flash_2(run: DescribedRun) -> bool:
    return generation_of(run.accelerator) in ("hopper", "blackwell")


def _start_keys(run: DescribedRun) -> tuple[float, tuple[str, ...]]:
    """Return the additional keys that FlashAttention's tiles cost; none if scores are written."""
    flash = 0.0 if _writes_scores(run) else 1.0
    return flash, (_one("attention_start_keys", *attention_by(run.accelerator)),)


def _writes_scores(run: DescribedRun) -> bool:
    """Return whether every score goes to memory: PyTorch's operators, and before FlashAttention."""
    if family_of(run) == "megatron-2021":
        return not run.flash_attention
    if _lacks_latent_kernel(run):
        return True
    return run.stores_scores and fusing_of(run) == MODULES


BEFORE_CUDNN_9_11 = 25.5
"""Last release with an older cuDNN: May 2025."""


def _lacks_latent_kernel(run: DescribedRun) -> bool:
    """Whether Transformer Engine lacks a fused kernel for the backward of this run's attention.

    On Blackwell, heads of 192 for keys and 128 for values have one since cuDNN 9.11 (condition in
    NVIDIA/TransformerEngine, common/fused_attn/fused_attn.cpp); FlashAttention 3 is for Hopper. The
    recipe of that time recomputes the core on GB200 only (NVIDIA/dgxc-benchmarking@68eaf7e,
    deepseek_v3/pretraining/launch.sh).
    """
    latent = run.shape.latent is not None and generation_of(run.accelerator) == "blackwell"
    named = family_of(run) == "megatron" and run.version is not None
    return latent and named and (run.version or 0) < BEFORE_CUDNN_9_11


def _written_scores(run: DescribedRun) -> tuple[float, tuple[str, ...]]:
    """Return the FLOP/s of attention that writes every score, and its constants."""
    chip, head = run.accelerator, run.shape.head_dim
    peak, bandwidth = plain_peak(chip), chip.hbm_bandwidth_bytes_per_s
    rate = written_flops_per_s(peak, bandwidth, _score_bytes(run), head)
    return rate / head_share(head), ("memory_share.all",)


def _score_bytes(run: DescribedRun) -> float:
    """Return the bytes that a score written to memory moves, or 0 if none is."""
    if not _writes_scores(run):
        return 0.0
    if fusing_of(run) == MODULES:
        return SCORE_BYTES + (DROPPED_BYTES if run.dropout else 0.0)
    return UNDROPPED_SCORE_BYTES if _lacks_latent_kernel(run) else FUSED_SCORE_BYTES


TORCH_UPDATE_S = 1.4e-9
"""Seconds per parameter of torch's Adam on the host: Ren et al. 2021 (ZeRO-Offload),
arXiv:2101.06840, table 4, PT-CPU at 1 to 10 billion parameters."""
HOST_UPDATE_S = {"megatron-deepspeed": 0.25e-9}
"""Seconds per parameter of DeepSpeed's CPU Adam, from the same table."""


ACCUMULATED = {
    "llm-foundry": 4.0, "torchtitan": 4.0, "maxtext": 4.0, "paxml": 4.0, "nanotron": 14.0,
}  # fmt: skip
"""Bytes per weight that accumulating a microbatch's gradient moves. In Megatron-Core the matmul
itself reads and writes 4 in FP32; nanotron's hooks also read 16-bit gradients."""


def _release(run: DescribedRun, generation: str) -> tuple[str, ...]:
    named = generation == "blackwell" and family_of(run) == "megatron"
    if not named or run.version is None or run.version >= 26:
        return ()
    month = "2025-05" if run.version < 25.6 else "2025-12"
    return (f"release_share.blackwell-{month}",)


def _optional(group: str, key: str) -> tuple[str, ...]:
    name = f"{group}.{key}"
    return (name,) if name in constants() else ()


def _present(group: str, key: str) -> tuple[float, tuple[str, ...]]:
    found = _optional(group, key)
    return (1.0 if found else 0.0), found


def _one(group: str, *keys: str) -> str:
    """Return the name of the constant for the first key that has one.

    The keys "all" and "megatron" are tried last. Raises InputError if there is none.
    """
    for candidate in (*keys, "all", "megatron"):
        if f"{group}.{candidate}" in constants():
            return f"{group}.{candidate}"
    raise InputError(f"constant {group}", expected=f"{keys[0]}, all or megatron", got="none")


def _optimizer(run: DescribedRun, family: str) -> tuple[float, tuple[str, ...]]:
    """Return the traffic of an update over its minimum, and its constants.

    For PyTorch's optimizer it depends on the width of the state.
    """
    if run.framework in TORCH and family != "megatron":
        return torch_update_bytes(run) / UPDATE_BYTES, ("optimizer.torch",)
    return 1.0, (_one("optimizer", family),)


def attained(run: DescribedRun, said: GivenRates = NOTHING_GIVEN) -> Attained:
    """Return what the run attains by the constants of the catalog and what a reader gives."""
    network = run.network_bytes_per_s
    return attained_of(rate_row(run), run.shape.head_dim, run.network.name, network, said)


def rate_row(run: DescribedRun) -> RateRow:
    """Return what the software of a run attains on its chip in its format."""
    values = {name: constant.value for name, constant in constants().items()}
    terms = terms_of(run)
    shares = {field: prod(values[name] for name in names) for field, (_, names) in terms.items()}
    found = {field: base * shares[field] for field, (base, _) in terms.items()}
    product, alike = terms["matmul_flops_per_s"][0], run_class(run)
    found |= {
        "matmul_flops_per_s": product,
        "plain_flops_per_s": terms["plain_flops_per_s"][0],
        "expert_flops_per_s": product,
        "attention_flops_per_s": (
            plain_peak(run.accelerator) if _writes_scores(run) else _attention(run)[0]
        ),
        "network_bytes_per_s": values[_one("network_share", family_of(run))],
        "shuffle_bytes_per_s": shares["shuffle_bytes_per_s"],
    }
    return RateRow(
        rates=Attained(**{field.name: found[field.name] for field in fields(Attained)}),
        peak_flops_per_s=run.accelerator.peak_flops_per_s(run.dtype),
        matmul_share=shares["matmul_flops_per_s"],
        plain_share=shares["plain_flops_per_s"],
        expert_share=shares["expert_flops_per_s"],
        attention_share=shares["attention_flops_per_s"],
        usual_kernel=_has_usual_kernel(run),
        efa_share=values[_one("network_share", "efa")],
        score_bytes=_score_bytes(run),
        dtype=run.dtype,
        framework=run.framework,
        stack=alike.stack,
        chips=alike.chips,
    )
