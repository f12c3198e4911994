"""Always evaluate, draw only what changed, and never serve a stale or broken picture."""

from __future__ import annotations

import re

import pytest

from figgen import cache, pictures
from figgen.errors import InputError

REQUEST = ("pipeline-timeline", {"schedule": "1f1b"}, "fig-a")
PLOTS = [("bubble-curves", {"stages": [4, p]}, f"fig-{p}") for p in (8, 16)]


def drawn(folder, *requests) -> tuple[int, int, list[str]]:
    """Return (drawn, cached, pictures) of one build with these figures."""
    build = pictures.Pictures(folder=folder)
    figures = [build.evaluated(*request) for request in requests]
    svgs = [build.picture(figure) for figure in figures]
    build.finish()
    return len(build.drawn), len(build.cached), svgs


def test_a_second_build_draws_nothing_and_gives_the_same_pictures(tmp_path):
    first = drawn(tmp_path, REQUEST)
    second = drawn(tmp_path, REQUEST)

    assert first[:2] == (1, 0)
    assert second[:2] == (0, 1)
    assert first[2] == second[2]


def test_only_a_figure_whose_numbers_changed_is_drawn_again(tmp_path):
    drawn(tmp_path, REQUEST, PLOTS[0])
    other = ("pipeline-timeline", {"schedule": "1f1b", "microbatches": 9}, "fig-a")

    assert drawn(tmp_path, other, PLOTS[0])[:2] == (1, 1)


def test_the_same_arguments_written_differently_are_the_same_picture(tmp_path):
    drawn(tmp_path, REQUEST)
    spelled_out = ("pipeline-timeline", {"stages": 4, "schedule": "1f1b", "forward": 1}, "fig-a")

    assert drawn(tmp_path, spelled_out)[:2] == (0, 1)


@pytest.mark.parametrize("damage", [lambda b: b[:100], lambda b: b"", lambda b: b + b" "])
def test_a_damaged_entry_is_drawn_again(tmp_path, damage):
    whole = drawn(tmp_path, REQUEST)[2]
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(damage(entry.read_bytes()))

    assert drawn(tmp_path, REQUEST) == (1, 0, whole)
    assert drawn(tmp_path, REQUEST)[:2] == (0, 1)


def test_what_is_derived_from_a_chart_is_made_once(tmp_path):
    made = []

    def make(chart):
        made.append(chart)
        return "a,b\r\n"

    for _ in range(2):
        build = pictures.Pictures(folder=tmp_path)
        assert build.derived(build.evaluated(*REQUEST), "csv", make) == "a,b\r\n"

    assert len(made) == 1


def test_without_a_folder_nothing_is_kept():
    assert drawn(None, REQUEST)[:2] == (1, 0)


def test_a_change_of_a_renderer_changes_every_key(monkeypatch, tmp_path):
    drawn(tmp_path, REQUEST)
    monkeypatch.setattr(pictures, "renderer_fingerprint", lambda: "another renderer")

    assert drawn(tmp_path, REQUEST)[:2] == (1, 0)


def test_bad_input_is_refused_before_anything_is_kept(tmp_path):
    with pytest.raises(InputError, match="stages"):
        drawn(tmp_path, ("pipeline-timeline", {"schedule": "1f1b", "stages": 0}, "fig-a"))

    assert cache.prune(tmp_path, keep=set(), limit=0) == 0


def test_the_report_counts_what_was_done(tmp_path):
    drawn(tmp_path, REQUEST)
    build = pictures.Pictures(folder=tmp_path)
    for request in (REQUEST, PLOTS[0]):
        build.picture(build.evaluated(*request))

    found, _, work = build.finish().partition("; ")
    assert found == "2 figures: 1 drawn, 1 from the cache"
    assert re.fullmatch(r"\d+\.\d s evaluating, \d+\.\d s drawing", work)
