"""Reads how torchtitan spells switches and activation checkpointing on its command line.

Source: torchtitan 0.2.2, torchtitan/config/job_config.py, and 0.3.0, torchtitan/config/configs.py.
"""

from __future__ import annotations

from figgen.scenarios.taking.arithmetic import computed
from figgen.scenarios.texts.entry import Entry, entry


def chooses(word: str) -> bool:
    """Return whether a word of a command line selects activation checkpointing."""
    return word.replace("-", "_").startswith("activation_checkpoint:")


def chosen(word: str, origin: str) -> Entry:
    """Return the setting of a word such as `activation_checkpoint:full`."""
    return entry("activation_checkpoint.mode", word.partition(":")[2].replace("-", "_"), origin)


def plain_switches(entries: list[Entry]) -> list[Entry]:
    """Return the entries with disabled switches, such as `--compile.no-enable`, set to false.

    A batch that is given in tokens becomes one in sequences.
    """
    length = [one.value for one in entries if one.name == "training.max_context_length"]
    found: list[Entry] = []
    for one in entries:
        if one.name.endswith("num_tokens_per_microbatch_per_dp_rank"):
            size = computed(one.words + " / " + length[0], {}) if length else ""
            for name in ("local_batch_size", "micro_batch_size") if size else ():
                found.append(entry(name, size, one.origin))
            found.extend([] if size else [one])
        else:
            found.append(_plain(one))
    return found


def _plain(one: Entry) -> Entry:
    section, dot, name = one.name.rpartition(".")
    negated = one.name.startswith("--") and dot and name.replace("-", "_").startswith("no_")
    if not negated or one.words:
        return one
    return entry(f"{section}.{name[3:]}", "false", one.origin)
