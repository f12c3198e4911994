"""Reads a job from any text: options that it sets, assumes, ignores and asks for."""

from __future__ import annotations

from dataclasses import dataclass, field

from figgen.errors import InputError
from figgen.scenarios.taking.batch import take_batch, take_schedule
from figgen.scenarios.taking.cluster import take_cluster, take_layout
from figgen.scenarios.taking.documents import of_one_job
from figgen.scenarios.taking.formats import format_of
from figgen.scenarios.taking.given import Given, assume, sorted_entries, switch_of, text_of
from figgen.scenarios.taking.hosts import read_hosts
from figgen.scenarios.taking.launchers import read_script, with_commands
from figgen.scenarios.taking.megatron import FAMILY, megatron_may_matter
from figgen.scenarios.taking.names import key_of
from figgen.scenarios.taking.other_words import in_known_words
from figgen.scenarios.taking.own_lines import OwnNames, read_address, read_own_command
from figgen.scenarios.taking.python import commented_commands, read_programs
from figgen.scenarios.taking.shell import Shell, asked_in
from figgen.scenarios.taking.sizes import take_model
from figgen.scenarios.taking.slips import meant
from figgen.scenarios.taking.state import take_state
from figgen.scenarios.taking.toml import read_toml
from figgen.scenarios.taking.torchtitan import plain_switches
from figgen.scenarios.taking.unread import may_change
from figgen.scenarios.taking.yaml import read_documents
from figgen.scenarios.texts.entry import ASIDE, Entry, is_whole, normal
from figgen.scenarios.texts.flow import read_documents as read_braces

LONGEST = 1_000_000
"""Most characters of a text; configurations have thousands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenJob:
    """A job that a text describes, under the names of its options.

    `dialect` is the framework whose names the text uses. `assumed` are the framework's defaults and
    this reader's assumptions, each for a reason in `because`; `usual` are those of them that the
    step makes by itself. `left` are unused settings, and `unsure` those of them whose names suggest
    sizes or layouts. `asked` are variables without a value, and `missing` options that have neither
    a value nor a default.
    """

    dialect: str
    taken: dict[str, int | str | bool]
    assumed: dict[str, int | str | bool]
    left: list[str]
    unsure: list[str]
    asked: list[str]
    notes: list[str]
    because: dict[str, str] = field(default_factory=dict)
    usual: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def read_job(text: str, answers: dict[str, str], names: OwnNames) -> TakenJob:
    """Return the job that a script, a configuration or a line of a tool describes.

    `answers` are values of variables that the text leaves open; `names` are those of this site's
    options. Raises InputError for a text that does not describe a training job.
    """
    if len(text) > LONGEST:
        raise InputError("the text", expected=f"at most {LONGEST:,} letters")
    hosts = _hosts(text)
    if hosts is not None:
        return hosts
    kind = format_of(text)
    shell = Shell(answers=answers)
    if kind in ("address", "command"):
        return _own_line(text, kind, shell, names)
    entries = in_known_words(plain_switches(_entries(text, kind, answers, shell)))
    given = sorted_entries(entries)
    if not given.keys and not shell.changed():
        raise InputError(
            "the text",
            expected="a launch script, a configuration or a log of training",
            got=text.strip()[:60],
        )
    given.domains = names.domains
    dialect = dialect_of(entries, kind)
    take_cluster(given)
    take_layout(given, dialect)
    take_model(given, dialect)
    take_batch(given, dialect)
    take_schedule(given, dialect)
    whole = any(name in given.taken for name in DESCRIBING)
    take_state(given, dialect if whole or dialect in ("accelerate", "deepspeed") else "layout")
    if not whole:
        given.assumed.pop("zero_stage", None)
        given.assumed.pop("recompute", None)
    if dialect in SOFTWARE:
        assume(given, "software", _software(given, dialect), f"stands for {dialect}")
    _note_variables(given, shell)
    _note_files(given)
    _note_recipe(given, dialect)
    return _finished(given, dialect, entries)


def _hosts(text: str) -> TakenJob | None:
    """Return the cluster of a hostfile or a list of hosts, or None for other texts."""
    hosts = read_hosts(text)
    if hosts is None or hosts.groups:
        return None
    taken: dict[str, int | str | bool] = {"nodes": len(hosts.names)}
    notes: list[str] = []
    slots = [count for count in hosts.slots if count]
    if slots:
        taken["gpus_per_node"] = min(slots)
    if slots and min(slots) < max(slots):
        notes.append(f"nodes have {min(slots)} to {max(slots)} GPUs; using {min(slots)} of each")
    return TakenJob(
        dialect=hosts.kind, taken=taken, assumed={}, left=[], unsure=[], asked=[], notes=notes
    )


DESCRIBING = ("layers", "hidden", "model", "microbatch_size", "global_batch", "sequence")
"""Options that mark a text about a whole job; only then do its framework's defaults apply."""

SOFTWARE = {
    "megatron-lm": "megatron-lm", "megatron-bridge": "megatron-bridge", "nemo": "nemo",
    "torchtitan": "torchtitan", "nanotron": "nanotron", "gpt-neox": "megatron-deepspeed",
    "megatron-deepspeed": "megatron-deepspeed", "deepspeed": "megatron-deepspeed",
    "deepspeed-topology": "megatron-deepspeed", "llm-foundry": "llm-foundry", "mesh": "fsdp",
    "maxtext": "maxtext", "megatron-core": "megatron-lm", "torchtune": "fsdp",
    "fsdp": "fsdp", "fairseq2": "fsdp", "automodel": "fsdp", "litgpt": "fsdp", "olmo": "fsdp",
    "levanter": "maxtext", "axolotl": "fsdp", "llama-factory": "fsdp", "ms-swift": "fsdp",
    "prime-rl": "fsdp", "accelerate": "fsdp", "transformers": "fsdp",
}  # fmt: skip
"""The software whose memory and time stand for a framework."""


def dialect_of(entries: list[Entry], kind: str) -> str:
    """Return the framework whose names the settings have."""
    names = [normal(one.name) for one in entries]
    programs = " ".join(
        [one.value.lower() for one in entries if one.name in ("program", "launcher")]
    )
    recipes = [one for one in entries if one.name == "recipe_of"]
    if recipes:
        return recipes[-1].value
    titan = "torchtitan" in programs or any(
        name.startswith("parallelism.") and "_degree" in name for name in names
    )
    if kind == "python" and any(name.startswith("mesh.") for name in names):
        return "mesh"
    if kind == "python" and "num_mp" in names:
        return "deepspeed-topology"
    if titan or any(name.startswith("activation_checkpoint.") for name in names):
        return "torchtitan"
    if any(
        name in ("parallelism.tp", "parallelism.dp", "tokens.micro_batch_size") for name in names
    ):
        return "nanotron"
    if "pipe_parallel_size" in names or "model_parallel_size" in names:
        script = any(one.name.startswith("--") for one in entries)
        return "megatron-deepspeed" if script else "gpt-neox"
    if "nemo" in programs.split(" "):
        return "nemo"
    if "model.seq_length" in names and "train.global_batch_size" in names:
        return "megatron-bridge"
    if "base_model" in names:
        return "axolotl"
    if "finetuning_type" in names and "tensor_model_parallel_size" in names:
        return "megatron-core"
    if "swift" in programs.replace("/", " ").split(" "):
        return "megatron-core" if "_megatron" in programs else "ms-swift"
    if "llamafactory" in programs or "finetuning_type" in names or "cutoff_len" in names:
        return "llama-factory"
    if "global_train_batch_size" in names or "device_train_microbatch_size" in names:
        return "llm-foundry"
    if any(name.startswith("trainer.") and "num_nodes" in name for name in names):
        return "nemo"
    if "model_recipe_name" in names or ("compute_dtype" in names and "num_gpus" in names):
        return "megatron-bridge"
    if any(name.endswith("tensor_model_parallel_size") for name in names):
        return _megatron(entries, names, programs)
    if "sharding_strategy" in names:
        return "fsdp"
    if any(
        name in ("num_layers", "micro_batch_size") and one.origin == "script"
        for name, one in zip(names, entries, strict=True)
    ):
        return _megatron(entries, names, programs)
    sharded = any(name.startswith("zero_optimization") for name in names)
    if any(name in ("per_device_train_batch_size", "model_name_or_path") for name in names):
        return "deepspeed" if sharded else "transformers"
    if sharded or "deepspeed" in programs or "train_micro_batch_size_per_gpu" in names:
        return "deepspeed"
    if "accelerate" in programs or "distributed_type" in names or "num_machines" in names:
        return "accelerate"
    return "fsdp" if "use_fsdp" in names else "pytorch"


def _megatron(entries: list[Entry], names: list[str], programs: str) -> str:
    if any(one.origin == "launcher" and one.value == "accelerate" for one in entries):
        return "accelerate"
    if any("model." in name and name.endswith("parallel_size") for name in names):
        bridge = any(
            name.removeprefix("cfg.").startswith(("train.", "ddp.", "dataset.")) for name in names
        )
        return "megatron-bridge" if bridge else "nemo"
    if any(name in ("deepspeed", "zero_stage", "deepspeed_config") for name in names):
        return "megatron-deepspeed"
    return "megatron-lm"


def _entries(text: str, kind: str, answers: dict[str, str], shell: Shell) -> list[Entry]:
    if kind == "json":
        documents, rest = read_braces(text)
        if rest:
            shell.notes.append(f"nothing after the closing brace is read: {rest[:40]!r}")
        return of_one_job(documents, "documents", shell.notes)
    if kind == "yaml":
        return with_commands(of_one_job(read_documents(text), "documents", shell.notes), shell)
    if kind == "toml":
        return read_toml(text)
    if kind == "python":
        found = read_programs(text, shell.notes)
        return found + read_script(commented_commands(text), answers, shell)
    return read_script(text, answers, shell)


def _own_line(text: str, kind: str, shell: Shell, names: OwnNames) -> TakenJob:
    """Read a command or an address of this site, whose options have their own names."""
    found, left, notes = (
        read_address(text, names) if kind == "address" else read_own_command(text, shell, names)
    )
    if not found:
        raise InputError("the text", expected="an option of a training job", got=text.strip()[:60])
    return TakenJob(
        dialect="figgen", taken=found, assumed={}, left=left, unsure=[], asked=[], notes=notes
    )


def _software(given: Given, dialect: str) -> str:
    """Return what stands for a framework; Megatron-Core's own fused loss keeps more."""
    fused, by = switch_of(given, "fused_loss"), text_of(given, "fused_loss_by")
    own = SOFTWARE[dialect] == "megatron-lm" and fused and by in ("", "native")
    return "megatron-fused-loss" if own else SOFTWARE[dialect]


def _note_variables(given: Given, shell: Shell) -> None:
    """Note variables that are set more than once, only partly read, or only by default."""
    given.notes.extend(shell.notes)
    for said in shell.unquoted:
        given.notes.append(f"{said[:40]}: a value with a space needs quotes; using its first word")
    choices: dict[str, list[str]] = {}
    for options, names in shell.undecided:
        used = " ".join([word for word in options.split() if word[:2] == "--" and key_of(word)])
        empty = options.strip(" \\\n") == ""
        if (used or empty) and names and used not in choices.get(names, []):
            choices[names] = [*choices.get(names, []), used]
    for names, lists in choices.items():
        if len(lists) > 1:  # they can't all be given
            _ask(given, names)
        elif lists[0]:
            given.notes.append(f"{names} decides whether {lists[0]} is given; it is read")
    for name in shell.changed():
        values = shell.values[name]
        sizes = all(is_whole(value.partition(",")[0]) for value in values)
        if name in shell.used and name not in RANKS and sizes:
            said = ", ".join(values)
            given.notes.append(f"{name} is set more than once ({said}); using the last value")
            _ask(given, shell.deciding.get(name, ""))
    for name, value in shell.defaults.items():
        set_here = name in shell.variables or name in shell.answers
        if not set_here and name not in RANKS and is_whole(value):
            given.notes.append(f"${name} is not set; using its default {value}")


def _ask(given: Given, names: str) -> None:
    """Ask for variables such as "$MODEL, $SIZE"."""
    for name in asked_in(names):
        if name not in given.asked:
            given.asked.append(name)


FILES = ("configuration_file", "config_file", "fsdp_config")
ENDINGS = (".yaml", ".yml", ".toml", ".json")


def _note_files(given: Given) -> None:
    """Note the files that the text names but does not contain.

    They are the ones that a configuration builds on, as Hydra and NeMo RL name them, and the
    configurations of a script.
    """
    written = any(one.origin == "config" and "." in one.name for one in given.entries)
    for one in given.entries:
        if one.name in ("defaults", "base_config") and one.words and one.name not in given.heeded:
            given.heeded.append(one.name)
            files = " ".join([word for word in one.words.split() if word != "_self_"])
            if files:
                given.notes.append(f"this file builds on {files}; add its content")
        elif normal(one.name).endswith(FILES) and one.value.endswith(ENDINGS) and not written:
            given.notes.append(f"more settings are in {one.value}; add its content")


RECIPES = ("recipe", "factory", "model_recipe_name")
LAID_OUT = ("tp", "pp", "global_batch", "microbatch_size")


def _note_recipe(given: Given, dialect: str) -> None:
    """Note what NVIDIA's recipes set by themselves and a text leaves to them."""
    named = any(normal(one.name) in RECIPES for one in given.entries)
    open = [name for name in LAID_OUT if name not in given.taken]
    if named and open and dialect in ("nemo", "megatron-bridge"):
        given.notes.append(f"the recipe sets {', '.join(open)} by itself: give its values")


MOST_SLIPS = 200
"""Most settings that are checked for typos; no real script has more."""

RANKS = ("RANK", "NODE_RANK", "LOCAL_RANK", "MASTER_PORT", "SLURM_NODEID", "SLURM_PROCID", "SEED")
"""Variables that have nothing to do with sizes."""


def _finished(given: Given, dialect: str, entries: list[Entry]) -> TakenJob:
    left: list[str] = []
    unsure: list[str] = []
    notes = list(given.notes)
    for one in entries:
        if one.name in given.heeded or one.name in left or one.origin == "variable":
            continue
        if one.name in ("launcher", "program", "configuration_file", "recipe_of"):
            continue
        left.append(one.name)
        changes = megatron_may_matter(one) if dialect in FAMILY else may_change(one)
        matters = one.origin != ASIDE and changes
        near = meant(one.name) if len(left) <= MOST_SLIPS and matters else ""
        if near:
            notes.append(f"{one.name} is not a known option; did you mean {near}?")
        if near or matters:
            unsure.append(one.name)
    return TakenJob(
        dialect=dialect,
        taken=given.taken,
        assumed=given.assumed,
        left=left,
        unsure=unsure,
        asked=given.asked,
        notes=notes,
        because={
            option: given.because.get(option, f"{dialect}'s default") for option in given.assumed
        },
    )
