"""What a build reuses from the last one is what it would have computed."""

from __future__ import annotations

import pytest

from figgen.pictures import Pictures
from figgen.serving.answers import Answers, code_digest
from figgen.serving.code import SourceCode

FIGURE = ("pipeline-timeline", {"schedule": "1f1b"})


def asked(answers: Answers, made: list[str], *requests: str) -> list[str]:
    """Return the answers to these requests, and record those that had to be computed."""

    def make(request: str) -> str:
        made.append(request)
        return request.upper()

    return [answers.same(name, "", lambda name=name: make(name)) for name in requests]


def test_the_same_code_computes_each_request_once(tmp_path):
    made: list[str] = []
    for _ in range(2):
        assert asked(Answers(folder=tmp_path, code="a"), made, "x", "y", "x") == ["X", "Y", "X"]

    assert made == ["x", "y"]


def test_other_code_computes_anew_in_the_same_file(tmp_path):
    made: list[str] = []
    for code in "aba":
        asked(Answers(folder=tmp_path, code=code), made, "x")

    assert made == ["x", "x", "x"]
    assert len(list(tmp_path.iterdir())) == 1


def test_another_key_takes_the_place_of_the_one_before(tmp_path):
    made: list[str] = []
    for key in ("1", "2", "2", "1"):
        Answers(folder=tmp_path, code="a").same("x", key, lambda key=key: made.append(key) or key)

    assert made == ["1", "2", "1"]
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("damage", [lambda b: b[:70], lambda b: b"", lambda b: b[::-1]])
def test_a_damaged_file_is_computed_anew(tmp_path, damage):
    made: list[str] = []
    asked(Answers(folder=tmp_path, code="a"), made, "x")
    (stored,) = tmp_path.iterdir()
    stored.write_bytes(damage(stored.read_bytes()))

    assert asked(Answers(folder=tmp_path, code="a"), made, "x") == ["X"]
    assert made == ["x", "x"]


def test_a_folder_that_takes_nothing_only_costs_time(tmp_path):
    (tmp_path / "file").write_text("in the way")
    made: list[str] = []

    assert asked(Answers(folder=tmp_path / "file", code="a"), made, "x") == ["X"]


def test_only_code_of_the_package_is_known_by_its_sources(tmp_path):
    made: list[str] = []
    for _ in range(2):
        answers = Answers(folder=tmp_path, code="a")
        answers.figure("theirs", "tests.somewhere", lambda: made.append("theirs"))
        answers.figure("ours", "figgen.figures.somewhere", lambda: made.append("ours") or "found")

    assert made == ["theirs", "ours", "theirs"]


def test_a_figure_comes_back_as_it_was(tmp_path):
    charts = []
    for _ in range(2):
        answers = Answers(folder=tmp_path, code="a")
        charts.append(Pictures(memory=answers).evaluated(*FIGURE, "fig-a"))

    assert charts[0] == charts[1]
    assert charts[0].chart is not charts[1].chart


def test_the_digest_is_of_every_source_and_data_file_and_of_every_library(tmp_path, monkeypatch):
    (tmp_path / "one.py").write_text("a = 1\n")
    (tmp_path / "two.toml").write_text("b = 1\n")
    seen = {code_digest(SourceCode(root=tmp_path))}
    for name, text in (("one.py", "a = 2\n"), ("two.toml", "b = 2\n"), ("three.py", "")):
        (tmp_path / name).write_text(text)
        seen.add(code_digest(SourceCode(root=tmp_path)))

    for version in ("3.8", "3.9"):
        (tmp_path / "lib" / version / f"markdown-{version}.dist-info").mkdir(parents=True)
        monkeypatch.syspath_prepend(tmp_path / "lib" / version)
        seen.add(code_digest(SourceCode(root=tmp_path)))

    assert len(seen) == 6
