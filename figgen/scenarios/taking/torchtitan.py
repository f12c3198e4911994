"""torchtitan's options other than sizes: which ones may change the answer and which never do.

Source: torchtitan 0.2.2, torchtitan/config/job_config.py, and 0.3.0, torchtitan/config/configs.py,
trainer.py and the configurations of its components.
"""

from __future__ import annotations

from figgen.scenarios.texts.entry import Entry, entry, normal

AS_MODELLED: dict[str, tuple[str, ...]] = {
    "training.disable_cuda_graphs": (),
    "parallelism.context_parallel_load_balancer": ("headtail",),
    "parallelism.expert_parallel_comm_backend": ("standard",),
    "parallelism.module_fqns_per_model_part": (),
    "parallelism.pipeline_parallel_expert_parallel_overlap": (),
    "parallelism.pipeline_parallel_schedule_csv": ("",),
    "compile.enable": ("true", ""),
    "compile.components": ("model loss", "model,loss"),
    "compile.backend": ("inductor",),
    "activation_checkpoint.memory_budget": (),
    "activation_checkpoint.force_recompute_mm_shapes_by_fqns": (),
    "activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns": (),
    "optimizer.implementation": ("fused",),
    "optimizer.optimizer_factory_kwargs_by_name": (),
    "optimizer.param_groups": (),
    "override.imports": (),
}
"""Options that change memory or time, each with the values that the models assume."""

OFF_AS_MODELLED = (
    "parallelism.disable_loss_parallel", "parallelism.enable_async_tensor_parallel",
    "parallelism.enable_fsdp_symm_mem", "compile.enable_async_tensor_parallel",
    "activation_checkpoint.early_stop", "optimizer.early_step_in_backward",
    "debug.batch_invariant", "debug.detect_anomaly", "debug.deterministic",
    "debug.spmd_typechecking",
)  # fmt: skip
"""Switches that change memory or time, which the models assume to be off."""

NEUTRAL = (
    "training.dataset", "training.dataset_path", "training.dataloader", "training.max_norm",
    "training.steps",
    "training.gc_freq", "training.gc_debug",
    "parallelism.spmd_backend", "parallelism.context_parallel_ptrr_mask_key",
    "activation_checkpoint.preserve_rng_state", "activation_checkpoint.determinism_check",
    "activation_checkpoint.debug", "activation_checkpoint.visualize_memory_budget_pareto",
    "optimizer.lr", "optimizer.beta1", "optimizer.beta2", "optimizer.eps",
    "optimizer.weight_decay",
)  # fmt: skip
"""Options in sections about sizes and computing that change neither memory nor time."""

SECTIONS = (
    "training", "parallelism", "compile", "activation_checkpoint", "optimizer", "override",
)  # fmt: skip
"""Sections whose unlisted options may matter."""


def titan_may_matter(one: Entry) -> bool | None:
    """Return whether an unused setting may change the answer; None for other sections."""
    name = normal(one.name)
    if name in AS_MODELLED:
        return one.words.lower().strip("\"'") not in AS_MODELLED[name]
    if name in OFF_AS_MODELLED:
        return one.words.lower() != "false"
    if name.partition(".")[0] not in SECTIONS or "." not in name:
        return None
    return not name.startswith(NEUTRAL)


def chooses(word: str) -> bool:
    """Return whether a word of a command line selects activation checkpointing."""
    return word.replace("-", "_").startswith("activation_checkpoint:")


def chosen(word: str, origin: str) -> Entry:
    """Return the setting of a word such as `activation_checkpoint:full`."""
    return entry("activation_checkpoint.mode", word.partition(":")[2].replace("-", "_"), origin)


def plain_switches(entries: list[Entry]) -> list[Entry]:
    """Return the entries with disabled switches, such as `--compile.no-enable`, set to false."""
    return [_plain(one) for one in entries]


def _plain(one: Entry) -> Entry:
    section, dot, name = one.name.rpartition(".")
    negated = one.name.startswith("--") and dot and name.replace("-", "_").startswith("no_")
    if not negated or one.words:
        return one
    return entry(f"{section}.{name[3:]}", "false", one.origin)
