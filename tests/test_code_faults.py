"""Errors in Python modules are reported in one line, with their place."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from figgen.serving.code import import_circle, own_fault


def test_a_circle_of_imports_is_named_with_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "round_start.py").write_text("import round_one\n")
    (tmp_path / "round_one.py").write_text("from round_two import two\n\none = 1\n")
    (tmp_path / "round_two.py").write_text(
        "import math\nfrom round_three import three\n\ntwo = 2\n"
    )
    (tmp_path / "round_three.py").write_text("\n\nfrom round_one import one\n\nthree = one\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError) as caught:
        import_module("round_start")
    assert own_fault(caught.value) == (
        "circle of imports: round_one.py:1 → round_two.py:2 → round_three.py:3 → round_one.py; "
        "move what both sides need into a module that imports neither"
    )


def test_other_faults_of_imports_are_no_circles() -> None:
    for statement in ("import no_such_module", "from math import no_such_name"):
        with pytest.raises(ImportError) as caught:
            exec(statement)
        assert import_circle(caught.value) == ""
