"""Find the site that a folder belongs to, for commands and notebooks that run without its host."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from figgen.errors import InputError
from figgen.subject import use

CONFIGURATIONS = ("mkdocs.yml", "mkdocs.yaml", "properdocs.yml", "properdocs.yaml")
"""Names of configurations; where a folder has several, the first with the plug-in counts."""
GUIDE = "figgen.guide"


@dataclass(frozen=True, slots=True)
class OwnSite:
    """A site: its configuration, the modules that its plug-in imports, and its folder of pages."""

    configuration: Path
    modules: tuple[str, ...]
    docs: Path

    @property
    def folder(self) -> Path:
        return self.configuration.parent

    @property
    def host(self) -> str:
        """The program whose configuration it is: `mkdocs` or `properdocs`."""
        return self.configuration.stem

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


def in_another_site() -> bool:
    """Return whether the working folder belongs to a site that is not the guide."""
    site = site_of(Path.cwd())
    return site is not None and GUIDE not in site.modules


def docs_here(given: Path | None) -> Path:
    """Return the given folder of pages, or that of the site that the working folder belongs to.

    Raises InputError if it is no folder.
    """
    site = site_of(Path.cwd())
    docs = given or (site.docs if site else Path("docs"))
    if not docs.is_dir():
        raise InputError("pages", expected="a folder", got=os.path.relpath(docs))
    return docs


def site_of(folder: Path) -> OwnSite | None:
    """Return the site that a folder belongs to: the next configuration above that has the plug-in.

    Raises InputError for a configuration that is not valid YAML.
    """
    for above in (folder, *folder.parents):
        for name in CONFIGURATIONS:
            file = above / name
            if file.is_file() and (site := _site(file)) is not None:
                return site
    return None


def _site(configuration: Path) -> OwnSite | None:
    """Return the site of a configuration; None if it hasn't the plug-in."""
    settings: dict[str, Any] = {}
    file: Path | None = configuration
    for _ in range(9):  # configurations that inherit from each other in a circle
        found = _settings(file) if file and file.is_file() else {}
        settings = _merged(found, settings)
        file = file.parent / found["INHERIT"] if file and "INHERIT" in found else None
    plugins = settings.get("plugins")
    entries = plugins.items() if isinstance(plugins, dict) else _pairs(plugins or [])
    for plugin, options in entries:
        if plugin == "figgen":
            modules = tuple((options or {}).get("modules", ()))
            docs = configuration.parent / str(settings.get("docs_dir") or "docs")
            return OwnSite(configuration, modules, docs)
    return None


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Merge a configuration's settings over the ones that it inherits, as the hosts do."""
    both = {
        key: _merged(base[key], over[key])
        for key in base.keys() & over.keys()
        if isinstance(base[key], dict) and isinstance(over[key], dict)
    }
    return {**base, **over, **both}


def _settings(file: Path) -> dict[str, Any]:
    """Read a configuration. Raises InputError if it is not valid YAML."""
    text = file.read_text(encoding="utf-8")
    if "figgen" not in text and "INHERIT" not in text:
        return {}  # another program's, maybe with tags that only it knows

    import yaml

    class Lenient(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Reads values with tags of the host (`!ENV`) as None."""

    Lenient.add_multi_constructor("", lambda *_: None)
    try:
        found: Any = yaml.load(text, Lenient)
    except yaml.YAMLError as error:
        raise InputError(f"{file.name} cannot be read: {str(error).splitlines()[0]}") from None
    return found if isinstance(found, dict) else {}


def _pairs(plugins: list[Any]) -> list[tuple[str, Any]]:
    return [pair for p in plugins for pair in (p.items() if isinstance(p, dict) else [(p, {})])]
