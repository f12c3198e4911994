"""Writes the files of the search index into the site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from figgen.search.index import FOLDER, Sheet, index, sheet
from figgen.search.words import synonyms

Files: TypeAlias = dict[str, str]
"""The files of the index by their path."""

_read = lru_cache(maxsize=1024)(sheet)


class Found(NamedTuple):
    """A page from the host: address, title, HTML of its content, and front matter."""

    url: str
    title: str
    html: str
    meta: Mapping[str, Any] = {}


def search_files(pages: Sequence[Found], terms: Mapping[str, Mapping[str, Any]]) -> Files:
    """Return the files of the index by path; `terms` is the glossary.

    A page's front matter may list `also: [other names]`; its description counts as text. With
    `fill`, a search opens the page with fields filled in: each key lists words and their values
    ("h200=h200-sxm-141gb"); `nodes` and `gpus` list the words that follow a number of nodes with
    `each` GPUs, or of GPUs.
    """
    sheets: list[Sheet] = []
    filled = [[url, title, meta["fill"]] for url, title, _, meta in pages if meta.get("fill")]
    for url, title, html, meta in pages:
        if not url.startswith(FOLDER):
            about = f"{html}<h1></h1><p>{escape(str(meta.get('description', '')))}</p>"
            sheets.append(_read(url, title, about, "; ".join(meta.get("also", ()))))
    return index(sheets, synonyms(terms), filled)


def publish(site: Path, files: Files) -> None:
    """Write the index into the folder of a built site."""
    for path, content in files.items():
        file = site / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
