"""Reads layouts from Python programs: device meshes, topologies and keyword arguments."""

from __future__ import annotations

import re

from figgen.scenarios.taking.arithmetic import computed
from figgen.scenarios.taking.conditions import compared_sums
from figgen.scenarios.taking.names import key_of
from figgen.scenarios.taking.yaml import uncommented
from figgen.scenarios.texts.entry import Entry, entry, is_name, is_whole, normal

MESHES = ("init_device_mesh(", "DeviceMesh(")


def read_python(text: str) -> list[Entry]:
    """Return meshes as `mesh.<axis>` and `expert_mesh.<axis>`, and all `name=value`.

    The axes of a mesh are in the program's order, slowest first.
    """
    entries: list[Entry] = []
    number = 0
    for call in MESHES:
        at = text.find(call)
        while at >= 0:
            end = _matching(text, at + len(call) - 1)
            entries.extend(_mesh(text[at + len(call) : end], number, text))
            number += 1
            at = text.find(call, end)
    entries.extend(_recipes(text))
    entries.extend(_calls(text))
    entries.extend(_sized(text))
    adapted = any(one.name == "peft.dim" for one in entries)
    lines: list[Entry] = []
    for line in _running(text):
        said = line.strip()
        if (
            not said.startswith("#") or ".MoE(" in said
        ):  # this site writes the expert mesh as a comment
            lines.extend(_keywords(said))
    entries.extend([one for one in _without_defaults(lines) if one.name != "dim" or not adapted])
    found = _assigned_values([*entries, *_defaults(text)])
    return [one for one in found if not one.name.startswith("args.")]


def without_docstrings(text: str) -> str:
    """Return a program without its strings of several lines, unless a name is set to one."""
    for quotes in ('"""', "'''"):
        parts = text.split(quotes)
        kept = parts[0]
        for at in range(2, len(parts), 2):
            said = parts[at - 2].rpartition("\n")[2].strip()
            kept += quotes + parts[at - 1] + quotes if said else ""
            kept += parts[at]
        text = kept if len(parts) % 2 else text
    return text


def read_programs(text: str, notes: list[str]) -> list[Entry]:
    """Return the settings of a program, or of one of its functions that each return a whole job."""
    text = without_docstrings(text)
    parts = text.split("\ndef ")
    whole = [part for part in parts[1:] if "model_registry(" in part and "-> Trainer." in part]
    if len(whole) < 2:
        return read_python(text)
    jobs = [part for part in whole if part[:1] != "_" and "debug" not in part.partition("(")[0]]
    longest = (jobs if jobs else whole)[0]
    for part in jobs if jobs else whole:
        longest = part if len(part) >= len(longest) else longest
    names = ", ".join([part.partition("(")[0] for part in parts[1:] if "-> Trainer." in part])
    notes.append(
        f"the text has several jobs ({names}); reading {longest.partition('(')[0]}: to read a "
        "different one, give it alone"
    )
    return [*read_python(longest), entry("program", "torchtitan", "script")]


def _running(text: str) -> list[str]:
    """Return the lines of a program but those under `if NODES < 4:` where a number denies it."""
    found: list[str] = []
    values: dict[str, str] = {}
    dead = -1
    for line in text.split("\n"):
        said = uncommented(line).strip()
        indent = len(line) - len(line.lstrip())
        if dead >= 0 and (indent > dead or not said):
            continue
        dead = -1
        name, sign, value = said.partition("=")
        if sign and indent == 0 and is_whole(value.strip()):
            values[name.strip()] = value.strip()
        if said.startswith("if ") and said.endswith(":"):
            runs = compared_sums(said[3:-1], values)
            dead = indent if runs is False else -1
        found.append(line)
    return found


def _without_defaults(entries: list[Entry]) -> list[Entry]:
    """Return the entries without default values of parameters for which a number is given."""
    given = [_meaning(one.name) for one in entries if one.origin != DEFAULT and is_whole(one.words)]
    found: list[Entry] = []
    for one in entries:
        if one.origin != DEFAULT:
            found.append(one)
        elif _meaning(one.name) not in given:
            found.append(entry(one.name, one.words, "python"))
    return found


DEFAULT = "default"
"""The origin of a parameter's default value while a program is read."""


def _meaning(name: str) -> str:
    key = key_of(name)
    return "gpus_per_node" if key == "processes_per_node" else key if key else name


SECTIONS = {
    "LoraConfig": "peft_config.",
    "FastLanguageModel.get_peft_model": "peft_config.",
    "TrainingConfig": "training.",
    "ParallelismConfig": "parallelism.",
    "ActivationCheckpointConfig": "activation_checkpoint.",
    "CompileConfig": "compile.",
    "peft.LoRA": "peft.",
}
"""Calls of PEFT and torchtitan whose arguments are named as in a section of a file."""

FIRST_ARGUMENTS = {"from_pretrained": "from_pretrained", "model_registry": "flavor"}
"""Calls whose first argument is a setting."""


def _calls(text: str) -> list[Entry]:
    """Return the arguments of known calls under the names of a file's sections."""
    found: list[Entry] = []
    for call, section in SECTIONS.items():
        start = _opened(text, call)
        if start < 0:
            continue
        for said in _arguments(text[start + 1 : _matching(text, start)]):
            for one in _keywords(said):
                found.append(entry(section + one.name, one.words, one.origin))
        if section.startswith("peft"):
            found.append(entry("adapter", "lora", "python"))
        if call.startswith("Fast") and "use_gradient_checkpointing" not in text:
            found.append(entry("gradient_checkpointing", "unsloth", "python"))
    for kind in ("FullAC.", "SelectiveAC.", "None"):
        if f"activation_checkpoint={kind}" in text:
            mode = kind.lower().removesuffix("ac.")
            found.append(entry("activation_checkpoint.mode", mode, "python"))
    if "FSDPStrategy(" in text:  # Lightning's
        found.append(entry("use_fsdp", "true", "python"))
    for call, name in FIRST_ARGUMENTS.items():
        said = text.partition(call + "(")[2].strip()
        if said[:1] in ("'", '"'):
            found.append(entry(name, _plain_value(said), "python"))
    builder = text.partition("= TransformerConfig.")[2] or text.partition("n TransformerConfig.")[2]
    if "olmo_core" in text and builder:
        found.append(entry("recipe", builder.partition("(")[0], "python"))
    return found


def _defaults(text: str) -> list[Entry]:
    """Return the options of a program with their defaults, as an ArgumentParser declares them."""
    found: list[Entry] = []
    for said in text.split("add_argument(")[1:]:
        name = said.strip().lstrip("\"'").partition(said.strip()[:1])[0]
        _, default, rest = said.partition("\n")[0].partition("default=")
        value = _plain_value(rest) if default else ""
        if name.startswith("--") and value:
            found.append(entry("args." + normal(name), value, "python"))
    return found


def _arguments(call: str) -> list[str]:
    """Return the arguments of a call, each on one line, without comments."""
    found = [""]
    depth = 0
    for line in call.split("\n"):
        for letter in line.partition("#")[0]:
            depth += (letter in "([{") - (letter in ")]}")
            if letter == "," and depth == 0:
                found.append("")
            else:
                found[-1] += letter
    return [said.strip() for said in found]


def _opened(text: str, call: str) -> int:
    """Return where the arguments of a call begin, `LoRA(…)` or `run.Config(LoRA, …)`, or -1."""
    at = text.find(call + "(")
    if at >= 0:
        return at + len(call)
    before, named, inside = text.partition(call + ",")[0].rpartition("Config(")
    if not named or "," in inside or ")" in inside:
        return -1
    return len(before) + len("Config")


GROUPS = ("zero1", "tensor", "pipeline", "weight", "expert")
"""InternEvo's dictionaries with the size and the mode of a group of ranks."""


def _sized(text: str) -> list[Entry]:
    """Return `tensor=dict(size=8, mode="msp")` as `parallel.tensor.size` and `.mode`."""
    found: list[Entry] = []
    for group in GROUPS:
        _, call, rest = text.partition("\n    " + group + "=dict(")
        if call:
            for one in _keywords(rest.partition(")")[0].replace(",", " ")):
                found.append(entry("parallel." + group + "." + one.name, one.words, "python"))
    return found


ROUNDS = 4
"""Most substitutions of names by names."""


def _assigned_values(entries: list[Entry]) -> list[Entry]:
    """Return the entries with names replaced by the numbers that the program assigns to them.

    Arithmetic over such names is computed.
    """
    found = _named_texts(entries)
    for _ in range(ROUNDS):
        numbers: dict[str, str] = {}
        for one in found:
            if is_whole(one.words):
                numbers[one.name] = one.words
        found = [_with_number(one, numbers) for one in found]
    return found


def _named_texts(entries: list[Entry]) -> list[Entry]:
    """Return entries with names replaced by their texts, as in `model_path=model_path`."""
    texts: dict[str, str] = {}
    for one in entries:
        if one.words and one.words != one.name and one.name not in texts:
            texts[one.name] = one.words
    found: list[Entry] = []
    for one in entries:
        named = one.origin == "python" and one.words in texts and not is_whole(one.words)
        found.append(entry(one.name, texts[one.words], one.origin) if named else one)
    return found


def _with_number(one: Entry, numbers: dict[str, str]) -> Entry:
    if is_whole(one.words) or one.origin != "python" or not one.words:
        return one
    plain = ""
    for word in one.words.split():
        plain += numbers.get(word, numbers.get(word.rpartition(".")[2], word)) + " "
    value = computed(plain.replace("//", "/"), {}) if _is_exact(plain) else ""
    return entry(one.name, value, one.origin) if value else one


XTUNER = "xtuner.v1.model"
RECIPES = (
    ("megatron.bridge.recipes", "megatron-bridge"), ("nemo.collections", "nemo"),
    (XTUNER, "fsdp"),
)  # fmt: skip
"""Libraries whose recipes are a model with its settings, by framework."""


def _recipes(text: str) -> list[Entry]:
    """Return the framework of an imported recipe, and the model that it is named after."""
    found: list[Entry] = []
    for library, framework in RECIPES:
        if library not in text:
            continue
        found.append(entry("recipe_of", framework, "python"))
        plain = ""
        for letter in text:
            plain += letter if letter.isalnum() or letter == "_" else " "
        for word in plain.split():
            family, _, size = word.partition("Config")
            plain_name = family.replace("MoE", "").replace("Dense", "")
            if library == XTUNER and word != family and plain_name[-2:-1].isdigit():
                found.append(entry("recipe", plain_name, "python"))
            elif library == XTUNER and word != family and plain_name[-1:].isdigit():
                found.append(entry("recipe", plain_name + "B", "python"))  # of active ones
            elif size[:1].isdigit():
                found.append(entry("recipe", family + size, "python"))
            if word.endswith(("_pretrain_config", "_finetune_config")):
                name = word.removesuffix("_pretrain_config").removesuffix("_finetune_config")
                found.append(entry("recipe", name, "python"))
        for call in (".pretrain_recipe(", ".finetune_recipe("):
            before, said, _ = text.partition(call)
            if said:
                name = before.rpartition("\n")[2].rpartition("=")[2].rpartition(".")[2]
                found.append(entry("recipe", name.strip(), "python"))
            if said and "fine" in call and "peft" not in text:
                found.append(entry("peft_scheme", "lora", "python"))  # NeMo's own default
    return found


def commented_commands(text: str) -> str:
    """Return comment lines that contain a launcher's command, as this site writes them."""
    found: list[str] = []
    for line in text.split("\n"):
        said = line.strip().lstrip("# ")
        if line.strip().startswith("#") and said.startswith(("deepspeed ", "torchrun ", "srun ")):
            found.append(said)
    return "\n".join(found)


def _mesh(call: str, number: int, text: str) -> list[Entry]:
    lists: list[list[str]] = []
    at = 0
    while at < len(call):
        if call[at] in "([":
            end = _matching(call, at)
            lists.append([part.strip() for part in call[at + 1 : end].split(",") if part.strip()])
            at = end
        at += 1
    if len(lists) < 2 or len(lists[0]) != len(lists[1]):
        return []
    prefix = "mesh." if number == 0 else "expert_mesh."
    found: list[Entry] = []
    for at in range(len(lists[0])):
        size = lists[0][at]
        value = size if is_whole(size) or size == "-1" else _assigned(size, text)
        found.append(entry(prefix + lists[1][at].strip(QUOTES), value, "python"))
    return found


QUOTES = "'\""


def _assigned(name: str, text: str) -> str:
    """Return the whole number that a program assigns to a name, else the name to ask for."""
    for line in text.split("\n"):
        left, sign, right = line.partition("=")
        value = right.partition("#")[0].strip()
        if sign and left.strip() == name and is_whole(value):
            return value
    plain = ""
    for letter in name:
        plain += letter if letter.isalnum() else "_"
    return "$" + plain.strip("_")


def _keywords(line: str) -> list[Entry]:
    """Return `name=value` and `name: value` of a line whose value is a number, word or list."""
    found: list[Entry] = []
    line = re.sub(r": *[A-Za-z_.]+\[[^\]=]*\] *=", ": int =", line)  # of a type in brackets
    line = re.sub(r"(?:[a-z]+\()?os\.(?:getenv|environ\.get)\([^,()]*, *", "", line)  # its default
    at = line.find("=")
    while at > 0:
        start = at
        while start > 0 and (line[start - 1].isalnum() or line[start - 1] in "_. "):
            start -= 1
        name = line[start:at].strip().split(" ")[-1]
        origin = "python"
        if start > 0 and line[start - 1] == ":":  # a typed parameter
            name = line[: start - 1].replace("(", " ").replace(",", " ").split()[-1]
            origin = DEFAULT if "def " in line or line.endswith(",") else origin
        value = _plain_value(line[at + 1 :])
        plain = name.replace(".", "_")
        if is_name(plain) and value and line[at + 1 : at + 2] != "=":
            found.append(entry(name, value, origin))
        elif name.rpartition(".")[2] == "plugins":  # `recipe.trainer.plugins = bf16_mixed()`
            call = line[at + 1 :].partition("(")[0].strip()
            if is_name(call):
                found.append(entry("precision", call, origin))
        at = line.find("=", at + 1)
    return found


def _plain_value(text: str) -> str:
    text = text.strip()
    if text[:1] in ("'", '"'):
        return text[1:].partition(text[0])[0]
    if text.startswith("not "):
        return ""
    if text[:1] == "[":
        inner, closed, _ = text[1:].partition("]")
        if not closed:
            return ""  # the rest is on other lines
        return " ".join([part.strip().strip(QUOTES) for part in inner.split(",")])
    end = 0
    while end < len(text) and (text[end].isalnum() or text[end] in "._-"):
        end += 1
    if end < len(text) and text[end] == "(":
        return ""
    rest = text[end:].lstrip()
    if text[:end] and rest[:1] in SIGNS:
        return text[:end] + " " + _operation(rest)
    return text[:end]


def _is_exact(words: str) -> bool:
    """Return whether an expression divides without remainder, unlike 8 / 3."""
    before, sign, after = words.partition(" / ")
    if not sign:
        return True
    top = before.strip()
    low = after.strip()
    return is_whole(top) and is_whole(low) and int(low) > 0 and int(top) % int(low) == 0


SIGNS = ("*", "+", "/")


def _operation(text: str) -> str:
    """Return the operators and operands after the first number: `* 1024 // GPUS`."""
    out = ""
    for letter in text:
        if letter in SIGNS:
            out += letter if out.endswith(letter) else " " + letter
        elif letter.isalnum() or letter in "._ ":
            out += (" " if out[-1:] in SIGNS else "") + letter
        else:
            break
    return " ".join(out.split())


def _matching(text: str, at: int) -> int:
    depth = 0
    while at < len(text):
        if text[at] in "([":
            depth += 1
        elif text[at] in ")]":
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return len(text)
