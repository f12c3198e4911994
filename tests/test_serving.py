"""A server that builds only what an edit affects shows what a new server would, byte for byte.

`EDITS=200` makes the session a long one.
"""

from __future__ import annotations

import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Timer

import pytest

from figgen import serving
from figgen.catalog import accelerator, hardware_preset, load
from figgen.lookups import NAMES, WHOLE, forget, note, remembered, renew, watched
from figgen.markdown.conversion import Page
from figgen.plugin import search as hook
from figgen.publish.kept_pages import KeptPage
from figgen.serving.address import refusal
from figgen.serving.code import SourceCode
from figgen.serving.memory import Memory
from tests.browser.site import ROOT, copy_of_the_project, few_pages
from tests.sessions import Session, session
from tests.test_determinism import tree
from tests.thorough import drawn

EDITS = drawn(4, 100)
COMPARED_EVERY = min(EDITS, 20)
PAGES = ("index.md", "guide/pipeline-schedules.md", "guide/experts.md", "guide/placement.md")
OPEN = ("", "./", "guide/experts/", "guide/placement/")
"""What a reader has open: unknown, or one page, which is then built before all others."""
SCHEDULES, EXPERTS = "docs/guide/pipeline-schedules.md", "docs/guide/experts.md"
# What an author changes, there and back: words, headings, figures, numbers, code, data, style.
CHANGES = (
    (SCHEDULES, "\n## ", "\nA sentence more.\n\n## "),
    (EXPERTS, "\n## How to choose\n", "\n## What to choose\n"),
    (EXPERTS, "\n## ", "\n[A link that is warned of](/nowhere).\n\n## "),
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
    ("figgen/catalog/accelerators.toml", 'bf16 = "989', 'bf16 = "988'),
    ("figgen/catalog/accelerators.toml", 'seen = "2026-11"', 'seen = "2026-10"'),
    ("figgen/catalog/accelerators.toml", 'confidence = "secondary"', 'confidence = "read"'),
    ("figgen/catalog/models.toml", 'note = "', 'note = "Now: '),
    ("figgen/catalog/links.toml", 'latency = { value = "3.33', 'latency = { value = "3.34'),
    ("figgen/catalog/links.toml", 'source = "ml-engineering-network', 'source = "nvidia-hgx'),
    ("figgen/catalog/runs-reports.toml", 'mfu = "21.3%"', 'mfu = "22.3%"'),
    ("figgen/catalog/links.toml", '\nbandwidth = "50 GB/s"', '\nbandwidth = "49.9 GB/s"'),
    ("figgen/catalog/presets.toml", "2 nodes × 8 GPUs", "Two nodes × 8 GPUs"),
    ("figgen/catalog/assumptions.toml", "flash_attention = false", "flash_attention = true"),
    ("figgen/models/pipeline/schedules.py", '"""', '""" '),
    ("figgen/scenarios/stories/journey.py", '"""', '""" '),
    ("figgen/theme.py", '"""', '""" '),
    ("figgen/units.py", '"""', '""" '),
)


@dataclass
class Server:
    """A running session in a working copy; `edited` are the changes currently made."""

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
    """Return files in which the server's site differs from a new server's for the same sources."""
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
        server.session.build(chance.choice(OPEN))
        if number % COMPARED_EVERY == 0:
            found = differences(server, tmp_path, number)
            assert found == [], [CHANGES[edited][:1] for edited in server.edited]


def package(folder: Path, **files: str) -> SourceCode:
    for name, text in files.items():
        path = folder / "figgen" / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    code = SourceCode(root=folder / "figgen")
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
    # Of another size: a quick machine writes both within one tick of the file system's clock.
    (tmp_path / "figgen" / "models" / "a.py").write_text("x = 12\n")
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
    with watched() as seen:
        assert "h100-sxm-80gb" in load.accelerators.names()
    assert seen == {("accelerators", NAMES)}


def test_of_a_changed_table_only_what_looked_up_what_changed_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []

    @remembered(4)
    def peak(name: str) -> float:
        made.append(name)
        return accelerator(name).peak_flops_per_s()

    @remembered(1)
    def count() -> int:
        made.append("count")
        return len(load.accelerators.names())

    def ask() -> list[str]:
        made.clear()
        found = peak("h100-sxm-80gb"), peak("a100-sxm-80gb"), count()
        assert all(found)
        return made

    ask()
    assert renew() == set()
    assert ask() == []
    known = load.content
    old, new = 'hbm_bandwidth = "3.35 TB/s"', 'hbm_bandwidth = "3.45 TB/s"'
    with monkeypatch.context() as changed:
        changed.setattr(load, "content", lambda file: known(file).replace(old, new, 1))
        found = renew()
        assert {("accelerators", "h100-sxm-80gb"), ("accelerators", WHOLE)} <= found
        assert ("accelerators", "a100-sxm-80gb") not in found
        assert ("accelerators", NAMES) not in found
        assert ask() == ["h100-sxm-80gb"]
    assert renew() == found
    assert ask() == ["h100-sxm-80gb"]
    forget()
    assert ask() == ["h100-sxm-80gb", "a100-sxm-80gb", "count"]


def test_entries_of_the_catalog_are_read_by_nobody_else() -> None:
    code = SourceCode()
    code.look()
    assert {"catalog/accelerators.toml", "catalog/presets.toml"} <= code.entries()
    assert "catalog/sources.toml" not in code.entries(), "the pages' lists of sources name it"
    assert "catalog/rates.toml" not in code.entries()


IMPORTED = """
import pkgutil, sys
from functools import _lru_cache_wrapper
from importlib import import_module

import figgen
from figgen import lookups
from figgen.guide import SUBJECT
from figgen.serving.code import SourceCode
from figgen.subject import use

for found in pkgutil.walk_packages(figgen.__path__, "figgen."):
    if found.name != "figgen.__main__":
        import_module(found.name)
print(*(name for name, table in lookups._tables.items() if table.whole.cache_info().currsize))
use("figgen.guide")
code = SourceCode()
code.look()
for name in sorted(code.dependents([SUBJECT.entries])):
    for own, thing in vars(sys.modules.get(name)).items() if name in sys.modules else ():
        if isinstance(thing, _lru_cache_wrapper) and thing.__module__ == name:
            print(f"{name}.{own}")
"""
LOOK_NOTHING_UP = {
    "figgen.guide.expand._original",
    "figgen.agreement.manifest._ways_by_source",
    "figgen.agreement.manifest._written",
    "figgen.agreement.ways._pattern",
    "figgen.agreement.ways._quantities",
    "figgen.catalog.interruptions.interruptions",
    "figgen.catalog.leaderboard.frozen_split",
    "figgen.catalog.load.sources",
    "figgen.catalog.machines.machines",
    "figgen.catalog.measured.measured_records",
    "figgen.catalog.options_timed.timed_options",
    "figgen.catalog.planned.planned_best",
    "figgen.catalog.publishers.publisher_records",
    "figgen.catalog.publishers.publishers",
    "figgen.catalog.rates.constants",
    "figgen.catalog.recorded._file",
    "figgen.catalog.rates.left_out_constants",
    "figgen.catalog.residuals.residuals",
    "figgen.catalog.rivals.rivals",
    "figgen.catalog.slow_threads.slow_threads",
    "figgen.catalog.slow_threads.unseen_score",
    "figgen.figures.pipeline.zero_bubble.split_trace",
    "figgen.generated.data_tables._addresses",
    "figgen.generated.data_tables._titles",
    "figgen.generated.uses._formulas_of",
    "figgen.scenarios.runs.device_run._recorded_steps",
    "figgen.scenarios.runs.device_run.reference_rates",
    "figgen.scenarios.runs.job._alone",
    "figgen.scenarios.runs.names.first_match",
    "figgen.scenarios.runs.names.networks_of_chips",
    "figgen.scenarios.runs.names.plain",
    "figgen.scenarios.runs.names.recompute_of",
}
"""`functools` caches in modules that use the catalog, which only depend on own files or on none."""


def test_the_catalog_is_asked_for_when_it_is_needed_and_answers_are_kept_where_they_are_noted() -> (
    None
):
    """A server keeps the modules when a constant changes, so stored values would not change."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True
    )
    read, *kept = done.stdout.split("\n")[:-1]
    assert read == "", "a table is read while a module is imported"
    assert set(kept) <= LOOK_NOTHING_UP, "use `remembered` for what looks something up"


def test_the_subject_follows_from_all_that_a_number_does_and_from_no_figure() -> None:
    """The subject caches numbers, and a server reloads it with its dependencies."""
    code = SourceCode()
    code.look()
    below = code.closure("figgen.guide")
    assert {
        "figgen.formulas.pipeline", "figgen.models.pipeline.schedules", "figgen.catalog.load",
        "figgen.scenarios.stories.journey", "guide/quantities.toml",
    } <= below  # fmt: skip
    assert not any(name.startswith("figgen.figures") for name in below)


def test_what_tools_need_is_kept_while_figures_change(tmp_path: Path) -> None:
    for name in ("figures/a.py", "models/a.py", "catalog/__init__.py", "catalog/chips.toml"):
        (tmp_path / "figgen" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "figgen" / name).write_text("a = 1\n")
    (tmp_path / "figgen/catalog/load.py").write_text('chips = read("chips.toml")\n')
    memory = Memory(code=SourceCode(root=tmp_path / "figgen"))
    made: list[str] = []

    def made_after_edit_of(name: str) -> list[str]:
        path = tmp_path / "figgen" / name
        path.write_text(path.read_text() + "b = 2\n")
        memory.code.look()
        made.clear()
        memory.same("data", "", lambda: made.append("data"))
        return list(made)

    assert made_after_edit_of("models/a.py") == ["data"]
    assert made_after_edit_of("figures/a.py") == []
    assert made_after_edit_of("catalog/chips.toml") == ["data"]
    assert made_after_edit_of("models/a.py") == ["data"]


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


def test_the_next_build_waits_for_what_was_left_for_later() -> None:
    memory, begun, done = Memory(), Event(), list[str]()

    def work() -> None:
        begun.wait()
        done.append("written")
        raise FileNotFoundError("the folder of a server that ends")

    memory.later(work)
    assert done == []
    Timer(0.05, begun.set).start()
    memory.refresh()
    assert done == ["written"]


def test_a_build_of_postponed_pages_ends_when_something_changes_again() -> None:
    """Otherwise an author would wait for pages that nobody looks at."""
    memory, begun, done = Memory(open=lambda: {"a/"}), Event(), list[str]()
    memory.refresh()
    assert not memory.postpones("a/", ())
    assert memory.postpones("b/", ["b/picture.svg"])
    memory.shown()
    assert memory.postponed == {"b/", "b/picture.svg"}

    def again() -> None:
        memory.refresh()
        assert not memory.postpones("b/", ()), "what was postponed is built now"
        begun.set()
        while True:
            memory.go_on()

    memory.later(again)
    memory.later(lambda: done.append("what comes after it"))
    assert begun.wait(10)
    memory.go_on()  # a build by the author's edit is not interrupted
    memory.refresh()
    assert done == ["what comes after it"]
    assert memory.failure is None
    assert memory.postponed == {"b/", "b/picture.svg"}, "still to be built"


def test_generated_pages_wait_for_open_pages_only_while_they_are_built_again_afterward() -> None:
    """Otherwise a page that nobody builds again would stay as it was."""
    seen, made = {"a/"}, list[int]()
    memory = Memory(open=lambda: seen or None)  # type: ignore[arg-type,return-value]
    memory.pages["b.md"] = KeptPage(page=Page(path="b.md", url="b/"), key="")

    def generated(about: str = "terms") -> str:
        made.append(1)
        return memory.generated(about, lambda: {"b.md": f"version {len(made)}"})["b.md"]

    memory.refresh()
    assert generated() == "version 1"
    memory.code.version += 1
    assert generated() == "version 1"
    assert generated("other terms") == "version 3", "an open page may link to a new term"
    assert generated("other terms") == "version 4", "no page is built again: only a text changed"
    memory.code.version += 1
    seen = {"b/"}
    memory.refresh()
    assert generated("other terms") == "version 5", "a reader has it open"
    memory.code.version += 1
    seen = set()
    memory.refresh()
    assert generated("other terms") == "version 6", "nobody is known to wait for another page"


def test_a_server_that_ends_waits_for_what_is_written_into_the_folder_that_it_removes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise MkDocs ends with `Directory not empty`, which doesn't tell the reason."""
    memory, begun, done = Memory(), Event(), list[str]()
    memory.later(lambda: begun.wait() and done.append("written"))
    monkeypatch.setattr(serving, "_current", [memory])
    Timer(0.05, begun.set).start()
    hook.on_shutdown()
    assert done == ["written"]


def test_an_address_that_is_taken_is_told_before_anything_is_built() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = f"127.0.0.1:{server.getsockname()[1]}"
        assert "Address already in use" in refusal(taken)
    assert refusal(taken) == refusal("localhost:0") == ""
    for typo in ("127.0.0.1:x", "127.0.0.1:99999", "8000x"):
        assert refusal(typo).startswith(f"{typo}: ")
    served = (ROOT / "Makefile").read_text().partition("\nserve:")[2].partition("\n\n")[0]
    assert served.index("figgen.serving.address $(ADDR)") < served.index("mkdocs serve")
