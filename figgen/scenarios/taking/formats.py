"""The format of a text: JSON, TOML, YAML, Python, a line of this site, or a shell script."""

from __future__ import annotations

from figgen.scenarios.taking.python import MESHES, without_docstrings
from figgen.scenarios.taking.yaml import key_end, uncommented
from figgen.scenarios.texts.entry import is_name

PROGRAMS = (
    "torchrun", "msrun", "srun", "python", "deepspeed", "accelerate", "mpirun", "export", "sbatch",
    "bash", "composer", "axolotl", "llamafactory-cli", "tune", "cd", "source", "echo", "if", "set",
    "module",
)  # fmt: skip
"""Words that can begin a line of a script."""


def format_of(text: str) -> str:
    """Return "json", "toml", "yaml", "python", "address", "command" or "shell"."""
    said = _begun(text)
    if (
        said.startswith("figgen ")
        or said.startswith("$ figgen ")
        or "python -m figgen " in said[:40]
    ):
        return "command"
    if said.startswith(("http://", "https://", "?")) and "=" in said and "\n" not in said:
        return "address"
    if said.startswith("{"):
        return "json"
    if said.startswith("#!") and "python" not in said.partition("\n")[0]:
        return "shell"
    if _only_keys(said):
        return "yaml"
    if any(call in said for call in MESHES) or "ModelDataParallelTopology(" in said:
        return "python"
    return _of_lines(without_docstrings(said) if "\ndef " in said else said)


def _begun(text: str) -> str:
    """Return a text without the comments before its opening brace."""
    said = text.strip()
    rest = said
    while rest.startswith("#") and not rest.startswith(("#!", "#SBATCH", "#PBS")):
        rest = rest.partition("\n")[2].strip()
    return rest if rest.startswith("{") else said


MOST_LINES = 2000


def _only_keys(said: str) -> bool:
    """Return whether every unindented line is a one-word key, as in YAML with commands."""
    count = 0
    for raw in said.replace("\r", "").split("\n")[:MOST_LINES]:
        if not raw.strip() or raw[0] in " \t#" or raw.startswith("---"):
            continue
        end = key_end(raw)
        if end < 1 or " " in raw[:end] or raw[0] in "-[{":
            return False
        count += 1
    return count > 1


def _is_argument(line: str) -> bool:
    """Return whether a line is `name=value,` or opens a call such as `args = Arguments(`."""
    name, sign, _ = line.partition("=")
    return sign != "" and line.endswith((",", "(")) and is_name(name.strip().replace(".", "_"))


def _of_lines(said: str) -> str:
    tables = 0
    settings = 0
    equals = 0
    shell = 0
    bare = 0
    python = 0
    for raw in said.replace("\r", "").split("\n"):
        line = uncommented(raw).strip()
        if not line:
            if raw.strip().startswith("#SBATCH"):
                shell += 5
            continue
        first = line.split()[0]
        if ("<<" in line and not line.startswith("<<:")) or first.startswith(("$", "./")):
            shell += 50  # a here-document and its lines
        elif first.startswith("--") and 0 < key_end(line) < len(first):
            settings += 1  # a key that is an option of a command line
        elif line.startswith("[") and line.endswith("]") and "=" not in line:
            tables += 1
        elif line.startswith("--") or " --" in line or first in PROGRAMS or line.endswith("\\"):
            shell += 1 if line != "---" else 0
        elif (
            line.startswith(("import ", "from ", "def ", "class ", "@"))
            or _is_argument(line)
            or line.endswith(("= True", "= False"))
        ):
            python += 1
        elif key_end(line) > 0 or (line.startswith("- ") and not line.startswith("- -")):
            settings += 1
        elif " = " in line or ("=" in first and tables > 0):
            equals += 1
        elif "=" in first:
            shell += 1
            bare += 1
    if equals and bare == shell and not tables and not settings and python:
        return "python"  # a shell has no blanks around the sign
    if tables and equals and not shell:
        return "toml"
    if python and python + equals + settings >= shell:
        return "python"
    if settings > shell:
        return "yaml"
    if equals and not shell and not settings:
        return "toml"
    return "shell"
