"""Every name that a tool's script imports exists, in a script or in Python."""

from __future__ import annotations

import re

from figgen.guide.explored_scripts import explored_scripts
from figgen.guide.tool_scripts import STEP_FORMULAS, printed_modules
from figgen.publish.joined import named_imports
from figgen.publish.scripts import imported_names, plain_scripts
from figgen.translation.modules import module_of
from figgen.translation.sources import place_of
from tests.test_layers import ROOT

EXPORTED = re.compile(
    r"^export (?:async )?(?:const|let|class|function\*?) (\w+)|^export \{([^}]*)\}", re.M
)


def exports_of(source: str) -> set[str]:
    """Return names that a script exports, including re-exports."""
    found = set[str]()
    for name, listed in EXPORTED.findall(source):
        found |= {name} if name else {one.split(" as ")[-1].strip() for one in listed.split(",")}
    return found


def test_every_name_that_a_script_imports_is_there() -> None:
    """Otherwise only a build of the site would notice that a name moved in Python."""
    scripts = plain_scripts(ROOT / "docs") | explored_scripts()
    generated = printed_modules(imported_names(ROOT / "docs", STEP_FORMULAS))
    known = {path: exports_of(source) for path, source in {**generated, **scripts}.items()}
    imports = {
        (path, target, name)
        for path, source in scripts.items()
        for target, name in named_imports(source, path)
    }
    printed = {(t, n) for _, t, n in imports if module_of(t) and t not in known}
    for target, name in printed:
        place = place_of(str(module_of(target)), name)
        if place is not None and place.module == module_of(target):
            known.setdefault(target, set()).add(name)
    assert len(printed) > 200
    missing = {one for one in imports if one[2] != "*" and one[2] not in known.get(one[1], ())}
    assert missing == set()
