"""Limits `mkdocs serve` to the work that an edit requires."""

from __future__ import annotations

import gc
from contextlib import suppress
from pathlib import Path
from typing import Any

import mkdocs.utils
from mkdocs.commands import build
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority, get_plugin_logger
from mkdocs.structure.files import Files

log = get_plugin_logger("serving")
SKIPPED = ("Page skipped", "Template skipped")
"""What MkDocs says of a page that comes out as it was last written."""
memory: Any = None
compiled: Any = None
nav: Any = None


def on_startup(command: str, **_: Any) -> None:
    global memory, compiled
    if command == "serve":
        from figgen.serving import start
        from figgen.serving.refused import in_words
        from figgen.serving.templates import Compiled

        memory, compiled = start(), Compiled()
        memory.tell = lambda error: failed(in_words(error))
        mkdocs.utils.clean_directory = lambda directory: None
        build.log.addFilter(lambda record: not str(record.msg).startswith(SKIPPED))


def on_config(config: MkDocsConfig) -> None:
    from figgen.serving.templates import with_listed_templates

    with_listed_templates(config.theme)
    if memory is not None:
        memory.refresh()  # before any module that an edit may have changed is imported
        own = map(str, sorted(Path(__file__).parent.glob("*.py")))
        hooks: Any = config.hooks  # a dict by name, despite its annotation
        for name in memory.outdated((*own, *(hook.__file__ for hook in hooks.values()))):
            log.warning("%s changed; restart the server to use it", name)


def on_nav(now: Any, config: MkDocsConfig, files: Files) -> None:
    global nav
    nav = now


@event_priority(-100)
def on_env(env: Any, config: MkDocsConfig, files: Files) -> None:
    if memory is not None:
        from figgen.serving.files import write_changed
        from figgen.serving.templates import remembering

        own = Path(config.config_file_path)
        watched = [own, own.with_name("hooks"), Path(config.theme.custom_dir or own)]
        env.bytecode_cache = compiled
        env.get_template = remembering(env.get_template, memory, nav, watched)
        pages = config.mdx_configs["figgen"]["site"].pages
        assets = {path for page in pages for path in page.assets}
        write_changed(list(files), assets, Path(config.site_dir), memory)


@event_priority(-100)
def on_post_build(**_: Any) -> None:
    if memory is not None:
        memory.shown()
        gc.disable()  # until `collect`: what was left for later makes as many objects as a build
        memory.later(collect)
        if memory.postponed and memory.again:
            memory.later(memory.again)


def collect() -> None:
    """Free what the last build left in cycles, without a look at what the first one made.

    That is millions of objects, which take the collector most of a second.
    """
    gc.collect()
    if not gc.get_freeze_count():
        gc.freeze()
    gc.enable()


def failed(said: str) -> None:
    log.error("The site could not be built: %s", said)


def on_serve(server: Any, config: MkDocsConfig, builder: Any) -> Any:
    from figgen.serving.observer import Told
    from figgen.serving.open_pages import OpenPages
    from figgen.serving.others import end_all
    from figgen.serving.refused import show_failures

    show_failures(server, failed, memory)
    memory.open = OpenPages(server).addresses

    def again() -> None:
        try:
            builder()
        finally:
            end_all()  # of a build that was interrupted

    memory.again = again
    watched = []  # MkDocs watches the paths in `watch` after this event
    for path in (config.docs_dir, str(config.config_file_path), *config.theme.dirs):
        with suppress(KeyError):  # the theme's folders are watched only on request
            server.unwatch(path)
            watched.append(path)
    server.observer, server.build_delay = Told(), 0.05
    for path in watched:
        server.watch(path)
    return server
