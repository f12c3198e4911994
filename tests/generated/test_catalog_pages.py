"""Tables of the catalog: every entry, and every value with a source that the page lists."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape, unescape

import pytest

from figgen import catalog
from figgen.generated.catalog_pages import catalog_pages
from figgen.generated.data_tables import Sources, anchor, of_value, split_source

PAGES = catalog_pages()
ENTRIES = {
    "reference/hardware.md": [*catalog.ACCELERATORS, *catalog.LINKS],
    "reference/models.md": list(catalog.MODELS),
    "reference/runs.md": list(catalog.RUNS),
}
NOTED = {
    "reference/hardware.md": [*catalog.ACCELERATORS.values(), *catalog.LINKS.values()],
    "reference/models.md": list(catalog.MODELS.values()),
    "reference/runs.md": list(catalog.RUNS.values()),
}


@pytest.mark.parametrize("path", ENTRIES)
def test_every_entry_has_a_row_that_can_be_linked(path: str) -> None:
    ids = re.findall(r'<tr id="([^"]+)"', PAGES[path])
    assert ids == [anchor(name) for name in ENTRIES[path]]
    assert len(set(ids)) == len(ids)
    assert not any("." in name for name in ids)


@pytest.mark.parametrize("path", ENTRIES)
def test_every_row_names_a_source_that_the_page_lists(path: str) -> None:
    rows = re.findall(r"<tr id=.*?</tr>", PAGES[path])
    assert all(re.search(r'<td class="cited"><a href="#source-\d+">', row) for row in rows)
    cited = set(re.findall(r'href="#(source-\d+)"', PAGES[path]))
    listed = re.findall(r'<li id="(source-\d+)">', PAGES[path])
    assert cited == set(listed)


@pytest.mark.parametrize("path", ENTRIES)
def test_every_row_has_as_many_cells_as_there_are_headings(path: str) -> None:
    for table in re.findall(r"<table.*?</table>", PAGES[path], flags=re.S):
        headings = table.count('<th scope="col"')
        for row in re.findall(r"<tr id=.*?</tr>", table):
            assert row.count("<td") + 1 == headings


@pytest.mark.parametrize("path", ENTRIES)
def test_links_between_the_tables_lead_to_rows(path: str) -> None:
    for page, name in re.findall(r'href="\.\./(\w+)/#([^"]+)"', PAGES[path]):
        assert f'<tr id="{name}">' in PAGES[f"reference/{page}.md"]
    for name in re.findall(r'href="#((?!source-)[^"]+)"', PAGES[path]):
        assert f'id="{name}"' in PAGES[path]


@pytest.mark.parametrize("path", ENTRIES)
def test_every_note_of_the_catalog_stands_once_and_names_its_rows(path: str) -> None:
    lines = PAGES[path].split("## Notes")[1].split("## Sources")[0].strip().splitlines()[2:]
    said = {line.rsplit("): ", 1)[1] if "): " in line else line: line for line in lines}
    entries = [entry for entry in NOTED[path] if entry.note]
    assert len(said) == len(lines) == len({entry.note for entry in entries})
    for entry in entries:
        assert f"(#{anchor(entry.name)})" in said[entry.note]
        assert entry.note == entry.note.strip()
        assert not re.search(r"[`<*|]|\w_\w", entry.note), (
            "the names of the files are not a reader's"
        )


def test_a_caveat_that_changes_a_number_reaches_its_reader() -> None:
    hardware, runs = PAGES["reference/hardware.md"], PAGES["reference/runs.md"]
    assert "[AMD Instinct MI300X](#mi300x): A mesh without a switch: one peer gets 64 GB/s" in (
        hardware
    )
    assert "The chip is inferred from the order of the sections." in runs


def test_a_run_with_a_page_is_linked_to_it() -> None:
    assert PAGES["reference/runs.md"].count('<a href="../presets/') == sum(
        preset.kind == "training" for preset in catalog.PRESETS.values()
    )


def test_a_value_of_its_own_source_carries_it_and_an_unverified_one_its_mark() -> None:
    chip = catalog.accelerator("h800-sxm-80gb")
    cell = of_value(chip.hbm_capacity, chip.source)
    assert cell.unverified
    assert cell.text == "80 GB (80 GB to 85.9 GB)"
    measured = catalog.accelerator("h100-sxm-80gb")
    assert of_value(measured.measured_bf16, measured.source).source == (
        "S. Bekman, Machine Learning Engineering, compute/accelerator (744d01e), "
        "maximum achievable matmul tables"
    )
    assert of_value(None, "").text == "–"


def test_a_source_is_cut_into_title_and_place_even_where_titles_begin_alike() -> None:
    assert split_source("NVIDIA H100 product page") == ("NVIDIA H100 product page", "")
    title, place = split_source("MLCommons training results v5.0, a.json")
    assert (title, place) == ("MLCommons training results v5.0", "a.json")
    sources = Sources()
    assert sources.cited("A & B; NVIDIA A100 datasheet").startswith('<a href="#source-1">[1]</a>; ')
    assert "A &amp; B" in sources.html()
    assert 'href="https://www.nvidia.com/en-us/data-center/a100/"' in sources.html()


def test_nothing_of_a_value_is_lost_on_the_way_to_the_table() -> None:
    page = unescape(PAGES["reference/hardware.md"])
    for chip in catalog.ACCELERATORS.values():
        assert chip.hbm_capacity.printed in page
        assert chip.hbm_bandwidth.printed in page
    assert f'data-value="{989.4e12!r}"' in page


def test_a_dagger_stands_at_what_was_not_checked_at_its_source_and_says_so() -> None:
    gpt = catalog.model("gpt-3-175b").published_parameters
    assert gpt.confidence == "memory"
    mark = '<abbr title="not checked at the source">†</abbr>'
    row = re.search(r'<tr id="gpt-3-175b".*?</tr>', PAGES["reference/models.md"])
    assert row
    assert mark in row[0]
    # What was read in the source has no mark.
    row = re.search(r'<tr id="llama-3-405b".*?</tr>', PAGES["reference/models.md"])
    assert row
    assert mark not in row[0]
    for text in PAGES.values():
        assert "could look up" not in text
        assert ("†" in text) is ("not checked at the source" in text)


HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(1)">'


def test_texts_that_are_markup_stay_text_on_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog refuses such texts; if one gets in anyway, it is shown as text and
    has no effect."""
    texts = {"title": HOSTILE, "note": HOSTILE, "source": HOSTILE}
    for table in ("ACCELERATORS", "LINKS", "MODELS", "RUNS"):
        for name, entry in list(getattr(catalog, table).items())[:2]:
            own = {"explained": HOSTILE} if table == "MODELS" else {}
            monkeypatch.setitem(getattr(catalog, table), name, replace(entry, **texts, **own))

    for path, page in catalog_pages().items():
        assert "<script" not in page, path
        assert "<img" not in page, path
        assert escape(HOSTILE, quote=False) in unescape(escape(page)), path
