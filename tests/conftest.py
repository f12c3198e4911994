"""Options and fixtures of the whole suite: goldens, the browser, the built site."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import hypothesis
import pytest

from figgen import subject
from tests import goldens
from tests.browser import chromium as finder
from tests.browser import site as built
from tests.browser import slow
from tests.browser.gate import measured

if TYPE_CHECKING:
    from playwright.sync_api import (
        Browser,
        BrowserContext,
        ConsoleMessage,
        Dialog,
        Page,
        Request,
        WebError,
    )

    from tests.browser.tab import Tab

PATIENCE_MS = 30_000  # for what comes in a tenth of a second on a machine with nothing else to do
VIOLATIONS = """async ([within, options]) => {
  const { violations } = await axe.run(within ?? document, options);
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target}`));
}"""
LONGEST = ("test_serving", "test_serve", "test_determinism", "test_published", "test_strict_build")
TESTS = Path(__file__).parent
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false")

# Repositories of tests are their own, also where a hook of git runs the tests, and whatever a
# contributor has set: signed commits, hooks, other ends of lines, colors in what Node prints.
for name in [name for name in os.environ if name.startswith("GIT_")]:
    del os.environ[name]
os.environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
os.environ.pop("FORCE_COLOR", None)

# Eleven thousand tests are half a million objects that stay, and next to none are made in circles:
# to look through them took a twentieth of the time of tests, and more of their collection.
gc.set_threshold(50_000, 20, 20)

subject.use("figgen.guide")

hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, database=None)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=1000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("figgen")
    group.addoption("--update-golden", action="store_true", help="rewrite tests/golden/")
    group.addoption("--site", type=Path, help="look at this built site instead of building one")
    races = "look for races: "
    group.addoption("--throttle", type=float, help=f"{races}let pages run for 1/N of the time")
    group.addoption("--late", type=float, help=f"{races}let every answer come N seconds later")
    group.addoption("--pause", type=float, default=0, help=f"{races}rest N ms between two steps")
    group.addoption(
        "--require-browser",
        action="store_true",
        default=IN_CI,
        help="without a Chromium, fail the browser tests instead of skipping them (CI=true does)",
    )


def pytest_collection(session: pytest.Session) -> None:
    """Import the tests of a whole run in reverse order in every second worker.

    On a fresh clone, pytest rewrites the assertions of each module and stores the result. Workers
    that start at opposite ends find half of the modules done; in the same order, each would rewrite
    all of them.
    """
    config = session.config
    if WORKER % 2 == 0 or config.args != config.getini("testpaths"):
        return
    for path in sorted(TESTS.rglob("test_*.py"), reverse=True):
        with contextlib.suppress(Exception):  # the collection reports it
            import_module(".".join(path.relative_to(TESTS.parent).with_suffix("").parts))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that need the browser; while goldens are rewritten, keep only tests
    with a golden."""
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
    items.sort(key=begins_late)
    if config.getoption("--update-golden"):
        kept = [
            item
            for item in items
            if "golden" in getattr(item, "fixturenames", ()) or "golden" in item.keywords
        ]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the table of what the gate (`make site-check`) measured on the site."""
    reports = [found for some in terminalreporter.stats.values() for found in some]
    if any("/gate/" in getattr(report, "nodeid", "") for report in reports):
        terminalreporter.section("the site")
        properties = (item for r in reports for item in getattr(r, "user_properties", ()))
        told = [value for name, value in properties if name == measured.NAME]
        terminalreporter.write("\n".join(measured.table(told)) + "\n")


def begins_late(item: pytest.Item) -> tuple[bool, bool, bool]:
    """Run slow tests first, so that no worker is left with one when the others have finished.

    A second worker begins in the middle, with tests that don't need the site, for which it would
    otherwise wait.
    """
    needs_site = "site_folder" in getattr(item, "fixturenames", ())
    return item.path.stem not in LONGEST, "browser" not in item.keywords, needs_site


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)` compares with tests/golden/<name>.txt; --update-golden
    writes the file."""

    def compare(name: str, text: str) -> None:
        path = goldens.FOLDER / f"{name}.txt"
        if request.config.getoption("--update-golden"):
            goldens.write(path, text)
        elif message := goldens.difference(path, text):
            pytest.fail(message, pytrace=False)

    return compare


@pytest.fixture(scope="session")
def chromium(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """A running Chromium, sandboxed unless this process is root."""
    from playwright.sync_api import expect, sync_playwright

    path = finder.given()
    if path is None and request.config.getoption("--require-browser"):
        pytest.fail("no Chromium found; `make test` provides one", pytrace=False)
    if path is None:
        pytest.skip("no Chromium found; `make test` provides one")
    expect.set_options(timeout=PATIENCE_MS)
    with contextlib.ExitStack() as slowness, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path,
            args=finder.flags(),
            chromium_sandbox=not finder.is_root(),
            slow_mo=request.config.getoption("--pause"),
        )
        for option, slower in (("--throttle", slow.throttled), ("--late", slow.late)):
            if by := request.config.getoption(option):
                slowness.enter_context(slower(by))
        yield browser
        slowness.close()
        browser.close()


@pytest.fixture(scope="session")
def profile(chromium: Browser) -> Iterator[BrowserContext]:
    """The profile for pages that many tests query, each in a page of its own."""
    with chromium.new_context() as context:
        context.set_default_timeout(PATIENCE_MS)
        yield context


@pytest.fixture(scope="session")
def unscripted_profile(chromium: Browser) -> Iterator[BrowserContext]:
    """The profile of a reader who has disabled JavaScript."""
    with chromium.new_context(java_script_enabled=False) as context:
        context.set_default_timeout(PATIENCE_MS)
        yield context


@pytest.fixture
def page_errors() -> list[str]:
    """The errors that occurred in `page`; a test that provokes errors checks and clears
    the list."""
    return []


@pytest.fixture
def asked() -> list[Request]:
    """The requests of `page` in order; a test may clear the list."""
    return []


@pytest.fixture(scope="session")
def tab(chromium: Browser) -> Iterator[Tab]:
    """The tab in which all tests open pages, one after the other.

    It has a separate profile: among other pages it would be in the background, where scripts are
    delayed.
    """
    from tests.browser.tab import Tab

    with chromium.new_context() as own:
        own.set_default_timeout(PATIENCE_MS)
        yield Tab(own)


@pytest.fixture
def page(tab: Tab, page_errors: list[str], asked: list[Request]) -> Iterator[Page]:
    """A page that remembers nothing of earlier ones.

    The test fails at its end after an uncaught exception, a console error, a dialog, or a request
    to another machine.
    """

    def note_console(message: ConsoleMessage) -> None:
        if message.type == "error":
            page_errors.append(f"console: {message.text}")

    def note_request(request: Request) -> None:
        asked.append(request)
        address = urlsplit(request.url)
        if address.scheme not in ("data", "blob", "about") and address.hostname != "127.0.0.1":
            page_errors.append(f"third-party request: {request.url}")

    def note_exception(error: WebError) -> None:
        page_errors.append(f"uncaught: {error.error}")

    def note_dialog(dialog: Dialog) -> None:
        page_errors.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    notes = {
        "request": note_request,
        "console": note_console,
        "weberror": note_exception,
        "dialog": note_dialog,
    }
    with tab.lent() as opened:
        for event, note in notes.items():
            tab.profile.on(event, note)
        try:
            yield opened
        finally:
            for event, note in notes.items():
                tab.profile.remove_listener(event, note)
    assert not page_errors, "\n".join(page_errors)


@pytest.fixture(scope="session")
def unscripted(unscripted_profile: BrowserContext) -> Iterator[Page]:
    """A page in a browser with JavaScript disabled; it stores nothing."""
    with unscripted_profile.new_page() as opened:
        yield opened


@pytest.fixture(scope="session")
def axe() -> Callable[..., list[str]]:
    """`axe(page)`: errors that axe-core finds, as `rule: selector` for each element.

    `tags` selects rules by tag or name, `without` excludes rules, and `within` is the part of the
    page to check.
    """
    from axe_playwright_python.sync_playwright import Axe

    core = Axe().axe_script

    def violations(
        page: Page,
        tags: tuple[str, ...] = (),
        without: tuple[str, ...] = (),
        within: str | None = None,
    ) -> list[str]:
        options: dict[str, Any] = {"resultTypes": ["violations"]}
        options["rules"] = {name: {"enabled": False} for name in without}
        if tags:
            options["runOnly"] = list(tags)
        if not page.evaluate("'axe' in window"):  # half a megabyte to read again
            page.evaluate(core)
        found: list[str] = page.evaluate(VIOLATIONS, [within, options])
        return found

    return violations


@pytest.fixture(scope="session")
def site_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the site, built once per run with --strict."""
    if given := request.config.getoption("--site"):
        return Path(given).resolve()
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder = folder / "built"
    folder.mkdir(exist_ok=True)
    return built.build_once(folder)


@pytest.fixture(scope="session")
def site(site_folder: Path) -> Iterator[str]:
    """The address of the built site, `http://127.0.0.1:<port>`."""
    with built.serve(site_folder) as address:
        yield address
