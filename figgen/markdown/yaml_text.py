"""YAML without its traps: duplicate keys and numbers that YAML 1.1 misreads are errors."""

from __future__ import annotations

import re
from typing import Any

import yaml

from figgen.errors import InputError

_KEY = re.compile(r"\s*(?:-\s+)?([A-Za-z_][\w-]*):(?:\s|$)")
_UNMEANT = re.compile(r"[-+]?(?:0[\d_]+$|.*:)")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Raises an error for duplicate keys and for misread numbers."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise InputError(f"duplicate key {key!r}", key=str(key))
        return super().construct_mapping(node, deep)

    def number(self, node: yaml.ScalarNode) -> Any:
        """Return a number; raise if YAML 1.1 would read it in base 8 (010) or base 60 (1:30)."""
        if _UNMEANT.match(node.value):
            raise _Unmeant(node.start_mark.line, node.value)
        whole = node.tag.endswith(":int")
        return self.construct_yaml_int(node) if whole else self.construct_yaml_float(node)


class _Unmeant(Exception):
    """A number, with its line from 0, that YAML 1.1 reads as a different number."""


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _Loader.number)


def read_yaml(text: str) -> Any:
    """Parse `text`.

    Raises yaml.YAMLError as `yaml.safe_load` does, and InputError for a duplicate key and
    for numbers such as 010 (8 in YAML) and 1:30 (90).
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except _Unmeant as unmeant:
        line, written = unmeant.args
        keys = [found[1] for row in text.splitlines()[: line + 1] if (found := _KEY.match(row))]
        key = keys[-1] if keys else ""
        expected = "a number without a leading 0 or a colon, or quoted text"
        raise InputError(key or "a value", expected=expected, got=written, key=key) from None


def yaml_line(value: object) -> str:
    """Return a value as one line that `read_yaml` parses to the same value."""
    written: str = yaml.safe_dump(
        value, default_flow_style=True, allow_unicode=True, sort_keys=False, width=10**9
    )
    return written.removesuffix("\n").removesuffix("\n...")
