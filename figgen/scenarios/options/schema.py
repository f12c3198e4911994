"""Everything that can be chosen of a training job, each option once.

The command line, the `options:` and `sizes:` of pages, what is assumed of published runs and the
forms of the live tools are all made from this table. Defaults are those of the models' own
signatures: `TrainingSetup`, `layout` and `step`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from types import MappingProxyType

from figgen import catalog
from figgen.catalog.hardware import DTYPES
from figgen.errors import InputError, unknown
from figgen.models.machine.frameworks import CONVENTIONS, convention
from figgen.models.machine.layout import MOST_RANKS, layout
from figgen.models.memory.memory import RESERVE_BYTES
from figgen.models.pipeline.schedules import SCHEDULES
from figgen.models.setup.training_setup import (
    MOST_MTP_LAYERS,
    MOST_SKEW,
    ZERO_STAGES,
    TrainingSetup,
)
from figgen.models.shape.activation_formats import FORMATS, activation_format
from figgen.models.shape.adapters import ADAPTED, FROZEN, frozen_format
from figgen.models.shape.recipes import RECIPES, recipe
from figgen.models.shape.recomputation import recomputation
from figgen.scenarios.options.config_json import named_model
from figgen.scenarios.options.option import QUESTIONS, Option, Value
from figgen.scenarios.runs.machine_rates import read_rates
from figgen.scenarios.runs.names import USUAL_NETWORK
from figgen.scenarios.runs.own_hardware import catalog_name, named_accelerator, named_link
from figgen.scenarios.runs.software import (
    FORMER_FRAMEWORKS,
    SOFTWARE,
    known_software,
    read_software,
)

SMALL = "layernorm,moe_act"
"""What is recomputed in experts without another product."""

GROUPS = MappingProxyType({
    "model": "Model",
    "hardware": "Hardware",
    "parallelism": "Parallelism",
    "batch": "Batch and schedule",
    "state": "State and activations",
    "tuning": "Fine-tuning",
    "overlap": "Overlap and efficiency",
})  # fmt: skip
"""Groups of options by name, in the order of a form, with their titles."""

_WORDS: Mapping[str, Mapping[str, str]] = {
    "schedule": {
        "naive": "one microbatch at a time",
        "gpipe": "GPipe",
        "looped-bfs": "looped breadth-first",
        "1f1b": "1F1B",
        "interleaved-1f1b": "interleaved 1F1B",
        "zb1p": "ZB1P",
        "zb2p": "ZB2P",
        "zbv": "ZB-V",
        "v-half": "V-Half",
        "v-min": "V-Min",
        "dualpipe": "DualPipe",
        "dualpipev": "DualPipeV",
    },
    "zero_stage": {
        "0": "0: nothing sharded",
        "1": "1: optimizer state sharded",
        "2": "2: gradients too",
        "3": "3: weights too (FSDP)",
    },
    "recompute": {
        "none": "none",
        "selective": "selective: attention core",
        SMALL: "outputs of norms and of experts",
        f"{SMALL},mla_up_proj": "outputs of norms, of experts and of latent projections",
        "mlp,moe": "feed-forward blocks",
        "full": "full: every layer",
    },
    "context_exchange": {
        "p2p": "ring (point-to-point)",
        "all-gather": "all-gather of keys and values",
        "all-to-all": "all-to-all, tokens for heads (Ulysses)",
    },
    "dispatcher": {
        "usual": "the usual one of the software's release",
        "all-to-all": "all-to-all: every copy of a token",
        "deepep": "DeepEP: once to each rank and node",
        "hybridep": "HybridEP: once, sorted as it arrives",
    },
    "dtype": {name: name.upper() for name in DTYPES},
}

_USUAL: dict[str, object] = {
    **{f.name: f.default for f in fields(TrainingSetup) if f.default is not MISSING},
    **{
        name: parameter.default
        for name, parameter in inspect.signature(layout).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    },
    "recipe": "mcore18",
}

_LAYOUT, _SETUP, _STEP = QUESTIONS, ("memory", "step"), ("step",)


def _words(name: str) -> Callable[[], Mapping[str, str]]:
    return lambda: _WORDS[name]


def _titles(of: Callable[[], Mapping[str, object]]) -> Callable[[], Mapping[str, str]]:
    return lambda: {name: str(getattr(entry, "title")) for name, entry in of().items()}  # noqa: B009


def _recipes() -> Mapping[str, str]:
    return {
        name: f"{name}: {r.weight_bytes:g} + {r.gradient_bytes:g} + {r.optimizer_bytes:.3g} B per "
        "parameter"
        for name, r in RECIPES.items()
    }


def _networks() -> Mapping[str, catalog.Link]:
    return {name: link for name, link in catalog.LINKS.items() if link.kind == "scale-out"}


def _usual(name: str) -> Value:
    return _USUAL[name]  # type: ignore[return-value]


def _size(name: str, label: str, hint: str) -> Option:
    return Option(
        name=name,
        kind="whole",
        group="parallelism",
        label=label,
        asked_by=_LAYOUT,
        default=_usual(name),
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
        asked_by=_SETUP,
        required=True,
        choices=_titles(lambda: catalog.MODELS),
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
        low=1,
        high=MOST_RANKS,
        key="gpus",
    ),
    Option(
        name="accelerator",
        kind="choice",
        group="hardware",
        label="Accelerator",
        asked_by=_SETUP,
        default="h100-sxm-80gb",
        choices=_titles(lambda: catalog.ACCELERATORS),
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
        choices=_titles(_networks),
        check=named_link,
        hint="a link of the catalog, a FILE.toml or .json, '50 GB/s per GPU' "
        "or '400 GB/s per node'",
    ),
    Option(
        name="measured",
        kind="text",
        group="hardware",
        label="Rates measured by measure.py",
        asked_by=_SETUP,
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
        default=_usual("order"),
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
        asked_by=_SETUP,
        hint="microbatches per replica and step; 4·PP by default",
        low=1,
        high=65_536,
    ),
    Option(
        name="microbatch_size",
        kind="whole",
        group="batch",
        label="Microbatch size",
        asked_by=_SETUP,
        default=_usual("microbatch_size"),
        hint="sequences per microbatch",
        low=1,
        high=1024,
    ),
    Option(
        name="global_batch",
        kind="whole",
        group="batch",
        label="Global batch",
        asked_by=_SETUP,
        hint="sequences per step; replaces the number of microbatches",
        low=1,
        high=10**9,
    ),
    Option(
        name="sequence",
        kind="whole",
        group="batch",
        label="Sequence length",
        asked_by=_SETUP,
        hint="tokens per sequence; the model's own length by default",
        low=1,
        high=10_000_000,
    ),
    Option(
        name="schedule",
        kind="choice",
        group="batch",
        label="Pipeline schedule",
        asked_by=_SETUP,
        default=_usual("schedule"),
        choices=lambda: {name: _WORDS["schedule"].get(name, name) for name in SCHEDULES},
    ),
    Option(
        name="chunks",
        kind="whole",
        group="batch",
        label="Chunks per rank",
        asked_by=_SETUP,
        default=_usual("chunks"),
        hint="virtual stages per pipeline rank; the schedule's usual number by default",
        low=1,
        high=64,
    ),
    Option(
        name="layers_per_stage",
        kind="counts",
        group="batch",
        label="Layers per stage",
        asked_by=_SETUP,
        default=_usual("layers_per_stage"),
        hint="layers of each virtual stage, such as 8,9,9,6 (0 is allowed); spread "
        "evenly by default",
    ),
    Option(
        name="mtp_layers",
        kind="whole",
        group="batch",
        label="MTP layers",
        asked_by=_SETUP,
        default=_usual("mtp_layers"),
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
        asked_by=_SETUP,
        default=_usual("zero_stage"),
        low=min(ZERO_STAGES),
        high=max(ZERO_STAGES),
        choices=_words("zero_stage"),
        key="zero",
        flag="zero",
    ),
    Option(
        name="recipe",
        kind="choice",
        group="state",
        label="Precision of weights, gradients and optimizer",
        asked_by=_SETUP,
        default=_usual("recipe"),
        choices=_recipes,
        check=recipe,
    ),
    Option(
        name="offloaded_optimizer",
        kind="number",
        group="state",
        label="Optimizer state in host memory",
        asked_by=_SETUP,
        default=_usual("offloaded_optimizer"),
        hint="share of the optimizer state that is kept and updated by the host, 0 to 1",
        low=0,
        high=1,
        key="offload",
        flag="offload-optimizer",
    ),
    Option(
        name="offload_overlap",
        kind="switch",
        group="overlap",
        label="Copy optimizer state during the host's update",
        asked_by=_STEP,
        default=_usual("offload_overlap"),
    ),
    Option(
        name="lora_rank",
        kind="whole",
        group="tuning",
        label="LoRA rank",
        asked_by=_SETUP,
        default=_usual("lora_rank"),
        hint="trains adapters of this rank and freezes the rest; by default everything is trained",
        low=1,
        high=4096,
    ),
    Option(
        name="lora_matrices",
        kind="choice",
        group="tuning",
        label="Matrices with LoRA adapters",
        asked_by=_SETUP,
        default=_usual("lora_matrices"),
        choices=lambda: ADAPTED,
    ),
    Option(
        name="frozen_weights",
        kind="choice",
        group="tuning",
        label="Frozen weights",
        asked_by=_SETUP,
        default=_usual("frozen_weights"),
        hint="format of the frozen weights when adapters are trained",
        check=frozen_format,
        choices=lambda: {name: one.label for name, one in FROZEN.items()},
    ),
    Option(
        name="software",
        kind="text",
        group="state",
        label="Software",
        asked_by=_SETUP,
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
        asked_by=_SETUP,
        default=_usual("recompute"),
        hint="none, selective, full, uniform:N, block:N, or modules separated by commas",
        choices=_words("recompute"),
        check=recomputation,
    ),
    Option(
        name="activations",
        kind="choice",
        group="state",
        label="Kept activations",
        asked_by=_SETUP,
        default=_usual("activations"),
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
        choices=_words("dtype"),
    ),
    Option(
        name="sequence_parallel",
        kind="switch",
        group="state",
        label="Sequence parallelism: divide norms over TP too",
        asked_by=_SETUP,
        default=_usual("sequence_parallel"),
        key="sp",
    ),
    Option(
        name="flash_attention",
        kind="switch",
        group="state",
        label="FlashAttention: store no scores, skip the masked half",
        asked_by=_SETUP,
        default=_usual("flash_attention"),
        key="flash",
    ),
    Option(
        name="dropout",
        kind="switch",
        group="state",
        label="Dropout: keep its masks",
        asked_by=_SETUP,
        default=_usual("dropout"),
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
    Option(
        name="compute_efficiency",
        kind="number",
        group="overlap",
        label="Efficiency of matmuls",
        asked_by=_STEP,
        hint="share of the dense peak, 0 to 1; what published runs attain by default",
        low=0.01,
        high=1,
        key="efficiency",
        flag="efficiency",
    ),
    Option(
        name="time_factor",
        kind="number",
        group="overlap",
        label="Measured over predicted step time",
        asked_by=_STEP,
        hint="1.18 if your steps take 1.18 times as long as predicted: every rate and latency is "
        "then taken 1.18 times slower",
        low=0.2,
        high=20,
        key="factor",
    ),
    Option(
        name="buckets",
        kind="whole",
        group="overlap",
        label="Gradient buckets",
        asked_by=_SETUP,
        default=_usual("buckets"),
        hint="number of messages for the gradients; one per layer by default",
        low=1,
        high=1024,
    ),
    Option(
        name="overlap_data_parallel",
        kind="switch",
        group="overlap",
        label="Overlap data parallelism with computing",
        asked_by=_STEP,
        default=_usual("overlap_data_parallel"),
        key="overlap",
        flag="overlap",
    ),
    Option(
        name="double_buffering",
        kind="switch",
        group="overlap",
        label="Double-buffer keys, values and weights",
        asked_by=_SETUP,
        default=_usual("double_buffering"),
        key="double",
    ),
    Option(
        name="context_exchange",
        kind="choice",
        group="overlap",
        label="Exchange between context-parallel ranks",
        asked_by=_SETUP,
        default=_usual("context_exchange"),
        choices=_words("context_exchange"),
        key="exchange",
    ),
    Option(
        name="zigzag",
        kind="switch",
        group="overlap",
        label="Zig-zag: give context-parallel ranks equal work",
        asked_by=_STEP,
        default=_usual("zigzag"),
    ),
    Option(
        name="dispatcher",
        kind="choice",
        group="overlap",
        label="Dispatcher of tokens to experts",
        asked_by=_SETUP,
        default=_usual("dispatcher"),
        choices=_words("dispatcher"),
        hint="how tokens reach experts on other ranks; DeepEP and HybridEP send a token once to "
        "a node that has several of its experts",
    ),
    Option(
        name="expert_skew",
        kind="number",
        group="overlap",
        label="Tokens of the fullest rank of experts",
        asked_by=_SETUP,
        default=_usual("expert_skew"),
        hint="times the mean of the ranks that share experts; 1 for even routing",
        low=1,
        high=MOST_SKEW,
        key="skew",
    ),
    Option(
        name="scale_up_latency_s",
        kind="quantity",
        group="overlap",
        label="Latency inside a node",
        asked_by=_STEP,
        hint="the link's latency by default, or NCCL's if the catalog has none",
        high=1,
        unit="s",
        form_unit="µs",
        scale=1e-6,
        key="alpha_up",
    ),
    Option(
        name="network_latency_s",
        kind="quantity",
        group="overlap",
        label="Latency of the network",
        asked_by=_STEP,
        hint="NCCL's by default",
        high=1,
        unit="s",
        form_unit="µs",
        scale=1e-6,
        key="alpha_net",
    ),
)

OPTIONS: Mapping[str, Option] = MappingProxyType({option.name: option for option in _ALL})
"""The options by name, in the order of a form."""


def unknown_option(what: str, name: str, known: Iterable[str]) -> InputError:
    """The error for a `name` that is not among the `known` options of `what`.

    For a former name it suggests the option that replaced it.
    """
    taken_in = [option.name for option in _ALL if name in option.former]
    if taken_in:
        return InputError(f"unknown {what} {name!r}", nearest=taken_in, key=name)
    return unknown(what, name, known).about(name)


def asked_by(question: str) -> tuple[Option, ...]:
    """The options that matter for one of `QUESTIONS`."""
    return tuple(option for option in _ALL if question in option.asked_by)
