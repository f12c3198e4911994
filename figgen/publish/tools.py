"""What the tools of a site compute with: data that their pages bring along, and scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeVar

from figgen.cache import digest
from figgen.generated.site_pages import kept_validation
from figgen.publish.scripts import imported_names, lean, plain_scripts
from figgen.publish.tool_scripts import (
    STEP_FORMULAS,
    imported_modules,
    joined_tools,
    printed_modules,
)
from figgen.scenarios.tools.data import (
    configurations_json,
    converter_json,
    layouts_json,
    schedules_json,
)
from figgen.scenarios.tools.profile import profile_json
from figgen.serving.answers import Answers
from figgen.serving.memory import Memory
from figgen.serving.others import beside

Thing = TypeVar("Thing")


@dataclass
class Tools:
    """The tools of one build; `keeper` has from earlier ones what need not be made again."""

    DATA: ClassVar = {
        "layouts": layouts_json,
        "catalog": configurations_json,
        "converter": converter_json,
        "schedules": schedules_json,
        "profile": profile_json,
    }
    docs: Path | None
    keeper: Memory | Answers | None
    _begun: Callable[[], set[str]] | None = None

    @property
    def data(self) -> Mapping[str, Callable[[], str]]:
        """What a tool's page brings along for its script, as JSON, by the name in front matter."""
        made = self.DATA.items()
        return {name: partial(self._same, f"data of {name}", make) for name, make in made}

    def files(self, *, printed: bool) -> dict[str, str | bytes]:
        """The scripts of the site, and what is `printed` for those of the tools."""
        made = dict[str, str | bytes]()
        if printed:
            used = tuple(imported_names(self.docs, STEP_FORMULAS)) if self.docs else ()
            made |= self._same("modules of the tools", lambda: printed_modules(used), str(used))
        if self.docs:
            scripts = plain_scripts(self.docs)
            made |= {path: lean(source) for path, source in scripts.items()}
            parts = {**scripts, **imported_modules(made)}
            made |= self._same("joined", lambda: joined_tools(parts), digest(repr(parts)))
        return made

    def begin(self) -> None:
        """Make all of it in another process, with the last of the generated pages.

        Not in a server, which still knows nearly all of it from the build before, as no process
        does that ends.
        """
        keeper = self.keeper
        if not isinstance(keeper, Answers) or all(keeper.has(f"data of {n}") for n in self.DATA):
            return
        before = keeper.known()

        def make() -> set[str]:
            kept_validation(keeper.figure)  # whose files the first process can read at once
            self.files(printed=True)
            for data in self.data.values():
                data()
            return keeper.news(before)

        self._begun = beside(make)

    def learn(self) -> None:
        """Let the keeper know what the other process asked for."""
        if self._begun and isinstance(self.keeper, Answers):
            self.keeper.learn(self._begun())

    def _same(self, request: str, make: Callable[[], Thing], key: str = "") -> Thing:
        """What follows from the code, a request and a key alone."""
        return self.keeper.same(request, key, make) if self.keeper else make()
