"""The body of a ```figure fence: YAML in, a checked `Directive` out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import yaml

from figgen.errors import InputError, closest, raise_all
from figgen.markdown.slips import text_slips
from figgen.markdown.yaml_text import read_yaml
from figgen.registry import Figure, bind, figure_named

Found = TypeVar("Found")

FORMS = ("svg", "plotly", "text")
RESERVED = ("figure", "id", "caption", "alt", "as", "presets")
MOST_CHARACTERS = 20_000
MOST_ITEMS = 256
"""Items of a list; no reader could use a picture of more."""
DEEPEST = 4
# Markdown delimits its own placeholders by such characters; no text needs them.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_KEY_LINE = re.compile(r"( *)([A-Za-z_][\w-]*):(?:\s|$)")
_ID = re.compile(r"[a-z0-9][a-z0-9-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """A figure as its author specified it; each of the `presets` becomes a tab."""

    figure: str
    id: str
    caption: str
    alt: str
    form: str
    presets: tuple[str, ...]
    arguments: Mapping[str, object]

    @property
    def anchor(self) -> str:
        return f"fig-{self.id}"

    def variants(self) -> list[tuple[str, str, dict[str, object]]]:
        """Return (preset, picture id, arguments) of each tab, or of the only view."""
        if not self.presets:
            return [("", self.anchor, dict(self.arguments))]
        return [
            (preset, f"{self.anchor}-{preset}", {**self.arguments, "preset": preset})
            for preset in self.presets
        ]


@lru_cache(maxsize=1024)
def parse(body: str) -> Directive:
    """Parse a fence's body. Raises InputError unless it is a complete directive."""
    if len(body) > MOST_CHARACTERS:
        raise InputError("a figure", expected=f"at most {MOST_CHARACTERS:,} characters")
    fields = _mapping(body)
    unfit = [key for key in fields if not isinstance(key, str)]
    if unfit:
        raise InputError("a key of a figure", expected="a word", got=unfit[0])
    faults: list[InputError] = []

    def attempt(read: Callable[..., Found], *given: object) -> Found | None:
        """Return the result of `read`, or None after collecting its errors."""
        try:
            return read(*given)
        except InputError as error:
            faults.extend(error.all)
            return None

    for key, value in fields.items():
        attempt(_check_size, str(key), value)
    name, spec = attempt(_text, fields, "figure") or "", None
    if name:
        spec = attempt(figure_named, name)
    elif not faults:
        faults.append(InputError("'figure' is missing", expected="figure: NAME"))
    texts = {key: attempt(_sentence, fields, name, key) or "" for key in ("caption", "alt")}
    form = attempt(_form, fields, name, spec) or "svg"
    figure_id = attempt(_id, fields, name) or name
    presets = attempt(_presets, fields, name) or ()
    arguments = {str(key): value for key, value in fields.items() if key not in RESERVED}
    if spec:
        faults += _unfit(spec, arguments, presets)
    raise_all(faults)
    return Directive(
        figure=name,
        id=figure_id,
        caption=texts["caption"],
        alt=texts["alt"],
        form=form,
        presets=presets,
        arguments=arguments,
    )


def _sentence(fields: Mapping[object, object], name: str, key: str) -> str:
    text = _text(fields, key)
    if not text.strip():
        raise InputError(f"figure {name!r}: {key!r} is missing", expected=f"{key}: a sentence")
    raise_all(slip.about(key) for slip in text_slips(text, plain=key == "alt"))
    return text


def _form(fields: Mapping[object, object], name: str, spec: Figure | None) -> str:
    form = _text(fields, "as") or "svg"
    if form not in FORMS:
        raise InputError(
            f"figure {name!r}: as", expected=f"one of {', '.join(FORMS)}", got=form, key="as"
        )
    if form == "plotly" and spec and not spec.explorable:
        raise InputError(
            f"figure {name!r} has no Plotly form", expected="as: svg or as: text", key="as"
        )
    return form


def _id(fields: Mapping[object, object], name: str) -> str:
    figure_id = _text(fields, "id") or name
    if not _ID.fullmatch(figure_id):
        raise InputError("id", expected="lower-case words joined by -", got=figure_id, key="id")
    return figure_id


def _unfit(
    spec: Figure, arguments: dict[str, object], presets: tuple[str, ...]
) -> tuple[InputError, ...]:
    """Return errors for arguments that the figure does not accept, `captoin` among them."""
    known = [parameter.name for parameter in spec.parameters]
    slips = {
        key: near
        for key in arguments
        if key not in known
        and (not (near := closest(key, [*RESERVED, *known], 1)) or near[0] in RESERVED)
    }
    faults = [
        InputError(
            f"figure {spec.name!r}: unknown parameter {key!r}",
            expected=None if near else f"one of {', '.join([*known, *RESERVED])}",
            nearest=near,
            key=key,
        )
        for key, near in slips.items()
    ]
    given = {key: value for key, value in arguments.items() if key not in slips}
    if isinstance(several := given.get("preset"), list) and several:
        expected = "one name; with `presets:`, each name of a list becomes a tab"
        what = f"figure {spec.name!r}: preset"
        faults.append(InputError(what, expected=expected, got=several, key="preset"))
        given["preset"] = several[0]
    try:
        bind(spec, given | ({"preset": presets[0]} if presets else {}))
    except InputError as error:
        faults += error.all
    return tuple(faults)


def _mapping(body: str) -> dict[object, object]:
    try:
        fields = read_yaml(body)
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark.line if error.problem_mark else 0
        lines = body.splitlines()
        at, hint = _blamed(lines, at, str(error.problem))
        key = _KEY_LINE.match(lines[at]) if at < len(lines) else None
        raise InputError(
            f"malformed YAML in line {at + 1} of the figure, {error.problem}: {hint}",
            key=key[2] if key else "",
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"malformed YAML in the figure: {str(error).splitlines()[0]}") from None
    if not isinstance(fields, dict):
        raise InputError("a figure", expected="lines of 'key: value'", got=fields or "nothing")
    return fields


def _blamed(lines: list[str], at: int, problem: str) -> tuple[int, str]:
    """Return the line, from 0, that makes a figure's YAML invalid, and how to correct it."""
    tabbed = next((i for i, line in enumerate(lines) if re.match(r" *\t", line)), None)
    if tabbed is not None:
        return tabbed, "indent with spaces, not with tabs"
    keys = [(i, len(m[1])) for i, line in enumerate(lines) if (m := _KEY_LINE.match(line))]
    inside = {i for i, line in enumerate(lines, 1) if re.match(r" *[\w-]+:\s*(#.*)?$", line)}
    shifted = [i for i, indent in keys if indent != keys[0][1] and i not in inside]
    if shifted:
        return shifted[0], "begin every key in the same column"
    if "quoted scalar" in problem or "end of stream" in problem:
        return at, "close the quotation mark"
    if "',' or ']'" in problem:
        return at, "close the list with ]"
    return at, "quote text that contains ': ' or starts with '{'"


def _check_size(key: str, value: object, depth: int = 0) -> None:
    """Raise InputError for values that no figure can show: long lists, unprintable characters."""
    if isinstance(value, str) and _CONTROL.search(value):
        raise InputError(key, expected="characters that can be printed", got=value[:40], key=key)
    if isinstance(value, list | dict):
        if len(value) > MOST_ITEMS:
            raise InputError(key, expected=f"at most {MOST_ITEMS} items", got=len(value), key=key)
        if depth > DEEPEST:
            raise InputError(key, expected=f"lists nested at most {DEEPEST} deep", key=key)
        for inner in value.values() if isinstance(value, dict) else value:
            _check_size(key, inner, depth + 1)


def _text(fields: Mapping[object, object], key: str) -> str:
    value = fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(key, expected="text (quote it)", got=value)
    return value


def _presets(fields: Mapping[object, object], name: str) -> tuple[str, ...]:
    presets = fields.get("presets", [])
    what = f"figure {name!r}: presets"
    if not isinstance(presets, list) or not all(isinstance(preset, str) for preset in presets):
        raise InputError(what, expected="a list of names", got=presets, key="presets")
    if "presets" in fields and not presets:
        raise InputError(what, expected="at least one name", got=presets, key="presets")
    if len(set(presets)) < len(presets):
        raise InputError(what, expected="each name once", got=presets, key="presets")
    return tuple(presets)


def line_of_key(body: str, key: str) -> int:
    """Return the line of `key` in `body`, counted from 0; 0 if there is no such line."""
    lines = body.strip().splitlines()
    found = [i for i, line in enumerate(lines) if key and line.lstrip().startswith(f"{key}:")]
    # A line of multi-line text may begin like a key.
    return min(found, key=lambda i: (lines[i][:1] == " ", i), default=0)
