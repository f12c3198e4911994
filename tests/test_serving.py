"""A server that builds only what an edit concerns shows what a new one would, byte for byte.

`EDITS=200` makes the session a long one.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from figgen.catalog import accelerator, hardware_preset
from figgen.catalog.lookups import note, remembered, watched
from figgen.serving.code import Code
from figgen.serving.memory import Memory
from tests.browser.site import copy_of_the_project, few_pages
from tests.sessions import Session, session
from tests.test_determinism import tree

EDITS = int(os.environ.get("EDITS") or 6)
COMPARED_EVERY = 6 if EDITS < 50 else 20
PAGES = ("index.md", "guide/pipeline-schedules.md", "guide/experts.md", "guide/choosing.md")
SCHEDULES, EXPERTS = "docs/guide/pipeline-schedules.md", "docs/guide/experts.md"
# What an author changes, there and back: words, headings, figures, numbers, code, data, style.
CHANGES = (
    (EXPERTS, "\n## ", "\nA sentence more.\n\n## "),
    (EXPERTS, "\n## How to choose\n", "\n## What to choose\n"),
    (SCHEDULES, "\nmicrobatches: 8\n", "\nmicrobatches: 9\n"),
    (SCHEDULES, "microbatches=8):", "microbatches=16):"),
    (SCHEDULES, "```figure\n", "```figure\nid: another-name\n"),
    ("docs/index.md", "\nalt: ", "\nalt: Now "),
    ("docs/glossary.toml", 'means = "', 'means = "Now '),
    ("docs/assets/stylesheets/site.css", "{", "{ --edited: 1;"),
    ("figgen/figures/pipeline/limits.py", '"""', '""" '),
    ("figgen/figures/pipeline/timelines.py", "Named(trace.makespan)", "Named(1 + trace.makespan)"),
    ("figgen/formulas/experts.py", "/ ep", "/ (1 * ep)"),
    ("figgen/formulas/pipeline.py", "Idle share of the wall time", "Idling share of the time"),
    (
        "figgen/catalog/accelerators.toml",
        'hbm_bandwidth = "3.35 TB/s"',
        'hbm_bandwidth = "3.45 TB/s"',
    ),
    ("figgen/theme.py", '"""', '""" '),
    ("figgen/units.py", '"""', '""" '),
)


@dataclass
class Server:
    """A running session in a working copy; `edited` are the changes that are made at the moment."""

    session: Session
    edited: set[int]

    def toggle(self, number: int) -> None:
        name, old, new = CHANGES[number]
        if number in self.edited:
            old, new = new, old
        self.edited ^= {number}
        self.session.replace(name, old, new)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    folder = copy_of_the_project(tmp_path / "served")
    few = few_pages(folder, PAGES)
    with session(folder, few, tmp_path / "site", environment(tmp_path)) as running:
        yield Server(running, set())


def environment(work: Path) -> dict[str, str]:
    return {"FIGGEN_CACHE": str(work / "cache"), "PYTHONUNBUFFERED": "1"}


def differences(server: Server, work: Path, number: int) -> list[str]:
    """The files in which the server's site is not what a new server makes of the same sources."""
    clean = work / f"clean-{number}"
    with session(server.session.folder, "few.yml", clean, environment(work)):
        pass
    ours, theirs = tree(work / "site"), tree(clean)
    assert len(ours) > 100
    return sorted(name for name in ours | theirs if ours.get(name) != theirs.get(name))


def test_a_session_of_random_edits_shows_what_a_new_server_would(
    server: Server, tmp_path: Path
) -> None:
    chance = random.Random(7)
    for number in range(1, EDITS + 1):
        server.toggle(chance.randrange(len(CHANGES)))
        server.session.build()
        if number % COMPARED_EVERY == 0:
            found = differences(server, tmp_path, number)
            assert found == [], [CHANGES[edited][:1] for edited in server.edited]


def package(folder: Path, **files: str) -> Code:
    for name, text in files.items():
        path = folder / "figgen" / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    code = Code(root=folder / "figgen")
    code.look()
    return code


def test_what_imports_a_changed_module_follows_from_it_and_nothing_else(tmp_path: Path) -> None:
    code = package(
        tmp_path,
        models__a="x = 1\n",
        models__b="from figgen.models.a import (\n    x,\n)\n",
        figures__c="def f():\n    from figgen.models import b\n",
        figures__d="import math\n",
        registry="import figgen.figures\n",
        figures____init__="",
    )
    (tmp_path / "figgen" / "models" / "a.py").write_text("x = 2\n")
    before = {name: code.fingerprint(f"figgen.figures.{name}") for name in "cd"}
    assert code.look() == {"figgen.models.a"}
    assert code.look() == set()
    assert code.dependents({"figgen.models.a"}) == {
        *("figgen.models.a", "figgen.models.b", "figgen.figures.c"),
    }
    assert code.fingerprint("figgen.figures.c") != before["c"]
    assert code.fingerprint("figgen.figures.d") == before["d"]


def test_a_removed_and_a_named_data_file_are_changes_of_what_names_them(tmp_path: Path) -> None:
    code = package(tmp_path, catalog__rates='read("rates.toml")\n', models__a="")
    data = tmp_path / "figgen" / "catalog" / "rates.toml"
    data.write_text("a = 1\n")
    assert code.look() == {"catalog/rates.toml"}
    assert code.dependents(["catalog/rates.toml"]) == {"catalog/rates.toml", "figgen.catalog.rates"}
    data.unlink()
    assert code.look() == {"catalog/rates.toml"}


def test_lookups_are_noted_also_where_the_answer_is_remembered() -> None:
    @remembered(4)
    def peak(name: str) -> float:
        return accelerator(name).peak_flops_per_s()

    for _ in range(2):
        with watched() as seen:
            assert peak("h100-sxm-80gb") > 0
        assert seen == {("accelerators", "h100-sxm-80gb")}
    with watched() as seen:
        hardware_preset("h100-ndr")
    assert seen == {("presets", "h100-ndr")}


def test_a_figure_is_computed_again_only_when_an_entry_that_it_looked_up_changed() -> None:
    memory = Memory()
    memory.refresh()
    made: list[int] = []

    def compute() -> float:
        made.append(1)
        return accelerator("h100-sxm-80gb").peak_flops_per_s()

    module = "figgen.figures.roofline.levels"
    ask = lambda: memory.figure("a", module, compute)  # noqa: E731
    assert ask() == ask()
    assert len(made) == 1
    memory.code.version += 1  # something else changed
    ask()
    assert len(made) == 1
    memory.code.version += 1
    memory._entries[("accelerators", "h100-sxm-80gb")] = "changed"
    ask()
    assert len(made) == 2
    note("links")  # nobody watches
