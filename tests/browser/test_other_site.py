"""A site of another subject, in MkDocs's own theme and without an address: what readers get."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.site import serve

ROOT = Path(__file__).parents[2]
TERMS = '["heating power"]\nmeans = "Heat in a second."\nshort = "HP"\nsee = "index.md"\n'
PAGE = """
HP decides, by [the law](formulas.md#heating_time).

```figure
figure: time-to-boil
id: one
preset: kitchen
as: plotly
caption: "It takes {{ time:in.2 min }}."
alt: "A line."
```

[](#fig-one) can be explored.
"""


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the site that `figgen start` writes, with a term and a figure to explore."""
    folder = tmp_path_factory.mktemp("other") / "kettles"
    settings = os.environ | {"PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([sys.executable, "-m", "figgen", "start", str(folder)], env=settings, check=True)
    (folder / "docs/glossary.toml").write_text(TERMS, "utf-8")
    module = folder / "kettle.py"
    text = module.read_text("utf-8").replace(
        '("time-to-boil")', '("time-to-boil", explorable=True)'
    )
    module.write_text(text, "utf-8")
    with (folder / "docs/index.md").open("a", encoding="utf-8") as page:
        page.write(PAGE)
    build = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
    ]  # not quiet: it would count no warning
    subprocess.run(build, cwd=folder, env=settings, check=True)
    with serve(folder / "site") as address:
        yield address


def test_figures_are_taken_home_explored_and_previewed(chromium: Browser, other: str) -> None:
    with chromium.new_context() as context:
        own = context.new_page()
        said: list[str] = []
        own.on("console", lambda message: said.append(message.text))
        # The theme's own script fails on any site without MkDocs's search.
        ours = lambda error: "/js/base.js" not in (error.stack or "")  # noqa: E731
        own.on("pageerror", lambda error: said.append(str(error)) if ours(error) else None)
        own.goto(other)
        figure = own.locator("#fig-one")
        figure.get_by_text("Data, files and citation").click()
        figure.get_by_role("button", name="Copy address").click()
        expect(figure.locator(".fig-copies output")).to_have_text(
            f"{own.url.rstrip('/')}/#fig-one"
        )  # no permission to copy: it is shown
        figure.get_by_role("button", name="Explore").click()
        expect(figure.locator(".ytitle")).to_have_text("time to the boil (min)")
        size = "element => parseFloat(getComputedStyle(element).fontSize)"
        assert figure.locator("summary").first.evaluate(size) == pytest.approx(13)
        own.locator("a.first-use").hover()
        expect(own.locator("#fig-preview")).to_have_text("heating power or HP: Heat in a second.")
        own.get_by_role("link", name="the law").hover()
        expect(own.locator("#fig-preview")).to_contain_text(
            "Time in which a power gives off a heat"
        )
        assert said == []
