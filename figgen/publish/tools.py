"""The scripts of a site's tools, and the data in their pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from figgen.cache import digest
from figgen.publish.joined import joined, reached
from figgen.publish.scripts import FOLDER, imported_names, lean, plain_scripts
from figgen.serving.answers import Answers
from figgen.serving.memory import Memory
from figgen.serving.others import beside
from figgen.subject import ToolScripts, subject

Thing = TypeVar("Thing")


@dataclass
class Tools:
    """The tools of one build; `keeper` has what earlier builds made."""

    docs: Path | None
    keeper: Memory | Answers | None
    _begun: Callable[[], set[str]] | None = None

    @property
    def data(self) -> Mapping[str, Callable[[], str]]:
        """Return the data that a tool's page carries for its script, as JSON, by its name in front
        matter."""
        tools = subject().tools()
        made = tools.data.items() if tools else ()
        return {name: partial(self._same, f"data of {name}", make) for name, make in made}

    def shown_first(self, *, printed: bool) -> dict[str, str | bytes]:
        """Return the scripts that pages wait for; a server leaves all others to `write`.

        Its first build, which doesn't know which those are, leaves none.
        """
        if not isinstance(self.keeper, Memory) or self.keeper.scripts is None:
            return self.files(printed=printed)
        scripts, made = plain_scripts(self.docs) if self.docs else {}, self.keeper.scripts
        return {path: lean(source) for path, source in scripts.items() if path not in made}

    def write(self, folder: Path, *, printed: bool) -> None:
        """Write what changed of the scripts that are joined or printed from Python."""
        assert isinstance(self.keeper, Memory)
        known, made = self.keeper.scripts or {}, self.files(printed=printed)
        scripts = plain_scripts(self.docs) if self.docs else {}
        ours = {p: c for p, c in made.items() if p not in scripts or lean(scripts[p]) != c}
        for path in known.keys() | ours.keys():
            if path not in made:
                (folder / path).unlink(missing_ok=True)
            elif known.get(path) != made[path]:
                write_file(folder / path, made[path])
        self.keeper.scripts = ours

    def files(self, *, printed: bool) -> dict[str, str | bytes]:
        """Return the site's scripts, and the `printed` models for those of the tools."""
        made = dict[str, str | bytes]()
        tools = subject().tools()
        if printed and tools:
            used = tuple(imported_names(self.docs, tools.formulas)) if self.docs else ()
            made |= self._same("modules of the tools", lambda: tools.printed(used), str(used))
        if self.docs:
            scripts = plain_scripts(self.docs)
            if tools and any(path.startswith(f"{FOLDER}/tools/") for path in scripts):
                scripts |= tools.written()
            made |= {path: lean(source) for path, source in scripts.items()}
        if self.docs and tools:
            asked = digest(repr(scripts))
            models = self._same("printed models", lambda: tools.models(scripts), asked)
            made |= {path: lean(source) for path, source in models.items()}
            parts = {**scripts, **tools.imported(made)}
            key = digest(repr((parts, models)))
            made |= self._same("joined", lambda: joined_tools(parts, tools), key)
        return made

    def begin(self) -> None:
        """Make all of it in another process, together with the last of the generated pages.

        A server doesn't: it still knows nearly all of it from the last build, while that process
        would start from nothing.
        """
        keeper = self.keeper
        if not isinstance(keeper, Answers) or all(keeper.has(f"data of {n}") for n in self.data):
            return
        before = keeper.known()

        def make() -> set[str]:
            subject().pages_ahead(keeper.figure)  # whose files the first process can read at once
            self.files(printed=True)
            for data in self.data.values():
                data()
            return keeper.news(before)

        self._begun = beside(make)

    def learn(self) -> None:
        """Tell the keeper what the other process asked for."""
        if self._begun and isinstance(self.keeper, Answers):
            self.keeper.learn(self._begun())

    def _same(self, request: str, make: Callable[[], Thing], key: str = "") -> Thing:
        """Return the result of `make`, which depends on code, data and a key."""
        return self.keeper.same(request, key, make) if self.keeper else make()


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file and the folders that it lies in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def joined_tools(scripts: Mapping[str, str], tools: ToolScripts) -> dict[str, str]:
    """Return each tool as one file, and the parts that it loads later as others.

    `scripts` are all scripts by path; tools that aren't among them are left out. A tool gets only
    those printed models that its own scripts call.
    """
    made: dict[str, str] = {}
    entries = {f"{FOLDER}/tools/{name}.js" for name in tools.later}
    for name, parts in tools.later.items():
        entry = f"{FOLDER}/tools/{name}.js"
        if entry not in scripts:
            continue
        folders = tuple(f"{FOLDER}/tools/{part}" for part in parts if part.endswith("/"))
        paths = [f"{FOLDER}/tools/{part}.js" for part in parts if not part.endswith("/")]
        paths += [path for path in scripts if folders and path.startswith(folders)]
        # Other tools, and what several of them load later, stay files of their own.
        known = {path: s for path, s in scripts.items() if path == entry or path not in entries}
        own = {path: known[path] for path in reached(known, [entry, *paths])}
        # Printed models need the runtime, which no script of the tool imports by itself.
        models = tools.models(own)
        every = {**known, **models}
        own = {path: every[path] for path in reached(every, [entry, *paths])}
        made |= joined(own, entry, paths, models.keys())
    return made
