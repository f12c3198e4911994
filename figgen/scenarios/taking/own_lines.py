"""Reads the commands and addresses that the tools of this site write."""

from __future__ import annotations

from dataclasses import dataclass

from figgen.scenarios.taking.launchers import command_entries
from figgen.scenarios.taking.shell import Shell, read_shell
from figgen.scenarios.texts.entry import is_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnNames:
    """The names of a job's options on the command line and in addresses.

    `flags` maps flags to options with a value, `switches` those without one; `on` lists the flags
    that turn a switch on. `keys` maps keys in addresses to options, and `units` holds the units
    that addresses omit. `usual` are the values of options that are left out, `chunks` those of each
    schedule and `sequence` that of a model known by its sizes; options in `matters_with` have an
    effect only if one of these is set, too. `domains` has the GPUs of a scale-up domain, of
    chips whose domain has several hosts.
    """

    flags: dict[str, str]
    switches: dict[str, str]
    on: tuple[str, ...]
    keys: dict[str, str]
    units: dict[str, str]
    usual: dict[str, int | str | bool]
    chunks: dict[str, int]
    sequence: int
    matters_with: dict[str, tuple[str, ...]]
    domains: dict[str, int]


Found = tuple[dict[str, int | str | bool], list[str], list[str]]
"""Options that were read, unused settings, and notes."""


def read_own_command(text: str, shell: Shell, names: OwnNames) -> Found:
    """Read options of `figgen step`, `memory`, `ranks` and `plan` from the first such line."""
    read_shell(text.strip().removeprefix("$ "), shell)
    found: dict[str, int | str | bool] = {}
    left: list[str] = []
    notes: list[str] = []
    words = shell.commands[0] if shell.commands else []
    for one in command_entries(words, shell):
        if one.name in ("program", "--json"):
            continue
        flag = one.name.lstrip("-")
        if flag in names.flags:
            _keep(found, names.flags[flag], one.words, notes, names)
        elif flag in names.switches:
            found[names.switches[flag]] = flag in names.on
        else:
            left.append(one.name)
    return found, left, notes


def read_address(text: str, names: OwnNames) -> Found:
    """Read the state in the address of a tool."""
    found: dict[str, int | str | bool] = {}
    left: list[str] = []
    notes: list[str] = []
    query = text.strip().partition("?")[2].partition("#")[0]
    for pair in query.split("&"):
        key, sign, value = pair.partition("=")
        value = _decoded(value)
        if sign and key in names.keys:
            unit = names.units.get(names.keys[key], "")
            _keep(found, names.keys[key], f"{value} {unit}".strip(), notes, names)
        elif sign:
            left.append(key)
    return found, left, notes


def _keep(
    found: dict[str, int | str | bool], name: str, words: str, notes: list[str], names: OwnNames
) -> None:
    if name in found and str(found[name]) != words:
        notes.append(f"{name} is given twice, {found[name]} and {words}; using the last one")
    if name in ("layers_per_stage", "document_tokens"):
        found[name] = words
    elif words in ("0", "1") and name in names.switches.values():
        found[name] = words == "1"
    elif is_whole(words) and name not in names.units:
        found[name] = int(words)
    elif words in ("on", "off", "true", "false") and name not in ("model", "software"):
        found[name] = words in ("on", "true")
    else:
        found[name] = words


def _decoded(value: str) -> str:
    """Return a value of an address with percent signs decoded."""
    out = ""
    at = 0
    while at < len(value):
        letter = value[at]
        code = value[at + 1 : at + 3].lower()
        if letter == "%" and code in CODES:
            out += CODES[code]
            at += 3
        else:
            out += " " if letter == "+" else letter
            at += 1
    return out


CODES = {"20": " ", "2c": ",", "3a": ":", "2f": "/", "2b": "+", "3d": "=", "25": "%", "2e": "."}
"""Characters that addresses encode with a percent sign."""
