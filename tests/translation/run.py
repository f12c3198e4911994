"""Runs printed modules under the Node that comes with Playwright."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import playwright

from figgen.guide.tool_scripts import printed_models
from figgen.publish.joined import reached
from figgen.publish.scripts import plain_scripts
from figgen.translation.modules import FOLDER

NODE = Path(playwright.__file__).parent / "driver" / "node"
ENGINE = Path(__file__).parents[2] / "docs" / "assets" / "javascripts" / "engine"


def imported(program: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the scripts that a program imports: the site's own and `more`, and printed models."""
    main = {"main.js": program}
    every = {**plain_scripts(ENGINE.parents[2]), **(more or {}), **main}
    own = {path: every[path] for path in reached(every, main)}
    return {**own, **printed_models(own)}


def ran(folder: Path, program: str, scripts: Mapping[str, str], data: object = None) -> Any:
    """Return what a program prints next to these scripts, the runtime and `data.json`."""
    return started(folder, program, scripts, data)()


def started(
    folder: Path, program: str, scripts: Mapping[str, str], data: object = None
) -> Callable[[], Any]:
    """Start the same, and return a function that waits for its end."""
    for path, text in scripts.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    engine = folder / FOLDER / "engine"
    engine.mkdir(parents=True, exist_ok=True)
    for name in ("runtime.js", "runtime_more.js", "errors.js", "records.js", "columns.js"):
        (engine / name).write_text((ENGINE / name).read_text("utf-8"), encoding="utf-8")
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (folder / "data.json").write_text(json.dumps(data), encoding="utf-8")
    (folder / "main.js").write_text(program, encoding="utf-8")
    process = subprocess.Popen(
        [str(NODE), "main.js"],
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )

    def ended() -> Any:
        printed, said = process.communicate()
        assert not process.returncode, said
        return json.loads(printed)

    return ended
