"""The actions of a pipeline schedule, each one pass of a stage over a microbatch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, cast

from figgen.errors import InputError

Kind = Literal["F", "B", "I", "W"]

ACTION_NAMES: Mapping[str, str] = MappingProxyType(
    {"F": "forward", "B": "backward", "I": "backward-input", "W": "backward-weight"}
)

_ACTION = re.compile(r"(\d+)([FBIW])(\d+)")


class Action(NamedTuple):
    """One stage working on one microbatch, printed as in torch: `2F0`.

    `stage` counts virtual stages over all ranks. Kinds: F forward, B full backward, I gradient of
    the stage's input, W gradient of its weights (B does the work of I and W).
    """

    stage: int
    kind: Kind
    microbatch: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.microbatch}"

    @classmethod
    def parse(cls, text: str) -> Action:
        """Return the action written as `2F0`. Raises InputError for any other form."""
        match = _ACTION.fullmatch(text)
        if match is None:
            raise InputError(
                "cannot read action", expected="stage, F, B, I or W, microbatch, as 2F0", got=text
            )
        return cls(int(match[1]), cast(Kind, match[2]), int(match[3]))


Order = tuple[Action, ...]


def parse_order(text: str) -> Order:
    """Return the actions of one rank, written as `0F0 0F1 0B0 0B1`."""
    return tuple(Action.parse(word) for word in text.split())
