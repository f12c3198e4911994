"""Public threads about slow training whose cause is known, each a job and its measurement."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from figgen.catalog.load import content

FILES = {False: "slow-threads.json", True: "slow-threads-apart.json"}
"""The files of threads that set the order of reasons (False), and of held-out ones (True)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowThread:
    """A thread: options of its job by name, its measurement, and its causes, the main one first.

    `confirmed_by` says how the cause is known, `assumed` what the thread leaves open.
    """

    address: str
    job: Mapping[str, Any]
    measured: Mapping[str, float]
    causes: tuple[str, ...]
    confirmed_by: str
    assumed: tuple[str, ...]

    @property
    def name(self) -> str:
        """Repository and number, as in `pytorch/torchtitan#676`."""
        owner, repository, _, number = self.address.split("/")[-4:]
        return f"{owner}/{repository}#{number}"


@cache
def slow_threads(*, apart: bool) -> tuple[SlowThread, ...]:
    """Return the held-out threads if `apart`, otherwise the threads that set the order of reasons.

    Of the latter, those collected after the verdict was written come last.
    """
    held = json.loads(content(FILES[apart]))
    return tuple(
        SlowThread(**{**row, "causes": tuple(row["causes"]), "assumed": tuple(row["assumed"])})
        for row in (*held["threads"], *held.get("later", ()))
    )


@cache
def unseen_score() -> tuple[int, int]:
    """Return how many later threads were solved before they set any frequency, and their number."""
    unseen = json.loads(content(FILES[False]))["unseen"]
    return unseen["found"], unseen["threads"]
