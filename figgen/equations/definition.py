"""Define a formula: a plain function of one expression, with units, domain and source.

`@formula` returns the function unchanged (call it with numbers or arrays) and registers what a page
needs to show it. `syntax` reads its expression; `latex`, `javascript` and `worked` print it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from figgen.equations.notation import Argument, Notation
from figgen.errors import InputError, closest
from figgen.units import canonical_unit

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Formula:
    """A registered formula; `where` are its conditions beyond the arguments' own ranges.

    `symbol` is LaTeX, `unit` is SI, `doc` the first paragraph of the docstring; `module` and
    `line` say where the function is written.
    """

    name: str
    symbol: str
    unit: str
    args: tuple[Argument, ...]
    where: str
    source: str
    doc: str
    function: Callable[..., Any]
    module: str
    line: int

    @property
    def topic(self) -> str:
        """The module as addresses write it: `tensor-parallel`."""
        return self.module.rpartition(".")[2].replace("_", "-")

    def place(self, line: int = 1) -> str:
        """Return file and line, such as `boat.py:12`; `line` counts from the decorator, from 1."""
        return written_at(self.module, self.line + line - 1)


FORMULAS: dict[str, Formula] = {}


def registered(
    notation: Notation,
    bare: Callable[..., Any] | None = None,
    /,
    *,
    symbol: str = "",
    unit: str = "",
    source: str = "",
    where: str = "",
) -> Callable[[F], F]:
    """Return a decorator that registers a function of one expression, and returns it unchanged.

    `symbol` (LaTeX) and `unit` (SI) are the result's; `source` says where it is published or
    from what it is derived. `where` is a condition on the arguments, in Python, in addition to
    their ranges. Symbols, units and ranges of the arguments come from `notation`.

    Raises InputError if something that the page must show is missing, and for a `bare` function: a
    decorator without parentheses.
    """
    if bare is not None:
        expected = '@formula(symbol="Q", unit="J", source="…")'
        raise InputError(f"formula {bare.__name__}", expected=expected, got="@formula")

    def register(function: F) -> F:
        name = function.__name__
        if name in FORMULAS and not is_reloaded(FORMULAS[name].function, function):
            raise InputError(
                f"two formulas are named {name}; {FORMULAS[name].place()} is the first"
            )
        doc = function.__doc__ or ""
        for what, given in {"source": source, "symbol": symbol, "docstring": doc}.items():
            if not given.strip():
                raise InputError(f"formula {name} has no {what}", expected=WANTED[what])
        code = function.__code__
        FORMULAS[name] = Formula(
            name=name,
            symbol=symbol,
            unit=canonical_unit(unit),
            args=tuple(_argument(notation, name, n) for n in code.co_varnames[: code.co_argcount]),
            where=where,
            source=source,
            doc=" ".join(doc.split("\n\n")[0].split()),
            function=function,
            module=function.__module__,
            line=code.co_firstlineno,
        )
        return function

    return register


WANTED = {
    "source": 'in @formula(…): source="where it is published, or what it follows from"',
    "symbol": r'in @formula(…): symbol="Q", as LaTeX writes it',
    "docstring": "a sentence in triple quotes below its `def`",
}
"""What to write for each thing that a formula lacks."""


def written_at(module: str, line: int) -> str:
    """Return the file of a module and a line of it, such as `boat.py:12`."""
    return f"{module.replace('.', '/')}.py:{line}"


def is_reloaded(old: Callable[..., Any], new: Callable[..., Any]) -> bool:
    """Return whether `new` is the same function as `old` after its module was reloaded."""
    return old.__module__ == new.__module__ and old.__globals__ is not new.__globals__


def _argument(notation: Notation, formula_name: str, name: str) -> Argument:
    """Return the notation's line of an argument. Raises InputError if there is none, or no unit."""
    if name not in notation:
        raise InputError(
            f"argument {name!r} of {formula_name}",
            expected=f'in the notation, formulas(…): positive("{name}", symbol, unit, meaning)',
            nearest=closest(name, notation),
        )
    try:
        return replace(notation[name], unit=canonical_unit(notation[name].unit))
    except InputError as error:
        raise InputError(f"argument {name!r} of {formula_name}: {error}") from None
