"""Every construct of the subset once, in functions that return plain values."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

from figgen.errors import InputError, check_between, check_share, check_size, unknown
from figgen.json_text import record_of

RATE, LIMIT = 2.5, 2**20
WORDS: Mapping[str, str] = MappingProxyType({"a": "first", "b": "second"})
SIZES = {"small": (1, 2), "large": (30, 40)}


class Point(NamedTuple):
    x: int
    kind: Literal["F", "B"]
    y: int = 3

    def __str__(self) -> str:
        return f"{self.x}{self.kind}{self.y}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    name: str
    size: tuple[int, int] = (1, 2)
    parts: tuple[Point, ...] = ()
    weight: float | None = None
    area: int = field(init=False)

    def __post_init__(self) -> None:
        check_size("size", self.size[0])
        object.__setattr__(self, "area", self.size[0] * self.size[1])

    @property
    def half(self) -> float:
        return self.area / 2

    def __add__(self, other: Box) -> Box:
        return Box(name=f"{self.name}{other.name}", size=(self.area, other.area))

    def grown(self, by: int, *, deep: bool = False) -> Box:
        width, depth = self.size
        return replace(self, size=(width + by, depth + by if deep else depth))


@dataclass(frozen=True, kw_only=True)
class Wide:
    """More fields than a copy with one change should name."""

    one: int
    two: int = 2
    three: int = 3
    four: int = 4
    five: int = 5
    six: int = 6
    seven: tuple[int, ...] = ()
    eight: int | None = 8


@dataclass(frozen=True, kw_only=True)
class Wider(Wide):
    nine: int

    @property
    def ends(self) -> tuple[int, int]:
        return self.one, self.nine


@dataclass(frozen=True)
class Chain:
    links: tuple[Box, ...]

    @cached_property
    def total(self) -> tuple[int, ...]:
        return tuple(accumulate(box.area for box in self.links))


class Counting:
    def __init__(self, start: int) -> None:
        self.now = start
        self.seen: dict[int, str] = {}

    def step(self, word: str) -> int:
        self.now += 1
        self.seen[self.now] = word
        return self.now


class Made(Protocol):
    def __call__(self, count: int, width: int = ...) -> int: ...


def area(count: int, width: int = 4) -> int:
    return count * width


MAKERS: dict[str, Made] = {"area": area}


@lru_cache(maxsize=8)
def slow(box: Box, pairs: tuple[tuple[int, int], ...] = ()) -> int:
    return box.area + sum(a * b for a, b in pairs)


def arithmetic() -> list[float]:
    a, b = 7, -3
    return [
        a // b, a % b, -7 // 2, -7 % 3, a / b, 2**10, a**2 * RATE, (a - b) - (2 - 1), -(-a // 2),
        abs(b), min(a, b), max(a, b, 9), round(2.5), round(3.5), round(-0.5), round(0.0625, 3),
        round(0.1875, 3), round(-2.125, 2), round(2.675, 2), round(1.005, 2), round(1e22, 3),
        int(3.9), int(-3.9),
        math.ceil(2.1), math.floor(-2.1), math.prod([2, 3, 4]), math.sqrt(2), divmod(17, 5)[1],
        math.fsum([0.1] * 10), math.fsum([1e100, 1.0, -1e100]), sum([1, 2, 3], 4), LIMIT, 3 * True,
        math.isqrt(17), math.erf(0.5),
        math.erf(-2.0), 1 << 12, 10.0 / 4 * 2, 1 - (2 + 3) * 4, 8 / (2 / 4),
    ]  # fmt: skip


def truths() -> list[bool]:
    empty: list[int] = []
    none: tuple[int, ...] | None = None
    some: dict[str, int] = {"a": 0}
    text = ""
    return [
        bool(empty),
        not empty,
        bool(none),
        bool(some),
        not text,
        1 == True,
        0 <= 3 < 5,
        (1, 2) == (1, 2),
        [1, [2]] == [1, [2]],
        {1, 2} <= {1, 2, 3},
        (1, 2) < (1, 3),
        Point(1, "F") == Point(1, "F", 3),
        Box(name="a") != Box(name="b"),
        2 in (1, 2),
        (1, 2) in [(1, 2)],
        "b" in "abc",
        "a" not in some,
        any(n > 2 for n in (1, 3)),
        all([1, 0]),
        "F" in "FBIW",
        none == 0,
        (None, 1) == (0, 1),
        {(0,): 1}.get((none,)) is None,
        isinstance(text, str),
        isinstance(none, tuple),
        {1, 2}.isdisjoint({3}),
    ]


def values() -> list[object]:
    empty: list[int] = []
    none: int | None = None
    one = (1,)
    return [
        empty or {0: [2]}.get(1, [3]), empty and [3], none or 4, 5 and 6, "x" if empty else "y",
        [*empty, 1, *(2, 3)], (*one, 2, 3), [0] * 3, (1, 2) * 2, "ab" * 2, [1, 2, 3][-1],
        [1, 2, 3, 4][1:-1], [1, 2, 3][::-1], list(range(10))[1::3], "abcdef"[1:3], "abc"[::-1],
    ]  # fmt: skip


def texts() -> list[str]:
    number, share, name = 1234567, 0.12345, "it's"
    words, axes, listed = "a b  c", "tp-cp", "a,b,c"
    return [
        f"{number:,}", f"{share:.3g}", f"{share:.1%}", f"{1234.5:,.1f}", f"{name!r}", f"{number}",
        f"{2.0}", f"{0.5}", f"{1e22}", f"{1e-7}", f"{(1, 'a')}", f"{[1, 2]}", f"{True}", f"{None}",
        str(3.0), repr("a"), f"{Point(1, 'B')}", f"{share:.0f}{number:d}", "-".join(["a", "b"]),
        f"{1e6:.3g}", f"{123456:.3g}", f"{100000.0:.6g}", f"{0.00001:.2g}", "a`$b\\n",
        words.split()[2], axes.split("-")[0], "k=v=w".partition("=")[2],
        "  pad ".strip(), "xxabcxx".strip("x"), "abc".upper(), "ABC".lower(),
        "a.b".replace(".", ""), "a.b.c".replace(".", "$&", 1), [3, 1, 3].index(3, 1),
        "prefix-x".removeprefix("prefix-"),
        listed.split(",", 1)[1], "a=b".rpartition("=")[0],
    ]  # fmt: skip


def tests_of_texts() -> list[object]:
    return [
        "abc".startswith("ab"), "abc".startswith(("x", "ab")), "abc".endswith("c"),
        [one for one in ("ab", "xy") if one.startswith(("a", "q"))],
        [["p", "q", "p"].count(one) for one in ("p", "q")],
        [one for one in ((1, 2), (3, 4)) if one in [(3, 4)]],
        "12".isdigit(), "abc".find("c"), "abc".find("z"), "aXbX".count("X"), int(" 12 "),
        float("1e3"), int("-7"), len("abc"),
    ]  # fmt: skip


def readings() -> list[str]:
    found = []
    for text in ("12", "x", "1.5", "1_000", ""):
        try:
            found.append(f"{int(text)}")
        except ValueError:
            try:
                found.append(f"{float(text)}")
            except (ValueError, InputError):
                found.append("neither")
    return found


def patterns() -> list[object]:
    pattern = re.compile(r"(\d+)([FB])(\d*)")
    match = pattern.fullmatch("12F3")
    if match is None:
        return []
    return [
        match[1], match[2], match[3], pattern.fullmatch("12F3x") is None,
        re.search(r"b+", "abbc") is not None, re.sub(r"[^a-z]", "", "a1b2"),
        [one[0] for one in re.finditer(r"\d", "a1b2")], re.findall(r"[a-z]", "a1b2"),
        re.split(r"[^a-z]+", "a-b c"),
    ]  # fmt: skip


def dictionaries() -> list[object]:
    found: dict[str, int] = {}
    for name in ("a", "b", "a"):
        found[name] = found.get(name, 0) + 1
    found |= {"c": 5}
    pairs: dict[tuple[int, int], str] = {}
    pairs[1, 2] = "x"
    pairs[(1, 2)] = "y"
    lists: dict[str, list[int]] = {}
    lists.setdefault("k", []).append(4)
    groups: defaultdict[str, list[int]] = defaultdict(list)
    groups["g"].append(1)
    counts = Counter(["x", "y", "x"])
    counts["z"] += 2
    pairs_of = [("k", 1)]
    squares = {n: n * n for n in range(3) if n}
    merged = {"z": 0, **found} | {"a": 9}
    gone = merged.pop("b", 0) + merged.pop("missing", 7)
    del merged["c"]
    for key, value in squares.items():
        gone += key * value
    return [
        list(found.items()), len(pairs), pairs[1, 2], lists["k"], groups["g"], dict(counts)["x"],
        counts["none"], list(merged), gone, list(squares.values()),
        dict.fromkeys("ab", 0)["b"], sorted(found), "a" in found, max(found.values()),
        [WORDS[key] for key in WORDS], SIZES["large"][0], dict(pairs_of)["k"],
    ]  # fmt: skip


def sets() -> list[object]:
    points = {Point(1, "F"), Point(1, "F"), Point(2, "B")}
    names = {"a", "b"} | {"c"}
    names.discard("b")
    names.add("d")
    return [
        len(points), Point(2, "B") in points, sorted(names), sorted({1, 2} & {2, 3}),
        sorted({1, 2} - {2}), len(frozenset((1, 1))), sorted({n % 3 for n in range(9)}),
    ]  # fmt: skip


def loops() -> list[object]:
    total, seen = 0, []
    empty: list[int] = []
    for index, (left, right) in enumerate(zip([1, 2], [3, 4], strict=True)):
        if index > 5:
            break
        total += left * right
    for number in range(2, 9, 3):
        if number == 5:
            continue
        seen.append(number)
    while total > 8:
        total -= 1
    line = deque([1, 2, 3])
    line.append(line.popleft())
    first, *rest = seen
    low = high = 0
    low, high = high + 1, low + 2
    for number in (4, 5):
        last = number
    rows = [1, 2, 3]
    rows[1:2] = [7, 8]
    rows[-1] += 1
    rows[5:2] = rows
    rows[-2:] = [9]
    rows[1:-1] = ()
    if (count := len(rows)) > 3:
        total += count
    return [
        total, seen, list(line), first, rest, low, high, last, rows,
        [(a, b) for a in range(2) for b in "xy" if a or b == "x"], list(pairwise([1, 2, 4])),
        next(n for n in (1, 5, 7) if n > 2),
        next((n for n in empty), 3),
        list(map(str, (1, 2))), list(zip(*[(1, 2), (3, 4)], strict=True)), list(reversed([1, 2])),
        sorted([3, 1, 2], key=lambda n: -n), sorted([(2, "b"), (1, "c")]),
        min([4, 2, 3], key=lambda n: abs(n - 3)), max((n for n in empty), default=8),
    ]  # fmt: skip


def branched(value: int) -> int:
    """A name that is first assigned in two branches after a different `if`."""
    if value < 0:
        return -1
    elif value < 10:
        small = value + 1
        small *= 2
    elif value < 100:
        small = value - 1
    else:
        small = 0
    return small


def chained(value: int) -> list[int]:
    """A name that is used only in branches after the first one."""
    found = []
    if value < 0:
        found.append(-1)
    elif value < 10:
        near = value + 1
        found.append(near)
    else:
        near = value - 1
        found.append(near)
    return found


def branches() -> list[object]:
    return [[branched(value), chained(value)] for value in (-5, 5, 50, 500)]


def longest(start: int, *more: int) -> list[int]:
    return [start, len(more), *more[:2]]


def long_lists(count: int = 1000) -> list[object]:
    """Unpacking a list of any length; a stack holds few arguments."""
    many = list(range(count))
    doubled = list(many)
    doubled.extend(many)
    doubled += many
    doubled.extend(doubled[:3])
    doubled[2:4] = many
    turned = list(zip(*[(n, -n) for n in many], strict=True))
    few = (4, 5)

    def count_of(*items: int) -> int:
        return len(items)

    return [
        len(doubled),
        sum(doubled),
        len(turned),
        turned[1][count - 1],
        max(*many, -1),
        min(7, *(n - 3 for n in many)),
        max(*few, 3),
        longest(0, *many),
        longest(1),
        longest(1, *few),
        count_of(1, *few),
        sum(sorted([*many, *doubled])),
        len(set[int]().union(*([n] for n in many), few)),
    ]


def numbers(stop: int) -> Iterator[int]:
    for number in range(stop):
        if number % 2:
            yield number
    yield from (10, 11)


def closures() -> list[object]:
    factor = 3

    def scaled(value: int, by: int = factor) -> int:
        return value * by

    functions: tuple[Callable[[int], int], ...] = (scaled, lambda n: n + factor)
    return [[one(2) for one in functions], list(numbers(5)), sum(numbers(4)), scaled(2, 5)]


def spread(name: str, *rest: int, scale: int = 1) -> int:
    return len(name) + scale * sum(rest)


def records() -> list[object]:
    box = Box(name="b", parts=(Point(1, "F"),))
    grown = box.grown(2, deep=True)
    x, kind, y = Point(4, "B")
    counting = Counting(5)
    counting.step("a")
    chain = Chain((box, grown))
    both = box + grown
    added = sum((box, grown), Box(name="", size=(1, 1)))
    return [
        box.area,
        grown.size,
        grown.half,
        grown.parts[0].kind,
        x,
        kind,
        y,
        counting.step("b"),
        counting.seen[6],
        chain.total,
        chain.total is chain.total,
        both.size,
        added.name,
        slow(box),
        slow(Box(name="b", parts=(Point(1, "F"),)), ((1, 2),)),
        MAKERS["area"](3),
        MAKERS["area"](3, width=2),
        spread("ab", 1, 2, scale=10),
        spread("ab"),
        Point(1, "F")[1],
        box.name,
        box.weight is None,
    ]


def not_numbers() -> list[bool]:
    return [math.isnan(math.nan), math.isnan(1.0), math.isfinite(math.nan)]


def narrowed(value: int | tuple[int, ...] | None) -> int:
    if value is None:
        return -1
    times = value if isinstance(value, tuple) else (value,)
    return sum(times)


def narrowing() -> list[int]:
    return [narrowed(None), narrowed(4), narrowed((1, 2))]


def messages() -> list[str]:
    found = []

    def told(run: Callable[[], object]) -> None:
        try:
            run()
        except InputError as error:
            found.append(str(error))

    told(lambda: check_size("width", 0))
    told(lambda: check_share("share", 2))
    told(lambda: check_between("count", 5, 1, 1000))
    told(lambda: Box(name="b", size=(0, 1)))
    told(lambda: area(1) or 1)
    told(lambda: _refuse([1, 2], (3, "a")))
    told(lambda: _refuse(["x"], None))
    told(lambda: _unknown("frist"))
    return found


def wide_records() -> list[object]:
    wide = Wide(one=1, seven=(1, 2))
    changed = replace(wide, two=wide.two + 20, eight=None)
    again = record_of(Wide, {"one": 9, "seven": (3,), "eight": None, "another": 0})
    wider = replace(Wider(one=4, nine=5, six=7), one=6)
    return [
        (changed.one, changed.two, changed.seven, changed.eight, changed == wide),
        (again.one, again.two, again.seven, again.eight),
        record_of(Wide, {"one": 1, "seven": (1, 2)}) == wide,
        (wider.ends, wider.six, wider.seven, wider == replace(wider, nine=1)),
    ]


def _refuse(items: Sequence[int | str], pair: tuple[int, str] | None) -> None:
    if pair is None:
        raise InputError("items", expected="none", got=list(items), nearest=("a", "b"))
    raise InputError(f"pair of {len(items)}", expected=f"{LIMIT:,}", got=pair, key="pair")


def _unknown(name: str) -> None:
    raise unknown("word", name, WORDS.values())


CASES = (
    arithmetic, truths, values, texts, tests_of_texts, readings, patterns, dictionaries, sets,
    loops, branches, long_lists, closures, records, wide_records, narrowing, messages, not_numbers,
)  # fmt: skip
