"""The latency of a collective's step depends only on the kind of link, in all figures and pages.

Two pages used to take 6 µs and 14 µs for the same ring, and to give 40.1 ms and 41.1 ms.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import figgen
from figgen.catalog.load import nccl
from figgen.units import parse_quantity

ROOT = Path(figgen.__file__).parent
GUIDE = ROOT.parent / "docs"

OTHERS = {"guide/alpha-beta.md": {1e-6, 50e-6}}  # a text that is refuted, with its own latencies
LAUNCHES = {("mesh/fabrics.py", 10e-6)}  # of a copy by the host, which no collective is


def test_no_figure_brings_a_latency_of_its_own() -> None:
    found = set()
    for path in (ROOT / "figures").rglob("*.py"):
        if path.parent.name in ("appendix", "precision"):  # what others say, and rounding
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
            if isinstance(value, float) and 1e-6 <= value < 1e-4:
                found.add((path.relative_to(ROOT / "figures").as_posix(), value))
    assert found == LAUNCHES


@pytest.mark.parametrize("part", ["guide", "journey"])
def test_pages_type_no_latency_but_nccl_s(part: str) -> None:
    known = {0.0, nccl().scale_up_latency_s, nccl().network_latency_s}
    typed = 0
    for path in sorted((GUIDE / part).glob("*.md")):
        name = path.relative_to(GUIDE).as_posix()
        for written in re.findall(r'latency_s="?([\d.][^",)]*)', path.read_text()):
            value = float(parse_quantity(written, "s").value) if " " in written else float(written)
            typed += 1
            assert any(abs(value - one) < 1e-12 for one in known | OTHERS.get(name, set())), (
                name,
                written,
            )
    assert typed
