"""What a build takes over from the last one is what it would have computed."""

from __future__ import annotations

import pytest

from figgen.pictures import Pictures
from figgen.serving.answers import Answers, code_digest
from figgen.serving.code import Code

FIGURE = ("pipeline-timeline", {"schedule": "1f1b"})


def asked(answers: Answers, made: list[str], *requests: str) -> list[str]:
    """The answers to these requests; those that had to be made are noted."""

    def make(request: str) -> str:
        made.append(request)
        return request.upper()

    found = [answers.same(request, lambda request=request: make(request)) for request in requests]
    answers.keep()
    return found


def test_the_same_code_computes_each_request_once(tmp_path):
    made: list[str] = []
    for _ in range(2):
        assert asked(Answers(tmp_path, "a"), made, "x", "y", "x") == ["X", "Y", "X"]

    assert made == ["x", "y"]


def test_other_code_computes_anew_and_one_file_is_kept(tmp_path):
    made: list[str] = []
    for code in "aba":
        asked(Answers(tmp_path, code), made, "x")

    assert made == ["x", "x", "x"]
    assert len(list(tmp_path.iterdir())) == 1


def test_what_is_not_asked_for_any_more_is_forgotten(tmp_path):
    made: list[str] = []
    for requests in (("x", "y"), ("x",), ("y",)):
        asked(Answers(tmp_path, "a"), made, *requests)

    assert made == ["x", "y", "y"]


@pytest.mark.parametrize("damage", [lambda b: b[:70], lambda b: b"", lambda b: b[::-1]])
def test_a_damaged_file_is_computed_anew(tmp_path, damage):
    made: list[str] = []
    asked(Answers(tmp_path, "a"), made, "x")
    (stored,) = tmp_path.iterdir()
    stored.write_bytes(damage(stored.read_bytes()))

    assert asked(Answers(tmp_path, "a"), made, "x") == ["X"]
    assert made == ["x", "x"]


def test_a_folder_that_takes_nothing_only_costs_time(tmp_path):
    (tmp_path / "file").write_text("in the way")
    made: list[str] = []

    assert asked(Answers(tmp_path / "file", "a"), made, "x") == ["X"]


def test_only_code_of_the_package_is_known_by_its_sources(tmp_path):
    made: list[str] = []
    for _ in range(2):
        answers = Answers(tmp_path, "a")
        answers.figure("theirs", "tests.somewhere", lambda: made.append("theirs"))
        answers.figure("ours", "figgen.figures.somewhere", lambda: made.append("ours"))
        answers.keep()

    assert made == ["theirs", "ours", "theirs"]


def test_a_figure_comes_back_as_it_was(tmp_path):
    charts = []
    for _ in range(2):
        answers = Answers(tmp_path, "a")
        charts.append(Pictures(memory=answers).evaluated(*FIGURE, "fig-a"))
        answers.keep()

    assert charts[0] == charts[1]
    assert charts[0].chart is not charts[1].chart


def test_the_digest_is_of_every_source_and_data_file(tmp_path):
    (tmp_path / "one.py").write_text("a = 1\n")
    (tmp_path / "two.toml").write_text("b = 1\n")
    seen = {code_digest(Code(tmp_path))}
    for name, text in (("one.py", "a = 2\n"), ("two.toml", "b = 2\n"), ("three.py", "")):
        (tmp_path / name).write_text(text)
        seen.add(code_digest(Code(tmp_path)))

    assert len(seen) == 4
