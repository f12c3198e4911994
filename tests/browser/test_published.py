"""The site as it is published: at an address below a host, with a repository on GitHub."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser import site as built
from tests.browser.paths import address_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

ADDRESS = "https://parallelism.example/guide/"
REPOSITORY = "https://github.com/example/parallelism"
SOURCES = ("index.md", "guide/pipeline-schedules.md", "about/accessibility.md")


def test_repository_is_linked_and_never_asked(page: Page, tmp_path: Path) -> None:
    """The stock theme asks GitHub for stars from the reader's browser; see the `page` fixture."""
    folder = tmp_path / "guide"
    settings = {"SITE_URL": ADDRESS, "REPO_URL": REPOSITORY, "EDIT_URI": "edit/main/docs/"}
    project = built.copy_of_the_project(tmp_path / "project")
    assert built.build(folder, project, built.few_pages(project, SOURCES), **settings) == ""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    with built.serve(tmp_path) as host:
        for path in map(address_of, SOURCES):
            page.goto(f"{host}/guide{path}", wait_until="networkidle")
            link = page.locator(".md-source").first
            assert link.get_attribute("href") == REPOSITORY
            assert link.get_attribute("data-md-component") is None
            canonical = page.locator("link[rel=canonical]").get_attribute("href")
            assert canonical == f"{ADDRESS}{path[1:]}"
            reports = page.locator(f"a[href^='{REPOSITORY}/issues/new?title=']")
            assert reports.count() == (path != "/")
    cited = (folder / "guide" / "pipeline-schedules" / "index.html").read_text("utf-8")
    assert f'">{ADDRESS}guide/pipeline-schedules/#fig-' in cited
    assert all(url.startswith((f"{host}/guide/", "data:", "blob:")) for url in asked)
    assert not any(re.search(r"api\.|github", url) for url in asked)
