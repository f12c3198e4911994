"""Generate the page of Python functions from their signatures and docstrings."""

from __future__ import annotations

import inspect

from figgen.api import FUNCTIONS


def api_page() -> str:
    """Return the page as Markdown; `tests/test_api.py` runs every example on it."""
    parts = [
        "---\ndescription: The ten Python functions that answer what the pages answer, "
        "in programs and in notebooks.\n---\n\n# Python functions\n\n"
        "With figgen installed ([Your own site](../about/your-own-site.md)), ten functions answer "
        "in Python what the pages and the command line answer.\n"
        "In a notebook, a figure shows its picture and its numbers, and every other answer its "
        "text.\n\n"
        "Keywords are the options of the command line: `--gpus-per-node 8` becomes "
        "`gpus_per_node=8`, and `figgen VERB --help` lists them.\n"
        "Numbers are in SI units, and texts may have a unit of their own.\n"
        "Bad input raises `figgen.errors.InputError`, which says what was expected.\n"
    ]
    for name, function in FUNCTIONS.items():
        prose, _, example = inspect.cleandoc(function.__doc__ or "").partition("\n\n>>>")
        signature = str(inspect.signature(function, eval_str=False)).replace("'", "")
        parts.append(
            f"## figgen.{name} {{ #{name} }}\n\n```python\n{_wrapped(name, signature)}\n```\n\n"
            f"{prose}\n\n```pycon\n>>> import figgen\n>>>{example}\n```\n"
        )
    parts.append(_answers())
    return "\n".join(parts)


def _wrapped(name: str, signature: str) -> str:
    """Return a signature on one line, or with one parameter per line if it is too wide."""
    if len(name) + len(signature) <= 66:
        return f"{name}{signature}"
    inside, _, returned = signature.removeprefix("(").rpartition(") -> ")
    lines = ",\n    ".join(inside.split(", "))
    return f"{name}(\n    {lines},\n) -> {returned}"


def _answers() -> str:
    return (
        "## What they return\n\n"
        "- `ValueResult` has `value`, `unit`, `text`, `worked` and `source`, and `float(…)` gives "
        "the number.\n"
        "- `FigureResult` has `svg`, `data`, `values` and `text`. `data` is a table: iterate over "
        "its rows, or ask for `column(name)`.\n"
        "- `CommandResult` is a mapping with the keys of the command's `--json`, and has `text`.\n"
        "\n## In JavaScript\n\n"
        "The site's own tools compute with the same models, printed as JavaScript, and publish "
        "them as one module: `assets/javascripts/tools/figgen.js`, with its TypeScript types "
        "beside it in `figgen.d.ts`.\n"
        "It needs no server, runs in a page or in Node, and its options are those of the command "
        "line in SI units.\n\n"
        "```js\n"
        'import { estimate, formula, names } from "./figgen.js";\n\n'
        'const job = { model: "llama-3-70b", nodes: 8, gpus_per_node: 8,\n'
        "              tp: 8, pp: 4 };\n"
        "const { step, memory } = estimate(job);\n"
        "console.log(step.step_time_s, memory.fits);\n"
        'formula("bubble_fraction", { stages: 4, microbatches: 8 });\n'
        "```\n"
        "\n## For agents\n\n"
        "`figgen serve-tools` offers the same functions to an agent by MCP, on standard input and "
        "output.\n"
        "It needs the extra `agents` of the package, which brings the `mcp` library; a client is "
        "given the command `figgen serve-tools`.\n"
        "`figgen serve-tools --skill` prints a skill file that says which tool answers what.\n"
    )
