"""Configures the interpreter for builds.

The garbage collector is off: a build makes millions of objects, hardly any of them in cycles.
Objects are frozen when a build ends its process, which would otherwise scan them all. A server
writes no bytecode: that would change the watched folders, and Python would trust it for a second in
which an author may save the same file again.
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
