"""Templates that skip rendering a page that would come out as it was last written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from figgen.cache import digest
from figgen.serving.memory import Memory

NOTHING = ""
"""The rendering of an unchanged page; the host doesn't write an empty file."""


class Remembering:
    """A template's `render` that remembers its last input."""

    def __init__(self, render: Callable[..., str], memory: Memory, ground: str) -> None:
        self.render = render
        self.memory = memory
        self.ground = ground

    def __call__(self, context: Mapping[str, Any]) -> str:
        page = context["page"]
        if page is not None:
            path = page.file.src_uri
            if self.memory.is_shown(path, self._key(page, context)):
                return NOTHING
        return self.render(context)

    def _key(self, page: Any, context: Mapping[str, Any]) -> str:
        kept = self.memory.pages.get(page.file.src_uri)
        around = [(near.title, near.url) for near in (page.previous_page, page.next_page) if near]
        made = kept.serial if kept and not kept.page.problems else next(self.memory.serials)
        code = self.memory.code.version if page.meta.get("tool") else 0
        own = {name: value for name, value in context.items() if name in ("about", "card")}
        parts = (made, page.title, page.meta, page.canonical_url, around, code, own, self.ground)
        return digest(repr(parts))


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
            template.render = Remembering(template.render, memory, ground)
        return template

    return get_template


def _titles(items: Any) -> list[Any]:
    return [(item.title, getattr(item, "url", ""), _titles(item.children or [])) for item in items]


def _stamps(path: Path) -> list[tuple[str, int]]:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [(str(file), file.stat().st_mtime_ns) for file in files if file.is_file()]
