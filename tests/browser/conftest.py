"""The tools' engine in an empty page, without the site around it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from figgen.configurations import configurations_json
from figgen.formulas import FORMULAS, module
from figgen.formulas.javascript import functions_module
from figgen.formulas.notes import notes_module
from figgen.page import with_security_policy
from figgen.scripts import imported_names, lean
from tests.browser.engine import Ask
from tests.browser.site import ROOT, serve

if TYPE_CHECKING:
    from playwright.sync_api import Page

ENGINE = ROOT / "docs" / "assets" / "javascripts" / "engine"
BLANK = '<!doctype html><html lang=en><head><meta charset="utf-8"><link rel=icon href=data:,>'
RUN = """async ([module, suite, given]) => {
  const { suites } = await import(module);
  return JSON.stringify(await suites[suite](given));
}"""


@pytest.fixture(scope="session")
def engine_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An empty page under the site's security policy, beside the modules as plain files."""
    folder = tmp_path_factory.mktemp("engine")
    (folder / "engine").mkdir()
    for path in ENGINE.iterdir():
        # As it is published, so that what is tested is what a reader gets.
        (folder / "engine" / path.name).write_text(lean(path.read_text()), encoding="utf-8")
    for name in ("engine_suites.js", "engine_suites_training.js"):
        shutil.copy(Path(__file__).with_name(name), folder)
    (folder / "formulas.js").write_text(module(FORMULAS.values()), encoding="utf-8")
    used = [FORMULAS[name] for name in imported_names(ROOT / "docs", "step-formulas.js")]
    (folder / "step-formulas.js").write_text(functions_module(used), encoding="utf-8")
    notes = notes_module(FORMULAS.values())
    (folder / "formula-notes.js").write_text(notes, encoding="utf-8")
    (folder / "catalog.json").write_text(configurations_json(), encoding="utf-8")
    (folder / "index.html").write_text(with_security_policy(BLANK), encoding="utf-8")
    with serve(folder) as served:
        yield served


@pytest.fixture
def ask(page: Page, engine_address: str) -> Ask:
    """`ask(suite, cases)`: what the suite of engine_suites.js answers, in one evaluation."""
    page.goto(f"{engine_address}/index.html")
    module = f"{engine_address}/engine_suites.js"
    return lambda suite, given: json.loads(page.evaluate(RUN, [module, suite, given]))
