"""Split text into words as the index stores them; `words.js` splits queries the same way.

`all-reduce` is all, reduce and allreduce; `bubble_fraction` is bubble, fraction and
bubblefraction; `ZeRO-3` is zero, 3 and zero3; `NVLink4` is nvlink4 and nvlink; `α` is α and alpha.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import snowballstemmer

_CHAIN = re.compile(r"[^\W_]+(?:[._'’–+/,-][^\W_]+)*")
_NUMBER = re.compile(r"\d[\d.,]*[^\W\d_]{0,3}")
_CASE = re.compile(r"(?<=[a-z]{2})(?=[A-Z][a-z]{2})")
_JOINT = re.compile(r"[._'’–+/,-]")
_NAMED = re.compile(r"([^\W\d_]{3,})\d+")
_PLAIN = re.compile(r"[a-z]{3,}")
_BRITISH = re.compile(r"(?<=[a-z]{4})is(?=(?:e|ed|es|ing|ations?|ers?)$)")
_TOOL = re.compile(r"modell?ers?")
_OUR = re.compile(r"(?<=[a-z]{3})our(?=(?:s|ed|ing|al|ly)?$)")

_STOP = """
a an and are as at be been but by can do does for from had has have how i if in into is it its many
may me more most much my no not of on one only or our should so some than that the their them then
there these they this those to us was we were what when where which while who whose why will with
would you your
"""
STOP = frozenset(_STOP.split())
"""Words that are too common to distinguish pages."""

_stem = snowballstemmer.stemmer("porter").stemWord


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return the stem of a word (Porter 1980), with British spellings treated as American ones.

    Anything but a plain word is returned unchanged. "Modeler" is a tool's name, so its stem differs
    from that of "model".
    """
    if _TOOL.fullmatch(word):
        return "modeler"
    if not _PLAIN.fullmatch(word):
        return word
    return str(_stem(_OUR.sub("or", _BRITISH.sub("iz", word))))


def words(text: str) -> Iterator[str]:
    """Yield the stem of every word of `text`; a compound gives its parts and the whole."""
    for chain in _CHAIN.findall(unicodedata.normalize("NFKC", text)):
        yield from _of_chain(chain)


@lru_cache(maxsize=1 << 15)
def _of_chain(chain: str) -> tuple[str, ...]:
    if _NUMBER.fullmatch(chain):
        return (chain.replace(",", "").lower(),)
    pieces = [_CASE.split(part) for part in _JOINT.split(chain)]
    found = [piece.lower() for part in pieces for piece in part]
    found += ["".join(part).lower() for part in pieces if len(part) > 1]
    if len(pieces) > 1 and not re.search(r"[/,.]", chain):
        found.append(_JOINT.sub("", chain).lower())
    found += [match[1] for piece in found if (match := _NAMED.fullmatch(piece))]
    found += [_greek(piece) for piece in found if len(piece) == 1 and piece > "\u036f"]
    return tuple(stem(piece) for piece in found if piece and piece not in STOP)


def _greek(letter: str) -> str:
    return unicodedata.name(letter, "").rpartition(" ")[2].lower()


class Synonyms:
    """Groups of phrases with the same meaning, each of which also finds the others.

    `groups` are phrases in any case; a phrase matches whole words, also in the plural.
    """

    def __init__(self, groups: Iterable[Iterable[str]]) -> None:
        self._others: dict[str, tuple[str, ...]] = {}
        for group in map(tuple, groups):
            for phrase in group:
                extra = [w for other in group if other != phrase for w in words(other)]
                own = set(words(phrase))
                known = self._others.get(_plain(phrase), ())
                new = dict.fromkeys([*known, *(w for w in extra if w not in own)])
                self._others[_plain(phrase)] = tuple(new)
        longest = sorted(self._others, key=len, reverse=True)
        spelled = "|".join(re.escape(phrase).replace(r"\ ", r"[\s-]+") for phrase in longest)
        self._any = re.compile(rf"(?<!\w)({spelled})(?=e?s?(?!\w))" if longest else r"(?!)")

    def of(self, text: str) -> Iterator[str]:
        """Yield additional words by which `text` should be found, once per mention."""
        for match in self._any.finditer(text.lower()):
            yield from self._others[_plain(match[1])]


@lru_cache(maxsize=1 << 12)
def _plain(phrase: str) -> str:
    return re.sub(r"[\s-]+", " ", phrase.lower())


def synonyms(terms: Mapping[str, Mapping[str, object]]) -> Synonyms:
    """Return a glossary's synonyms: each term with the names in `short`, `also` and `never`."""
    groups = []
    for term, entry in terms.items():
        also = [name for key in ("short", "also", "never") for name in _texts(entry.get(key))]
        if also:
            groups.append((term, *also))
    return Synonyms(groups)


def _texts(given: object) -> list[str]:
    if isinstance(given, str):
        return [given]
    return [str(item) for item in given] if isinstance(given, list) else []
