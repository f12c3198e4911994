"""Read the configuration of the site in a folder, for commands that run without its host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from figgen.errors import InputError

CONFIGURATIONS = ("mkdocs.yml", "properdocs.yml")


def modules_of(folder: Path) -> tuple[str, ...] | None:
    """Return the plug-in's modules in a folder's configuration; None if there is none.

    Raises InputError for a configuration that is not valid YAML.
    """
    for name in CONFIGURATIONS:
        file = folder / name
        if file.is_file() and "figgen" in (text := file.read_text(encoding="utf-8")):
            return _modules(text, name)
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
