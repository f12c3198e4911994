"""The programs of journey and guide, with the output that their pages show.

`python -m tests.journey_programs` runs them, if PyTorch is installed, and records their output in
tests/journey_programs.json and guide_programs.json; a page whose program or output differs is
refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import sys
import tempfile
import tokenize
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
RECORD = Path(__file__).with_suffix(".json")
GUIDE_RECORD = RECORD.with_name("guide_programs.json")
SHOWN = re.compile(
    r'^```python title="(?P<name>\w+\.py)"\n(?P<body>(?:(?!^```).)*)^```\n+'
    r'```text title="(?P<command>.+?) prints"\n(?P<output>.*?)^```',
    re.M | re.S,
)
LONGEST_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program of a page: how to start it, and what it prints."""

    name: str
    body: str
    command: str
    output: str

    @property
    def digest(self) -> str:
        """Return a digest that changes with the program, but not with its comments and
        empty lines."""
        lines = self.body.splitlines()
        for token in tokenize.generate_tokens(io.StringIO(self.body).readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column]
        code = "\n".join(line.rstrip() for line in lines if line.strip())
        return hashlib.sha256(code.encode()).hexdigest()[:16]


def programs(part: str = "journey") -> dict[str, Program]:
    """Return every program of a part of the site that shows its output, in the order of
    file names."""
    texts = [page.read_text(encoding="utf-8") for page in sorted((DOCS / part).glob("*.md"))]
    found = [Program(**each.groupdict()) for text in texts for each in SHOWN.finditer(text)]
    return {program.name: program for program in found}


def run(program: Program) -> str:
    """Return what the program prints, one rank after the other."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, program.name).write_text(program.body, encoding="utf-8")
        starter, *words = program.command.split()
        # Ranks that write to one stream at the same time tear each other's lines.
        apart = ["-m", "torch.distributed.run", "--log-dir", "logs", "--redirects", "1"]
        start = [sys.executable, *(apart if starter == "torchrun" else ()), *words]
        printed = subprocess.run(
            start, cwd=folder, capture_output=True, text=True, check=True, timeout=LONGEST_S
        ).stdout
        logs = sorted(Path(folder).rglob("stdout.log"), key=lambda log: int(log.parent.name))
        return printed + "".join(log.read_text(encoding="utf-8") for log in logs)


def main() -> None:
    """Run the programs that have changed and record their output."""
    import torch

    for part, path in {"journey": RECORD, "guide": GUIDE_RECORD}.items():
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        record = {
            name: known[name]
            if known.get(name, {}).get("sha256") == one.digest
            else {"sha256": one.digest, "output": run(one), "torch": torch.__version__}
            for name, one in programs(part).items()
        }
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
