"""Fixtures: the tools' scripts in an empty page, without the site around them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

from figgen.guide.tool_scripts import STEP_FORMULAS, printed_models, printed_modules
from figgen.policy import with_security_policy
from figgen.publish.scripts import FOLDER, imported_names, lean, plain_scripts
from figgen.scenarios.tools.data import configurations_json
from tests.browser.engine import Ask
from tests.browser.modeler import PATH as MODELER
from tests.browser.modeler import settled
from tests.browser.site import ROOT, serve

SCRIPTS = ROOT / "docs" / "assets" / "javascripts"
BLANK = '<!doctype html><html lang=en><head><meta charset="utf-8"><link rel=icon href=data:,>'
RUN = """async ([module, suite, given]) => {
  const { suites } = await import(module);
  return JSON.stringify(await suites[suite](given));
}"""


@pytest.fixture
def first_visit(page: Page) -> Iterator[Page]:
    """A page in a browser without cached files, so that fonts arrive late as for a new reader."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    yield page
    session.detach()


FAR_FIRST = """window.IntersectionObserver = class extends IntersectionObserver {
  constructor(work, options) {
    const far = ({ target }) => ({ target, isIntersecting: false });
    super((seen, me) => work([...seen.map(far), ...seen], me), options);
  }
};"""


@pytest.fixture
def far_first(profile: BrowserContext) -> Iterator[Page]:
    """A page in which elements that come into view are also reported as out of view, as on slow
    phones, where one callback of an observer covers two frames."""
    with profile.new_page() as opened:
        opened.add_init_script(FAR_FIRST)
        yield opened


@pytest.fixture(params=["page", "unscripted"], ids=["scripted", "unscripted"])
def either(request: pytest.FixtureRequest, chromium: Browser) -> Page:
    """A page with JavaScript, then one without; tabs, switches and numbers must not need it."""
    opened: Page = request.getfixturevalue(request.param)
    return opened


@pytest.fixture
def instant(page: Page, site: str, site_folder: Path) -> Page:
    """A page that the theme changes without reloading it.

    The theme does so for addresses of the site map, which lists the published site.
    """
    text = (site_folder / "sitemap.xml").read_text(encoding="utf-8")
    here = re.sub(r"(?<=<loc>)https?://[^/]+", site, text)
    page.route("**/sitemap.xml", lambda route: route.fulfill(body=here, content_type="text/xml"))
    return page


@pytest.fixture(scope="session")
def scripts_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an empty page under the site's security policy, next to engine, tools and
    suites."""
    folder = tmp_path_factory.mktemp("scripts")
    for name in ("engine", "tools"):
        (folder / name).mkdir()
        for path in (SCRIPTS / name).iterdir():
            # As it is published, so that what is tested is what a reader gets.
            (folder / name / path.name).write_text(lean(path.read_text()), encoding="utf-8")
    for suites in Path(__file__).parent.glob("*.js"):
        shutil.copy(suites, folder)
    used = imported_names(ROOT / "docs", STEP_FORMULAS)
    printed = printed_modules(used)
    written = {
        **{Path(path).name: content for path, content in printed.items()},
        "catalog.json": configurations_json(),
        "index.html": with_security_policy(BLANK),
    }
    own = {f"{FOLDER}/{path.name}": path.read_text() for path in Path(__file__).parent.glob("*.js")}
    for path, content in printed_models({**plain_scripts(ROOT / "docs"), **own}).items():
        written[path.removeprefix(f"{FOLDER}/")] = lean(content)
    for name, content in written.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    with serve(folder) as served:
        yield served


@pytest.fixture(scope="session")
def workbench(profile: BrowserContext, scripts_address: str) -> Iterator[tuple[Page, list[str]]]:
    """The empty page in which all suites run: they leave nothing behind, and a page for each would
    load the engine again.

    Returned with the errors that occurred in it.
    """
    errors: list[str] = []

    def note_console(message: ConsoleMessage) -> None:
        if message.type == "error":
            errors.append(message.text)

    with profile.new_page() as opened:
        opened.on("pageerror", lambda error: errors.append(str(error)))
        opened.on("console", note_console)
        opened.goto(f"{scripts_address}/index.html")
        yield opened, errors


@pytest.fixture
def ask(
    request: pytest.FixtureRequest, workbench: tuple[Page, list[str]], scripts_address: str
) -> Iterator[Ask]:
    """`ask(suite, cases)`: what a suite of the module's SUITES answers, in one evaluation."""
    page, errors = workbench
    errors.clear()
    suites = f"{scripts_address}/{getattr(request.module, 'SUITES', 'engine_suites.js')}"
    yield lambda suite, given: json.loads(page.evaluate(RUN, [suites, suite, given]))
    assert not errors, "\n".join(errors)


@pytest.fixture
def open_modeler(page: Page, site: str) -> Callable[..., Page]:
    """`open_modeler(query)`: opens the modeler's page with that query and waits until it settles.

    `open_modeler(query, answered)` only waits for the answer, for tests that look at nothing below
    it.
    """

    def open_page(query: str = "", wait: Callable[[Page], None] = settled) -> Page:
        page.goto(f"{site}{MODELER}{query}")
        wait(page)
        return page

    page.set_viewport_size({"width": 1366, "height": 900})
    return open_page
