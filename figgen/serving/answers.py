"""What a build takes over from the last one: all that the same code computed from the same words.

One file holds it, under the digest of every source and data file of the package and of what it
computes with; where any of them changed, nothing is taken over.  It is read by `pickle`, so a
cache is as trusted as the program beside which it lies, and only its checksum is looked at.
"""

from __future__ import annotations

import pickle
import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from figgen import cache
from figgen.serving.code import Code

Thing = TypeVar("Thing")

PREFIX = "computed-"
OURS = "figgen."


@dataclass
class Answers:
    """Figures and generated pages of the last build in `folder`, by what was asked for."""

    folder: Path
    code: str = ""
    _known: dict[str, Any] = field(default_factory=dict)
    _given: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.code = self.code or code_digest(Code())
        self._known = _read(self.folder, self._key)

    def figure(self, request: str, module: str, make: Callable[[], Thing]) -> Thing:
        """What `make`, code of `module`, gives for a request; only ours is known by its digest."""
        return self.same(request, make) if module.startswith(OURS) else make()

    def same(self, request: str, make: Callable[[], Thing]) -> Thing:
        """What `make` gives for a request."""
        if request not in self._given:
            self._given[request] = self._known[request] if request in self._known else make()
        found: Thing = self._given[request]
        return found

    def keep(self) -> None:
        """Write down what this build asked for, if that is more than what was there."""
        if self._given.keys() != self._known.keys():
            for old in self.folder.glob(f"{PREFIX}*"):
                old.unlink(missing_ok=True)
            cache.write(self.folder, self._key, pickle.dumps(self._given))
        self._known = self._given

    @property
    def _key(self) -> str:
        return f"{PREFIX}{self.code[:40]}"


def code_digest(sources: Code) -> str:
    """Changes with any source or data file, and with what those compute with."""
    sources.look()
    computing = (platform.python_version(), *map(metadata.version, ("numpy", "matplotlib")))
    return cache.digest("\0".join((*computing, sources.everything())))


def _read(folder: Path, key: str) -> dict[str, Any]:
    stored = cache.read_bytes(folder, key)
    try:
        found: dict[str, Any] = pickle.loads(stored) if stored else {}
    except Exception:  # written by other versions: whatever unpickling meets
        return {}
    return found
