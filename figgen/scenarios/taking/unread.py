"""Says which settings that nothing reads may change the answer.

Trainers have hundreds of options, and a file of an unknown trainer may have any. So every option
may matter, with two exceptions: it is off or as the models assume, or its name says that it
concerns logs, data, checkpoints, the learning rate's schedule or the like. The options of seventeen
trainers, and what each changes, are listed in tests/oracles/trainer_options.json.
"""

from __future__ import annotations

from figgen.scenarios.taking.names import OTHER_SECTIONS
from figgen.scenarios.taking.slips import TELLING
from figgen.scenarios.texts.entry import Entry, normal

OFF = ("false", "no", "off", "0", "0.0", "none", "null", "auto", "-1")
"""Values of a setting that is not used, or that the trainer sets."""

AS_MODELLED = {
    "contiguous_gradients": "true", "allgather_partitions": "true", "reduce_scatter": "true",
    "fused": "true", "scan_layers": "true", "compile_enable": "true",
    "compile_components": "model loss", "compile_backend": "inductor",
    "optimizer_implementation": "fused", "load_balancer": "headtail", "comm_backend": "standard",
}  # fmt: skip
"""Ends of names of settings that matter unless they have the value that the models assume."""

SECTIONS = (
    *OTHER_SECTIONS,
    "checkpoint",
    "checkpointer",
    "job",
    "lr_scheduler",
    "metric_logger",
    "profiler",
    "validator",
)
"""Sections of files whose settings change nothing."""

BESIDE = (
    "__target", "_dir", "bnb_4bit", "export", "folder", "grad_norm", "gradient_clipping",
    "inference", "lora_alpha", "lora_dropout", "max_norm", "norm_eps", "on_model_save",
    "pin_memory", "preproc", "project_", "ram_efficient", "rope", "seed", "state_dict", "swanlab",
    "untested", "val_", "wandb", "zero3_",
)  # fmt: skip
"""Parts of names that say that a setting changes neither memory nor the time of a step."""

ALSO_TELLING = (
    "_mesh", "activation", "adam_mini", "communication", "compile", "concat", "cpu_", "dtype",
    "embed", "empty_cache", "freeze", "grpo_", "head", "image_size", "in_backward", "index_cache",
    "indexer", "kv_cache", "length", "liger", "loss__c", "max_gen", "model_init", "num_params",
    "opt_type", "output_dim", "parameter_sc", "per_gen", "per_prompt", "posemb", "ppo_e", "qk_",
    "fp32_loss", "load_ref", "loss_impl", "max_tokens_per", "ns_steps", "unique_prompts",
    "rampup", "reduction", "reward_model", "sample_len", "sampling_s", "selective",
    "teacher_model_n", "tiles", "to_save", "token_chunk", "topk_", "trainable", "wrap",
)  # fmt: skip

WORDS = (
    "adam alpha architectures beta beta1 beta2 betas cache check clip column data dataloader "
    "dataset decay do env environment epoch eps file fileroot hub hysteresis id init initializer "
    "kl kwargs label learn load loader log loss lr main metric name network output params path "
    "port profil prompt rdzv remote report revision reward rollout run sampl save scale step "
    "steps strategy tag temperature template think thres timeout token top type url version "
    "warmup"
)
HARMLESS = WORDS.split(" ")
"""Words of names that say the same unless a part tells otherwise; long ones are beginnings."""


def may_change(one: Entry) -> bool:
    """Return whether a setting that nothing read may change memory or time."""
    plain = normal(one.name).replace(".", "_")
    said = one.words.lower().strip("\"'").replace(",", " ")
    for name, value in AS_MODELLED.items():
        if plain.endswith(name):
            return said not in (value, "")
    parts = normal(one.name).split(".")
    if said in OFF or len(plain) < 2 or any(part in SECTIONS for part in parts[:-1]):
        return False
    if any(part in plain for part in BESIDE):
        return False
    if tells(one.name) or any(part in plain for part in ALSO_TELLING):
        return True
    # Programs have names of their own, and launchers few options that matter.
    short = one.name[:1] == "-" and one.name[:2] != "--"
    if short or one.origin in ("launcher", "mpi", "slurm", "sbatch", "python"):
        return False
    return not any(_is_harmless(word) for word in plain.split("_"))


def tells(name: str) -> bool:
    """Return whether a name suggests sizes or layouts."""
    plain = normal(name)
    return any(part in plain for part in TELLING)


def _is_harmless(word: str) -> bool:
    return any(word == one or (len(one) > 4 and word.startswith(one)) for one in HARMLESS)
