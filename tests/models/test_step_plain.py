"""The time of a step compared with a prediction written from its description alone."""

from __future__ import annotations

import pytest

from tests.models.plain_step import configs, plain_step, predicted


def test_a_step_takes_as_long_as_a_plain_prediction_says() -> None:
    every = list(configs())
    sample = every[::331]  # 331 shares no factor with the sizes: all layouts, all lengths
    assert {config[:2] for config in sample} == {config[:2] for config in every}
    assert {config[3] for config in sample} == {config[3] for config in every}
    for config in sample:
        assert predicted(config) == pytest.approx(plain_step(config), rel=1e-9), config
