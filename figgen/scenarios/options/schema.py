"""All options of a training job, each defined once.

This table defines the command line, the `options:` and `sizes:` of pages, the assumptions about
published runs, and the forms of the live tools. Defaults are those of the models' own signatures:
`TrainingSetup`, `layout` and `step`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from figgen import catalog
from figgen.errors import InputError, unknown
from figgen.models.machine.frameworks import CONVENTIONS, convention
from figgen.models.machine.layout import MOST_RANKS
from figgen.models.memory.memory import RESERVE_BYTES
from figgen.models.setup.training_setup import (
    MOST_MTP_LAYERS,
    ZERO_STAGES,
)
from figgen.models.shape.activation_formats import FORMATS, activation_format
from figgen.models.shape.adapters import ADAPTED, FROZEN, frozen_format
from figgen.models.shape.recipes import recipe
from figgen.models.shape.recomputation import recomputation
from figgen.scenarios.options.config_json import named_model
from figgen.scenarios.options.option import QUESTIONS, Option
from figgen.scenarios.options.option_values import (
    networks,
    recipe_titles,
    schedules,
    titles,
    with_usual,
)
from figgen.scenarios.options.schema_step import STEP_OPTIONS
from figgen.scenarios.runs.machine_rates import read_rates
from figgen.scenarios.runs.names import USUAL_NETWORK
from figgen.scenarios.runs.own_hardware import catalog_name, named_accelerator, named_link
from figgen.scenarios.runs.software import (
    FORMER_FRAMEWORKS,
    SOFTWARE,
    known_software,
    read_software,
)

GROUPS = MappingProxyType({
    "model": "Model",
    "hardware": "Hardware",
    "parallelism": "Parallelism",
    "batch": "Batch and schedule",
    "state": "State and activations",
    "tuning": "Fine-tuning",
    "overlap": "Overlap and efficiency",
})  # fmt: skip
"""Titles of the groups of options by name, in the order of a form."""

_LAYOUT, _STEP = QUESTIONS, ("step",)


def _size(name: str, label: str, hint: str) -> Option:
    return Option(
        name=name,
        kind="whole",
        group="parallelism",
        label=label,
        asked_by=_LAYOUT,
        hint=hint,
        low=1,
        high=MOST_RANKS,
    )


_ALL = (
    Option(
        name="model",
        kind="choice",
        group="model",
        label="Model",
        required=True,
        choices=titles(lambda: catalog.MODELS),
        check=named_model,
        hint="a model of the catalog, or FILE.json",
    ),
    Option(
        name="nodes",
        kind="whole",
        group="hardware",
        label="Nodes",
        asked_by=_LAYOUT,
        required=True,
        low=1,
        high=MOST_RANKS,
    ),
    Option(
        name="gpus_per_node",
        kind="whole",
        group="hardware",
        label="GPUs per node",
        asked_by=_LAYOUT,
        required=True,
        hint="GPUs that share the fast links of a node",
        left_out="those of the accelerator's scale-up domain",
        low=1,
        high=MOST_RANKS,
        key="gpus",
    ),
    Option(
        name="join_hosts",
        kind="switch",
        group="hardware",
        label="Hosts of a rack or pod share its fast links",
        default=True,
        hint="nodes no wider than a tray or a machine count as one up to the chip's domain",
        key="join",
    ),
    Option(
        name="accelerator",
        kind="choice",
        group="hardware",
        label="Accelerator",
        default="h100-sxm-80gb",
        choices=titles(lambda: catalog.ACCELERATORS),
        check=named_accelerator,
        spelled=catalog_name,
        key="chip",
        hint="a chip of the catalog, or a FILE.toml or .json with an entry in the catalog's format",
    ),
    Option(
        name="nic",
        kind="choice",
        group="hardware",
        label="Network",
        asked_by=_STEP,
        default=USUAL_NETWORK,
        choices=titles(networks),
        check=named_link,
        hint="a link of the catalog, a FILE.toml or .json, '50 GB/s per GPU' "
        "or '400 GB/s per node'",
    ),
    Option(
        name="measured",
        kind="text",
        group="hardware",
        label="Rates measured by measure.py",
        hint="the FILE.json that measure.py wrote; it is not uploaded",
        check=read_rates,
    ),
    _size("tp", "TP, tensor", "tensor-parallel degree; 1 disables it"),
    _size("pp", "PP, pipeline", "pipeline-parallel degree; 1 disables it"),
    _size("cp", "CP, context", "context-parallel degree; 1 disables it"),
    _size("ep", "EP, expert", "expert-parallel degree; 1 disables it"),
    _size(
        "etp",
        "ETP, in experts",
        "tensor-parallel degree of experts; the framework's rule by default",
    ),
    _size("dp", "DP, data", "data-parallel degree; follows from the others, checked if given"),
    Option(
        name="order",
        kind="text",
        group="parallelism",
        label="Rank order",
        asked_by=_LAYOUT,
        hint="a framework, or an order such as tp-cp-dp-pp; decides which groups stay "
        "inside a node",
        choices=lambda: {name: one.label for name, one in CONVENTIONS.items()},
        check=convention,
    ),
    Option(
        name="microbatches",
        kind="whole",
        group="batch",
        label="Microbatches",
        hint="microbatches per replica per step; 4·PP by default",
        low=1,
        high=65_536,
    ),
    Option(
        name="microbatch_size",
        kind="whole",
        group="batch",
        label="Microbatch size",
        hint="sequences per microbatch",
        low=1,
        high=1024,
    ),
    Option(
        name="global_batch",
        kind="whole",
        group="batch",
        label="Global batch",
        hint="sequences per step; replaces the number of microbatches",
        low=1,
        high=10**9,
    ),
    Option(
        name="sequence",
        kind="whole",
        group="batch",
        label="Sequence length",
        hint="tokens per sequence; the model's own length by default",
        low=1,
        high=10_000_000,
    ),
    Option(
        name="document_tokens",
        kind="counts",
        group="batch",
        label="Tokens of packed documents",
        hint="documents packed into a sequence, each of which attends only to itself: their mean "
        "length, such as 2k, or all lengths, such as 4096,2048,2048; one by default",
        key="documents",
    ),
    Option(
        name="schedule",
        kind="choice",
        group="batch",
        label="Pipeline schedule",
        choices=schedules,
    ),
    Option(
        name="chunks",
        kind="whole",
        group="batch",
        label="Chunks per rank",
        hint="virtual stages per pipeline rank; the schedule's usual number by default",
        low=1,
        high=64,
    ),
    Option(
        name="layers_per_stage",
        kind="counts",
        group="batch",
        label="Layers per stage",
        hint="layers of each virtual stage, such as 8,9,9,6 (0 is allowed); spread "
        "evenly by default",
    ),
    Option(
        name="mtp_layers",
        kind="whole",
        group="batch",
        label="MTP layers",
        hint="multi-token prediction modules, each of which predicts one more token",
        low=0,
        high=MOST_MTP_LAYERS,
        key="mtp",
    ),
    Option(
        name="zero_stage",
        kind="whole",
        group="state",
        label="ZeRO stage",
        low=min(ZERO_STAGES),
        high=max(ZERO_STAGES),
        key="zero",
        flag="zero",
    ),
    Option(
        name="recipe",
        kind="choice",
        group="state",
        label="Precision of weights, gradients and optimizer",
        choices=recipe_titles,
        check=recipe,
    ),
    Option(
        name="offloaded_optimizer",
        kind="number",
        group="state",
        label="Optimizer state in host memory",
        hint="share of the optimizer state that is kept and updated by the host, 0 to 1",
        low=0,
        high=1,
        key="offload",
        flag="offload-optimizer",
    ),
    Option(
        name="offloaded_activations",
        kind="number",
        group="state",
        label="Activations in host memory",
        hint="share of what layers keep for backward that is copied to the host and back, 0 to 1",
        low=0,
        high=1,
        key="offacts",
        flag="offload-activations",
    ),
    Option(
        name="offload_overlap",
        kind="switch",
        group="overlap",
        label="Overlap copies to and from the host",
    ),
    Option(
        name="lora_rank",
        kind="whole",
        group="tuning",
        label="LoRA rank",
        hint="trains adapters of this rank and freezes the rest; by default everything is trained",
        low=1,
        high=4096,
    ),
    Option(
        name="lora_matrices",
        kind="choice",
        group="tuning",
        label="Matrices with LoRA adapters",
        choices=lambda: ADAPTED,
    ),
    Option(
        name="frozen_weights",
        kind="choice",
        group="tuning",
        label="Frozen weights",
        hint="format of the frozen weights when adapters are trained",
        check=frozen_format,
        choices=lambda: {name: one.label for name, one in FROZEN.items()},
    ),
    Option(
        name="software",
        kind="text",
        group="state",
        label="Software",
        default=SOFTWARE,
        hint="framework, release and recipe, such as nemo 24.09 fp8-current; sets the buffers "
        "in memory and the attained rates",
        choices=lambda: {name: name for name in known_software()},
        check=read_software,
        former={"framework": FORMER_FRAMEWORKS},
    ),
    Option(
        name="recompute",
        kind="text",
        group="state",
        label="Recomputation",
        hint="none, selective, full, uniform:N, block:N, or modules separated by commas",
        check=recomputation,
    ),
    Option(
        name="activations",
        kind="choice",
        group="state",
        label="Kept activations",
        choices=lambda: {name: one.label for name, one in FORMATS.items()},
        check=activation_format,
    ),
    Option(
        name="dtype",
        kind="choice",
        group="state",
        label="Number format of matmuls",
        asked_by=_STEP,
        default="bf16",
        hint="number format whose dense peak is used",
    ),
    Option(
        name="sequence_parallel",
        kind="switch",
        group="state",
        label="Sequence parallelism: divide norms over TP too",
        key="sp",
    ),
    Option(
        name="flash_attention",
        kind="switch",
        group="state",
        label="FlashAttention: store no scores, skip the masked half",
        key="flash",
    ),
    Option(
        name="dropout",
        kind="switch",
        group="state",
        label="Dropout: keep its masks",
    ),
    Option(
        name="reserve_bytes",
        kind="quantity",
        group="state",
        label="Reserve",
        asked_by=("memory",),
        default=RESERVE_BYTES,
        hint="memory for the CUDA context and NCCL",
        low=0,
        high=1e12,
        unit="B",
        form_unit="GB",
        scale=1e9,
        key="reserve",
        flag="reserve",
    ),
    *STEP_OPTIONS,
)

OPTIONS: Mapping[str, Option] = MappingProxyType({each.name: with_usual(each) for each in _ALL})
"""The options by name, in the order of a form."""


def unknown_option(what: str, name: str, known: Iterable[str]) -> InputError:
    """Return the error for a `name` that is not among the `known` options of `what`.

    For a former name, the error suggests the option that replaced it.
    """
    taken_in = [option.name for option in OPTIONS.values() if name in option.former]
    if taken_in:
        return InputError(f"unknown {what} {name!r}", nearest=taken_in, key=name)
    return unknown(what, name, known).about(name)


def asked_by(question: str) -> tuple[Option, ...]:
    """Return the options that matter for one of `QUESTIONS`."""
    return tuple(option for option in OPTIONS.values() if question in option.asked_by)
