"""A described run as the setup and the cluster that the models of time and memory take."""

from __future__ import annotations

from figgen.models.machine.layout import layout
from figgen.models.setup.framework_memory import framework_memory
from figgen.models.setup.training_setup import TrainingSetup
from figgen.models.shape.recipes import RECIPES, Recipe
from figgen.scenarios.runs.described import DescribedRun
from figgen.scenarios.runs.names import UNKNOWN_SOFTWARE

ORDERS = {"nanotron": "nanotron", "torchtitan": "torchtitan", "maxtext": "torchtitan"}
"""Rank orders of frameworks; Megatron's for all others."""

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
"""Software that keeps in FP16 what it keeps in BF16: no master copy, no scores."""


def run_setup(run: DescribedRun) -> TrainingSetup:
    """The training step of a run. Raises InputError for sizes that nothing lays out."""
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
    """What its source says of bytes, or its software's: FP16 has gradients of 16 bits."""
    halves = run.dtype == "fp16" and run.memory_habits not in PLAIN
    usual = RECIPES["mcore20" if halves else framework_memory(run.memory_habits).recipe]
    return run.stated_recipe or usual


def _activations(run: DescribedRun) -> str:
    """NVIDIA's recipes keep weights in FP8 alone where products are."""
    if run.dtype != "fp8":
        return "16-bit"
    return "fp8" if run.framework == "megatron-lm" else "fp8-weights"


def before_flash(run: DescribedRun) -> bool:
    """Whether its framework is of the years before flash attention, which stored scores."""
    return run.dtype == "fp16" or run.framework == "megatron-deepspeed"


DECEMBER_2024 = 24 + 12 / 12


def memory_framework(framework: str, version: float | None) -> str:
    """The name of the framework whose habits fill the memory, by framework and release."""
    found = MEMORY_OF.get(framework, "megatron")
    early = version is not None and version <= DECEMBER_2024
    return f"{found}-2024" if early and found in ("torchtitan", "megatron") else found
