"""YAML as authors mean it: no key twice, and no number that YAML 1.1 reads as another one."""

from __future__ import annotations

import re
from typing import Any

import yaml

from figgen.errors import InputError

_KEY = re.compile(r"\s*(?:-\s+)?([A-Za-z_][\w-]*):(?:\s|$)")
_UNMEANT = re.compile(r"[-+]?(?:0[\d_]+$|.*:)")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Refuses what would be lost, or be another number, in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise InputError(f"{key!r} is written twice", key=str(key))
        return super().construct_mapping(node, deep)

    def number(self, node: yaml.ScalarNode) -> Any:
        """A number, unless YAML 1.1 takes it for one of base 8 (010) or of base 60 (1:30)."""
        if _UNMEANT.match(node.value):
            raise _Unmeant(node.start_mark.line, node.value)
        whole = node.tag.endswith(":int")
        return self.construct_yaml_int(node) if whole else self.construct_yaml_float(node)


class _Unmeant(Exception):
    """A number in a line, from 0, that is another one than it seems."""


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _Loader.number)


def read_yaml(text: str) -> Any:
    """What `text` holds.

    Raises yaml.YAMLError as `yaml.safe_load` does, and InputError for a key that is given twice and
    for numbers such as 010 (8 in YAML) and 1:30 (90).
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except _Unmeant as unmeant:
        line, written = unmeant.args
        keys = [found[1] for row in text.splitlines()[: line + 1] if (found := _KEY.match(row))]
        key = keys[-1] if keys else ""
        expected = "a number without a leading 0 or a colon, or a text in quotes"
        raise InputError(key or "a value", expected=expected, got=written, key=key) from None


def yaml_line(value: object) -> str:
    """A value as one line that `read_yaml` reads as the same value."""
    written: str = yaml.safe_dump(
        value, default_flow_style=True, allow_unicode=True, sort_keys=False, width=10**9
    )
    return written.removesuffix("\n").removesuffix("\n...")
