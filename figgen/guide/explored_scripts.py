"""Generate the scripts that recompute figures in a page, one for each `recomputed` figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from figgen.publish.scripts import FOLDER
from figgen.registry import Figure, all_figures, one_of
from figgen.translation.modules import script_of

LOADER, PARTS = f"{FOLDER}/tools/explored.js", f"{FOLDER}/tools/explored/"


def explored_scripts() -> dict[str, str]:
    """Return a script for each recomputed figure by path, and one that loads them by name."""
    figures = {name: spec for name, spec in all_figures().items() if spec.recomputed}
    parts = "".join(f'  "{name}": () => import("./explored/{name}.js"),\n' for name in figures)
    return {
        LOADER: f"export const load = {{\n{parts}}};\n",
        **{f"{PARTS}{name}.js": _script(spec) for name, spec in figures.items()},
    }


def _script(spec: Figure) -> str:
    """Return a script that exports the figure's function and the lookups of its parameters."""
    imports, lookups = [_import(spec.function, "figure")], []
    for parameter in spec.parameters:
        known = one_of(parameter.annotation)
        if callable(known):
            imports.append(_import(known, f"of_{parameter.name}"))
            lookups.append(f"{parameter.name}: of_{parameter.name}")
    compute = "figure"
    if spec.about is not None:
        imports.append(_import(spec.about, "about"))
        names = [parameter.name for parameter in spec.parameters]
        count = spec.about.__code__.co_argcount + spec.about.__code__.co_kwonlyargcount
        given = ", ".join(names)
        inner, rest = ", ".join(names[:count]), "".join(f", {name}" for name in names[count:])
        compute = f"({given}) => figure(about({inner}){rest})"
    return (
        "".join(imports)
        + f"export const compute = {compute};\n"
        + f"export const lookups = {{ {', '.join(lookups)} }};\n"
    )


def _import(function: Callable[..., Any], alias: str) -> str:
    target = script_of(function.__module__).removeprefix(f"{FOLDER}/")
    return f'import {{ {function.__name__} as {alias} }} from "../../{target}";\n'
