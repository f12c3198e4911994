"""The gate's tables list every page, the worst of each kind, and its page."""

from __future__ import annotations

from tests.browser.gate.measured import LIMIT_KB, kind_of, table


def test_kind_follows_from_the_address() -> None:
    kinds = {kind_of(path) for path in ("/", "/guide/memory/", "/tools/modeler/", "/search/")}
    assert kinds == {"other", "chapter", "tool"}
    assert kind_of("/appendix/errata/") == "reference"
    assert {*LIMIT_KB} >= kinds


def test_table_has_the_worst_by_kind_and_names_its_page() -> None:
    told = [
        ("/guide/a/", {"kB": 80.0, "TBT ms": 10.0}),
        ("/guide/b/", {"kB": 118.4}),
        ("/guide/a/", {"no-JS %": 97.0}),
        ("/tools/c/", {"kB": 130.0, "no-JS %": 100.0}),
    ]
    every, kinds = table(told)[:4], table(told)[5:]
    assert [line.split() for line in every] == [
        ["page", "kB", "TBT", "ms", "no-JS", "%"],
        ["/guide/a/", "80", "10", "97"],
        ["/guide/b/", "118"],
        ["/tools/c/", "130", "100"],
    ]
    assert kinds[0].split() == ["kind", "pages", "median", "kB", "kB", "TBT", "ms", "no-JS", "%"]
    assert kinds[1].split() == ["chapter", "2", "99", "118", "10", "97"]
    assert "kB: worst 130 on /tools/c/" in kinds
    assert "no-JS %: worst 97 on /guide/a/" in kinds
    assert table([]) == []
