"""How long the tools' engine takes in a browser for the groups of large layouts and for a step.

`make bench ROUNDS=1` prints it; nothing here fails.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import RUN

if TYPE_CHECKING:
    from playwright.sync_api import Page


def asked(page: Page, address: str, suite: str, given: object) -> Any:
    page.goto(f"{address}/index.html")
    return json.loads(page.evaluate(RUN, [f"{address}/engine_suites.js", suite, given]))


def test_groups(page: Page, scripts_address: str) -> None:
    sizes = {"gpus_per_node": 8, "tp": 8, "cp": 2, "pp": 16, "ep": 16, "etp": 1}
    given = [{"nodes": nodes, **sizes} for nodes in (2048, 16384)]
    for layout, found in zip(given, asked(page, scripts_address, "speed", given), strict=True):
        print(
            f"\n{8 * layout['nodes']:,} GPUs: all groups {found['groups']:.1f} ms, "
            f"communicators {found['communicators']:.1f} ms"
        )


@pytest.mark.parametrize(
    ("schedule", "chunks"), [("1f1b", None), ("interleaved-1f1b", 4), ("zbv", None)]
)
def test_step(page: Page, scripts_address: str, schedule: str, chunks: int | None) -> None:
    given = {"model": "llama-3-405b", "nodes": 2048, "gpus_per_node": 8, "tp": 8, "pp": 16,
             "microbatches": 64, "schedule": schedule, "chunks": chunks}  # fmt: skip
    (took_ms,) = asked(page, scripts_address, "training_speed", [given])
    print(f"\na step of 405B on 16,384 GPUs, {schedule}: {took_ms:.1f} ms")
