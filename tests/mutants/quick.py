"""Verdicts from one process that has loaded everything, so a mutant costs a fork and its tests.

In the fork, the changed function gets its new code in place, so that everyone who imported it runs
it. What runs at import, and formulas, whose text is read, cannot be changed that way:
`verdict.afresh`.
"""

from __future__ import annotations

import ast
import functools
import gc
import json
import os
import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.mutants import verdict
from tests.mutants.verdict import Chosen, Question

WHOLE = (
    "figgen/equations/",
    "figgen/formulas/",
)  # their text is read and printed: changed in memory it would disagree
Key = tuple[str, str]  # file and qualified name


def function_at(source: str, line: int) -> str:
    """Return the qualified name of the function whose body has the line; "" for what runs at
    import."""
    tree = ast.parse(source)
    classes = [(f"{node.name}.", node.body) for node in tree.body if isinstance(node, ast.ClassDef)]
    for prefix, body in [("", tree.body), *classes]:
        for node in body:
            inside = isinstance(node, ast.FunctionDef) and node.body[0].lineno <= line
            if inside and line <= (node.end_lineno or 0):
                return prefix + node.name
    return ""


def code_of(module: types.CodeType, name: str) -> types.CodeType | None:
    """Return the code of a function of a compiled module."""
    for part in name.split("."):
        inner = [each for each in module.co_consts if isinstance(each, types.CodeType)]
        found = next((each for each in inner if each.co_name == part), None)
        if found is None:
            return None
        module = found
    return module


def applies(question: Question) -> bool:
    # Without tests to ask, all that are loaded would run until the limit of time kills the mutant.
    return bool(question.tests and question.function) and not question.path.startswith(WHOLE)


def verdicts(root: Path, questions: Sequence[Question]) -> Iterator[str | None]:
    """Yield the verdict on each question in turn; None if a new process is needed."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        with open(writer, "w", encoding="utf-8", buffering=1) as out:
            _serve(root, questions, out)
        os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as told:
        answers = 0
        for line in told:
            answers += 1
            yield json.loads(line)
    os.waitpid(child, 0)
    if answers < len(questions):
        raise SystemExit("not all tests can be collected: see pytest --collect-only")


def _serve(root: Path, questions: Sequence[Question], out: object) -> None:
    verdict.enter(root)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    files = verdict.files_of([test for question in questions for test in question.tests])
    pytest.main([*verdict.OPTIONS, *files], plugins=[Session(root, questions, out)])


class Session(Chosen):
    """A run of pytest whose loop answers one question after the other, each in a fork."""

    def __init__(self, root: Path, questions: Sequence[Question], out: object) -> None:
        super().__init__(())
        self.root, self.questions, self.out = root, questions, out

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        functions, caches = _functions(self.root), _caches()
        gc.freeze()
        for question in self.questions:
            found = functions.get((question.path, question.function), [])
            answer = self._answer(session, question, found, caches) if found else None
            print(json.dumps(answer), file=self.out)  # type: ignore[call-overload]
        return True

    def _answer(self, session, question, found, caches) -> str | None:  # type: ignore[no-untyped-def]
        path = str(self.root / question.path)
        try:
            module = compile(question.mutated, path, "exec", dont_inherit=True)
        except SyntaxError:  # `not` in the place of a sign, within a power
            return "is no Python"
        code = code_of(module, question.function)
        if code is None or any(code.co_freevars != each.__code__.co_freevars for each in found):
            return None

        def ask() -> str:
            for function in found:
                function.__code__ = code
            for cache in caches:
                cache.cache_clear()
            if lookups := sys.modules.get("figgen.lookups"):
                lookups.forget()
            items = verdict.in_order(session.items, question.tests)
            items = items or session.items
            items.sort(key=lambda item: item.nodeid in self.golden)
            for item, after in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if self.killer:
                    break
            return self.killer

        return verdict.forked(ask, question.limit_s)


def _functions(root: Path) -> dict[Key, list[types.FunctionType]]:
    """Return the functions of figgen by file and name, whatever object holds them."""
    found: dict[Key, list[types.FunctionType]] = {}
    for each in gc.get_objects():
        if isinstance(each, types.FunctionType):
            file = Path(each.__code__.co_filename)
            if file.is_relative_to(root / "figgen"):
                key = (file.relative_to(root).as_posix(), each.__code__.co_qualname)
                found.setdefault(key, []).append(each)
    return found


def _caches() -> list[functools._lru_cache_wrapper]:
    return [each for each in gc.get_objects() if isinstance(each, functools._lru_cache_wrapper)]
