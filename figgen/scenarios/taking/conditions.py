"""Decides which branches of a script run: `if`, `case`, and commands after `&&` and `||`.

A test of a file, of a pattern of letters, or of a value that the text does not contain is
undecided; then all its branches are read from top to bottom.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from figgen.scenarios.taking.arithmetic import computed
from figgen.scenarios.texts.entry import is_whole

OPENING = ("[", "[[", "test")
CLOSING = ("]", "]]")
NUMBERS = ("-eq", "-ne", "-gt", "-ge", "-lt", "-le")
SIGNS = {"==": "-eq", "!=": "-ne", ">=": "-ge", "<=": "-le", ">": "-gt", "<": "-lt"}


@dataclass(slots=True, kw_only=True)
class Branch:
    """An open `if` or `case`.

    `done` is whether one of its branches has run, `live` whether the current one runs; None means
    undecided, and `tested` lists the unset variables that decide it. `word` is what a `case`
    compares, `pattern` whether its next words are patterns.
    """

    outer: bool
    done: bool | None = False
    live: bool | None = True
    word: str = ""
    pattern: bool = False
    tested: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Branches:
    """The open branches, the test being read, and whether the next command is skipped."""

    open: list[Branch] = field(default_factory=list)
    testing: bool = False
    result: bool | None = None
    joint: str = ""
    tested: list[str] = field(default_factory=list)
    skip: bool = False
    matched: bool | None = False

    def live(self) -> bool:
        """Whether the current command runs or may run."""
        return not self.skip and all(one.outer and one.live is not False for one in self.open)

    def sure(self) -> bool:
        """Whether every open branch is known to run."""
        return all(one.live is True for one in self.open)

    def deciding(self) -> str:
        """The variables without a value that decide whether what is read now runs."""
        names: list[str] = []
        for one in self.open:
            names.extend([name for name in one.tested if one.live is None and name not in names])
        return ", ".join(["$" + name for name in names])

    def unsure_of(self, name: str) -> bool:
        """Whether a variable without a value decides whether what is read now runs."""
        return any(one.live is None and name in one.tested for one in self.open)


def follow(branches: Branches, words: list[str], end: str) -> list[str]:
    """Return a command without its branching words; `end` is the sign after it, such as `&&`."""
    if branches.open and branches.open[-1].pattern:
        return _pattern(branches, words, end)
    rest = words
    while rest and rest[0] in ("then", "else", "fi", "esac", "if", "elif", "case", "do"):
        word = rest[0]
        rest = rest[1:]
        if word == "case":
            return _case(branches, rest, end)
        _keyword(branches, word)
    if branches.open and branches.open[-1].word and end == ";;":
        branches.open[-1].pattern = True
    if branches.testing or _is_test(rest):
        _test(branches, rest, end)
        return []
    runs = not branches.skip
    branches.skip = branches.skip and end in ("&&", "||") and bool(rest)
    return rest if runs else []


def _keyword(branches: Branches, word: str) -> None:
    if word == "if":
        branches.open.append(Branch(outer=branches.live()))
    if word in ("if", "elif"):
        branches.testing = True
        branches.result = None
        branches.joint = ""
        branches.tested = []
        return
    if not branches.open:
        branches.testing = False
        return
    here = branches.open[-1]
    if word == "then":
        branches.testing = False
        here.tested = branches.tested
        _enter(here, branches.result)
    elif word == "else":
        _enter(here, True)
    elif word in ("fi", "esac"):
        branches.open = branches.open[:-1]
    branches.skip = False


def _enter(here: Branch, chosen: bool | None) -> None:
    """Begin the next branch, which runs if its test holds and no earlier branch has run."""
    if here.done is True or chosen is False:
        here.live = False
    elif chosen is True and here.done is False:
        here.live = True
        here.done = True
    else:
        here.live = None
        here.done = None


def _case(branches: Branches, words: list[str], end: str) -> list[str]:
    outer = branches.live()
    word = words[0] if words else ""
    branches.open.append(Branch(outer=outer, word=word if word else " ", pattern=True))
    branches.matched = False
    rest = words[2:] if words[1:2] == ["in"] else words[1:]
    return _pattern(branches, rest, end) if rest else []


def _pattern(branches: Branches, words: list[str], end: str) -> list[str]:
    """Compare the patterns of a `case`, which end with a parenthesis."""
    if words[:1] == ["esac"]:
        branches.open = branches.open[:-1]
        return follow(branches, words[1:], end)
    if words[:1] == ["in"]:
        words = words[1:]
    here = branches.open[-1]
    for word in words:
        same = matches(here.word, word)
        if same is None or branches.matched is None:
            branches.matched = None
        elif same:
            branches.matched = True
    if end == ")":
        _enter(here, branches.matched)
        here.pattern = False
        branches.matched = False
    return []


def _is_test(words: list[str]) -> bool:
    return bool(words) and (words[0] in OPENING or words[:2] == ["!", "["])


def _test(branches: Branches, words: list[str], end: str) -> None:
    """Combine a test with those before it, and decide whether the next command is skipped."""
    if words:
        said = decided(words)
        branches.tested.extend([word[1:] for word in words if word[:1] == "$"])
        if branches.joint == "&&":
            said = _both(branches.result, said)
        elif branches.joint == "||":
            said = _either(branches.result, said)
        branches.result = said
    branches.joint = end if end in ("&&", "||") else branches.joint if end == "" else ""
    if not branches.testing:
        branches.skip = (branches.joint == "&&" and branches.result is False) or (
            branches.joint == "||" and branches.result is True
        )


def _both(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _either(one: bool | None, other: bool | None) -> bool | None:
    if one is True or other is True:
        return True
    return None if one is None or other is None else False


def decided(words: list[str]) -> bool | None:
    """Return whether a test such as `[ 8 -gt 1 ]` holds, or None if the text does not tell."""
    said = [word for word in words if word not in OPENING and word not in CLOSING]
    if "-o" in said:
        at = said.index("-o")
        return _either(decided(said[:at]), decided(said[at + 1 :]))
    if "-a" in said[1:]:
        at = said.index("-a", 1)
        return _both(decided(said[:at]), decided(said[at + 1 :]))
    if said[:1] == ["!"]:
        inner = decided(said[1:])
        return None if inner is None else not inner
    if len(said) == 1:
        return said[0] != "" if "$" not in said[0] else None
    if len(said) == 2 and said[0] in ("-z", "-n"):
        # An unset variable is empty, as in a default.
        empty = said[1] == "" or said[1].startswith("$")
        return empty if said[0] == "-z" else not empty
    if len(said) != 3 or "$" in said[0] or "$" in said[2]:
        return None
    return _compared(said[0], said[1], said[2])


def _compared(one: str, sign: str, other: str) -> bool | None:
    if sign in ("=", "=="):
        return matches(one, other)
    if sign == "!=":
        same = matches(one, other)
        return None if same is None else not same
    if sign not in NUMBERS or not is_whole(one) or not is_whole(other):
        return None
    first = int(one)
    second = int(other)
    if sign == "-eq":
        return first == second
    if sign == "-ne":
        return first != second
    if sign in ("-gt", "-ge"):
        return first > second or (sign == "-ge" and first == second)
    return first < second or (sign == "-le" and first == second)


def compared_sums(text: str, variables: dict[str, str]) -> bool | None:
    """Return whether `TP * PP > 1`, from `(( … ))`, holds, or None if unknown."""
    for sign, name in SIGNS.items():
        before, found, after = text.partition(sign)
        if found:
            return _compared(computed(before, variables), name, computed(after, variables))
    value = computed(text, variables)
    return None if value == "" else value != "0"


def matches(text: str, pattern: str) -> bool | None:
    """Return whether a text matches a pattern with `*`, or None for other patterns."""
    if "$" in text or "$" in pattern:
        return True if pattern == "*" else None
    if "?" in pattern or "[" in pattern:
        return None
    parts = pattern.split("*")
    if len(parts) == 1:
        return text == pattern
    if not text.startswith(parts[0]) or not text.endswith(parts[-1]):
        return False
    at = len(parts[0])
    for part in parts[1:-1]:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return at + len(parts[-1]) <= len(text)
