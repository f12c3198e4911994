"""Reads a shell script into the words of its commands, with variables substituted.

Assignments, defaults such as `${TP:-4}`, arrays, arithmetic such as `$((NNODES * GPUS))` and quoted
values of several lines are followed from top to bottom, and of conditions the branch that runs
(`conditions`). If that is undecided, the last value of a variable counts, and `changed` lists
variables with more than one. A value that the text does not contain, such as `$1` or the output of
a command, stays in the words as `$NAME`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from figgen.scenarios.taking.arithmetic import computed
from figgen.scenarios.taking.conditions import Branches, compared_sums, follow
from figgen.scenarios.texts.entry import is_name, is_whole

BLANKS = " \t\r"
ENDS = "\n;&|()"
DIGITS = "0123456789"
KEYWORDS = (
    "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "{", "}", "!", "time",
    "exec", "nohup", "set", "export", "readonly", "declare", "local", "typeset", "env", "sudo",
)  # fmt: skip
"""Prefixes that do not change which command runs."""

DECLARING = ("declare", "local", "typeset", "export", "readonly")
"""Prefixes with options of their own, as in `declare -a ARGS=(…)`."""


@dataclass(slots=True, kw_only=True)
class Shell:
    """The state while a script is read; `answers` are values that the user has given.

    `unquoted` are assignments followed by a number, which is no command, such as `TP=4 5`, and
    `undecided` are options in branches that variables without a value decide, with those variables.
    `deciding` are the variables without a value that decide that of another one, and `arguments`
    the variables set to arguments of the script, such as `$1`. `notes` are for the reader.
    """

    answers: dict[str, str]
    variables: dict[str, str] = field(default_factory=dict)
    values: dict[str, list[str]] = field(default_factory=dict)
    used: list[str] = field(default_factory=list)
    defaults: dict[str, str] = field(default_factory=dict)
    commands: list[list[str]] = field(default_factory=list)
    directives: list[str] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    unquoted: list[str] = field(default_factory=list)
    branches: Branches = field(default_factory=Branches)
    undecided: list[tuple[str, str]] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    deciding: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def changed(self) -> list[str]:
        """Return the variables that are set to more than one value."""
        return [name for name, given in self.values.items() if len(given) > 1]


def read_shell(text: str, shell: Shell) -> None:
    """Read the commands of a script into `shell`."""
    text = _without_documents(text.replace("\r\n", "\n"), shell)
    at = 0
    command: list[str] = []
    while at < len(text):
        letter = text[at]
        if letter in BLANKS:
            at += 1
        elif letter == "\\" and at + 1 < len(text) and text[at + 1] in "\r\n ":
            at = _after_continuation(text, at)
        elif letter == "#":
            end = _line_end(text, at)
            _take_directive(text[at:end], shell)
            at = end
        elif text.startswith("((", at) and command in ([], ["if"], ["elif"]):
            at = _after_sum(text, at, command, shell)
        elif letter in ENDS:
            sign = text[at : at + 2] if text[at : at + 2] in ("&&", "||", ";;") else letter
            _finish(command, shell, sign)
            command = []
            at += len(sign)
        elif letter == "<" and _placeholder(text, at):
            word = _placeholder(text, at)
            command.append(word)
            at += len(word)
        elif text.startswith("<<<", at) and "read" in command:
            word, at = read_word(text, _after_blanks(text, at + 3), shell)
            _read_into(command, word, shell)
            command = []
        elif letter in "<>":
            at = _after_redirection(text, at, shell)
        else:
            word, at = read_word(text, at, shell)
            if word == "\\":
                continue
            command.append(word)
    _finish(command, shell, "\n")


def expand(text: str, shell: Shell) -> str:
    """Return a text with its variables substituted, as in double quotes."""
    out = ""
    at = 0
    while at < len(text):
        letter = text[at]
        if letter == "$":
            value, at = _dollar(text, at, shell)
            out += value
        elif letter == "\\" and at + 1 < len(text):
            follows = text[at + 1]
            out += " " if follows == "\n" else (follows if follows in '$`"\\' else "\\" + follows)
            at += 2
        else:
            out += letter
            at += 1
    return out


def read_word(text: str, at: int, shell: Shell) -> tuple[str, int]:
    """Return the word at `at` without its quotes, and the position after it."""
    word = ""
    while at < len(text):
        letter = text[at]
        if letter in BLANKS or letter in "\n;&|)<>":
            break
        if letter == "(":
            if not word.endswith("="):
                break
            value, at = _array(text, at + 1, shell)
            return word + value, at
        if letter == "'":
            end = text.find("'", at + 1)
            end = len(text) if end < 0 else end
            word += text[at + 1 : end]
            at = end + 1
        elif letter == '"':
            end = _closing_quote(text, at + 1)
            word += expand(_uncommented(text[at + 1 : end]), shell)
            at = end + 1
        elif letter == "$":
            value, at = _dollar(text, at, shell)
            word += value
        elif letter == "`":
            end = text.find("`", at + 1)
            end = len(text) if end < 0 else end
            word += _command_value(text[at + 1 : end], shell)
            at = end + 1
        elif letter == "\\":
            if at + 1 < len(text) and text[at + 1] in "\r\n":
                at = _after_continuation(text, at)
                break
            word += text[at + 1 : at + 2]
            at += 2
        else:
            word += letter
            at += 1
    return word, at


def is_known(value: str) -> bool:
    """Return whether a value has no unknown variables."""
    return "$" not in value


def asked_in(value: str) -> list[str]:
    """Return the names of the unset variables in a value."""
    names: list[str] = []
    at = value.find("$")
    while at >= 0:
        end = at + 1
        while end < len(value) and (value[end].isalnum() or value[end] == "_"):
            end += 1
        name = value[at + 1 : end]
        if name and name not in names:
            names.append(name)
        at = value.find("$", at + 1)
    return names


def _after_sum(text: str, at: int, command: list[str], shell: Shell) -> int:
    """Store a `(( … ))` condition as a test of one word; return the position after it."""
    end = _matching(text, at)
    inner = expand(text[at + 2 : max(at + 2, end - 1)], shell)
    holds = compared_sums(inner, {**shell.answers, **shell.variables})
    command.extend(["[", "$" if holds is None else "1" if holds else ""])
    return end + 1


def _after_continuation(text: str, at: int) -> int:
    """Return the position after a backslash and the line's end, ignoring blanks between them."""
    end = at + 1
    while end < len(text) and text[end] in BLANKS:
        end += 1
    return end + 1 if end < len(text) and text[end] == "\n" else at + 2


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _closing_quote(text: str, at: int) -> int:
    while at < len(text) and text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return min(at, len(text))


def _uncommented(text: str) -> str:
    """Return a quoted text without its commented lines."""
    if "#" not in text:
        return text
    return "\n".join([line for line in text.split("\n") if not line.strip().startswith("#")])


def _placeholder(text: str, at: int) -> str:
    """Return a placeholder such as `<PATH TO DATA>` at `at`, or ""."""
    end = text.find(">", at)
    inner = text[at + 1 : max(end, at)]
    if not inner[:1].isalpha() or inner[-1] in BLANKS or "\n" in inner or "<" in inner:
        return ""
    return text[at : end + 1]


def _after_redirection(text: str, at: int, shell: Shell) -> int:
    while at < len(text) and text[at] in "<>&":
        at += 1
    _, at = read_word(text, _after_blanks(text, at), shell)
    return at


def _after_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in BLANKS:
        at += 1
    return at


def _read_into(command: list[str], word: str, shell: Shell) -> None:
    """Set the variables of `IFS=, read -r TP PP <<< "4,2"`."""
    split = command[0][4:] if command[0].startswith("IFS=") else ""
    values = word.replace(split if split else " ", " ").split()
    names = [one for one in command if is_name(one) and one != "read"]
    for at, name in enumerate(names):
        if at < len(values):
            _assign(name, values[at], False, shell)


def _array(text: str, at: int, shell: Shell) -> tuple[str, int]:
    """Return the words of an array, separated by blanks, and the position after it."""
    words: list[str] = []
    while at < len(text) and text[at] != ")":
        letter = text[at]
        if letter in BLANKS or letter in "\n;&|<>(":
            at += 1
        elif letter == "#":
            at = _line_end(text, at)
        else:
            word, at = read_word(text, at, shell)
            if word and word != "\\":
                words.append(word)
    return " ".join(words), at + 1


def _take_directive(line: str, shell: Shell) -> None:
    """Store a line such as `#SBATCH --nodes=4`, which a scheduler reads and the shell ignores."""
    if line.startswith("#$ -l "):
        _take_grid_engine(line[6:], shell)
    for start in ("#SBATCH", "#PBS", "#BSUB"):
        if line.startswith(start):
            shell.directives.append(expand(line[1:].partition(" #")[0].strip(), shell))
            _set_slurm(shell)


def _take_grid_engine(asked: str, shell: Shell) -> None:
    """Set the nodes requested from a Grid Engine by kind, such as `rt_AF=32` and `node_f=4`."""
    name, _, number = asked.split()[0].partition("=")
    if name.startswith(("rt_", "node_")) and is_whole(number):
        shell.directives.append("SBATCH --nodes=" + number)
        shell.variables["NHOSTS"] = number
        shell.variables["SGE_RESOURCE_TYPE"] = name


def _set_slurm(shell: Shell) -> None:
    """Set the variables that Slurm sets for the last of its directives."""
    words = shell.directives[-1].replace("=", " ").split()
    if len(words) < 2 or words[0] != "SBATCH":
        return
    names = SLURM_VARIABLES.get(words[1], ())
    value = words[2] if len(words) > 2 else ""
    if words[1].startswith("-N") and len(words[1]) > 2:
        names = SLURM_VARIABLES["-N"]
        value = words[1][2:]
    if ":" in value:
        value = value.split(":")[-1]
    for name in names:
        shell.variables[name] = value


SLURM_VARIABLES: dict[str, tuple[str, ...]] = {
    "--nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    "-N": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    "--gpus-per-node": ("SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"),
    "--gres": ("SLURM_GPUS_ON_NODE",),
    "--ntasks-per-node": ("SLURM_NTASKS_PER_NODE",),
    "--ntasks": ("SLURM_NTASKS", "SLURM_NPROCS"),
    "-n": ("SLURM_NTASKS", "SLURM_NPROCS"),
}
"""Variables that Slurm sets in a job, by the option that determines them."""


def _without_documents(text: str, shell: Shell) -> str:
    """Return a script without its here-documents, which are stored separately."""
    lines: list[str] = []
    until = ""
    body: list[str] = []
    for line in text.split("\n"):
        if until:
            if line.strip() == until:
                shell.documents.append("\n".join(body))
                until = ""
                body = []
            else:
                body.append(line)
            continue
        lines.append(line)
        _, found, after = line.partition("<<")
        if found and not after.startswith("<") and not line.strip().startswith("#"):
            words = after.replace("-", " ", 1).split()
            until = words[0].strip("'\"") if words else ""
    if until:
        lines = lines + body
    return "\n".join(lines)


def _finish(command: list[str], shell: Shell, end: str) -> None:
    """Store a command that runs, after making its assignments."""
    command = follow(shell.branches, command, end)
    if not shell.branches.live():
        return
    if command[:1] == ["for"] and command[2:3] == ["in"] and is_name(command[1]):
        for value in " ".join(command[3:]).split():
            _assign(command[1], value, False, shell)
        return
    at = 0
    while at < len(command):
        word = command[at]
        name, sign, value = word.partition("=")
        if sign and is_name(name.rstrip("+")):
            _assign(name.rstrip("+"), value, name.endswith("+"), shell)
        elif word not in KEYWORDS and not (word[:1] == "-" and command[at - 1] in DECLARING):
            break
        at += 1
    if 0 < at < len(command) and command[at][:1] in DIGITS and "=" in command[at - 1]:
        shell.unquoted.append(command[at - 1] + " " + command[at])
    if at < len(command):
        shell.commands.append(command[at:])


def _assign(name: str, value: str, more: bool, shell: Shell) -> None:
    if name in shell.answers and not is_known(value):
        value = shell.answers[name]
    before = shell.variables.get(name, "")
    if before == "" and shell.branches.unsure_of(name):
        return  # `if [ $PP -eq 0 ]; then PP=1; fi` leaves what nobody has set open
    if not is_known(value) and before and is_known(before) and not shell.branches.sure():
        return  # `--tp) TP=$2;;` in a loop over arguments: TP keeps its earlier value
    if value.strip()[:1] in ("-", "") and not shell.branches.sure():
        shell.undecided.append((value, shell.branches.deciding()))
    if more:
        value = before + " " + value
    if _is_argument(value):
        shell.arguments.append(name)
    named = value.startswith("$(") or _is_argument(value)
    shell.variables[name] = "$" + name if named else value
    continues = before != "" and before in value
    if not is_known(value) or continues:
        return
    given = shell.values.get(name, [])
    if value not in given:
        given.append(value)
    if given and not shell.branches.sure():
        shell.deciding[name] = shell.branches.deciding()
    shell.values[name] = given


def _dollar(text: str, at: int, shell: Shell) -> tuple[str, int]:
    """Return the value of an expression that begins with `$`, and the position after it."""
    if text.startswith("$((", at):
        end = _matching(text, at + 2)
        inner = expand(text[at + 3 : end], shell)
        value = computed(inner, {**shell.answers, **shell.variables})
        return value if value else _unknown_sum(inner, shell), min(end + 2, len(text))
    if text.startswith("$(", at):
        end = _matching(text, at + 1)
        return _command_value(text[at + 2 : end], shell), end + 1
    if text.startswith("${", at):
        end = _matching(text, at + 1, "{}")
        return _braced(text[at + 2 : end], shell), end + 1
    end = at + 1
    if end < len(text) and text[end] in "0123456789@*#?!$-":
        return ("$" + text[end] if text[end] in "123456789" else ""), end + 1
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    name = text[at + 1 : end]
    return (_variable(name, shell) if name else "$"), end


def _unknown_sum(inner: str, shell: Shell) -> str:
    """Return the unknown names in an arithmetic expression, as words to ask for."""
    word = ""
    names: list[str] = []
    for letter in inner + " ":
        if letter.isalnum() or letter == "_":
            word += letter
        else:
            if is_name(word) and not is_known(_variable(word, shell)):
                names.append("$" + word)
            word = ""
    return "*".join(names) if names else "$(" + inner.replace(" ", "") + ")"


def _variable(name: str, shell: Shell) -> str:
    if name not in shell.used:
        shell.used.append(name)
    if name in shell.answers and name not in shell.variables:
        return shell.answers[name]
    return shell.variables.get(name, "$" + name)


def _braced(inner: str, shell: Shell) -> str:
    """Return the value of `${…}`."""
    end = 0
    while end < len(inner) and (inner[end].isalnum() or inner[end] == "_"):
        end += 1
    name = inner[:end]
    rest = inner[end:]
    if not name:
        return ""
    if rest.startswith("["):
        rest = rest.partition("]")[2]
    value = _variable(name, shell)
    for sign in (":+", "+"):
        if rest.startswith(sign):
            return expand(rest[len(sign) :], shell) if value and is_known(value) else ""
    for sign in (":-", ":=", "-", "="):
        if rest.startswith(sign):
            set_here = name in shell.variables and name not in shell.arguments
            if value and (is_known(value) or set_here) and not _is_argument(value):
                return value
            default = expand(rest[len(sign) :].strip('"'), shell)
            if shell.branches.live():
                shell.defaults[name] = default
                if sign.endswith("="):
                    shell.variables[name] = default
            return default
    return value


def _is_argument(value: str) -> bool:
    """Return whether a value is an argument of the script, such as `$1`, empty by default."""
    return value[:1] == "$" and is_whole(value[1:])


def _command_value(command: str, shell: Shell) -> str:
    """Return what a command prints if it is arithmetic or an echo, else a word to ask for."""
    words = command.strip()
    if words.startswith("nvidia-smi topo ") and "NV" in words:  # slime's grep … | wc -l
        shell.notes.append("the script counts NVLinks; assuming that there are some")
        return "1"
    if words.startswith("expr "):
        value = computed(expand(words[5:].replace("\\", ""), shell), {})
        if value:
            return value
    said, piped, filter = words.partition("|")
    if said.startswith("echo ") and (not piped or _squeezes(filter)):
        return expand(said[5:].strip().strip("\"'"), shell)
    return "$(" + words.replace(" ", "").replace("\n", "") + ")"


def _squeezes(filter: str) -> bool:
    """Return whether a command such as `sed -e 's/  */ /g'` only changes blanks."""
    words = filter.replace("'", " ").replace('"', " ").split()
    program = words[0] if words else ""
    if program == "sed":
        return all(word in ("sed", "-e", "s/", "*/", "/g") for word in words)
    return words == ["xargs"] or words[:2] == ["tr", "-s"]


def _matching(text: str, at: int, pair: str = "()") -> int:
    """Return the position of the bracket that closes the first of `pair` from `at` on."""
    depth = 0
    while at < len(text):
        if text[at] == pair[0]:
            depth += 1
        elif text[at] == pair[1]:
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return len(text)
