"""What is assumed of a run where its source is silent: one table, and rules for all others.

Everything assumed is named as such on the page (`published` says what is not).
"""

from __future__ import annotations

from figgen import catalog
from figgen.models.recomputation import NAMED

EFFICIENCY = 0.5
"""Share of the dense peak that matrix products reach unless a figure says otherwise."""

NICS = {
    "v100-sxm2-32gb": "ib-edr",
    "a100-sxm-40gb": "ib-hdr",
    "a100-sxm-80gb": "ib-hdr",
    "gb300-nvl72": "ib-xdr",
    "b300-sxm-hgx": "ib-xdr",
}
"""One port for each GPU, of the kind that systems with it ship; NDR for all others.

B200 and GB200 ship with ConnectX-7 at 400 Gb/s, B300 and GB300 with ConnectX-8 at 800 Gb/s.
"""

EARLY: dict[str, object] = {"flash_attention": False, "sequence_parallel": False, "zero_stage": 0}
"""Before flash attention, sequence parallelism and Megatron's distributed optimizer."""

LLAMA: dict[str, object] = {
    "order": "llama3", "nic": "roce-400g", "schedule": "interleaved-1f1b", "chunks": 4,
}  # fmt: skip

ASSUMED: dict[str, dict[str, object]] = {
    "narayanan21": EARLY,
    "mt-nlg": EARLY,
    "bloom": {"flash_attention": False, "sequence_parallel": False},
    "opt": {"flash_attention": False, "sequence_parallel": False,
            "microbatches": 1, "microbatch_size": 8},
    "korthikanti22": {"flash_attention": False, "zero_stage": 0},
    "nemotron-4": {"schedule": "interleaved-1f1b", "chunks": 4},
    "megascale": {"zero_stage": 1},
    "deepseek-v3": {
        "schedule": "dualpipe",
        "recompute": "layernorm,latent_norm,mla_up_proj,moe_act,moe_gate",
        "activations": "fp8-deepseek",
        "recipe": "mcore14",
    },
    "mbridge": {"recompute": "moe_gate"},
    "llama-3-405b-8k": LLAMA,
    "llama-3-405b-131k": LLAMA | {"context_exchange": "all-gather"},
}  # fmt: skip
"""By the beginning of a run's name: what its report says in words, or its time makes likely.

MegaScale calls its state ZeRO stage 2 but reduces gradients once a step, which is stage 1 here.
DeepSeek-V3's report lists what it recomputes but for the gates: the combine of its DeepEP adds
up what experts return, so that they multiply, as those of Megatron-LM do by default.
"""


def guesses(run: catalog.Run) -> dict[str, object]:
    """What the run leaves open, by the rules that hold for all, then its own."""
    chunks = run.virtual_stages
    found: dict[str, object] = {
        "accelerator": run.accelerator.name,
        "dtype": run.dtype,
        "sequence": run.sequence,
        "nic": NICS.get(run.accelerator.name, "ib-ndr"),
        "order": "megatron",
        "recipe": "mcore20" if run.dtype == "fp16" else "mcore18",
        "microbatch_size": run.microbatch or 1,
        "zero_stage": 1 if run.zero_stage is None else run.zero_stage,
        "schedule": "interleaved-1f1b" if chunks > 1 else "1f1b",
        "chunks": chunks if chunks > 1 else None,
        "recompute": run.recompute if run.recompute in NAMED else "none",
        "activations": "fp8" if run.dtype == "fp8" else "16-bit",
        "flash_attention": True,
        "sequence_parallel": True,
        "compute_efficiency": EFFICIENCY,
    }
    return found | _own(run)


def _own(run: catalog.Run) -> dict[str, object]:
    """The entry of `ASSUMED` for the run, if it has one."""
    found: dict[str, object] = {}
    for beginning, assumed in ASSUMED.items():
        if run.name.startswith(beginning):
            found |= assumed
    return found


def published(run: catalog.Run) -> frozenset[str]:
    """Names of settings that the run's source states."""
    said = {"accelerator", "dtype", "sequence"}
    said |= {"microbatch_size"} if run.microbatch is not None else set()
    own = _own(run)
    if run.zero_stage is not None and own.get("zero_stage", run.zero_stage) == run.zero_stage:
        said |= {"zero_stage"}
    said |= {"recompute"} if run.recompute in NAMED else set()
    said |= {"schedule", "chunks"} if run.virtual_stages > 1 else set()
    said |= {"schedule"} if run.pp == 1 else set()
    said |= {"schedule", "activations"} if run.name == "deepseek-v3" else set()
    said |= {"order", "nic"} if own.get("order") == "llama3" else set()
    return frozenset(said)
