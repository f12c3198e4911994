"""Splits the words of commands into options of schedulers, launchers and scripts."""

from __future__ import annotations

import re

from figgen.errors import InputError
from figgen.scenarios.taking.documents import of_one_job
from figgen.scenarios.taking.formats import format_of
from figgen.scenarios.taking.names import key_of
from figgen.scenarios.taking.shell import Shell, expand, read_shell
from figgen.scenarios.taking.toml import read_toml
from figgen.scenarios.taking.torchtitan import chooses, chosen
from figgen.scenarios.taking.yaml import read_yaml
from figgen.scenarios.texts.entry import Entry, entry, is_name, is_whole
from figgen.scenarios.texts.flow import read_flow

SLURM = ("srun", "sbatch", "salloc")
MPI = ("mpirun", "mpiexec", "mpiexec.hydra", "prun")
LAUNCHING: dict[tuple[str, str], str] = {
    ("accelerate", "launch"): "accelerate", ("tune", "run"): "torchtune",
}  # fmt: skip
"""Launchers that are subcommands of a program, by (program, subcommand)."""
LAUNCHERS = ("torchrun", "deepspeed", "composer", "accelerate-launch", "colossalai", "msrun")
SCRIPTS = ("axolotl", "llamafactory-cli", "swift", "megatron", "figgen", "nemo", "litgpt")
WRAPPERS = (
    "bash", "sh", "env", "numactl", "singularity", "apptainer", "docker", "podman", "enroot",
    "nsys", "exec", "time", "run", "shell", "profile",
)  # fmt: skip
"""Programs that start another program."""

GENERATING = ("vllm-serve", "vllm", "sglang.launch_server", "sglang_router.launch_router")
"""Programs that serve a model."""

LAUNCHER_MODULES = (
    "torch.distributed.launch",
    "torch.distributed.run",
    "accelerate.commands.launch",
)
LAUNCHER_SWITCHES = (
    "standalone", "no_python", "use_fsdp", "use_deepspeed", "use_megatron_lm", "multi_gpu",
    "same_network", "use_env", "use_cpu", "main_training_function", "no_ssh", "no_local_rank",
    "mesh", "tpu", "fsdp_offload_params", "dynamo_use_dynamic", "module", "enable_each_rank_log",
)  # fmt: skip
"""Options of launchers without a value, which the script may follow."""

LISTS = ("args", "options", "opts", "flags")
"""Ends of names of variables that hold options."""

SLURM_SHORT = "NnGcpJtAoewDq"
"""One-letter options of Slurm, whose value may follow without a blank."""


def read_script(text: str, answers: dict[str, str], shell: Shell) -> list[Entry]:
    """Return all settings of a launch script, in order; `shell` keeps everything else."""
    shell.answers = answers
    read_shell(text, shell)
    entries: list[Entry] = []
    for line in shell.directives:
        words = line.split()
        if words[0] == "PBS":
            entries.extend(_pbs(words))
        else:
            _options(words, 1, "sbatch", entries)
    commands = [command_entries(command, shell) for command in shell.commands]
    training = [found for found in commands if not _is_beside(found)]
    entries.extend(of_one_job(training if any(training) else commands, "commands", shell.notes))
    for document in shell.documents:
        entries.extend(_document(document, shell))
    alone = not any(one.origin == "script" and key_of(one.name) for one in entries)
    settings = _only_sets(shell)
    if alone and not settings and not any(one.name == "program" for one in entries):
        shell.notes.append("no command starts a program: the text may be cut off")
    for name, value in shell.variables.items():
        if name in shell.used and not settings:
            continue
        if _is_options(value) and alone:  # for a script that sources this one
            _options(_split(value), 0, "script", entries)
        entries.append(entry(name, value, "script" if settings else "variable"))
    return entries


BESIDE = (
    "inference", "decode", "generate", "generation", "eval", "evaluate", "evaluation", "convert",
    "export",
)  # fmt: skip
"""Whole words in the paths of programs that train nothing."""


def _is_beside(command: list[Entry]) -> bool:
    """Return whether a command starts a program that prepares, converts or uses a model."""
    paths = " ".join([one.value.lower() for one in command if one.name == "program"])
    words = re.split(r"[^a-z]+", paths)
    return any(word in words for word in BESIDE) and not any(
        word in paths for word in ("train", "tune", "sft")
    )


TOOLS = ("conda", "mamba", "module", "pip", "git", "cd")
"""Programs whose arguments may have the names of software, as in `conda activate megatron`."""


SETTING_UP = (".", "source", "exit", "echo", "cd", "mkdir", "module", "export", "set", "ulimit")
"""Commands that start no training."""


def _only_sets(shell: Shell) -> bool:
    """Return whether a script only sets variables for other scripts; these are settings."""
    starts = [command for command in shell.commands if command[0] not in SETTING_UP]
    return not starts and not shell.directives


def _is_options(value: str) -> bool:
    """Return whether the value of a variable is a list of options."""
    return value.strip().startswith("-") and " " in value.strip()


def command_entries(command: list[str], shell: Shell) -> list[Entry]:
    """Return the options of one command, through all of its nested launchers.

    Token generation next to the training, such as `vllm serve`, is not part of the job.
    """
    sets_up = command[0] in TOOLS and command[1:2] != ["run"]
    if sets_up or any(word in GENERATING for word in command):
        return []
    entries: list[Entry] = []
    words: list[str] = []
    for said in command:
        words.extend(_parts(said, words))
    origin = "variable"
    at = 0
    while at < len(words):
        word = words[at]
        program = word.rpartition("/")[2]
        follows = words[at + 1] if at + 1 < len(words) else ""
        if origin != "script" and program in SLURM:
            origin = "slurm"
        elif origin != "script" and program in MPI:
            origin = "mpi"
        elif origin != "script" and program in LAUNCHERS:
            origin = "launcher"
            entries.append(entry("launcher", program, "launcher"))
        elif origin != "script" and (program, follows) in LAUNCHING:
            origin = "launcher"
            entries.append(entry("launcher", LAUNCHING[(program, follows)], "launcher"))
            at += 1
        elif origin != "script" and program.startswith("python"):
            origin, at = _python(words, at, entries)
        elif origin != "script" and program in SCRIPTS:
            entries.append(entry("program", program, "script"))
            origin = "script"
        elif origin != "script" and word in ("-c", "-lc") and follows:
            inner = Shell(answers=shell.answers, variables=dict(shell.variables))
            read_shell(follows, inner)
            for nested in inner.commands:
                entries.extend(command_entries(nested, shell))
            at += 1
        elif origin != "script" and origin != "variable" and word == "-m" and follows:
            entries.append(entry("program", follows, "script"))
            origin = "script"
            at += 1
        elif origin != "script" and word.endswith((".py", ".sh")) and not word.startswith("-"):
            entries.append(entry("program", word, "script"))
            origin = "script"
        elif word.startswith("-") and len(word) > 1 and not word[1:2].isdigit():
            # Options without a program belong to a script.
            at = _option(words, at, "script" if origin == "variable" else origin, entries)
            continue
        elif "=" in word or chooses(word) or _is_open_list(word):
            _override(word, origin, entries)
        elif origin in ("launcher", "slurm", "mpi") and program not in WRAPPERS:
            entries.append(entry("program", word, "script"))
            origin = "script"
        elif origin == "script" and word.endswith((".yaml", ".yml", ".toml", ".json")):
            entries.append(entry("configuration_file", word, "script"))
        at += 1
    return entries


def _parts(said: str, before: list[str]) -> list[str]:
    """Return the words in a word: options, or those of NeMo's `llama3_8b(num_nodes=2, dir='x')`."""
    if before and before[-1] == "--factory":
        name, _, given = said.partition("(")
        parts = [part.strip().replace("'", "") for part in given.rstrip(")").split(",")]
        return [name, *[part for part in parts if key_of(part.partition("=")[0])]]
    return _split(said) if _holds_options(said, before) else [said]


def _python(words: list[str], at: int, entries: list[Entry]) -> tuple[str, int]:
    """Return the origin and position after `python`, with a launcher module or a script."""
    at += 1
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-m", "-c"):
        at += 1
    if at + 1 < len(words) and words[at] == "-m":
        module = words[at + 1]
        if module in LAUNCHER_MODULES:
            entries.append(entry("launcher", module, "launcher"))
            return "launcher", at + 1
        entries.append(entry("program", module, "script"))
        return "script", at + 1
    if at < len(words):
        entries.append(entry("program", words[at], "script"))
    return "script", at


def _holds_options(word: str, before: list[str]) -> bool:
    """Return whether a quoted word holds several options rather than a script for another shell."""
    if " " not in word.strip() and "\n" not in word:
        return False
    if before and before[-1] in ("-c", "-lc"):
        return False
    if before and before[-1].startswith("--") and not word.strip().startswith("--"):
        return " -" in word or "=" in word
    starts = _is_program(word.split()[0]) and before[:1] != ["echo"]
    return starts or word.strip().startswith("-") or " --" in word or "=" in word


def _split(word: str) -> list[str]:
    """Return the words of a value, as a shell splits an unquoted one."""
    words: list[str] = []
    for part in word.replace("\\\n", " ").split():
        if part != "\\":
            words.append(part.strip("\"'"))
    return words


def _options(words: list[str], at: int, origin: str, entries: list[Entry]) -> None:
    while at < len(words):
        if words[at].startswith("-") and len(words[at]) > 1 and not words[at][1].isdigit():
            at = _option(words, at, origin, entries)
        else:
            if "=" in words[at] or chooses(words[at]):
                _override(words[at], origin, entries)
            at += 1


def _option(words: list[str], at: int, origin: str, entries: list[Entry]) -> int:
    """Store the option at `at`; return the position after its values."""
    word = words[at]
    name, sign, value = word.partition("=")
    if name == "-n" and origin == "launcher":
        name = "--nproc"  # Composer's spelling
    if sign:
        entries.append(entry(name, value, origin))
        return at + 1
    short = not word.startswith("--") and len(word) > 2 and word[1] in SLURM_SHORT
    if short and origin in ("slurm", "sbatch"):
        entries.append(entry(word[:2], word[2:], origin))
        return at + 1
    at += 1
    values: list[str] = []
    switch = name.lstrip("-").replace("-", "_") in LAUNCHER_SWITCHES
    one = origin in ("launcher", "slurm", "mpi", "sbatch")
    while at < len(words) and not (one and (values or switch)):
        follows = words[at]
        negative = follows[:1] == "-" and follows[1:2].isdigit()
        if (follows.startswith("-") and not negative) or _is_override(follows):
            break
        if one and (follows.endswith((".py", ".sh")) or _is_program(follows)):
            break
        if _is_open_list(follows):
            break
        values.append(follows)
        at += 1
    entries.append(entry(name, " ".join(values), origin))
    return at


def _is_open_list(word: str) -> bool:
    """Return whether a word is a variable for options that the text doesn't set, and no value."""
    return word[:1] == "$" and word.lower().endswith(LISTS)


def _is_program(word: str) -> bool:
    """Return whether a word starts a program rather than being a value of the previous option."""
    name = word.rpartition("/")[2]
    known = (*SLURM, *MPI, *LAUNCHERS, *WRAPPERS, "accelerate")
    return name in known or name.startswith("python")


def _is_override(word: str) -> bool:
    name, sign, _ = word.partition("=")
    plain = name.lstrip("+~")
    dotted = "." in name or key_of(plain) != ""
    return chooses(word) or (sign != "" and dotted and is_name(plain.replace(".", "_")))


def _override(word: str, origin: str, entries: list[Entry]) -> None:
    """Store a word such as `model.num_layers=32`, `data={a: 1}` or `$EXTRA_ARGS`."""
    if _is_open_list(word):
        entries.append(entry(word, "", "script"))
        return
    if chooses(word):
        entries.append(chosen(word, origin))
        return
    name, _, value = word.partition("=")
    plain = name.lstrip("+~").replace(".", "_").replace("/", "_").replace("-", "_")
    if not is_name(plain) or plain.upper() == plain:
        return
    if value[:1] in ("{", "[") and value[-1:] in ("}", "]"):
        try:
            entries.extend(read_flow(value, name)[0])
            return
        except InputError:
            pass
    entries.append(entry(name, value, "script" if origin == "variable" else origin))


def _document(document: str, shell: Shell) -> list[Entry]:
    """Return the settings of a here-document: JSON, TOML, YAML or a script."""
    said = document.strip()
    # A variable alone on a line, as of several data sets, is left out.
    plain = "\n".join([line for line in said.split("\n") if not line.startswith("${")])
    kind = format_of(plain)
    if kind in ("json", "toml", "yaml"):
        whole = expand(plain, shell)
        try:
            if kind == "toml":
                return read_toml(whole)
            return read_flow(whole, "")[0] if kind == "json" else read_yaml(whole)
        except InputError:
            return []
    if "--" in said or said.startswith("#!"):
        inner = Shell(answers=shell.answers, variables=dict(shell.variables))
        return read_script(document, shell.answers, inner)
    return []


def with_commands(entries: list[Entry], shell: Shell) -> list[Entry]:
    """Return the settings of a file and of the commands and scripts in it, as in containers.

    Variables that the file sets under `env` or `envs` are substituted.
    """
    found: list[Entry] = []
    for one in entries:
        section, _, name = one.name.rpartition(".")
        if section.rpartition(".")[2] in ("env", "envs") and is_name(name):
            shell.variables[name] = one.words
        if one.name == "num_nodes":
            shell.variables["SKYPILOT_NUM_NODES"] = one.value
        if one.name in ("env", "envs"):
            for word in one.words.split():
                left, sign, value = word.partition("=")
                if sign and is_name(left):
                    shell.variables[left] = value
        if one.name == "resources.accelerators":
            number = one.value.partition(":")[2]
            shell.variables["SKYPILOT_NUM_GPUS_PER_NODE"] = number if number else "1"
    for one in entries:
        words = one.words.split()
        if "\n" in one.words and any(_is_program(word) for word in words):
            inner = Shell(answers=shell.answers, variables=dict(shell.variables))
            found.extend(read_script(one.words, shell.answers, inner))
        elif "\n" in one.words and one.words.startswith("{"):
            found.extend(_document(one.words, shell))  # a file that a container finds
        elif len(words) > 2 and _is_program(words[0]):
            found.extend(command_entries(words, shell))
        elif len(words) > 1 and all(word.startswith("--") for word in words):
            _options(words, 0, "script", found)  # the arguments of a container
        elif one.name == "resources.gpu":
            found.extend(_asked_gpus(one))
        else:
            found.append(one)
    return found


def _asked_gpus(one: Entry) -> list[Entry]:
    """Return the GPUs in dstack's `resources: {gpu: H100:8}`, one unless a number is given."""
    number = "1"
    for part in one.words.split(":"):
        number = part if is_whole(part) else number
    kind = entry("gpu_type", one.words, "config")
    return [kind, entry("num_gpus_per_node", number, "config")]


def _pbs(words: list[str]) -> list[Entry]:
    """Return the settings of a directive such as `#PBS -l select=4:ngpus=8`."""
    found: list[Entry] = []
    for word in words:
        for part in word.split(":"):
            name, sign, value = part.partition("=")
            if sign and name in ("select", "nodes"):
                found.append(entry("--nodes", value, "sbatch"))
            elif sign and name in ("ngpus", "gpus"):
                found.append(entry("--gpus-per-node", value, "sbatch"))
    return found
