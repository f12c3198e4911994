"""A described run as the setup and the cluster of the time and memory models."""

from __future__ import annotations

from figgen.models.machine.layout import layout
from figgen.models.setup.framework_memory import framework_memory
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.recipes import RECIPES, Recipe
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.names import UNKNOWN_SOFTWARE

ORDERS = {"nanotron": "nanotron", "torchtitan": "torchtitan", "maxtext": "torchtitan"}
"""Rank orders of frameworks; others have Megatron's."""

MEMORY_OF = {
    "nanotron": "nanotron", "torchtitan": "torchtitan", "llm-foundry": "fsdp", "fsdp": "fsdp",
    "megatron-deepspeed": "megatron-deepspeed", "torchtune": "torchtune", "pytorch": "pytorch",
    UNKNOWN_SOFTWARE: "unknown",
}  # fmt: skip
"""Frameworks whose memory is not Megatron's."""

PLAIN = (
    "torchtune", "torchtune-logits", "torchtune-eager", "pytorch", "pytorch-compiled", "litgpt",
    "hf-trainer", "deepspeed", "deepspeed-liger", "prime-rl", "prime-rl-logits",
)  # fmt: skip
"""Software that keeps the same in FP16 as in BF16: no master copy, no scores."""


def run_setup(run: DescribedRun) -> TrainingSetup:
    """Return the training step of a run. Raises InputError for sizes that cannot be laid out."""
    interleaved = run.virtual_stages > 1 and run.pp > 1
    parallel = layout(
        nodes=run.gpus // run.gpus_per_node,
        gpus_per_node=run.gpus_per_node,
        tp=run.tp,
        cp=run.cp,
        pp=run.pp,
        ep=min(run.ep, run.gpus // run.pp),
        etp=run.etp,
        order=ORDERS.get(run.framework, "megatron") if run.ep == 1 else "megatron",
    )
    habits = run.memory_habits
    framework, plain = framework_memory(habits), habits in PLAIN
    return TrainingSetup(
        shape=run.shape,
        parallel=parallel,
        microbatches=run.microbatches,
        sequence=run.sequence,
        microbatch_size=run.microbatch,
        schedule="interleaved-1f1b" if interleaved else "1f1b",
        chunks=run.virtual_stages if interleaved else None,
        recipe=recipe_of(run),
        zero_stage=run.zero_stage,
        recompute=run.recompute or "none",
        activations=_activations(run),
        flash_attention=not run.stores_scores and (plain or not before_flash(run)),
        dropout=run.dropout,
        sequence_parallel=run.tp > 1 and habits != "megatron-deepspeed",
        layers_per_stage=run.layers_per_stage,
        mtp_layers=run.mtp_layers,
        dispatcher=run.dispatcher,
        expert_overlap=run.expert_overlap,
        cuda_graphs=run.cuda_graphs,
        context_exchange=run.context_exchange,
        document_tokens=run.document_tokens,
        offloaded_optimizer=run.offloaded_optimizer,
        offloaded_activations=run.offloaded_activations,
        framework=framework.name,
    )


def recipe_of(run: DescribedRun) -> Recipe:
    """Return the bytes per parameter that its source gives, or its software's.

    Gradients are 16-bit with FP16.
    """
    halves = run.dtype == "fp16" and run.memory_habits not in PLAIN
    usual = RECIPES["mcore20" if halves else framework_memory(run.memory_habits).recipe]
    return run.stated_recipe or usual


def _activations(run: DescribedRun) -> str:
    """Return the format of activations; NVIDIA's recipes keep only weights in FP8."""
    if run.dtype != "fp8":
        return "16-bit"
    return "fp8" if run.framework == "megatron-lm" else "fp8-weights"


def before_flash(run: DescribedRun) -> bool:
    """Return whether the framework predates flash attention and stores attention scores."""
    return run.dtype == "fp16" or run.framework == "megatron-deepspeed"


DECEMBER_2024 = 24 + 12 / 12


def memory_framework(framework: str, version: float | None) -> str:
    """Return the framework whose memory habits apply, by framework and release."""
    found = MEMORY_OF.get(framework, "megatron")
    early = version is not None and version <= DECEMBER_2024
    return f"{found}-2024" if early and found in ("torchtitan", "megatron") else found
