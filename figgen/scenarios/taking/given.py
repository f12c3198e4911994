"""The settings of a job by key, with notes on duplicates and invalid numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from figgen.scenarios.taking.names import VARIABLES, key_of
from figgen.scenarios.taking.shell import asked_in, is_known
from figgen.scenarios.texts.entry import ASIDE, Entry, entry, is_whole, normal

MOST = 10**9

ORIGINS = ("script", "config", "python", "launcher", "mpi", "slurm", "sbatch", "variable")
"""Origins of settings; earlier ones override later ones."""

LAUNCHED = ("launcher", "mpi", "config", "python", "script", "slurm", "sbatch", "variable")
"""Origins of the cluster's size, which a launcher determines, in order of precedence."""

NOTHING = ("", "null", "None", "~")
"""Values that leave a setting open in a configuration."""

ON = ("true", "1", "yes", "on", "")
OFF = ("false", "0", "no", "off", "none", "null")


@dataclass(slots=True, kw_only=True)
class Given:
    """Settings by the key that they mean, and the options derived from them.

    `taken` are values of a job's options under their own names, `assumed` defaults of the framework
    or of this reader, `because` the reasons for them where they are not the framework's defaults,
    and `asked` variables that the user has to fill in. `heeded` are the settings that were used;
    `notes` are for the reader, and `domains` are those of `OwnNames`.
    """

    entries: list[Entry]
    keys: dict[str, list[Entry]] = field(default_factory=dict)
    taken: dict[str, int | str | bool] = field(default_factory=dict)
    assumed: dict[str, int | str | bool] = field(default_factory=dict)
    because: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    heeded: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    domains: dict[str, int] = field(default_factory=dict)


def sorted_entries(entries: list[Entry]) -> Given:
    """Return the entries under the keys that they mean."""
    given = Given(entries=entries)
    for said in entries:
        key = _key(said)
        one = _without_place(said) if key == "model_name" else said
        if (one.origin == "config" and one.words in NOTHING) or (
            one.origin == "python" and one.words == "None"
        ):
            given.heeded.append(one.name)
        elif key:
            given.keys[key] = [*given.keys.get(key, []), one]
    return given


def _without_place(one: Entry) -> Entry:
    """Strip an unknown folder from a model's name, as in `$HOME/models/Llama-3-8B`.

    A folder of Hugging Face's cache, `models--OWNER--NAME/snapshots/COMMIT`, has it in the middle.
    """
    before, cached, _ = one.value.partition("/snapshots/")
    if cached:
        return entry(one.name, before.rpartition("--")[2], one.origin)
    name = one.value.rstrip("/").rpartition("/")[2]
    known = is_known(one.value) or not name or not is_known(name)
    return one if known else entry(one.name, name, one.origin)


def _key(one: Entry) -> str:
    if one.origin == ASIDE:
        return ""
    if one.origin == "variable":
        return VARIABLES.get(normal(one.name), "")
    if one.origin in ("sbatch", "slurm", "mpi"):
        return SCHEDULED.get(one.name, "")
    return key_of(one.name)


SCHEDULED: dict[str, str] = {
    "--nodes": "nodes", "-N": "nodes", "--gpus-per-node": "gpus_per_node",
    "--ntasks-per-node": "tasks_per_node", "--ntasks": "tasks", "-n": "tasks",
    "--gpus-per-task": "gpus_per_task", "--gres": "generic_resources", "--gpus": "gpus",
    "-G": "gpus", "--constraint": "chip", "-C": "chip", "-np": "processes",
    "-npernode": "processes_per_node", "--npernode": "processes_per_node",
    "-ppn": "processes_per_node",
    "--tres-per-node": "generic_resources", "--ntasks-per-gpu": "", "-nnodes": "nodes",
}  # fmt: skip
"""Options of Slurm and MPI, which are case-sensitive."""


def text_of(given: Given, key: str, order: tuple[str, ...] = ORIGINS) -> str:
    """Return the value of a key, or "" if it is missing or unknown.

    Unknown variables are asked for. The last setting of the first origin counts. If a setting is
    given twice with different values, that is noted.
    """
    found = given.keys.get(key, [])
    if not found:
        return ""
    for one in found:
        if one.name not in given.heeded:
            given.heeded.append(one.name)
    unknown: list[str] = []
    chosen = ""
    for origin in order:
        here = [one for one in found if one.origin == origin]
        if not here:
            continue
        known = [one for one in here if is_known(one.value)]
        for one in here:
            for name in asked_in(one.value):
                if name not in unknown:
                    unknown.append(name)
        if known and not chosen:
            _note_twice(given, known)
            chosen = known[-1].words if known[-1].words else "true"
            return chosen
    for name in unknown:
        if name not in given.asked:
            given.asked.append(name)
    note = f"{found[-1].name}: expected a value, got a shell expression"
    if not unknown and note not in given.notes:
        given.notes.append(note)
    return ""


def _note_twice(given: Given, known: list[Entry]) -> None:
    last = known[-1]
    for one in known:
        same = normal(one.name) == normal(last.name)
        if same and one.words != last.words:
            note = f"{last.name} is given twice, {one.words} and {last.words}; using the last one"
            if note not in given.notes:
                given.notes.append(note)
        elif not same and one.words != last.words and is_whole(one.words) and is_whole(last.words):
            note = f"{one.name} {one.words} and {last.name} {last.words} set the same size; "
            given.notes.append(note + "using the last one")


GROUPS = ("tp", "pp", "cp", "ep", "etp")
"""Sizes that no framework derives, so that -1 is an error."""

OPEN_VALUES = ("null", "none", "None", "gpu")


def whole_of(given: Given, key: str, order: tuple[str, ...] = ORIGINS) -> int:
    """Return the whole number of a key, 0 if missing; anything else is noted."""
    text = text_of(given, key, order)
    words = text.split()
    first = _thousands(words[0]) if words else ""
    if is_whole(first) and 0 <= int(first) <= MOST:
        # A file after a number is a separate argument: `--tp 4 train.yaml`.
        more = [one for one in words[1:] if "." not in one and one[:1] != "/"]
        if more:
            name = given.keys[key][-1].name
            note = f"{name}: expected one number, got {text[:40]!r}; using {first}"
            if note not in given.notes:
                given.notes.append(note)
        if first == "0" and given.keys[key][-1].name.startswith("mesh."):
            note = f"{given.keys[key][-1].name}: expected a whole number from 1 on, got 0"
            given.notes.append(note)
        return int(first)
    if first == "auto":
        _note_auto(given, key)
    elif text and (key in GROUPS or first != "-1") and first not in OPEN_VALUES:
        names = ", ".join([one.name for one in given.keys[key]])
        got = "none" if text == "true" else repr(text[:40])
        note = f"{names}: expected a whole number from 1 to {MOST:,}, got {got}"
        if note not in given.notes:
            given.notes.append(note)
    return 0


def _note_auto(given: Given, key: str) -> None:
    note = f"{given.keys[key][-1].name} is auto: the trainer sets it at start"
    if note not in given.notes:
        given.notes.append(note)


def _thousands(text: str) -> str:
    """Return a number in plain digits: 4_096, 4096.0 and 8k are accepted."""
    plain = text.replace("_", "")
    if plain.endswith(".0"):
        plain = plain[:-2]
    if plain.endswith(("k", "K")) and is_whole(plain[:-1]):
        return str(1024 * int(plain[:-1]))
    return plain


def switch_of(given: Given, key: str) -> bool | None:
    """Return whether a switch is on, or None if it is not given."""
    text = text_of(given, key)
    if not text:
        return None
    word = text.split()[0].lower()
    if word == "auto":
        _note_auto(given, key)
        return None
    if word in OFF:
        return False
    if word in ON or not _is_placeholder(text):
        return True  # `--bf16 train.py` and `--fp8 hybrid` are on
    note = f"{given.keys[key][-1].name}: expected true or false, got {text[:40]!r}"
    if note not in given.notes:
        given.notes.append(note)
    return None


def _is_placeholder(text: str) -> bool:
    """Return whether a text is a template's placeholder, such as CONFIG_BF16_ENABLED."""
    return "_" in text and text.upper() == text


def take(given: Given, option: str, value: int | str | bool) -> None:
    """Set the value of an option."""
    given.taken[option] = value


FOLLOWS = "follows from the others"
"""The reason for a value that other options determine."""


def assume(given: Given, option: str, value: int | str | bool, because: str = "") -> None:
    """Assume the value of an option unless it is set; the framework's default has no reason."""
    if option not in given.taken:
        given.assumed[option] = value
        if because:
            given.because[option] = because


def value_of(given: Given, option: str, usual: int) -> int:
    """Return a whole number that was set or assumed, or else `usual`."""
    value = given.taken.get(option, given.assumed.get(option, usual))
    return value if isinstance(value, int) else usual
