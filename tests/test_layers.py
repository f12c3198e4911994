"""Which modules may import which.

The law keeps numbers independent of pictures, and the site of its host.

It is checked twice: in the syntax of every file, including imports inside functions, and by what a
fresh interpreter loads when it imports a layer.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOOKS = sorted((ROOT / "hooks").rglob("*.py"))
SOURCES = sorted((ROOT / "figgen").rglob("*.py")) + HOOKS

# Layer: what of ours it may import (besides itself). Of other libraries it may import NumPy.
TEXTS = (
    *("figgen.errors", "figgen.quantity_shown", "figgen.quantity_text", "figgen.quantity_units"),
    "figgen.units",
)
NUMBERS = (*TEXTS, "figgen.equations", "figgen.formulas", "figgen.models")
LAYERS = {
    "figgen.errors": (),
    "figgen.lookups": (),
    "figgen.quantity_units": (),
    "figgen.quantity_text": ("figgen.errors", "figgen.quantity_units"),
    "figgen.quantity_shown": ("figgen.quantity_units",),
    "figgen.units": TEXTS,
    "figgen.translation": ("figgen.errors",),
    "figgen.equations": (*TEXTS, "figgen.translation"),
    "figgen.formulas": NUMBERS,
    "figgen.models": NUMBERS,
    "figgen.charts": (),
    "figgen.json_text": (),
    "figgen.entries": ("figgen.errors", "figgen.units"),
    "figgen.catalog": (
        *("figgen.errors", "figgen.json_text", "figgen.units", "figgen.lookups", "figgen.models"),
        "figgen.entries",
    ),
    "figgen.scenarios": (
        *(*NUMBERS, "figgen.json_text", "figgen.lookups", "figgen.entries", "figgen.catalog"),
    ),
    "figgen.plotting": (*NUMBERS, "figgen.charts"),
    "figgen.figures": (
        *(*NUMBERS, "figgen.lookups", "figgen.catalog", "figgen.scenarios"),
        *("figgen.charts", "figgen.plotting", "figgen.registry"),
    ),
}
SUBJECT = (
    *("figgen.formulas", "figgen.models", "figgen.catalog", "figgen.scenarios", "figgen.plotting"),
    *("figgen.figures", "figgen.generated", "figgen.guide", "figgen.commands"),
    "figgen.agents",
    "figgen.api",
)
"""What this site is about. `figgen.guide` registers it with the press through `figgen.subject`."""
PRESS = (
    *(*TEXTS, "figgen.charts", "figgen.chart_check", "figgen.theme", "figgen.policy"),
    "figgen.json_text",
    *("figgen.cache", "figgen.progress", "figgen.lookups", "figgen.subject", "figgen.equations"),
    *("figgen.registry", "figgen.values", "figgen.renderers", "figgen.paper"),
    *("figgen.pictures", "figgen.serving"),
    *("figgen.markdown", "figgen.agreement", "figgen.prose", "figgen.changes", "figgen.search"),
    *("figgen.publish", "figgen.translation", "figgen.plugin", "figgen.project"),
    *("figgen.entries", "figgen.tables", "figgen.author"),
)
"""What makes a site of any subject, and so imports nothing of this one's."""

# The renderers know units besides, to label axes; which libraries they may import is in OWNERS.
RENDERERS = {"figgen.renderers": (*TEXTS, "figgen.charts", "figgen.theme")}

# Rooms that nobody imports but themselves: the registry loads them by the subject's names.
LEAVES = ("figgen.figures",)

# Library: the only modules that may import it.
OWNERS = {
    "matplotlib": ("figgen.renderers.svg_canvas", "figgen.paper"),
    "plotly": ("figgen.renderers.plotly",),
    "markdown": ("figgen.markdown",),
    "pymdownx": ("figgen.markdown",),
    "mkdocs": ("hooks", "figgen.plugin"),
    "material": ("hooks",),
}
NEVER = ("matplotlib.pyplot", "pylab")
# What a build without a changed picture must not load, matplotlib alone costs it 0.3 s.
HEAVY = {"matplotlib", "plotly"}
HOST = {"mkdocs", "material"}


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def module_of(path: Path) -> str:
    """Return a module's name, such as `figgen.models.mesh`; a package is named by its folder."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


@cache
def imports(path: Path, source: str) -> tuple[tuple[int, str], ...]:
    """Return line and full dotted name of everything that `source` imports, at any level."""
    return tuple(_imports(path, source))


def _imports(path: Path, source: str) -> Iterator[tuple[int, str]]:
    package = module_of(path) if path.name == "__init__.py" else module_of(path.parent)
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                above = package.split(".")[: len(package.split(".")) + 1 - level] if level else []
                base = ".".join([*above, *([module] if module else [])])
                yield from ((node.lineno, f"{base}.{alias.name}") for alias in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def allowed(importer: str, name: str) -> bool:
    """Return whether the law lets the module `importer` import `name`."""
    library = name.split(".")[0]
    if any(within(name, banned) for banned in NEVER):
        return False
    if library in OWNERS:
        return any(within(importer, owner) for owner in OWNERS[library])
    if any(within(name, leaf) and not within(importer, leaf) for leaf in LEAVES):
        return False
    of_press = any(within(importer, room) for room in PRESS)
    if of_press and any(within(name, room) for room in SUBJECT):
        return False
    for layer, ours in (LAYERS | RENDERERS).items():
        if not within(importer, layer):
            continue
        if library in ("figgen", "hooks"):
            return any(within(name, other) for other in (layer, *ours))
        if layer in LAYERS:
            return library == "numpy" or library in sys.stdlib_module_names
    return library != "hooks"


def violations(path: Path, source: str) -> list[str]:
    """Return `figgen/models/mesh.py:3: must not import yaml` for each import that
    breaks the law."""
    return [
        f"{path}:{line}: must not import {name}"
        for line, name in imports(path, source)
        if not allowed(module_of(path), name)
    ]


def test_every_file_imports_only_what_its_layer_may() -> None:
    assert [
        breach
        for path in SOURCES
        for breach in violations(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    ] == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("figgen/models/mesh.py", "import yaml"),
        ("figgen/equations/latex.py", "from figgen.formulas.notation import NOTATION"),
        ("figgen/models/mesh.py", "from figgen.charts import RankGrid"),
        ("figgen/models/mesh.py", "from figgen import charts"),
        ("figgen/models/mesh.py", "from ..charts import RankGrid"),
        ("figgen/models/deep/ring.py", "from ...theme import HUES"),
        ("figgen/models/__init__.py", "from ..renderers import svg"),
        ("figgen/models/mesh.py", "def late():\n    import matplotlib"),
        ("figgen/models/mesh.py", "import importlib\nimportlib.import_module('figgen.charts')"),
        ("figgen/models/mesh.py", "__import__('markdown')"),
        ("figgen/formulas/ring.py", "import figgen.registry"),
        ("figgen/formulas/ring.py", "import sympy"),
        ("figgen/charts.py", "from figgen.units import Unit"),
        ("figgen/units.py", "from figgen.models import mesh"),
        ("figgen/errors.py", "import numpy, requests"),
        ("figgen/catalog/load.py", "from figgen.formulas import ring"),
        ("figgen/figures/bubble.py", "import matplotlib.figure"),
        ("figgen/figures/bubble.py", "def draw():\n    from plotly import graph_objects"),
        ("figgen/figures/bubble.py", "from figgen.renderers import svg"),
        ("figgen/renderers/svg.py", "from matplotlib import pyplot"),
        ("figgen/renderers/svg.py", "import matplotlib.pyplot as plt"),
        ("figgen/renderers/svg.py", "import plotly"),
        ("figgen/renderers/svg.py", "from figgen.models import mesh"),
        ("figgen/renderers/text.py", "import matplotlib"),
        ("figgen/renderers/plotly.py", "import matplotlib"),
        ("figgen/generated/presets.py", "from figgen.figures.mesh import grids"),
        ("figgen/commands/figures.py", "def late():\n    import figgen.figures"),
        ("figgen/scenarios/resolve.py", "from figgen.plotting import words"),
        ("figgen/pictures.py", "import matplotlib"),
        ("figgen/pictures.py", "import hooks.about"),
        ("figgen/markdown/directive.py", "from mkdocs.plugins import event_priority"),
        ("figgen/registry.py", "import markdown"),
        ("figgen/registry.py", "def figures():\n    import figgen.figures"),
        ("figgen/values.py", "def late():\n    from figgen.catalog import preset"),
        ("figgen/publish/build.py", "from figgen.generated.site_pages import site_pages"),
        ("figgen/prose/rules.py", "import figgen.formulas"),
        ("figgen/serving/memory.py", "from figgen import guide"),
        ("figgen/plugin/host.py", "from pymdownx import superfences"),
    ],
)
def test_breach_is_seen(path: str, source: str) -> None:
    assert len(violations(Path(path), source)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (
            "figgen/models/mesh.py",
            "import math, numpy\nfrom numpy.typing import NDArray",
        ),
        ("figgen/models/mesh.py", "from figgen.errors import InputError\nfrom . import placement"),
        ("figgen/models/deep/ring.py", "from ..mesh import Mesh\nfrom ...formulas import ring"),
        ("figgen/models/__init__.py", "from .mesh import Mesh"),
        ("figgen/formulas/ring.py", "from figgen.models.mesh import Mesh"),
        ("figgen/guide/expand.py", "from figgen.agreement.inputs import plain"),
        ("figgen/guide/__init__.py", "from figgen.catalog import preset"),
        ("figgen/catalog/__init__.py", "import tomllib\nfrom .schema import Source"),
        ("figgen/figures/bubble.py", "from figgen.registry import figure"),
        ("figgen/renderers/svg_canvas.py", "from matplotlib.path import Path"),
        ("figgen/renderers/plotly.py", "import plotly.graph_objects"),
        ("figgen/markdown/inline.py", "from markdown.inlinepatterns import InlineProcessor"),
        ("figgen/markdown/math.py", "import latex2mathml.converter, yaml"),
        ("figgen/plugin/host.py", "import mkdocs.plugins\nimport yaml"),
    ],
)
def test_lawful_import_passes(path: str, source: str) -> None:
    assert violations(Path(path), source) == []


def test_every_room_is_of_the_press_or_of_the_subject() -> None:
    rooms = {".".join(module_of(path.relative_to(ROOT)).split(".")[:2]) for path in SOURCES}
    ours = {room for room in rooms if within(room, "figgen")} - {"figgen", "figgen.__main__"}
    assert ours == {*PRESS, *SUBJECT}
    assert not set(PRESS) & set(SUBJECT)


def loaded_by(modules: list[str]) -> set[str]:
    """Return names of the modules that a fresh interpreter has loaded after importing `modules`."""
    program = f"import sys; before = set(sys.modules); import {', '.join(['figgen', *modules])}; "
    program += "print(*(set(sys.modules) - before), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def modules_in(layer: str) -> list[str]:
    names = [module_of(path.relative_to(ROOT)) for path in SOURCES]
    inside = [name for name in names if within(name, layer)]
    assert inside, f"{layer} has no module: rename it here too"
    return inside


@pytest.mark.parametrize("layer", [layer for layer in LAYERS if layer != "figgen.figures"])
def test_layer_loads_nothing_beyond_its_reach(layer: str) -> None:
    loaded = loaded_by(modules_in(layer))
    reach = ("figgen.errors", layer, *LAYERS[layer])
    reach += tuple(further for near in LAYERS[layer] for further in LAYERS[near])
    ours = {name for name in loaded if within(name, "figgen")} - {"figgen"}
    assert {name for name in ours if not any(within(name, near) for near in reach)} == set()
    assert {name.split(".")[0] for name in loaded} & libraries() <= {"numpy"}


@cache
def libraries() -> set[str]:
    """Return the names of all installed top-level modules but ours."""
    return set(packages_distributions()) - {"figgen"}


@pytest.mark.parametrize("layer", ["figgen.figures", "figgen.registry", "figgen.theme"])
def test_evaluating_loads_no_drawing_library_and_no_host(layer: str) -> None:
    loaded = {name.split(".")[0] for name in loaded_by(modules_in(layer))}
    assert loaded & (HEAVY | HOST | {"markdown", "pymdownx"}) == set()


@pytest.mark.parametrize("layer", ["figgen.markdown", "figgen.pictures"])
def test_page_without_a_changed_picture_loads_no_drawing_library_and_no_host(layer: str) -> None:
    assert {name.split(".")[0] for name in loaded_by(modules_in(layer))} & (HEAVY | HOST) == set()


def test_the_press_loads_nothing_of_the_subject() -> None:
    """This includes imports through other rooms, and imports by name."""
    loaded = loaded_by([name for room in PRESS for name in modules_in(room)])
    assert {name for name in loaded if any(within(name, room) for room in SUBJECT)} == set()


def test_telling_the_press_of_the_subject_loads_no_model() -> None:
    """Every build imports `figgen.guide`, and a warm build needs nothing that it refers to."""
    loaded = loaded_by(["figgen.guide"])
    assert {name for name in loaded if any(within(name, room) for room in SUBJECT)} == {
        "figgen.guide",
        "figgen.guide.lookups",
        "figgen.guide.words",
    }


def test_loading_is_seen() -> None:
    loaded = loaded_by(["matplotlib.figure"])
    assert {"matplotlib", "matplotlib.figure", "numpy", "figgen"} <= loaded
    assert "matplotlib.pyplot" not in loaded


PLUGIN = sorted((ROOT / "figgen" / "plugin").rglob("*.py"))


@pytest.mark.parametrize("path", [*HOOKS, *PLUGIN], ids=lambda path: path.name)
def test_hook_is_short_and_imports_figgen_when_called(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) < 130
    statements = [node for node in ast.parse(source).body if isinstance(node, ast.stmt)]
    at_start = [
        name
        for node in statements
        if isinstance(node, ast.Import | ast.ImportFrom)
        for _, name in imports(path.relative_to(ROOT), ast.unparse(node))
    ]
    ours = [name for name in at_start if within(name, "figgen")]
    assert [name for name in ours if not within(name, "figgen.plugin")] == []


def test_configuration_names_no_function_of_ours() -> None:
    """MkDocs resolves `!!python/name:` before hooks run, and would then serve code one
    edit behind."""
    assert "!!python/name:figgen" not in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
