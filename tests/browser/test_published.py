"""The published site: at an address below a host, with a repository on GitHub."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, Request

from tests.browser import site as built
from tests.browser.gate.measured import PUBLISHED_KB
from tests.browser.paths import address_of
from tests.browser.test_pages import sent
from tests.browser.waits import at_rest
from tests.workflows.scripts import load

ADDRESS = "https://parallelism.example/guide/"
REPOSITORY = "https://github.com/example/parallelism"
SOURCES = ("index.md", "guide/pipeline-schedules.md", "about/accessibility.md")


def test_repository_is_linked_and_never_asked(
    page: Page, asked: list[Request], tmp_path: Path
) -> None:
    """The stock theme requests GitHub stars from the reader's browser; see the `page` fixture."""
    folder = tmp_path / "guide"
    settings = {"SITE_URL": ADDRESS, "REPO_URL": REPOSITORY, "EDIT_URI": "edit/main/docs/"}
    project = built.copy_of_the_project(tmp_path / "project")
    few = built.few_pages(project, SOURCES)
    assert built.build(folder, project, few, **settings) == ""
    assert built.build(tmp_path / "local", project, few) == ""
    for path in map(address_of, SOURCES):
        mine, local = (at / path[1:] / "index.html" for at in (folder, tmp_path / "local"))
        assert 0 < sent(mine) - sent(local) <= 1000 * PUBLISHED_KB
    with built.serve(tmp_path) as host:
        for path in map(address_of, SOURCES):
            at_rest(page, f"{host}/guide{path}")
            link = page.locator(".md-source").first
            assert link.get_attribute("href") == REPOSITORY
            assert link.get_attribute("data-md-component") is None
            canonical = page.locator("link[rel=canonical]").get_attribute("href")
            assert canonical == f"{ADDRESS}{path[1:]}"
            reports = page.locator(f"a[href^='{REPOSITORY}/issues/new?title=']")
            assert reports.count() == (path != "/")
    cited = (folder / "guide" / "pipeline-schedules" / "index.html").read_text("utf-8")
    assert f'">{ADDRESS}guide/pipeline-schedules/#fig-' in cited
    urls = [request.url for request in asked]
    assert all(url.startswith((f"{host}/guide/", "data:", "blob:")) for url in urls)
    assert not any(re.search(r"api\.|github", url) for url in urls)


def test_built_pages_take_what_a_version_says(site_folder: Path) -> None:
    """The list of versions, the note on an old page, and its canonical address find
    their places."""
    script = load("publish")
    page = (site_folder / script.VERSIONS).read_bytes()
    listed = script.with_versions(page, {"v1.0": {"bytes": 1.0, "published": 0.0}})
    assert listed.count(b'<li><a href="../../v1.0/" target="_self">v1.0</a></li>') == 1
    own = re.compile(rb'rel="canonical" href="([^"]*)guide/memory/"')
    memory = (site_folder / "guide/memory/index.html").read_bytes()
    found = own.search(memory)
    assert found
    address = found[1].decode()
    below = memory.replace(found[0], found[0].replace(found[1], found[1] + b"v1.0/"))
    marked = script.of_version(below, "guide/memory/index.html", "v1.0", address)
    again = own.search(marked)
    assert again
    assert again[1] == found[1]
    assert marked.count(b'class="admonition-title">Version v1.0<') == 1
    assert marked.index(b"Version v1.0<") < marked.index(b"<h1")
