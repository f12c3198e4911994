"""A program that does a server's builds without its server: one at once and one per line read.

The arguments are the configuration, the folder for the site, and the command, if it is `build`
instead of `serve`. `shown` is printed when readers can see the pages, `built` when deferred work is
done too.
"""

from __future__ import annotations

import itertools
import sys
import threading

from mkdocs.commands.build import build
from mkdocs.config import load_config


def main(configuration: str, site: str, command: str = "serve") -> None:
    for number, _ in enumerate(itertools.chain([""], sys.stdin)):
        config = load_config(configuration, site_dir=site)
        if number == 0:
            config.plugins.on_startup(command=command, dirty=False)
        build(config, serve_url="http://127.0.0.1/" if command == "serve" else None)
        print("shown", flush=True)
        for thread in threading.enumerate():
            if thread.name == "after the build":
                thread.join()
        memory = (
            sys.modules["figgen.serving"].current() if "figgen.serving" in sys.modules else None
        )
        if memory and memory.failure:
            raise memory.failure
        print("built", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
