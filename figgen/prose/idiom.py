"""Phrases that read as translated or mannered, each with a plain replacement.

Each pair is a case-insensitive pattern and the words to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

INSTEAD: tuple[tuple[str, str], ...] = (
    # Words of another language, translated one by one.
    (r"takes? along", "takeaways, or 'with you'"),
    (r"(?:nothing|what) (?:speaks|argues) against", "there is (no) reason not to"),
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
    (r"next to (?:all|none|no)(?! of them| longer)", "almost all, almost none"),
    (r"(?:is|are|was|were) (?:to be )?found out", "turns out"),
    (r"for (?:it|that) alone", "just for that"),
    (r"each (?:two|three|four|eight|sixteen) of", "every two, every eight"),
    (r"(?:tokens|bytes|steps|sequences|operations|samples|FLOP) a (?:second|day|step)",
     "per second, per step"),
    (r"per (?:GPU|chip|rank|step|microbatch|layer|token|stage|parameter|replica|second) and "
     r"(?:GPU|chip|rank|step|microbatch|layer|token|stage|direction|second)"
     r"(?! (?:for|time|size|hour))", "per GPU per step"),
    (r"(?:journey|animation|figure) plays", "animates, or shows"),
    (r"as good as (?:no|none|all)", "almost no, almost all"),
    (r"with what (?:it|each|they) (?:must|has to|have to) remember", "with the memory it needs"),
    (r"takes? (?:(?:about|nearly|almost) )?equally long", "take the same time"),
    (r"half as (?:long|much|many|large) again", "50% longer, more or larger"),
    (r"(?:it|he|she|they|gpus?|ranks?|stages?|each) hands? on", "pass on, or send"),
    (r"what decides is", "what matters is"),
    (r"come(?:s)? too late for", "is of no use to"),
    (r"what is left of", "the remaining"),
    (r"that many times", "so much"),
    (r"by so much", "by that much, or as much"),
    (r"is (?:then )?(?:through|ready) with", "has finished"),
    (r"lets? itself", "can be"),
    (r"of (?:the )?same kind as", "like"),
    # The field has its own words.
    (r"matrix products?", "matmul"),
    (r"(?:the|large|small|thin|narrow|two|four|five|its|their|all|most|these) products"
     r"(?! of (?:the )?(?:sizes|axes|degrees))", "matmuls"),
    (r"data sheets?", "datasheet"),
    (r"lie around", "are unused"),
    (r"computing time", "compute time"),
    (r"table of embeddings", "embedding table"),
    (r"the update of the optimizer", "the optimizer's update"),
    # Archaic, or dearer than the plain word.
    (r"dearer", "more expensive"),
    (r"seldom(?:er)?", "rarely"),
    (r"anew", "again"),
    (r"mend(?:s|ed|ing)?", "fix"),
    (r"reckon(?:s|ed|ing)?", "compute, or estimate"),
    (r"thereof|whereof|wherein|therein|hereby|herein|thereto|heretofore", "of it, in which"),
    (r"whilst|amongst|lest|albeit|hitherto", "while, among, so that … not, although"),
    (r"(?<!each )(?<!that )(?<!this )(?<!every )(?<!the )(?<!second )(?<!first )(?<!last )"
     r"one (?:can|must|may|should|would|has to|needs|wants)", "you can"),
    (r"from behind", "from the end"),
    (r"whoever", "the rank, GPU or person that"),
    (r"(?:is|are) told of", "gets, or reads"),
    (r"at hand", "available"),
    (r"gives? away", "sends"),
    (r"beside", "next to, along with, or while"),
    # One spelling.
    (r"(?:up|down|out|in|to|on|after)wards", "-ward, as American English spells it"),
    (r"(?:dis|re)?colour\w*", "color, as American English spells it"),
    (r"neighbour\w*|favourit\w*|behaviour\w*", "-or, as American English spells it"),
    (r"(?:un)?(?:modell|labell|travell|cancell)(?:ed|ing)", "one l, as American English spells it"),
    (r"grey\w*|\w*centre[ds]?|licence\w*", "gray, center, license"),
    (r"\w+(?:ptimis|inimis|aximis|ormalis|nitialis|ummaris|rganis|ynchronis|uantis|tilis|eneralis)"
     r"(?:e|ed|es|ing|er|ation)", "-ize, -ization"),
)  # fmt: skip
# The start of a word is checked once for all phrases, which are tried at each letter of the site.
_PHRASES = "|".join(rf"(?P<p{at}>(?:{said})(?![\w-]))" for at, (said, _) in enumerate(INSTEAD))
_ANY = re.compile(rf"(?<![\w-])(?=\w)(?:{_PHRASES})", re.IGNORECASE)


def mannered(text: str) -> Iterator[tuple[str, str]]:
    """Yield each phrase in a text that reads as translated, with its replacement."""
    for match in _ANY.finditer(text):
        at = next(int(name[1:]) for name, found in match.groupdict().items() if found)
        yield match[0], INSTEAD[at][1]


_STRING = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`")
_COMMENT = re.compile(r"^[ \t]*(?://|\*|/\*).*$", re.M)


def spoken(source: str) -> Iterator[tuple[int, str]]:
    """Yield line number and text of each string in a script that is a phrase, not a name."""
    bare = _COMMENT.sub("", source)
    for match in _STRING.finditer(bare):
        words = "".join(match.groups(default="")).strip()
        if " " in words:
            yield bare.count("\n", 0, match.start()) + 1, re.sub(r"\$\{[^}]*\}", " ", words)
