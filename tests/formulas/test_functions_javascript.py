"""Models printed as JavaScript compute what was counted by hand, and nothing is left out."""

from __future__ import annotations

import importlib
import json
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import playwright
import pytest

from figgen.equations.functions_javascript import printed_module
from figgen.errors import InputError
from figgen.scenarios.tools.rates import timed_step_module
from tests.models import ledger
from tests.models.test_timed_step_counted import drawn_constants, drawn_job

NODE = Path(playwright.__file__).parent / "driver" / "node"


def ran(program: str) -> object:
    """What a module prints, run by the Node that comes with Playwright."""
    command = [str(NODE), "--input-type=module", "-"]
    done = subprocess.run(command, input=program, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_printed_step_takes_what_its_kernels_and_messages_take() -> None:
    draw = random.Random(5)
    cases = [(drawn_job(draw), drawn_constants(draw)) for _ in range(60)]
    given = [(asdict(job) | {"dp": job.dp, "tokens": job.tokens}, asdict(at)) for job, at in cases]
    found = ran(
        f"{timed_step_module()}\n"
        f"console.log(JSON.stringify({json.dumps(given)}.map((one) => timed_step(...one))));"
    )
    assert isinstance(found, list)
    for (job, at), printed in zip(cases, found, strict=True):
        parts = ledger.step_parts(job, at)
        rounding = 1e-12 * sum(parts.values())
        assert {name: printed[name] for name in parts} == pytest.approx(
            parts, rel=1e-9, abs=rounding
        )
        assert printed["total_s"] == pytest.approx(sum(parts.values()) - parts["head_s"])
        dense = ledger.layer(job, at, experts=False)
        assert {name: printed["dense"][name] for name in dense} == pytest.approx(dense, rel=1e-9)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Makes a module of a text, whose source can be read as any module's."""

    def made(text: str) -> ModuleType:
        (tmp_path / "drawn.py").write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "drawn", raising=False)
        return importlib.import_module("drawn")

    return made


def test_every_operation_keeps_its_order(module: Callable[[str], ModuleType]) -> None:
    text = """
from dataclasses import dataclass
HALF = 0.5
@dataclass
class Pair:
    one: float
    other: float
    @property
    def both(self):
        "Said, not printed."
        return self.one + self.other
def swapped(a, b):
    "Said, not printed."
    return b, a
def pair(a, b):
    c, d = swapped(a, b)
    e = -(a - (c - d)) ** 2
    e = e // 3 - (e * (HALF / b))
    few = (a < 0) & (b >= 1)
    return Pair(e, other=few * (c - 1) + (c > d) + (c <= d) * 2)
"""
    given = [(1, 2), (5.5, 2), (-3, 0.25), (4, 4)]
    drawn = module(text)
    printed = printed_module((drawn,), ("pair",))
    found = ran(f"{printed}console.log(JSON.stringify({json.dumps(given)}.map((a) => pair(...a))))")
    expected = [drawn.pair(*numbers) for numbers in given]
    assert found == [
        {"one": pytest.approx(each.one), "other": pytest.approx(each.other),
         "both": pytest.approx(each.both)}
        for each in expected
    ]  # fmt: skip
    assert "Said" not in printed


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("def f(a):\n    if a:\n        return 1\n    return 2", "if a:"),
        ("def f(a):\n    return [a]", "[a]"),
        ("def f(a):\n    return", "return"),
        ("TABLE = {1: 2}", "TABLE = {1: 2}"),
        ("def f(a):\n    return a % 2", "a % 2"),
        ("def f(a):\n    return not a", "not a"),
        ("def f(a):\n    return 'text'", "'text'"),
        ("class A:\n    def f(self):\n        self.x = 1", "self.x = 1"),
    ],
)
def test_what_is_no_arithmetic_is_refused_with_its_text(
    text: str, named: str, module: Callable[[str], ModuleType]
) -> None:
    with pytest.raises(InputError, match="a model to print as JavaScript") as caught:
        printed_module((module(text),), ())
    assert named in str(caught.value)
