"""The whole fit once more, which takes seconds."""

from __future__ import annotations

import pytest

from figgen.catalog.rates import constants
from figgen.scenarios.evidence.calibrate import calibrated
from tests.thorough import THOROUGH


def test_the_constants_of_the_catalog_are_those_of_the_fit() -> None:
    known = constants()
    for name, value in calibrated(afresh=THOROUGH).items():
        assert known[name].value == pytest.approx(value, rel=0.01), name
