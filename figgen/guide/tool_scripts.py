"""The ingredients of this site's live tools: data, modules printed from Python, and parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from figgen.equations.javascript import functions_module
from figgen.equations.notes import notes_module
from figgen.errors import InputError
from figgen.formulas import FORMULAS, module
from figgen.guide.explored_scripts import explored_scripts
from figgen.guide.module_types import module_types
from figgen.publish.joined import named_imports
from figgen.publish.scripts import FOLDER, plain
from figgen.scenarios.options.schema import OPTIONS
from figgen.scenarios.tools.data import (
    chips_json,
    configurations_json,
    converter_json,
    layouts_json,
    schedules_json,
    taking_tables_json,
)
from figgen.scenarios.tools.plan import plan_module
from figgen.scenarios.tools.profile import profile_json
from figgen.scenarios.verdict.page_data import like_runs_json
from figgen.subject import ToolScripts
from figgen.translation.modules import module_of, printed
from figgen.translation.sources import Place

JOINED = {
    "answers": (),
    "converter": ("converter_lines", "converter_log"),
    "explore": ("explored/",),
    "figgen": (),
    "job_line": ("journey",),
    "measured_machine": (),
    "planner": (
        *("planner_own", "planner_trace", "planner_sizing", "planner_compare", "planner_goodput"),
        "planner_next",
    ),
    "planner_worker": ("planner_nodes",),
    "profile": ("profile_beside", "profile_log"),
    "profile_worker": (),
    "rank-map": ("map_boxes", "map_files", "map_volumes", "map_cube", "map_taken"),
    "schedules": ("lab_trace",),
    "address_read": (),
    "address_job": (),
    "typed": (),
    "back": (),
    "elsewhere": (),
    "modeler": (
        "modeler_below",
        "modeler_popover",
        "modeler_how",
        "modeler_compare",
        "modeler_take",
        "modeler_files",
        "modeler_messages",
        "fixes",
        "modeler_taken",
        "model_file",
        "modeler_log",
        "modeler_verdict",
        "measured_file",
        "trace_export",
    ),
}
"""Tools whose scripts are joined with all their imports, and the parts of each that load later.

This takes one request instead of sixty. The rest loads when a reader comes near it or requests it:
what lies below the first screen, worked lines, comparison of configurations, exports, suggestions
for what does not fit. `figgen` is for other pages and programs; `address_read`,
`address_job`, `typed`, `back` and `elsewhere` are parts of several tools.
"""

TABLES = "taking-tables.js"
"""The tables for reading scripts."""

CATALOG = "catalog.js"
"""The catalog for a tool's parts that load later; the modeler's page contains it."""

PLAN_MEMORY = "plan-memory.js"
"""The tables of the planner."""

TYPES = "figgen.d.ts"
"""The types of the module with the models, for TypeScript."""

LIKE_RUNS = "like-runs.js"
"""Published runs that a measured speed is compared with."""

STEP_FORMULAS = "step-formulas.js"
"""The few formulas that scripts import by name; all of them are in formulas.js, loaded later."""

_WORD = re.compile(r"\.?([A-Za-z_]\w*)")

_IMPORTED = tuple(
    f"/{name}"
    for name in (
        STEP_FORMULAS,
        PLAN_MEMORY,
        "formulas.js",
        CATALOG,
        TABLES,
        LIKE_RUNS,
    )
)


def printed_modules(used: Iterable[str]) -> dict[str, str]:
    """Return the scripts printed from Python; `used` are the formulas that tools call by name."""
    return {
        f"{FOLDER}/formulas.js": module(FORMULAS.values()),
        f"{FOLDER}/tools/{TYPES}": module_types(OPTIONS.values(), FORMULAS.values()),
        f"{FOLDER}/formula-notes.js": notes_module(FORMULAS.values()),
        f"{FOLDER}/{TABLES}": f"export const tables = {taking_tables_json()};\n",
        f"{FOLDER}/{CATALOG}": f"export const catalog = {configurations_json()}",
        f"{FOLDER}/{PLAN_MEMORY}": plan_module(),
        f"{FOLDER}/{LIKE_RUNS}": f"export const likeRuns = {like_runs_json()};\n",
        f"{FOLDER}/{STEP_FORMULAS}": functions_module(FORMULAS[name] for name in used),
    }


def imported_modules(made: Mapping[str, str | bytes]) -> dict[str, str]:
    """Return generated modules that scripts import by name; notes of formulas load on their own."""
    printed = (STEP_FORMULAS, PLAN_MEMORY, "formulas.js")
    return {
        path: plain(str(content)) if path.endswith(printed) else str(content)
        for path, content in made.items()
        if path.endswith(_IMPORTED)
    }


def printed_models(scripts: Mapping[str, str]) -> dict[str, str]:
    """Print the models that scripts import by name, with everything they need and nothing else.

    A record keeps only the properties and methods that a script names.  A record that answers a
    stored lookup keeps only the fields that a script reads as `.name`.  Raises InputError if a
    script would be overwritten.
    """
    wanted = {
        Place(module, name)
        for path, source in scripts.items()
        for target, name in named_imports(source, path)
        if (module := module_of(target))
    }
    found = [match for source in scripts.values() for match in _WORD.finditer(source)]
    words = {match[0] for match in found} | {match[1] for match in found}
    made = printed(sorted(wanted, key=str), words)
    if twice := sorted(scripts.keys() & made.keys()):
        raise InputError("a script", expected="a name that no printed module has", got=twice[0])
    return {path: plain(source) for path, source in made.items()}


TOOLS = ToolScripts(
    data={
        "layouts": layouts_json,
        "catalog": configurations_json,
        "converter": converter_json,
        "schedules": schedules_json,
        "profile": profile_json,
        "chips": chips_json,
    },
    formulas=STEP_FORMULAS,
    printed=printed_modules,
    imported=imported_modules,
    models=printed_models,
    later=JOINED,
    written=explored_scripts,
)
