"""Records are read from a page's HTML, and the index finds each by its words."""

from __future__ import annotations

import json
import math

from figgen.search.index import FOLDER, IMPACTS, index, sheet
from figgen.search.publish import Found, search_files
from figgen.search.records import records
from figgen.search.words import Synonyms, words

PAGE = """<h1 id="page">Ring<a class="headerlink" href="#page">&para;</a></h1>
<p>Lead with <abbr title="hidden">NCCL</abbr> &amp; more, <span class="fig-keep"><button
type="button" class="fig-value" popovertarget="fig-a-1"><data
value="8e10">80&nbsp;GB</data></button>.</span>
<button type="button" class="fig-explore">Explore</button></p>
<h2 id="time">Its <code>time</code></h2><p>Takes <math display="inline"><mi>α</mi></math> each.</p>
<div class="fig-math"><math display="block"><mi>T</mi><mo>=</mo><mi>β</mi></math></div>
<figure class="figgen" id="fig-a"><div class="fig-tools"><div><p>cells</p></div></div>
<figcaption><a class="fig-number" href="#fig-a">Figure 1</a> A caption.</figcaption></figure>
<p>After it.</p><p data-search-exclude>Excluded text.</p>
<h2 id="gone" data-search-exclude>Notes</h2><p>Not this.</p><h3 id="nor">Nor</h3><p>that.</p>
<h2 id="rows">Rows</h2><table><tr id="h100"><th>H100 <a class="row-link" href="#h100">#</a></th>
<td>80 GB</td></tr></table>
<dl><dt><span id="rank">rank</span></dt><dd>One process.</dd></dl><p>End.</p>"""


def test_records_are_sections_figures_rows_and_terms() -> None:
    found = {(r.kind, r.anchor): (r.title, r.text) for r in records(PAGE)}
    assert found == {
        ("page", ""): ("Ring", "Lead with NCCL & more, 80 GB."),
        ("section", "time"): ("Its time", "Takes α each. After it."),
        ("figure", "fig-a"): ("Figure 1", "A caption."),
        ("section", "rows"): ("Rows", "End."),
        ("row", "h100"): ("H100", "80 GB"),
        ("term", "rank"): ("rank", "One process."),
    }
    assert records(PAGE)[1].symbols.split() == ["T", "β"]


def test_sections_of_formula_pages_are_formulas() -> None:
    kinds = {r.anchor: r.kind for r in records(PAGE, formulas=True)}
    assert kinds["time"] == "formula"


def unpacked(files: dict[str, str]) -> dict[str, list[tuple[int, int]]]:
    """Return every word's postings, as record and impact."""
    pieces = [json.loads(text) for name, text in files.items() if "words-" in name]
    found: dict[str, list[tuple[int, int]]] = {}
    for word, packed in (item for piece in pieces for item in piece.items()):
        number = 0
        for step, impact in zip(packed[::2], packed[1::2], strict=True):
            number += step
            found.setdefault(word, []).append((number, impact))
    return found


def test_every_word_of_every_record_is_indexed_and_titles_count_more() -> None:
    pages = [sheet("guide/ring/", "Ring", PAGE), sheet("about/", "About", "<h1>About</h1>Ring.")]
    files = index(pages, Synonyms([("NCCL", "HCCL")]))
    head = json.loads(files[f"{FOLDER}head.json"])
    found = unpacked(files)
    numbered = [record for page in pages for record in page.records]
    assert [r[2] for r in head["records"]] == [r.anchor for r in numbered]
    for number, record in enumerate(numbered):
        for word in words(f"{record.title} {record.text} {record.symbols}"):
            assert number in dict(found[word]), (record, word)
    assert dict(found["hccl"]).keys() == dict(found["nccl"]).keys()
    assert all(1 <= impact <= IMPACTS for pairs in found.values() for _, impact in pairs)
    ring = dict(found["ring"])
    assert ring[0] > 2 * ring[len(numbered) - 1]
    assert math.isclose(max(i for pairs in found.values() for _, i in pairs), IMPACTS)
    texts = json.loads(files[f"{FOLDER}text-0.json"])
    assert texts == [record.text for record in pages[0].records]


def test_words_are_in_the_piece_whose_range_they_fall_into() -> None:
    many = "".join(
        f'<h2 id="s{n}">Word{n} shared</h2><p>{"abc" * (n % 9)} q{n}</p>' for n in range(2000)
    )
    files = index([sheet("", "Home", f"<h1>Home</h1>{many}")], Synonyms([]))
    cuts = json.loads(files[f"{FOLDER}head.json"])["cuts"]
    assert len(cuts) > 2
    for number, cut in enumerate(cuts):
        piece = sorted(json.loads(files[f"{FOLDER}words-{number}.json"]))
        assert piece[0] == cut
        assert number + 1 == len(cuts) or piece[-1] < cuts[number + 1]


def test_front_matter_gives_a_page_other_names_and_the_search_page_is_left_out() -> None:
    meta = {"also": ["which layout"], "description": "A tree of questions."}
    files = search_files(
        [
            Found("guide/choosing/", "Choosing", "<h1>Choosing</h1>", meta),
            Found("search/", "Search", "<h1>Search</h1>"),
        ],
        {},
    )
    found = unpacked(files)
    assert {"layout", "tree", "question", "choos"} <= set(found)
    assert "search" not in found
