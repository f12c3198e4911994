"""Sets the interpreter for builds.

It does not look for garbage: millions of objects are made and hardly any in circles.  Nor when a
build ends its process, which would look through all that is left.  While pages are served it writes
no bytecode: that would change the folders that are watched, and would be trusted for a second, in
which an author may save the same file once more.
"""

from __future__ import annotations

import gc
import sys
from typing import Any

ends = False


def on_startup(command: str, **_: Any) -> None:
    global ends
    ends = command == "build"
    sys.dont_write_bytecode |= command == "serve"


def on_config(config: Any) -> None:
    gc.disable()


def on_post_build(**_: Any) -> None:
    if ends:
        gc.freeze()
    gc.enable()


def on_build_error(**_: Any) -> None:
    gc.enable()
