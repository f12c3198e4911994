"""start: write a small working site, which you then turn into your own."""

from __future__ import annotations

import argparse
import keyword
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from string import Template

from figgen.commands import Answer, Verbs, add_verb
from figgen.errors import InputError

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


def _start(options: argparse.Namespace) -> Answer:
    folder: Path = options.folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("folder", expected="one that is new or empty", got=str(folder))
    module: str = options.module
    taken = module in sys.stdlib_module_names or module == "figgen" or keyword.iskeyword(module)
    if taken or not re.fullmatch(r"[a-z][a-z0-9_]*", module):
        raise InputError("--module", expected="a new name for a Python module", got=module)
    name = re.sub(r"[^a-z0-9]+", "-", folder.absolute().name.lower()).strip("-") or "site"
    words = {
        "name": name,
        "module": module,
        "title": name.replace("-", " ").capitalize(),
        "month": f"{datetime.now(UTC):%Y-%m}",
    }
    written = []
    try:
        for source in sorted(FILES.rglob("*.txt")):
            name = source.relative_to(FILES).with_suffix("").as_posix()
            path = re.sub(r"\bdot-", ".", name)  # a wheel leaves out what begins with a dot
            path = re.sub(rf"{MODULE}(s\.toml|\.py)$", rf"{module}\1", path)
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            text = Template(source.read_text(encoding="utf-8")).safe_substitute(words)
            text = text.replace(f"{MODULE}s.toml", f"{module}s.toml")
            target.write_text(text, encoding="utf-8")
            written.append(path)
    except OSError as error:
        raise InputError(f"{folder} cannot be written", got=str(error)) from None
    lines = [f"wrote {len(written)} files: {', '.join(written)}", "next:", f"  cd {folder}"]
    after = ("mkdocs serve", "python -m pytest", "mkdocs build --strict")
    return Answer({"wrote": written}, "\n".join([*lines, *(f"  {command}" for command in after)]))
