"""What `make stats` counts, on pages that were counted by hand."""

from __future__ import annotations

from pathlib import Path

from figgen.prose.counts import page_counts

PAGE = """# A title

Four words of prose, {{ bubble_fraction(stages=4, microbatches=8):.1%}}.

```figure
figure: bubble-table
```

??? question "Why?"
    Because {{ bubble_fraction(stages=4, microbatches=8):.1%}} is.
"""


def test_words_figures_numbers_and_problems_are_counted_and_added(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(PAGE, encoding="utf-8")
    (tmp_path / "b.md").write_text("# Two words\n", encoding="utf-8")
    rows = dict(page_counts(tmp_path))
    assert rows["a.md"] == (9, 1, 2, 1)  # title; Four words of prose; question Why; Because is
    assert rows["b.md"] == (2, 0, 0, 0)
    assert rows["all written pages"] == (11, 1, 2, 1)
    (generated,) = (counts for name, counts in rows.items() if name.endswith("generated pages"))
    assert generated[1] > 100


def test_a_folder_without_pages_has_nothing_to_count(tmp_path: Path) -> None:
    assert dict(page_counts(tmp_path))["all written pages"] == (0, 0, 0, 0)
