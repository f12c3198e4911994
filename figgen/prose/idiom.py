"""Calques and mannerisms, each with what a good technical writer puts in its place.

Every pair is a pattern, without regard to case, and the words to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

INSTEAD: tuple[tuple[str, str], ...] = (
    # Words of another language, translated one by one.
    (r"takes? along", "takeaways, or 'with you'"),
    (r"(?:nothing|what) (?:speaks|argues) against", "there's no reason not to, or the reason against"),
    (r"from \S+ over \S+ to", "from … to … to"),
    (r"shall", "should, must or will"),
    (r"in turns", "alternately"),
    (r"(?:what|how much) is (?:it|that) in time", "how long does that take"),
    (r"times theirs", "times their prediction"),
    (r"(?:its|their|of its|of their) likes", "its counterparts"),
    (r"an own", "a separate, or your own"),
    (r"one's own", "your own"),
    (r"in (?:the|its|their) (?:place|stead) of", "instead of"),
    (r"(?:hold|holds|held)(?: \w+)? against", "compare with"),
    (r"(?<!stands )(?<!stand )stands? (?:in|on|at|below|under|above|there|here|beside)(?! for)",
     "is, or is listed"),
    (r"stands? (?:written|printed)", "is printed"),
    (r"(?:is|are|was) asked of", "depends on, or is compared with"),
    (r"next to (?:all|none|nothing|no)", "almost all, almost none"),
    (r"(?:is|are|was|were) (?:to be )?found out", "turns out"),
    (r"for (?:it|that) alone", "just for that"),
    (r"each (?:two|three|four|eight|sixteen) of", "every two, every eight"),
    (r"(?:tokens|bytes|steps|sequences|operations|samples|FLOP) a (?:second|day|step)",
     "per second, per step"),
    (r"as good as (?:no|none|all)", "almost no, almost all"),
    (r"with what (?:it|each|they) (?:must|has to|have to) remember", "with the memory it needs"),
    (r"come(?:s)? too late for", "is of no use to"),
    (r"what is left of", "the remaining"),
    (r"that many times", "so much"),
    (r"by so much", "by that much, or as much"),
    (r"is (?:then )?(?:through|ready) with", "has finished"),
    (r"lets? itself", "can be"),
    (r"of (?:the )?same kind as", "like"),
    # The field has its own words.
    (r"matrix products?", "matmul"),
    (r"data sheets?", "datasheet"),
    (r"lie around", "are unused"),
    (r"computing time", "compute time"),
    (r"table of embeddings", "embedding table"),
    (r"heads of (?:queries|keys|values)", "query heads, key heads"),
    (r"the update of the optimizer", "the optimizer's update"),
    # Archaic, or dearer than the plain word.
    (r"dearer", "more expensive"),
    (r"seldom(?:er)?", "rarely"),
    (r"anew", "again"),
    (r"mend(?:s|ed|ing)?", "fix"),
    (r"reckon(?:s|ed|ing)?", "compute, or estimate"),
    (r"thereof|whereof|wherein|therein|hereby|herein|thereto|heretofore", "of it, in which"),
    (r"whilst|amongst|lest|albeit|hitherto", "while, among, so that … not, although"),
    (r"whoever|whosoever", "if you, or anyone who"),
    (r"one (?:can|must|may|should|would|has to|needs to|needs|wants)(?! (?:of|more))", "you can"),
    (r"from behind", "from the end"),
    (r"at hand", "available"),
    (r"gives? away", "sends"),
    (r"beside", "next to, along with, or while"),
    # One spelling.
    (r"\w+(?:ptimis|inimis|aximis|ormalis|nitialis|ummaris|rganis|ynchronis|uantis|tilis|eneralis)"
     r"(?:e|ed|es|ing|er|ation)", "-ize, -ization"),
)  # fmt: skip
_ANY = re.compile(
    "|".join(rf"(?P<p{at}>(?<![\w-])(?:{said})(?![\w-]))" for at, (said, _) in enumerate(INSTEAD)),
    re.IGNORECASE,
)


def mannered(text: str) -> Iterator[tuple[str, str]]:
    """What is said in a text, and what to write instead."""
    for match in _ANY.finditer(text):
        assert match.lastgroup is not None  # noqa: S101 - every branch is named
        yield match[0], INSTEAD[int(match.lastgroup[1:])][1]


_STRING = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`")
_COMMENT = re.compile(r"^\s*(?://|\*|/\*).*$", re.M)


def spoken(source: str) -> Iterator[tuple[int, str]]:
    """Line and words of a script's strings that are sentences or phrases, not names."""
    bare = _COMMENT.sub("", source)
    for match in _STRING.finditer(bare):
        words = next(part for part in match.groups(default="") if part) if any(match.groups()) else ""
        if " " in words.strip():
            yield bare.count("\n", 0, match.start()) + 1, re.sub(r"\$\{[^}]*\}", " ", words)


def sentences_of(scripts: Iterable[tuple[str, str]]) -> Iterator[tuple[str, int, str, str]]:
    """File, line, what is said and what to write instead, for scripts with their names."""
    for name, source in scripts:
        for line, words in spoken(source):
            for got, expected in mannered(words):
                yield name, line, got, expected
