"""start: write a small working site, which you then turn into your own."""

from __future__ import annotations

import argparse
import keyword
import os
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from string import Template

from figgen.commands import Answer, Verbs, add_verb
from figgen.errors import InputError

WORKFLOWS = ".github/workflows/"
FILES = Path(__file__).parent / "stubs" / "start"
MODULE = "kettle"


def add(verbs: Verbs) -> None:
    """Register the verb of this module."""
    summary = "write a small site of your own, ready to build"
    start = add_verb(verbs, "start", _start, summary, "my-site", "boats --module boat")
    start.add_argument("folder", type=Path, help="a folder that is new or empty")
    start.add_argument(
        "--module", default=MODULE, help="the name of the site's Python module (%(default)s)"
    )


def _repository_around(folder: Path) -> Path | None:
    """Return the folder of the repository that a folder would lie in; None if there is none.

    GitHub reads workflows there, and not in the folder of a site.
    """
    return next((above for above in folder.parents if (above / ".git").exists()), None)


def _start(options: argparse.Namespace) -> Answer:
    folder: Path = options.folder.absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("folder", expected="one that is new or empty", got=str(options.folder))
    module: str = options.module
    taken = module in sys.stdlib_module_names or module == "figgen" or keyword.iskeyword(module)
    if taken or not re.fullmatch(r"[a-z][a-z0-9_]*", module):
        raise InputError("--module", expected="a new name for a Python module", got=module)
    name = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-") or "site"
    repository = _repository_around(folder)
    words = {
        "name": name,
        "module": module,
        "title": name.replace("-", " ").capitalize(),
        "month": f"{datetime.now(UTC):%Y-%m}",
        "place": folder.relative_to(repository or folder).as_posix(),
    }
    targets = dict(_targets(folder, module, repository and repository / f"{WORKFLOWS}{name}.yml"))
    for target in targets:
        if target.exists():
            raise InputError(f"{target} exists", expected="another name of the folder")
    try:
        for target, source in targets.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            text = Template(source.read_text(encoding="utf-8")).safe_substitute(words)
            text = text.replace(f"{MODULE}s.toml", f"{module}s.toml")
            target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder} cannot be written", got=str(error)) from None
    written = [Path(os.path.relpath(target, folder)).as_posix() for target in targets]
    lines = [f"wrote {len(written)} files: {', '.join(written)}", "next:", f"  cd {options.folder}"]
    after = ("mkdocs serve", "python -m pytest", "mkdocs build --strict")
    return Answer({"wrote": written}, "\n".join([*lines, *(f"  {command}" for command in after)]))


def _targets(folder: Path, module: str, workflow: Path | None) -> Iterator[tuple[Path, Path]]:
    """Yield each file to write and its template; `workflow` is the one elsewhere, if it is."""
    for source in sorted(FILES.rglob("*.txt")):
        name = source.relative_to(FILES).with_suffix("").as_posix()
        path = re.sub(r"\bdot-", ".", name)  # a wheel leaves out what begins with a dot
        path = re.sub(rf"{MODULE}(s\.toml|\.py)$", rf"{module}\1", path)
        yield (workflow if workflow and path.startswith(WORKFLOWS) else folder / path), source
