"""The guide without a network: pages that were read, and the whole of it as a PDF."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from figgen.__main__ import main
from figgen.commands.paper import chapters
from tests.browser import chromium as finder

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    """A profile of its own: what is kept offline must not meet other tests."""
    with chromium.new_context() as context:
        context.set_default_timeout(30_000)
        yield context


MEMORY, RINGS = "/guide/memory/", "/guide/ring-all-reduce/"


def test_a_page_that_was_read_can_be_read_again_without_a_network(
    context: BrowserContext, site: str
) -> None:
    page = context.new_page()
    page.goto(site + MEMORY)
    # Registered by hand: the site does so where it is published, not on a loopback address.
    page.evaluate("async () => { await navigator.serviceWorker.register('/sw.js'); "
                  "await navigator.serviceWorker.ready }")  # fmt: skip
    page.reload()
    page.wait_for_function("navigator.serviceWorker.controller !== null")
    page.reload(wait_until="networkidle")
    context.set_offline(True)
    page.reload()
    assert page.locator("h1").inner_text().startswith("Memory budgets")
    assert page.evaluate("getComputedStyle(document.querySelector('.md-header')).position") in (
        "sticky",
        "fixed",
    )
    with pytest.raises(Exception, match=r"ERR_(INTERNET_DISCONNECTED|FAILED)"):
        page.goto(site + RINGS)
    context.set_offline(False)
    page.goto(site + RINGS)
    assert page.locator("h1").count() == 1


def test_the_published_pages_register_the_worker_and_the_served_ones_do_not(
    context: BrowserContext, site: str
) -> None:
    page = context.new_page()
    page.goto(site + MEMORY)
    assert (
        page.evaluate("navigator.serviceWorker.getRegistrations().then((all) => all.length)") == 0
    )


def test_chapters_are_printed_in_reading_order(site_folder: Path) -> None:
    found = chapters((site_folder / "index.html").read_text("utf-8"))
    assert found.index("guide/collectives/") < found.index("guide/zero-fsdp/")
    assert len(found) == len(set(found)) >= 20
    assert all((site_folder / page / "index.html").is_file() for page in found)


def test_a_chapter_becomes_a_pdf(chromium: Browser, site_folder: Path, tmp_path: Path) -> None:
    from pypdf import PdfReader

    words = ["paper", str(site_folder), str(tmp_path / "g.pdf"), "--only", "about/wrong-number/"]
    printed = subprocess.run(
        [sys.executable, "-m", "figgen", *words], capture_output=True, text=True, timeout=30,
        env={**os.environ, "CHROME_PATH": str(finder.find())},
    )  # fmt: skip
    assert printed.returncode == 0, printed.stderr
    reader = PdfReader(tmp_path / "g.pdf")
    assert "Report a wrong number" in reader.pages[0].extract_text()
    assert [item.title for item in reader.outline] == ["Report a wrong number"]
    assert printed.stdout.endswith(f"1 chapters, {len(reader.pages)} pages\n")


def test_what_is_no_site_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", str(tmp_path), str(tmp_path / "g.pdf")]) == 2
    assert "expected the folder of a built site" in capsys.readouterr().err
    assert not (tmp_path / "g.pdf").exists()
