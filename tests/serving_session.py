"""A program that does a server's builds without its server: one at once and one per line read.

The arguments are the configuration, the folder for the site, and the command, if it is `build`
instead of `serve`. A line is the address of the page that a reader has open; empty if that is not
known. `shown` is printed when readers can see that page, or all pages, and `built` when everything
else is done too.
"""

from __future__ import annotations

import itertools
import sys
import threading
from typing import Any

from mkdocs.commands.build import build
from mkdocs.config import load_config


def main(configuration: str, site: str, command: str = "serve") -> None:
    def built(page: str, *, first: bool = False) -> None:
        config = load_config(configuration, site_dir=site)
        if first:
            config.plugins.on_startup(command=command, dirty=False)
        memory = memory_of_server()
        if memory:
            memory.open = (lambda: {page}) if page else None
        build(config, serve_url="http://127.0.0.1/" if command == "serve" else None)

    for number, line in enumerate(itertools.chain([""], sys.stdin)):
        built(line.strip(), first=number == 0)
        print("shown", flush=True)
        wait()
        memory = memory_of_server()
        if memory and memory.postponed:
            built("")
            wait()
        if memory and memory.failure:
            raise memory.failure
        print("built", flush=True)


def memory_of_server() -> Any:
    """Return the memory of figgen's server; None for a host without figgen."""
    serving = sys.modules.get("figgen.serving")
    return serving.current() if serving else None


def wait() -> None:
    """Wait for everything that was left for later."""
    for thread in threading.enumerate():
        if thread.name == "after the build":
            thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
