"""A mutant: one place of the code, changed by one operator of cosmic-ray."""

from __future__ import annotations

import random
from ast import literal_eval
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import cosmic_ray.plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

# Numbers beyond this change by less than tests allow for rounding when one is added.
LARGEST_NUMBER = 1e6
ARITHMETIC = ("Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow")
# What parso calls an operation; cosmic-ray takes the `*` of a signature for a product as well.
OPERATIONS = ("arith_expr", "term", "power", "expr", "and_expr", "xor_expr", "shift_expr")


@dataclass(frozen=True, order=True, kw_only=True)
class Mutant:
    """The `occurrence`-th place that `operator` matches in the file at `path`."""

    path: str
    line: int
    column: int
    operator: str
    occurrence: int

    @property
    def site(self) -> tuple[str, int, int, str]:
        """The place and kind of operator: `a + b` counts once, whatever + becomes."""
        return self.path, self.line, self.column, self.operator.partition("_")[0]

    def applied(self, source: str) -> str:
        """Return the file with this one change."""
        return str(mutate_code(source, operators()[self.operator](), self.occurrence))


def mutants_of(root: Path, path: str) -> Iterator[Mutant]:
    """Return every meaningful mutant of a file, by place."""
    nodes = list(ast_nodes(get_ast((root / path).read_text("utf-8"))))
    for name, kind in operators().items():
        operator, occurrence = kind(), -1
        for node in nodes:
            for (line, column), _ in operator.mutation_positions(node):
                occurrence += 1
                if _means_something(name, node):
                    yield Mutant(
                        path=path, line=line, column=column, operator=name, occurrence=occurrence
                    )


def operators() -> dict[str, type]:
    """Return the operators by name: arithmetic becomes arithmetic, and `==` does not
    become `is`."""
    names = cosmic_ray.plugins.operator_names()
    found = {name: cosmic_ray.plugins.get_operator(name) for name in names}
    return {name: kind for name, kind in found.items() if _wanted(name) and not kind.arguments()}


def _wanted(name: str) -> bool:
    family, _, change = name.removeprefix("core/").partition("_")
    before, _, after = change.partition("_")
    if family == "ReplaceBinaryOperator":
        return (before in ARITHMETIC) == (after in ARITHMETIC)
    if family == "ReplaceComparisonOperator":
        return (before in ("Is", "IsNot")) == (after in ("Is", "IsNot"))
    if family == "ReplaceUnaryOperator":
        return after not in ("Invert", "UAdd")
    return family not in ("NoOp", "ExceptionReplacer")  # which fails on dotted names


def _means_something(name: str, node: object) -> bool:
    if "BinaryOperator" in name:
        parent = node.parent  # type: ignore[attr-defined]
        return parent.type in OPERATIONS and not _is_annotation(parent)
    if "NumberReplacer" in name:
        return abs(literal_eval(node.value)) < LARGEST_NUMBER  # type: ignore[attr-defined]
    return True


def _is_annotation(node: object) -> bool:
    """Return whether a node is an annotation, never evaluated (`from __future__ import
    annotations`)."""
    while parent := node.parent:  # type: ignore[attr-defined]
        before = parent.children[max(parent.children.index(node) - 1, 0)]
        if getattr(before, "value", "") == (":" if parent.type != "funcdef" else "->"):
            return parent.type in ("annassign", "tfpdef", "funcdef")
        node = parent
    return False


def sample(mutants: Iterable[Mutant], size: int, seed: int) -> list[Mutant]:
    """Return `size` sites (or all, if fewer), in proportion to modules, with one mutant each."""
    draw = random.Random(seed)
    modules: dict[str, dict[tuple[str, int, int, str], list[Mutant]]] = defaultdict(dict)
    for mutant in sorted(mutants):
        modules[mutant.path].setdefault(mutant.site, []).append(mutant)
    total = sum(map(len, modules.values()))
    if size >= total:
        return [draw.choice(found) for sites in modules.values() for found in sites.values()]
    # Systematic sampling over the sites by module, each in random order: shares are exact to one.
    line = [found for sites in modules.values() for found in _shuffled(list(sites.values()), draw)]
    step = total / size
    start = draw.random() * step
    return [draw.choice(line[int(start + number * step)]) for number in range(size)]


def _shuffled(items: list[list[Mutant]], draw: random.Random) -> list[list[Mutant]]:
    draw.shuffle(items)
    return items
