"""A build that reuses the last one's pages gives the same result as one without a cache."""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from pathlib import Path

from figgen.serving.answers import PREFIX, code_digest, file_of
from figgen.serving.code import SourceCode
from tests.browser.site import SOURCE_DATE_EPOCH, build, copy_of_the_project, few_pages
from tests.pages import BUBBLES
from tests.sessions import Session, session
from tests.test_determinism import tree
from tests.thorough import one_in

HOME = """# Home

Every figure is computed: a bubble takes {{ bubble_fraction(stages=8, microbatches=32):.1%}}.

```figure
figure: pipeline-timeline
schedule: 1f1b
stages: 4
microbatches: 8
caption: A pipeline.
alt: Four lanes.
```
"""
PAGE = """# A page

It calls NCCL for every message of [](index.md#fig-pipeline-timeline), as in [@hockney1994].
A link carries {{ link("nvlink4").bandwidth:si }}.
"""
PAGES = ("index.md", "a-page.md")
HOOK = "def on_config(config: MkDocsConfig) -> None:\n"
EDITS = {
    "page": ("docs/index.md", "\n```figure", "\nA sentence more.\n\n```figure"),
    "figure": ("docs/index.md", "\nmicrobatches: 8\n", "\nmicrobatches: 9\n"),
    "numbers on another page": ("docs/index.md", "```figure\n", f"{BUBBLES}\n```figure\n"),
    "inline value": ("docs/index.md", "microbatches=32)", "microbatches=33)"),
    "glossary": ("docs/glossary.toml", "NVIDIA's library of collectives", "A library of NVIDIA's"),
    "reference": ("docs/references.toml", '"Hockney 1994"', '"Hockney, 1994"'),
    "template": ("docs/overrides/main.html", "color-scheme", "color-schemes"),
    "option of Markdown": ("mkdocs.yml", "Link to this section", "A link"),
    "name of the site": ("mkdocs.yml", "site_name: ", "site_name: Now "),
}  # fmt: skip
# What a process loads once.
HOOKED = (
    "hooks/head.py", HOOK,
    "def on_page_markdown(markdown: str, **_: Any) -> str:\n"
    "    return markdown.replace(' every ', ' each ')\n\n\n" + HOOK,
)  # fmt: skip
CODE = (
    ("figgen/figures/pipeline/timelines.py", "Named(trace.makespan)", "Named(2 * trace.makespan)"),
    ("figgen/formulas/pipeline.py", "Idle share of the wall time", "Idling share of the time"),
    ("figgen/catalog/links.toml", 'bandwidth = "450 GB/s"', 'bandwidth = "449 GB/s"'),
)


def begun(work: Path, few: str, name: str) -> AbstractContextManager[Session]:
    """Return builds in one process of the project in `work` into a folder, with a cache
    next to it."""
    settings = {"FIGGEN_CACHE": str(work / f"{name}-cache"), "SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH}
    return session(work / "project", few, work / name, settings, "build")


def project(folder: Path) -> str:
    """A copy of the project with a page that uses everything that pages take from elsewhere."""
    few = few_pages(copy_of_the_project(folder), PAGES)
    for path, text in zip(PAGES, (HOME, PAGE), strict=True):
        (folder / "docs" / path).write_text(text)
    return few


def forget(cache: Path, *names: str) -> None:
    """Remove answers of these names, or all, from a cache."""
    for answer in map(file_of, names) if names else [p.name for p in cache.glob(f"{PREFIX}*")]:
        (cache / answer).unlink()


def test_after_every_kind_of_edit_a_build_gives_what_one_that_takes_nothing_over_gives(
    tmp_path: Path,
) -> None:
    few = project(tmp_path / "project")
    warm, clean = tmp_path / "warm", tmp_path / "clean"
    with begun(tmp_path, few, "warm") as kept:
        shutil.copytree(tmp_path / "warm-cache", tmp_path / "clean-cache")
        with begun(tmp_path, few, "clean") as fresh:
            before = tree(warm)
            assert before == tree(clean)
            for what, edit in one_in(5, [*EDITS.items()]):
                kept.replace(*edit)
                kept.build()
                forget(tmp_path / "clean-cache", *(f"page {path}" for path in PAGES), "search")
                fresh.build()
                assert tree(warm) == tree(clean), what
                assert before != (before := tree(warm)), what
    code = SourceCode(root=tmp_path / "project" / "figgen")
    kept.replace(*HOOKED)
    with begun(tmp_path, few, "warm"):
        assert before != (before := tree(warm)), "hook"
    # Every answer is kept under a digest of all code and data, so one build shows what each does.
    digests = [code_digest(code)]
    for edit in CODE:
        kept.replace(*edit)
        digests.append(code_digest(code))
    assert len({*digests}) == 1 + len(CODE)
    with begun(tmp_path, few, "warm"):
        assert before != tree(warm)
    forget(tmp_path / "clean-cache")
    with begun(tmp_path, few, "clean"):
        assert tree(warm) == tree(clean)


def test_of_what_is_wrong_with_a_page_every_build_tells(tmp_path: Path) -> None:
    folder = copy_of_the_project(tmp_path / "project")
    few = few_pages(folder, PAGES[:1])
    configuration = (folder / few).read_text().replace("not_found: ignore", "not_found: warn")
    (folder / few).write_text(configuration)
    (folder / "docs" / PAGES[0]).write_text("# Home\n\n[A link](nowhere.md).\n")
    said = [build(tmp_path / "site", folder, few, FIGGEN_CACHE=str(tmp_path)) for _ in range(2)]
    assert all("nowhere.md" in told for told in said)
