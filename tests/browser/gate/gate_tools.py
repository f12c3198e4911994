"""What other programs report about the built site: the Nu HTML checker and Lighthouse.

They come from the package.json in this folder if Node and Java are installed; otherwise the tests
are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser import chromium
from tests.browser.gate.measured import NAME
from tests.browser.modeler import PATH as MODELER
from tests.browser.rank_map import MAP
from tests.browser.site import ROOT, Packing, serve

MODULES = Path(os.environ.get("GATE_MODULES", ROOT / ".cache" / "gate" / "node_modules"))
LEAST = {"performance": 95, "accessibility": 100, "best-practices": 100, "seo": 100}
TRIES = 3
TOOL_TIMEOUT_S = 300


def test_html_is_valid(site_folder: Path, record_property: Callable[[str, Any], None]) -> None:
    jar = MODULES / "vnu-jar" / "build" / "dist" / "vnu.jar"
    if not (shutil.which("java") and jar.exists()):
        pytest.skip("the Nu HTML checker is not installed")
    files = sorted(map(str, site_folder.rglob("*.html")))
    command = [
        "java",
        "-Xss8m",
        "-jar",
        str(jar),
        "--errors-only",
        "--format",
        "json",
        "--stdout",
        "--exit-zero-always",
        *files,
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=True
    )
    faults = [
        (Path(m["url"].removeprefix("file:")).relative_to(site_folder).as_posix(), m["message"])
        for m in json.loads(done.stdout)["messages"]
    ]
    for page, count in Counter(page for page, _ in faults).items():
        record_property(NAME, [f"/{page.removesuffix('index.html')}", {"invalid": count}])
    record_property(NAME, ["/", {"invalid": 0}])
    assert faults == []


@pytest.mark.parametrize(
    "path", ["/", "/guide/pipeline-schedules/", "/reference/runs/", "/search/", MAP, MODELER]
)
def test_lighthouse_gives_full_marks_on_a_phone(
    site_folder: Path, tmp_path: Path, path: str, record_property: Callable[[str, Any], None]
) -> None:
    program, browser = MODULES / ".bin" / "lighthouse", chromium.find()
    if not (shutil.which("node") and program.exists() and browser):
        pytest.skip("Lighthouse is not installed")
    best: dict[str, float] = {}
    with serve(site_folder, Packing) as site:
        report = marked(program, browser, f"{site}{path}", tmp_path / "report", best)
    record_property(NAME, [path, {"performance": best["performance"]}])
    lost = [a["id"] for a in report["audits"].values() if a["score"] == 0]
    assert {n: m for n, m in best.items() if m < LEAST[n]} == {}, lost


def marked(program: Path, browser: str, url: str, told: Path, best: dict[str, float]) -> Any:
    """Return the last report of a few tries; `best` gets the best score of each category."""
    command = [
        str(program),
        url,
        "--output=json",
        f"--output-path={told}",
        "--quiet",
        f"--only-categories={','.join(LEAST)}",
        f"--chrome-flags=--headless=new {' '.join(chromium.flags())}",
    ]
    environment = os.environ | {"CHROME_PATH": browser}
    for _ in range(TRIES):
        subprocess.run(command, env=environment, timeout=TOOL_TIMEOUT_S, check=True)
        report = json.loads(told.read_text(encoding="utf-8"))
        for name in LEAST:
            best[name] = max(best.get(name, 0), 100 * report["categories"][name]["score"])
        if all(best[name] >= least for name, least in LEAST.items()):
            break
    return report
