"""Garbage collection is off during a build and at the end of its process; a server turns it on
again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[1] / "figgen" / "plugin" / "garbage.py"
RUN = """
import gc, runpy, sys
hook = runpy.run_path(sys.argv[1])
class Known:
    def __del__(self):
        print("found")
hook["on_startup"](command=sys.argv[2])
hook["on_config"](None)
enabled = [gc.isenabled()]
circle = Known()
circle.itself = circle
del circle
hook["on_post_build"]()
print(*enabled, gc.isenabled(), flush=True)
"""


@pytest.mark.parametrize(
    ("command", "told"),
    [("build", "False True\n"), ("serve", "False True\nfound\n")],
)
def test_a_process_that_ends_with_its_build_does_not_look_for_garbage(
    command: str, told: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(HOOK), command], capture_output=True, text=True, check=True
    )
    assert done.stdout == told
