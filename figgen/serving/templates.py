"""Templates that skip rendering a page that would come out as it was last written.

Their environment lists them without the hidden folders of a theme.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import BytecodeCache, Environment, FileSystemLoader
from jinja2.bccache import Bucket

from figgen.cache import digest
from figgen.serving.memory import Memory

NOTHING = ""
"""The rendering of an unchanged page; the host doesn't write an empty file."""


class Compiled(BytecodeCache):
    """Compiled templates by name and source, so that a build compiles only what changed."""

    def __init__(self) -> None:
        self.codes: dict[tuple[str, str], Any] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self.codes.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        self.codes[bucket.key, bucket.checksum] = bucket.code


class Listed(FileSystemLoader):
    """Templates of a theme, listed without its hidden folders.

    Material has thousands of icons there, and the host publishes none of them.
    """

    def list_templates(self) -> list[str]:
        found = set[str]()
        for root in self.searchpath:
            for folder, folders, files in os.walk(root):
                folders[:] = [name for name in folders if not name.startswith(".")]
                inside = Path(folder).relative_to(root)
                found.update((inside / name).as_posix() for name in files)
        return sorted(found)


def with_listed_templates(theme: Any) -> None:
    """Make a theme's environment list its templates without hidden folders."""
    make = theme.get_env

    def get_env() -> Environment:
        env: Environment = make()
        env.loader = Listed(theme.dirs)
        return env

    vars(theme)["get_env"] = get_env


class Remembering:
    """A template's `render` that remembers its last input."""

    def __init__(self, name: str, render: Callable[..., str], memory: Memory, ground: str) -> None:
        self.name = name
        self.render = render
        self.memory = memory
        self.ground = ground

    def __call__(self, context: Mapping[str, Any]) -> str:
        page = context["page"]
        if page is None:  # the sitemap, or the page for addresses that don't exist
            path, key = f"/{self.name}", self._key_of_list(context["pages"])
        else:
            path, key = page.file.src_uri, self._key(page, context)
        return NOTHING if self.memory.is_shown(path, key) else self.render(context)

    def _key_of_list(self, files: Any) -> object:
        pages = [file.page for file in files if file.page]
        return self.ground, [(p.canonical_url, p.update_date) for p in pages]

    def _key(self, page: Any, context: Mapping[str, Any]) -> object:
        kept = self.memory.pages.get(page.file.src_uri)
        around = [(near.title, near.url) for near in (page.previous_page, page.next_page) if near]
        made = kept.serial if kept and not kept.page.problems else next(self.memory.serials)
        version = kept.version if kept else self.memory.code.version
        code = version if page.meta.get("tool") else 0
        own = context.get("about"), context.get("card")
        return made, page.title, page.meta, page.canonical_url, around, code, own, self.ground


def remembering(
    find: Callable[..., Any], memory: Memory, nav: Any, watched: list[Path]
) -> Callable[..., Any]:
    """Wrap `find`, an environment's `get_template`, so that its templates remember.

    `watched` are the configuration file and the folders of templates and hooks.
    """
    ground = digest(repr((_titles(nav.items), [_stamps(path) for path in watched])))

    def get_template(name: str, *args: Any, **kwargs: Any) -> Any:
        template = find(name, *args, **kwargs)
        if "render" not in vars(template):
            template.render = Remembering(name, template.render, memory, ground)
        return template

    return get_template


def _titles(items: Any) -> list[Any]:
    return [(item.title, getattr(item, "url", ""), _titles(item.children or [])) for item in items]


def _stamps(path: Path) -> list[tuple[str, int]]:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [(str(file), file.stat().st_mtime_ns) for file in files if file.is_file()]
