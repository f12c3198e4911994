"""A pytest plug-in that writes the seconds of every test to the file named in the environment."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

SECONDS: dict[str, float] = defaultdict(float)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    SECONDS[report.nodeid] += report.duration


def pytest_sessionfinish() -> None:
    Path(os.environ["MUTANTS_SECONDS"]).write_text(json.dumps(SECONDS), encoding="utf-8")
