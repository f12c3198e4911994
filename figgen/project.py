"""Find the site that a folder belongs to, for commands and notebooks that run without its host."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from figgen.errors import InputError
from figgen.subject import use

CONFIGURATIONS = ("mkdocs.yml", "properdocs.yml")
GUIDE = "figgen.guide"


@dataclass(frozen=True, slots=True)
class OwnSite:
    """A site: its configuration, and the modules that its plug-in imports."""

    configuration: Path
    modules: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return self.configuration.parent

    def line_of(self, module: str) -> str:
        """Return the configuration's file and line that name a module, such as `mkdocs.yml:4`."""
        name = self.configuration.name
        for number, text in enumerate(self.configuration.read_text("utf-8").splitlines(), 1):
            if module in text.partition("#")[0]:
                return f"{name}:{number}"
        return name


def use_site_here() -> None:
    """Use the modules of the site that the working folder belongs to, or else the guide's."""
    site = site_of(Path.cwd())
    if site is not None and str(site.folder) not in sys.path:
        sys.path.insert(0, str(site.folder))
    use(*((GUIDE,) if site is None else site.modules))


def in_guide() -> bool:
    """Return whether the working folder belongs to the guide, not to another site or to none."""
    site = site_of(Path.cwd())
    return site is not None and GUIDE in site.modules


def docs_here(given: Path | None) -> Path:
    """Return the given folder of pages, or that of the site that the working folder belongs to.

    Raises InputError if it is no folder.
    """
    site = site_of(Path.cwd())
    inside = site is not None and site.folder != Path.cwd()
    docs = given or (site.folder / "docs" if site and inside else Path("docs"))
    if not docs.is_dir():
        raise InputError("pages", expected="a folder", got=str(docs))
    return docs


def site_of(folder: Path) -> OwnSite | None:
    """Return the site that a folder belongs to: the next configuration above that has the plug-in.

    Raises InputError for a configuration that is not valid YAML.
    """
    for above in (folder, *folder.parents):
        for name in CONFIGURATIONS:
            file = above / name
            if file.is_file() and "figgen" in (text := file.read_text(encoding="utf-8")):
                modules = _modules(text, name)
                if modules is not None:
                    return OwnSite(file, modules)
    return None


def _modules(text: str, name: str) -> tuple[str, ...] | None:
    import yaml

    class Lenient(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Reads values with tags of the host (`!ENV`) as None."""

    Lenient.add_multi_constructor("", lambda *_: None)
    try:
        found: Any = yaml.load(text, Lenient)
    except yaml.YAMLError as error:
        raise InputError(f"{name} cannot be read: {str(error).splitlines()[0]}") from None
    plugins = found.get("plugins") if isinstance(found, dict) else None
    entries = plugins.items() if isinstance(plugins, dict) else _pairs(plugins or [])
    for plugin, options in entries:
        if plugin == "figgen":
            return tuple((options or {}).get("modules", ()))
    return None


def _pairs(plugins: list[Any]) -> list[tuple[str, Any]]:
    return [pair for p in plugins for pair in (p.items() if isinstance(p, dict) else [(p, {})])]
