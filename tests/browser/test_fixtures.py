"""The browser fixtures notice what they are meant to notice."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page

from tests.browser import site as built
from tests.browser import slow
from tests.browser.tab import Tab
from tests.browser.waits import addressed, at_rest

START = "<!doctype html><html lang=en><title>t</title><link rel=icon href=data:,>"
FILES = {
    "sound.html": "<main><h1>before</h1></main><script type=module src=module.mjs></script>",
    "module.mjs": "document.querySelector('h1').textContent = 'after';",
    "broken.html": "<script>missing()</script>",
    "noisy.html": "<script>console.error('no luck')</script>",
    "leaky.html": "<img src=http://example.com/a.png>",
    "barred.html": "<meta http-equiv=Content-Security-Policy content=\"script-src 'self'\">"
    "<script>document.title = 'never'</script>",
    "unlabelled.html": "<main><h1>h</h1><img src=data:,></main>",
    # Asks for nothing for 0.7 s while it loads, and for a script then.
    "busy.html": "<h1>before</h1><script>{ const end = performance.now() + 700;"
    " while (performance.now() < end); document.write('<script src=module.mjs><\\/script>') }"
    "</script>",
    "later.html": "<h1>before</h1><script>addEventListener('load', async () => {"
    " await fetch('module.mjs'); document.querySelector('h1').textContent = 'after' })</script>",
    "asking.html": "<script>alert('well?')</script>",
}


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    for name, text in FILES.items():
        start = START if name.endswith(".html") else ""
        (tmp_path / name).write_text(start + text, encoding="utf-8")
    with built.serve(tmp_path) as served:
        yield served


def test_modules_are_served_as_scripts(page: Page, address: str) -> None:
    page.goto(f"{address}/sound.html")
    assert page.text_content("h1") == "after"


def test_a_page_that_is_busy_while_it_loads_comes_to_rest(page: Page, address: str) -> None:
    at_rest(page, f"{address}/busy.html")
    assert page.text_content("h1") == "after"


def test_a_page_is_at_rest_when_an_answer_that_comes_late_has_come(
    page: Page, address: str
) -> None:
    with slow.late(1):
        at_rest(page, f"{address}/later.html")
    assert page.text_content("h1") == "after"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("broken", "uncaught: missing is not defined"),
        ("noisy", "console: no luck"),
        ("leaky", "third-party request: http://example.com/a.png"),
        ("asking", "dialog: well?"),
    ],
)
def test_errors_of_the_page_are_collected(
    page: Page, page_errors: list[str], address: str, name: str, error: str
) -> None:
    page.goto(f"{address}/{name}.html")
    seen = [line.split("\n")[0] for line in page_errors]
    page_errors.clear()
    assert error in seen


# What a test may leave in the page, as the next one would see it.
LEFT = """() => ({
  kept: [localStorage.length, sessionStorage.length, history.length],
  size: [innerWidth, innerHeight],
  media: ["print", "(prefers-color-scheme: dark)", "(prefers-reduced-motion)"]
    .filter((query) => matchMedia(query).matches),
  hovered: document.querySelectorAll("h1:hover").length,
})"""


def test_tab_remembers_nothing_of_the_last_test(chromium: Browser, address: str) -> None:
    tab, seen = Tab(chromium.new_context()), []
    for _ in range(2):
        with tab.lent() as page:
            page.goto(f"{address}/sound.html")
            seen.append(page.evaluate(LEFT))
            page.goto(f"{address}/unlabelled.html")
            page.evaluate("() => { localStorage.a = sessionStorage.a = 1 }")
            page.emulate_media(media="print", color_scheme="dark", reduced_motion="reduce")
            page.set_viewport_size({"width": 390, "height": 844})
            page.locator("h1").hover()
            page.context.new_page()
            page.route("**/*", lambda route: route.abort())
            assert page.evaluate(LEFT) != seen[0]
    assert seen[0] == seen[1]
    assert len(tab.profile.pages) == 1
    assert seen[0]["kept"][:2] == [0, 0]
    tab.profile.close()


def test_tab_that_was_closed_or_could_not_be_cleaned_is_replaced(
    chromium: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Page) -> None:
        raise Error("stuck")

    tab, lent = Tab(chromium.new_context()), []
    for spoil in (lambda: lent[0].close(), lambda: monkeypatch.setattr(tab, "_clean", fail), str):
        with tab.lent() as page:
            lent.append(page)
        spoil()
    with tab.lent() as page:
        assert page not in lent
    assert len({*map(id, lent)}) == 2
    assert page.is_closed()
    tab.profile.close()


def test_nobody_listens_to_the_tab_beyond_a_test() -> None:
    """`asked` and `page_errors` only report what `page` did."""
    files = sorted(Path(__file__).parent.glob("test_*.py"))
    listening = re.compile(r"\b(page|ready|first_visit|instant)\.(on|once|add_init_script)\(")
    assert len(files) > 30
    assert [file.name for file in files if listening.search(file.read_text("utf-8"))] == []


def test_breach_of_the_security_policy_is_collected(
    page: Page, page_errors: list[str], address: str
) -> None:
    page.goto(f"{address}/barred.html")
    seen = list(page_errors)
    page_errors.clear()
    assert len(seen) == 1
    assert "Content Security Policy" in seen[0]
    assert page.title() == "t"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
def test_a_browser_that_is_throttled_answers_and_is_let_go(page: Page, address: str) -> None:
    def is_stopped(pid: int) -> bool:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:  # it has just ended
            return False
        return stat.rpartition(")")[2].split()[0] in "tT"

    page.goto(f"{address}/sound.html")
    browsers = slow.parts(os.getpid())
    assert len(browsers) >= 2
    with slow.throttled(20):
        for _ in range(100):
            assert page.text_content("h1") == "after"
            if any(map(is_stopped, browsers)):
                break
        else:
            pytest.fail("none was stopped")
    assert not any(map(is_stopped, browsers))


FORGOTTEN_LATER = """(left) => {
  const forget = () => history.replaceState(null, "", "?b=2");
  const frame = () => (left-- ? requestAnimationFrame(frame) : forget());
  frame();
}"""


def test_a_key_that_the_address_must_not_have_is_waited_for(page: Page, address: str) -> None:
    """Playwright used to drop None values from the dict, and waited for nothing."""
    page.goto(f"{address}/sound.html?a=1&b=2")
    page.evaluate(FORGOTTEN_LATER, 30)
    addressed(page, a=None, b=2)
    assert page.url == f"{address}/sound.html?b=2"


def test_names_beyond_the_loopback_do_not_resolve(page: Page, page_errors: list[str]) -> None:
    with pytest.raises(Exception, match="ERR_NAME_NOT_RESOLVED"):
        page.goto("http://example.com/")
    page_errors.clear()


def test_axe_reports_an_image_without_a_text(
    page: Page, axe: Callable[..., list[str]], address: str
) -> None:
    page.goto(f"{address}/unlabelled.html")
    assert [line.split(":")[0] for line in axe(page)] == ["image-alt"]


def test_axe_finds_nothing_on_a_sound_page(
    page: Page, axe: Callable[..., list[str]], address: str
) -> None:
    page.goto(f"{address}/sound.html")
    assert axe(page, tags=("wcag2a", "wcag2aa", "best-practice")) == []


def test_site_is_built_once_however_often_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Path] = []
    monkeypatch.setattr(built, "build", lambda directory, **_: calls.append(directory) or "")
    assert built.build_once(tmp_path) == built.build_once(tmp_path) == tmp_path / "site"
    assert len(calls) == 1


def test_failed_build_is_told_to_everyone_who_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(built, "build", lambda directory, **_: "page.md:3: unknown figure")
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"page\.md:3: unknown figure"):
            built.build_once(tmp_path)
